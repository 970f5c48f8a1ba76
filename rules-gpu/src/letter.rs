//! The paper's subset: rules that take something away, and put what they add in its place.

use std::time::Instant;

use kernels::rules::{self as k, HEAD, STACK, UNCLAIMED};
use rules::Setting;

use crate::compile::{Compiled, Search, bits};
use crate::distance::measured;
use crate::kernels::Kernels;
use crate::memory::{Head, Memory, upload, write};
use crate::run::{Error, Fact, Outcome, constraints, error_of};
use crate::subset::{Action, Program, Refusal, Rule, number};

/// How `letter` works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Whether threads have pairs of constraints for the first two heads, and not one for the first ("both loops").
    pub pairs: bool,
    /// Whether threads claim the heads before they fire. The paper's do not: its answers may then be wrong.
    pub claims: bool,
}

impl Default for Letter {
    /// The outer loop over threads, with claims.
    fn default() -> Self {
        Self { pairs: false, claims: true }
    }
}

/// For each constraint that a rule adds, the head in whose place it comes (section 4.2).
///
/// # Errors
/// Why the paper's scheme has no form for the rule.
pub(crate) fn targets(program: &Program, rule: &Rule) -> Result<Vec<usize>, Refusal> {
    let refused = |what: String| {
        let fault = rules::view::fault(&program.text, rule.at, what);
        Err(Refusal::Rule { rule: rule.name.clone(), fault })
    };
    let mut free: Vec<_> = (0..rule.heads.len()).filter(|place| rule.heads[*place].is_removed).collect();
    if free.is_empty() {
        return refused(
            "it removes nothing, and the arrays of the translation have no room for what it adds".to_owned(),
        );
    }
    let mut targets = Vec::new();
    for action in &rule.body {
        let Action::Add(kind, _) = action else { continue };
        let Some(at) = free.iter().position(|place| rule.heads[*place].kind == *kind) else {
            let name = &program.kinds[*kind].name;
            return refused(format!("it adds {name} and removes none in whose place that could come"));
        };
        targets.push(free.remove(at));
    }
    Ok(targets)
}

/// Applies rules as the paper does: one after another on every combination of constraints, until nothing changes.
///
/// # Errors
/// As [`run`](crate::run()), and a rule that is not of the paper's subset. The bound on steps is one on applications.
pub fn letter(
    program: &Program,
    facts: &[Fact],
    kernels: &Kernels,
    settings: Letter,
    setting: &Setting,
) -> Result<Outcome, Error> {
    let mut places = Vec::new();
    for rule in &program.rules {
        let mut targets: Vec<_> = targets(program, rule)?.into_iter().map(number).collect();
        targets.resize(STACK, 0);
        places.extend(targets);
    }
    let compiled = Compiled::new(program, Search::Exhaustive)?;
    if facts.is_empty() {
        return Ok(Outcome { is_success: true, ..Outcome::default() });
    }
    // An array a kind, one behind the other.
    let mut sorted: Vec<&Fact> = facts.iter().collect();
    sorted.sort_by_key(|(kind, _)| *kind);
    let begins = (0..=program.kinds.len()).map(|kind| number(sorted.partition_point(|fact| fact.0 < kind)));
    let begins: Vec<_> = begins.collect();
    measured(program, setting)?;
    let (kernel, form) = kernels.letter_for(&compiled, facts.len())?;
    let mut memory =
        Memory::new(kernels.device(), kernels.rounds().clone(), &compiled, number(facts.len()), 1)?;
    let width = memory.layout.width as usize;
    let (mut values, mut types) = (vec![0_u64; facts.len() * width], vec![0_u8; facts.len() * width]);
    for (at, (_, arguments)) in sorted.iter().enumerate() {
        for (idx, argument) in arguments.iter().enumerate() {
            let (value, kind) = bits(*argument);
            values[at * width + idx] = value;
            types[at * width + idx] = u8::try_from(kind).expect("there are three");
        }
    }
    let stream = &memory.stream;
    let kinds: Vec<_> = sorted.iter().map(|(kind, _)| number(*kind)).collect();
    write(stream, &kinds, &memory.store.kinds)?;
    write(stream, &values, &memory.store.values)?;
    write(stream, &types, &memory.store.types)?;
    let (begins, places) = (upload(stream, &begins)?, upload(stream, &places)?);
    let locks = kernels.device().buffer(facts.len())?;
    let mut head: Head = [0; HEAD];
    head[k::HEAD_ERROR] = UNCLAIMED;
    stream.synchronize()?;
    let began = Instant::now();
    let mut rounds = 0;
    loop {
        // The flag `update` of section 5.
        head[k::HEAD_NEW] = 0;
        memory.write_head(&head)?;
        for rule in 0..memory.layout.occurrences {
            let threads = facts.len() as u64 * if settings.pairs { facts.len() as u64 } else { 1 };
            let mut launch = memory.launch(1);
            if !kernels.device().is_host() {
                let blocks = threads.div_ceil(crate::launchers::BLOCK_OF_LETTER.into()).min(1 << 20);
                launch.grid = u32::try_from(blocks).expect("it is bounded");
            }
            kernel.fire(launch, &begins, &places, &locks, rule, settings.pairs, settings.claims)?;
        }
        head = memory.read_head()?;
        rounds += 1;
        if head[k::HEAD_ERROR] != UNCLAIMED {
            break;
        }
        if head[k::HEAD_APPLIED] > setting.bounds.steps {
            let error = rules::Error::Steps(setting.bounds.steps);
            return Err(Error::Rules { rule: None, error });
        }
        if head[k::HEAD_NEW] == 0 {
            let rounds_took = began.elapsed();
            let store = constraints(&memory, program, facts.len())?;
            let applications = head[k::HEAD_APPLIED];
            return Ok(Outcome { is_success: true, store, applications, rounds, form, rounds_took });
        }
    }
    if head[k::HEAD_ERROR] & 0xff == 0xff {
        let (applications, rounds_took) = (head[k::HEAD_APPLIED], began.elapsed());
        return Ok(Outcome { applications, rounds, form, rounds_took, ..Outcome::default() });
    }
    Err(error_of(program, head[k::HEAD_ERROR]))
}
