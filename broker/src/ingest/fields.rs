//! Members of documents of situations: each is taken, or a fault says what it should be.

use checks::Clock;
use wire::Fault;

use super::json::{self, Members};
use super::subscription::{below, quoted};
use crate::model::error::ApiError;

pub(super) const SECONDS: &str = "a number of seconds, 0 or more";

const CLOCKS: [(&str, Clock); 2] = [("arrival", Clock::Arrival), ("event", Clock::Event)];

/// Takes the time that a situation goes by.
pub(super) fn clock(members: &mut Members<'_>, faults: &mut Vec<Fault>) -> Clock {
    choice(members, "clock", CLOCKS, faults)
}

/// Name of a clock.
pub(super) const fn name_of(clock: Clock) -> &'static str {
    match clock {
        Clock::Arrival => "arrival",
        Clock::Event => "event",
    }
}

/// Takes a member that is one of some words; the first where it is absent.
pub(super) fn choice<T: Copy, const N: usize>(
    members: &mut Members<'_>,
    name: &str,
    words: [(&str, T); N],
    faults: &mut Vec<Fault>,
) -> T {
    let Some(text) = members.take(name) else { return words[0].1 };
    let found = words.iter().find(|(word, _)| json::read_text(text).is_ok_and(|text| text == *word));
    if found.is_none() {
        let listed: Vec<_> = words.iter().map(|(word, _)| quoted(word)).collect();
        fault::<()>(faults, &json::pointer("", name), &format!("must be one of {}", listed.join(", ")));
    }
    found.map_or(words[0].1, |(_, value)| *value)
}

pub(super) fn fault<T>(faults: &mut Vec<Fault>, pointer: &str, detail: &str) -> Option<T> {
    faults.push(Fault { pointer: pointer.to_owned(), detail: detail.to_owned() });
    None
}

/// Takes a number that is not negative.
pub(super) fn number(
    members: &mut Members<'_>,
    name: &str,
    expected: &str,
    parent: &str,
    faults: &mut Vec<Fault>,
) -> Option<f64> {
    let pointer = json::pointer(parent, name);
    let Some(text) = members.take(name) else {
        return fault(faults, &pointer, &format!("must be {expected}"));
    };
    match json::read::<f64>(text, &pointer, expected) {
        Ok(number) if number >= 0.0 => Some(number),
        Ok(_) => fault(faults, &pointer, &format!("must be {expected}")),
        Err(found) => {
            faults.push(found);
            None
        }
    }
}

/// Takes a member that is an object.
pub(super) fn object<'a>(
    members: &mut Members<'a>,
    name: &str,
    expected: &str,
    faults: &mut Vec<Fault>,
) -> Result<Option<Members<'a>>, ApiError> {
    let pointer = json::pointer("", name);
    let Some(text) = members.take(name) else {
        return Ok(fault(faults, &pointer, &format!("must be {expected}")));
    };
    match Members::parse(text) {
        Ok(found) => Ok(Some(found)),
        Err(refusal) => below(&pointer, refusal, faults).map(|()| None),
    }
}

/// Takes a member that is an object with something in it.
pub(super) fn filled_object<'a>(
    members: &mut Members<'a>,
    name: &str,
    expected: &str,
    faults: &mut Vec<Fault>,
) -> Result<Option<Members<'a>>, ApiError> {
    let found = object(members, name, expected, faults)?;
    if found.as_ref().is_some_and(|found| found.rest().next().is_none()) {
        return Ok(fault(faults, &json::pointer("", name), &format!("must be {expected}")));
    }
    Ok(found)
}

/// Takes a member that is a text.
pub(super) fn word(
    members: &mut Members<'_>,
    name: &str,
    expected: &str,
    parent: &str,
    faults: &mut Vec<Fault>,
) -> Option<String> {
    let pointer = json::pointer(parent, name);
    match members.take(name) {
        Some(text) => json::read(text, &pointer, expected).map_err(|found| faults.push(found)).ok(),
        None => fault(faults, &pointer, &format!("must be {expected}")),
    }
}
