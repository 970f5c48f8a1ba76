//! Checks that are often wanted, made from a few figures.

use std::fmt::Write;

use crate::formula::{Clock, Context, Document, Formula};

/// How long the preset [`speed`] holds a report against later ones of its object.
pub const SPEED_FOR_S: f64 = 60.0;

/// How late an event may be by an event clock that [`accuracy`] and [`outside`] still look at.
pub const LATE_S: f64 = 60.0;

fn document(context: Context, formula: Formula) -> Document {
    Document { contexts: vec![context], formula, clock: Clock::default() }
}

/// Events of all kinds under the name that the presets have for them.
fn recent(for_s: f64) -> Context {
    Context::of_all("recent", for_s)
}

/// A set for a check of each event alone. By an event clock it holds events so long as others may be late.
fn alone(clock: Clock) -> Context {
    recent(match clock {
        Clock::Arrival => 0.0,
        Clock::Event => LATE_S,
    })
}

/// An attribute as a leaf writes it.
fn attribute(variable: &str, name: &str) -> String {
    let is_plain = name.split('.').all(|part| {
        let is_first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
        part.starts_with(is_first) && part.chars().all(|letter| is_first(letter) || letter.is_ascii_digit())
    });
    if is_plain {
        format!("{variable}.{name}")
    } else {
        format!("{variable}.\"{}\"", name.replace('"', "\"\""))
    }
}

/// That two events are of one object.
fn same_object(object: &str) -> String {
    format!("{} = {}", attribute("a", object), attribute("b", object))
}

/// No object is faster than this between any two of its reports of a minute.
#[must_use]
pub fn speed(object: &str, max_m_per_s: f64) -> Document {
    let premise = format!("{} AND ELAPSED(a, b) > 0", same_object(object));
    let conclusion = format!("SPEED(a, b) <= {max_m_per_s}");
    let pair = Formula::implies(Formula::leaf(premise), Formula::leaf(conclusion));
    let formula = Formula::forall("a", "recent", Formula::forall("b", "recent", pair));
    document(recent(SPEED_FOR_S), formula)
}

/// Every event that says how accurate its place is says at most `max_m` metres.
#[must_use]
pub fn accuracy(property: &str, max_m: f64, clock: Clock) -> Document {
    let inaccurate = Formula::leaf(format!("{} > {max_m}", attribute("a", property)));
    document(alone(clock), Formula::forall("a", "recent", Formula::negated(inaccurate)))
}

/// No object reports the very same place for so long: two reports so far apart in time from one place have one from another place between
/// them. Each report is compared with the newest that is so much older, so that an object that stays frozen is told once for each of its
/// reports.
#[must_use]
pub fn frozen(object: &str, for_s: f64) -> Document {
    let apart = format!("{} AND ELAPSED(a, b) >= {for_s} AND DISTANCE(a, b) = 0", same_object(object));
    let between = format!(
        "{} = {} AND ELAPSED(a, c) > 0 AND (ELAPSED(c, b) >= {for_s} OR ELAPSED(c, b) > 0 AND DISTANCE(a, c) > 0)",
        attribute("c", object),
        attribute("a", object)
    );
    let moved = Formula::exists("c", "recent", Formula::leaf(between));
    let pair = Formula::implies(Formula::leaf(apart), moved);
    let formula = Formula::forall("a", "recent", Formula::forall("b", "recent", pair));
    document(recent(2.0 * for_s), formula)
}

/// Every event is within the polygon: rings of longitude and latitude, the first the outer one and the others holes. Violations may be
/// anywhere, since each would be one itself.
#[must_use]
pub fn outside(polygon: &[Vec<[f64; 2]>], clock: Clock) -> Document {
    let mut text = String::from("a.type = 'violation' OR S_WITHIN(a, POLYGON(");
    for (idx, ring) in polygon.iter().enumerate() {
        text.push_str(if idx == 0 { "(" } else { ", (" });
        for (idx, [x, y]) in ring.iter().enumerate() {
            let comma = if idx == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}{x} {y}");
        }
        text.push(')');
    }
    text.push_str("))");
    document(alone(clock), Formula::forall("a", "recent", Formula::leaf(text)))
}

/// No object reports twice within this distance and time.
#[must_use]
pub fn duplicate(object: &str, within_m: f64, for_s: f64) -> Document {
    let again = format!("{} AND ELAPSED(a, b) >= 0 AND DISTANCE(a, b) <= {within_m}", same_object(object));
    let pair = Formula::implies(Formula::leaf(again), Formula::leaf("SAME(a, b)"));
    let formula = Formula::forall("a", "recent", Formula::forall("b", "recent", pair));
    document(recent(for_s), formula)
}
