//! A program as the header that kernels are compiled with: `rules_program.cuh` of `kernels/include/rules_compiled.cuh`.
//!
//! Each run of the interpreter's code becomes a function that does the same word by word, with its stack in variables. It has numbers alone;
//! nothing of a program's text gets into it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kernels::rules::{self as k, NOWHERE};

use crate::compile::Compiled;

/// Adds a line.
macro_rules! line {
    ($to:expr, $($part:tt)*) => {
        writeln!($to, $($part)*).expect("a text takes it")
    };
}

/// The header of a program.
pub(crate) fn program_source(compiled: &Compiled) -> String {
    let mut out = String::from("#pragma once\n");
    line!(out, "constexpr uint32_t RULES_OCCURRENCES_COUNT = {};", compiled.occurrences.len());
    // An array has at least one element.
    line!(out, "constexpr RulesOccurrence RULES_OCCURRENCES[{}] = {{", compiled.occurrences.len().max(1));
    for occurrence in &compiled.occurrences {
        let k::Occurrence { rule, heads, removed, propagation, rotates, body, adds, stays, steps } =
            occurrence;
        line!(
            out,
            "  {{{rule}u, {heads}u, {removed}u, {propagation}u, {rotates}u, {body}u, {adds}u, {stays}u, {{"
        );
        for k::Step { kind, place, index, key, key_count, code, earlier } in steps {
            line!(out, "    {{{kind}u, {place}u, {index}u, {key}u, {key_count}u, {code}u, {earlier}u}},");
        }
        line!(out, "  }}}},");
    }
    line!(out, "}};");
    let mut begins = BTreeSet::new();
    for (number, occurrence) in compiled.occurrences.iter().enumerate() {
        begins.insert(occurrence.body);
        for (depth, step) in occurrence.steps[..occurrence.heads as usize].iter().enumerate() {
            begins.insert(step.code);
            if step.index != NOWHERE {
                key(&mut out, compiled, number, depth, step);
            }
        }
    }
    for begin in begins {
        code(&mut out, compiled, begin as usize);
    }
    out
}

/// The parts of an instruction.
fn parts(word: u32) -> (u32, u32, u32) {
    (word & 0xff, word >> 8 & 0xff, word >> 16)
}

/// A constant or a variable.
fn operand(compiled: &Compiled, word: u32) -> String {
    let (op, _, b) = parts(word);
    if op == k::PUSH_SLOT {
        return format!("RulesCell{{frame->bits[{b}], frame->types[{b}]}}");
    }
    constant(compiled, b)
}

fn constant(compiled: &Compiled, number: u32) -> String {
    let k::Value { bits, kind, .. } = compiled.constants[number as usize];
    format!("RulesCell{{{bits:#x}ull, {kind}u}}")
}

/// The bucket of a head's key.
fn key(out: &mut String, compiled: &Compiled, number: usize, depth: usize, step: &k::Step) {
    let begin = step.key as usize;
    let mut words =
        compiled.code[begin..begin + step.key_count as usize].iter().map(|word| operand(compiled, *word));
    let last = words.next_back().expect("a key has a part");
    line!(out, "template <>\nstruct RulesKey<{number}, {depth}> {{");
    line!(
        out,
        "  MEMBER static uint32_t find([[maybe_unused]] const RulesFrame& known, uint32_t buckets) {{"
    );
    line!(out, "    [[maybe_unused]] const RulesFrame* frame = &known;\n    uint64_t hash = 0;");
    for part in words {
        line!(out, "    hash = rules_mix_cell(hash, {part});");
    }
    line!(out, "    return rules_bucket_of(hash, {last}, buckets);\n  }}\n}};");
}

/// What the interpreter does from a word on, up to the end of that run.
fn code(out: &mut String, compiled: &Compiled, begin: usize) {
    // A run of code has one NO, its last word.
    let len = compiled.code[begin..].iter().take_while(|word| **word & 0xff != k::NO).count() + 1;
    let words: Vec<_> = compiled.code[begin..begin + len].iter().map(|word| parts(*word)).collect();
    let jumps = words.iter().filter(|(op, ..)| matches!(*op, k::JUMP | k::JUMP_UNLESS));
    let targets: BTreeSet<usize> = jumps.map(|(_, _, to)| *to as usize - begin).collect();
    let width = compiled.width;
    line!(out, "template <>\nstruct RulesCode<{begin}> {{");
    line!(
        out,
        "  MEMBER static uint32_t run([[maybe_unused]] const RulesStore& store, [[maybe_unused]] uint32_t id,\n      \
         [[maybe_unused]] RulesFrame* frame, [[maybe_unused]] const uint32_t* out, [[maybe_unused]] uint32_t* error, bool same) {{"
    );
    line!(
        out,
        "    [[maybe_unused]] RulesCell s[{}];\n    [[maybe_unused]] bool truth = true;",
        k::STACK + 4
    );
    let arguments = |ops: &[u32]| {
        words.iter().filter(|(op, ..)| ops.contains(op)).map(|(_, a, _)| *a).collect::<BTreeSet<_>>()
    };
    let looked_at = arguments(&[k::MATCH_CONSTANT, k::MATCH_SLOT, k::BIND]);
    for argument in &looked_at {
        line!(out, "    RulesCell a{argument} = rules_value(store, {width}, id, {argument});");
    }
    for argument in &looked_at {
        line!(out, "    RULES_EARLY(a{argument}.bits);");
    }
    // What matches arguments stands before all else.
    let mut is_matching = true;
    let (mut top, mut added) = (0, 0);
    for (at, (op, a, b)) in words.iter().copied().enumerate() {
        if targets.contains(&at) {
            // Nothing is on the stack where a jump lands.
            line!(out, "  L{at}:");
            top = 0;
        }
        if is_matching && !matches!(op, k::MATCH_CONSTANT | k::MATCH_SLOT | k::BIND) {
            is_matching = false;
            line!(out, "    if (!same) return RAN_NO;");
        }
        match op {
            k::YES => line!(out, "    return RAN_YES;"),
            k::NO => line!(out, "    return RAN_NO;"),
            k::MATCH_CONSTANT => {
                line!(out, "    same &= rules_same(a{a}, {});", constant(compiled, b));
            }
            k::MATCH_SLOT => {
                let known = operand(compiled, k::PUSH_SLOT | b << 16);
                line!(out, "    same &= rules_same(a{a}, {known});");
            }
            k::BIND => line!(out, "    rules_bind(frame, {b}, a{a});"),
            k::PUSH_CONSTANT | k::PUSH_SLOT => {
                line!(out, "    s[{top}] = {};", operand(compiled, op | b << 16));
                top += 1;
            }
            k::STORE => {
                top -= 1;
                line!(out, "    rules_bind(frame, {b}, s[{top}]);");
            }
            k::NUMBER => {
                line!(out, "    if (s[{}].type == NAME) return *error = NOT_A_NUMBER, RAN_ERROR;", top - 1);
            }
            k::UNARY => {
                let on = top - 1;
                line!(
                    out,
                    "    if ((*error = rules_unary({a}, s[{on}], &s[{on}])) != NO_ERROR) return RAN_ERROR;"
                );
            }
            k::BINARY => {
                top -= 1;
                let on = top - 1;
                line!(
                    out,
                    "    if ((*error = rules_binary({a}, s[{on}], s[{top}], &s[{on}])) != NO_ERROR) return RAN_ERROR;"
                );
            }
            k::DISTANCE => {
                top -= 3;
                let [a, b, c, d] = [top - 1, top, top + 1, top + 2];
                line!(
                    out,
                    "    if ((*error = rules_distance(s[{a}], s[{b}], s[{c}], s[{d}], &s[{a}])) != NO_ERROR) return RAN_ERROR;"
                );
            }
            k::COMPARE => {
                top -= 2;
                line!(
                    out,
                    "    if ((*error = rules_compare({a}, s[{top}], s[{}], &truth)) != NO_ERROR) return RAN_ERROR;",
                    top + 1
                );
            }
            k::SAME => {
                top -= 2;
                line!(out, "    truth = rules_same(s[{top}], s[{}]) == {};", top + 1, a != 0);
            }
            k::JUMP => line!(out, "    goto L{};", b as usize - begin),
            k::JUMP_UNLESS => line!(out, "    if (!truth) goto L{};", b as usize - begin),
            _ => {
                top -= a as usize;
                for argument in 0..a as usize {
                    line!(
                        out,
                        "    rules_write(store, {width}, out[{added}], {argument}, s[{}]);",
                        top + argument
                    );
                }
                line!(out, "    store.kinds[out[{added}]] = {b};");
                added += 1;
            }
        }
    }
    line!(out, "  }}\n}};");
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;
    use crate::compile::Search;
    use crate::subset::Program;

    /// A replacement by two partners, a propagation with a distance, and a guard with jumps.
    const PROGRAM: &str =
        "edge(I, K, D1), edge(K, J, D2) \\ edge(I, J, D3) <=> D3 > D1 + D2 | D4 is D1 + D2, edge(I, J, D4).
        at(T, X, Y), at(U, V, W) ==> T < U, distance(X, Y, V, W) < 80 | near(T, U).
        near(T, 'it''s') \\ near(T, U) <=> ( U == 1.5 ; \\+ T = U ) | true.";

    fn source(search: Search) -> String {
        let program = Program::new(PROGRAM).expect("devices take it");
        program_source(&Compiled::new(&program, search).expect("it is small"))
    }

    #[test]
    fn the_source_of_a_program_is_as_it_was() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/rules_program.cuh");
        let found = source(Search::Indexed);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &found).expect("written");
        }
        let expected = std::fs::read_to_string(&path).expect("it is beside the sources");
        assert_eq!(found, expected, "UPDATE_GOLDEN=1 rewrites {}", path.display());
        for text in ["edge", "near", "it's"] {
            assert!(!found.contains(text), "{text}");
        }
    }

    /// The compiler that `make ptx` fetches, where it did.
    fn nvcc() -> Option<PathBuf> {
        let venv = std::env::var_os("NVCC_VENV").map(PathBuf::from);
        let venv = venv.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/nvcc"));
        let pythons = venv.join("lib").read_dir().ok()?.flatten();
        pythons
            .map(|python| python.path().join("site-packages/nvidia/cu13/bin/nvcc"))
            .find(|nvcc| nvcc.exists())
    }

    #[test]
    fn cudas_compiler_takes_the_sources_of_both_schemes() {
        let Some(nvcc) = nvcc() else {
            eprintln!("NOT TESTED: there is no nvcc");
            return;
        };
        for (search, kernels) in [(Search::Indexed, k::SOURCE), (Search::Exhaustive, k::LETTER_SOURCE)] {
            let folder = tempfile::tempdir().expect("a folder");
            let program = source(search);
            let files =
                k::HEADERS.into_iter().chain([("rules_program.cuh", &*program), ("kernels.cu", kernels)]);
            for (name, text) in files {
                std::fs::write(folder.path().join(name), text).expect("written");
            }
            let mut command = Command::new(&nvcc);
            command
                .args(["-ptx", "-arch=compute_75", "-std=c++17", "-o"])
                .arg(folder.path().join("kernels.ptx"));
            command.arg(format!("-D{}", k::COMPILED)).arg(folder.path().join("kernels.cu"));
            let output = command.output().expect("it starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let ptx = std::fs::read_to_string(folder.path().join("kernels.ptx")).expect("written");
            let entry = if search == Search::Indexed { ".entry rules_seek(" } else { ".entry rules_letter(" };
            assert!(ptx.contains(entry), "{search:?}");
        }
    }
}
