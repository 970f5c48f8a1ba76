//! Arrays as sets of their elements.

use std::collections::HashSet;

use super::evaluate::Seen;
use super::node::Sets;
use super::temporal::Moment;

/// An element as it is looked for.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Number(u64),
    Text(&'a str),
    Bool(bool),
    Moment(Moment<'a>),
    /// A text that is a date or a timestamp: it equals a moment, and of texts only itself.
    TextOf(Moment<'a>),
}

/// Whether the two are related so.
///
/// Cost: linear in both.
pub(super) fn holds(relation: Sets, left: &[Seen<'_>], right: &[Seen<'_>]) -> bool {
    match relation {
        Sets::Equals => has_all(left, right) && has_all(right, left),
        Sets::Contains => has_all(left, right),
        Sets::ContainedBy => has_all(right, left),
        Sets::Overlaps => {
            let keys = keys(left);
            right.iter().any(|element| has(&keys, element))
        }
    }
}

fn has_all(set: &[Seen<'_>], elements: &[Seen<'_>]) -> bool {
    let keys = keys(set);
    elements.iter().all(|element| has(&keys, element))
}

fn keys<'a>(elements: &'a [Seen<'_>]) -> HashSet<Key<'a>> {
    let text_of = |element: &'a Seen<'_>| match element {
        Seen::Text(text) => Moment::parse(text).map(Key::TextOf),
        Seen::Number(_) | Seen::Bool(_) | Seen::Moment(_) | Seen::Array(_) => None,
    };
    elements.iter().filter_map(key).chain(elements.iter().filter_map(text_of)).collect()
}

/// An array equals nothing that an array has.
fn key<'a>(element: &'a Seen<'_>) -> Option<Key<'a>> {
    match element {
        // Zero equals minus zero, and adding zero makes it plus.
        Seen::Number(number) => Some(Key::Number((number + 0.0).to_bits())),
        Seen::Text(text) => Some(Key::Text(text)),
        Seen::Bool(truth) => Some(Key::Bool(*truth)),
        Seen::Moment(moment) => Some(Key::Moment(*moment)),
        Seen::Array(_) => None,
    }
}

fn has(keys: &HashSet<Key<'_>>, element: &Seen<'_>) -> bool {
    let other = match element {
        Seen::Text(text) => Moment::parse(text).map(Key::Moment),
        Seen::Moment(moment) => Some(Key::TextOf(*moment)),
        Seen::Number(_) | Seen::Bool(_) | Seen::Array(_) => None,
    };
    [key(element), other].iter().flatten().any(|key| keys.contains(key))
}
