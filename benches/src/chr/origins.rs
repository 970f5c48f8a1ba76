//! What it costs to know the facts from which constraints follow.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use rules::{Goal, Program, Session, Setting, Value, run};

use super::cases::CASES;
use super::{Report, Scale, spread};
use crate::engines::report::digits;

/// Programs whose goals are facts over whole numbers.
const NAMES: [&str; 5] = ["gcd", "union_find", "reach", "sssp", "apsp"];

/// Runs goals at once, and in turns fact by fact in a session, which knows origins and can take each fact back.
pub(super) fn measure(scale: &Scale, report: &mut Report) -> anyhow::Result<()> {
    report.line("\n| program | size | a goal, ms | spread | a session, ms | spread | times as long |");
    report.line("| --- | ---: | ---: | --- | ---: | --- | ---: |");
    for case in CASES.iter().filter(|case| NAMES.contains(&case.name)) {
        let (_, text, goal) = case.read(scale)?;
        let program = Program::new(&text).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        let facts = goal.iter().map(|fact| read(fact)).collect::<Option<Vec<_>>>();
        let facts = facts.with_context(|| format!("the goal of {} has other facts", case.name))?;
        let goal = Goal::new(&text, &goal.join(", ")).map_err(|wrong| anyhow::anyhow!("{wrong:?}"))?;
        let (mut at_once, mut one_by_one) = (Vec::new(), Vec::new());
        for _ in 0..scale.rounds {
            let began = Instant::now();
            let answer = run(&goal, Setting::default())?;
            at_once.push(began.elapsed().as_secs_f64() * 1e3);
            let mut session = Session::new(&program, Setting::default());
            let began = Instant::now();
            for ((name, arguments), origin) in facts.iter().zip(1..) {
                let kind = session.kind(name, arguments.len()).context("it is a constraint")?;
                session.add(kind, arguments, origin)?;
            }
            one_by_one.push(began.elapsed().as_secs_f64() * 1e3);
            ensure!(session.count() == answer.store.len(), "{}: the stores differ", case.name);
        }
        let ([least, goal, most], session) = (spread(&mut at_once), spread(&mut one_by_one));
        report.line(&format!(
            "| {} | {} | {} | {} to {} | {} | {} to {} | {} |",
            case.name,
            case.sized(scale),
            digits(goal),
            digits(least),
            digits(most),
            digits(session[1]),
            digits(session[0]),
            digits(session[2]),
            digits(session[1] / goal)
        ));
    }
    Ok(())
}

/// The name and the arguments of `name(1,2)`.
fn read(fact: &str) -> Option<(&str, Vec<Value>)> {
    let (name, arguments) = fact.strip_suffix(')')?.split_once('(')?;
    let arguments = arguments.split(',').map(|number| number.parse().ok().map(Value::Int));
    Some((name, arguments.collect::<Option<_>>()?))
}
