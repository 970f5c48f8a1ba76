//! Rule sets: what is read is what is shown, a program stays within its bounds, and goes on from what was kept.

use rules::{Bounds, Session, Setting, Value};

use super::documents::{Readers, read};
use crate::ingest::rules::{ReadRules, read as read_rules};

/// Facts that are added.
const FACTS: i64 = 24;

/// A rule set, as `PUT /v1/rules/{name}` takes it.
pub fn rule_set(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parse = |readers: &Readers, text: &str| read_rules(&readers.subscriptions, text);
    read(text, parse, |readers, ReadRules { facts, program, publications, text, .. }| {
        let again = parse(readers, &text).expect("what is shown can be put again");
        assert_eq!(again.text, text);
        let bounds = Bounds { steps: 1_000, looks: 10_000, words: 100_000, constraints: 1_000 };
        let setting = Setting { bounds, ..Setting::default() };
        let mut session = Session::new(&program, setting.clone());
        let mut other = None;
        let kinds: Vec<_> = program.constraints().map(|(name, arity)| (name.to_owned(), arity)).collect();
        for (turn, number) in (0..FACTS).enumerate() {
            let Some(fact) = facts.iter().cycle().nth(turn) else { return };
            if number == FACTS / 2 {
                let kept = session.snapshot();
                other = Some(
                    Session::restore(&program, setting.clone(), &kept).expect("what was kept can be read"),
                );
            }
            let arguments: Vec<_> = (0..fact.arguments.len()).map(|_| Value::Int(number % 5)).collect();
            let add = |session: &mut Session| {
                let kind = session.kind(&fact.name, arguments.len()).expect("a fact is a constraint");
                let added =
                    session.add(kind, &arguments, number.cast_unsigned()).map_err(|error| error.to_string());
                let taken = kinds.iter().filter(|(name, _)| publications.iter().any(|one| one.name == *name));
                let taken = taken.filter_map(|(name, arity)| session.kind(name, *arity)).collect::<Vec<_>>();
                let taken: Vec<_> = taken.into_iter().map(|kind| session.take(kind)).collect();
                format!("{added:?} {taken:?} {}", session.count())
            };
            let told = add(&mut session);
            if let Some(other) = &mut other {
                assert_eq!(told, add(other));
            }
        }
    });
}
