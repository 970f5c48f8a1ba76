//! The paper's scheme: on a device, and as a program that a compiler takes.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rules::{Goal, Setting};
use rules_gpu::{Fact, Kernels, Letter, Program, Value, letter, run_facts, translate};

const MINIMUM: &str = "min(A) \\ min(B) <=> A =< B | true.";
const SUM: &str = "item(A), item(B) <=> C is A + B, item(C).";
const GCD: &str = "gcd(0) <=> true. gcd(N) \\ gcd(M) <=> 0 < N, N =< M | L is M - N, gcd(L).";
const PRIMES: &str = "prime(I) \\ prime(J) <=> J mod I =:= 0 | true.";
const FLOYD_WARSHALL: &str = "floydw @ edge(I, K, D1), edge(K, J, D2) \\ edge(I, J, D3) <=> D3 > D1 + D2 | D4 is D1 + D2, edge(I, J, D4).";
/// Floats, atoms, two kinds, a disjunction, three heads.
const MIXED: &str = ":- chr_constraint cell(?int, +float, ?any), swap(?int, ?int).
    order @ cell(I, X, red), swap(I, J) \\ cell(J, Y, K), cell(J, Z, K) <=> ( X > 1 ; Y =:= Z ), K \\== red | W is max(Y, Z) * 1.5 - X, cell(J, W, K).
    done @ cell(_, X, blue) \\ swap(_, J) <=> J < 0, floor(X) >= 0 | true.";

/// A program with its goal, and how it ends.
struct Case {
    text: &'static str,
    program: Program,
    facts: Vec<Fact>,
    expected: Vec<String>,
}

fn line((kind, arguments): &Fact) -> String {
    let mut line = kind.to_string();
    for argument in arguments {
        line.push(' ');
        line.push_str(&match argument {
            Value::Int(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Atom(number) => number.to_string(),
        });
    }
    line
}

fn sorted(facts: &[Fact]) -> Vec<String> {
    let mut lines: Vec<_> = facts.iter().map(line).collect();
    lines.sort_unstable();
    lines
}

fn case(text: &'static str, goal: &str) -> Case {
    let mut program = Program::new(text).expect("devices take it");
    let facts = program.goal(goal).expect("devices take it");
    let answer =
        rules::run(&Goal::new(text, goal).expect("it is read"), Setting::default()).expect("an answer");
    let left = program.goal(&answer.store.join(", ")).expect("it is of the same kind");
    Case { text, program, facts, expected: sorted(&left) }
}

fn cases() -> Vec<Case> {
    let all = |part: &dyn Fn(i64) -> String, range: std::ops::Range<i64>| {
        range.map(part).collect::<Vec<_>>().join(", ")
    };
    let edges = all(
        &|pair| {
            let (from, to) = (pair / 6, pair % 6);
            // A path around is shorter than the street.
            format!("edge({from}, {to}, {})", if (from + 1) % 6 == to { 2 } else { 9 + pair })
        },
        0..36,
    );
    vec![
        case(MINIMUM, &all(&|number| format!("min({})", (number * 37) % 101 - 50), 0..60)),
        case(SUM, &all(&|number| format!("item({number})"), -20..31)),
        case(GCD, "gcd(357), gcd(273), gcd(1267), gcd(959), gcd(1008), gcd(1232)"),
        case(PRIMES, &all(&|number| format!("prime({number})"), 2..120)),
        case(FLOYD_WARSHALL, &edges),
        case(
            MIXED,
            "cell(1, 0.5, red), cell(2, 1.25, green), cell(2, 1.25, green), cell(3, 4.0, blue), swap(1, 2), swap(1, -3)",
        ),
    ]
}

#[test]
fn the_papers_scheme_has_the_processors_answers_with_claims() {
    let kernels: Kernels = crate::kernels();
    for case in cases() {
        for pairs in [false, true] {
            let settings = Letter { pairs, ..Letter::default() };
            let outcome = letter(&case.program, &case.facts, &kernels, settings, &Setting::default());
            let outcome = outcome.unwrap_or_else(|error| panic!("{error}: {}", case.text));
            assert_eq!(sorted(&outcome.store), case.expected, "{}, {settings:?}", case.text);
        }
        let outcome =
            run_facts(&case.program, &case.facts, &kernels, &Setting::default()).expect("an outcome");
        assert_eq!(sorted(&outcome.store), case.expected, "{}", case.text);
    }
}

/// Compiles a translation. None where there is no compiler.
fn compiled(folder: &Path, name: &str, source: &str, flags: &[&str]) -> Option<std::path::PathBuf> {
    let (file, program) = (folder.join(format!("{name}.cu")), folder.join(name));
    std::fs::write(&file, source).expect("written");
    let mut command = Command::new("g++");
    command.args(["-x", "c++", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-o"]);
    let output = command.arg(&program).args(flags).arg(&file).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

fn run(program: &Path, facts: &[Fact]) -> Vec<String> {
    let mut child =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut goal = child.stdin.take().expect("it is piped");
    for fact in facts {
        writeln!(goal, "{}", line(fact)).expect("it reads");
    }
    drop(goal);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{:?}", output.status);
    let text = String::from_utf8(output.stdout).expect("numbers");
    let mut lines: Vec<_> = text.lines().map(ToOwned::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn translated_programs_are_compiled_and_have_the_processors_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    for (idx, case) in cases().iter().enumerate() {
        let source = translate(case.text).expect("it has a form");
        let flags: &[&str] = if idx % 2 == 0 { &["-std=c++17"] } else { &["-std=c++17", "-DPAIRS"] };
        let Some(program) = compiled(folder.path(), &format!("p{idx}"), &source, flags) else {
            eprintln!("NOT TESTED: there is no g++");
            return;
        };
        assert_eq!(run(&program, &case.facts), case.expected, "{}", case.text);
    }
}

/// Two threads on two multiprocessors look at the same pair, one from either side, and both find that the rule applies.
#[test]
fn without_claims_constraints_are_lost_and_removed_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let interleaved = ["-std=c++20", "-DINTERLEAVED", "-pthread"];
    let cases = [
        // Each removes the other.
        case(MINIMUM, "min(3), min(3)"),
        // Each takes both, and marks the other's sum as removed.
        case(SUM, "item(3), item(4)"),
    ];
    for (idx, case) in cases.iter().enumerate() {
        let source = translate(case.text).expect("it has a form");
        let published = [&interleaved[..], &["-DAS_PUBLISHED"]].concat();
        let Some(program) = compiled(folder.path(), &format!("wrong{idx}"), &source, &published) else {
            eprintln!("NOT TESTED: there is no g++");
            return;
        };
        assert_eq!(run(&program, &case.facts), [""; 0], "{}", case.text);
        let program =
            compiled(folder.path(), &format!("right{idx}"), &source, &interleaved).expect("a compiler");
        assert_eq!(run(&program, &case.facts), case.expected, "{}", case.text);
    }
}

/// A dozen threads that go in step.
#[test]
fn with_claims_threads_that_go_in_step_have_the_processors_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let items =
        |name: &str| (1..=12).map(|number| format!("{name}({number})")).collect::<Vec<_>>().join(", ");
    for (idx, case) in [case(SUM, &items("item")), case(PRIMES, &items("prime"))].iter().enumerate() {
        let source = translate(case.text).expect("it has a form");
        let flags = ["-std=c++20", "-DINTERLEAVED", "-pthread"];
        let Some(program) = compiled(folder.path(), &format!("p{idx}"), &source, &flags) else {
            eprintln!("NOT TESTED: there is no g++");
            return;
        };
        assert_eq!(run(&program, &case.facts), case.expected, "{}", case.text);
    }
}

#[test]
fn a_translation_has_made_names_alone() {
    let source = translate("'*/ evil'(Abc, xyz) \\ '*/ evil'(Abc, Def) <=> Def \\== xyz | true.")
        .expect("it has a form");
    for text in ["evil", "Abc", "xyz", "Def"] {
        assert!(!source.contains(text), "{text}");
    }
}

#[test]
fn what_has_no_translation_is_told_with_its_rule() {
    for (text, told) in [
        ("p(X) ==> q(X). q(X) <=> true.", "rule 1: line 1, column 1: it removes nothing"),
        (
            "ok @ p(X) <=> true.\ngrows @ p(X) <=> p(X), p(X).",
            "rule grows: line 2, column 1: it adds p and removes none",
        ),
        ("p(X) <=> Y is X / 2, p(Y).", "rule 1: line 1, column 1: a quotient of whole numbers"),
        ("p(1.5) <=> true. p(2) <=> true.", "rule 2: line 1, column 18: something has values of two types"),
        ("p(X) <=> X = f(_) | true.", "rule 1: line 1, column 14: a device takes numbers and atoms"),
        ("p(X <=> true.", "line 1, column"),
    ] {
        let found = translate(text).expect_err("it is refused").to_string();
        assert!(found.starts_with(told), "{text}: {found}");
    }
}
