//! Moments and intervals, and how two of them lie to each other.

use super::node::Temporal;
use crate::condition::expression::{Date, Truth};
use crate::condition::time::Instant;

/// A moment of a predicate: a day or an instant. The two do not compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Moment<'a> {
    Date(Date),
    Instant(Instant<'a>),
}

/// From one moment to another, both included, `None` without a bound. A moment alone is both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span<'a> {
    from: Option<Moment<'a>>,
    to: Option<Moment<'a>>,
    is_interval: bool,
}

impl<'a> Moment<'a> {
    /// Reads a text that is a date or a timestamp.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        Date::parse(text).map(Self::Date).or_else(|| Instant::parse(text).map(Self::Instant))
    }
}

/// An end of a span on the line of days or instants.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum End<T> {
    Ever,
    At(T),
    Never,
}

impl<'a> Span<'a> {
    pub(super) fn moment(moment: Moment<'a>) -> Self {
        Self { from: Some(moment), to: Some(moment), is_interval: false }
    }

    pub(super) fn interval(from: Option<Moment<'a>>, to: Option<Moment<'a>>) -> Self {
        Self { from, to, is_interval: true }
    }

    /// How the two lie to each other; unknown between days and instants, for an interval that ends before it begins, and for a
    /// moment in the place of an interval.
    pub(super) fn truth(&self, relation: Temporal, other: &Self) -> Truth {
        if relation.is_of_intervals() && !(self.is_interval && other.is_interval) {
            return Truth::Unknown;
        }
        let day = |moment| match moment {
            Moment::Date(date) => Some(date),
            Moment::Instant(_) => None,
        };
        let instant = |moment| match moment {
            Moment::Instant(instant) => Some(instant),
            Moment::Date(_) => None,
        };
        let truth = holds(relation, self, other, day).or_else(|| holds(relation, self, other, instant));
        truth.map_or(Truth::Unknown, Truth::from)
    }

    fn ends<T: PartialOrd>(&self, read: impl Fn(Moment<'a>) -> Option<T>) -> Option<[End<T>; 2]> {
        let from = self.from.map_or(Some(End::Ever), |moment| read(moment).map(End::At))?;
        let to = self.to.map_or(Some(End::Never), |moment| read(moment).map(End::At))?;
        (from <= to).then_some([from, to])
    }
}

/// Whether the relation holds; `None` where an end is not of the kind that is read.
fn holds<'a, T: PartialOrd>(
    relation: Temporal,
    a: &Span<'a>,
    b: &Span<'a>,
    read: impl Fn(Moment<'a>) -> Option<T> + Copy,
) -> Option<bool> {
    let ([a_from, a_to], [b_from, b_to]) = (a.ends(read)?, b.ends(read)?);
    Some(match relation {
        Temporal::After => a_from > b_to,
        Temporal::Before => a_to < b_from,
        Temporal::Disjoint => a_from > b_to || a_to < b_from,
        Temporal::Intersects => a_from <= b_to && a_to >= b_from,
        Temporal::Equals => a_from == b_from && a_to == b_to,
        Temporal::Contains => a_from < b_from && a_to > b_to,
        Temporal::During => a_from > b_from && a_to < b_to,
        Temporal::Finishes => a_from > b_from && a_to == b_to,
        Temporal::FinishedBy => a_from < b_from && a_to == b_to,
        Temporal::Meets => a_to == b_from,
        Temporal::MetBy => a_from == b_to,
        Temporal::Overlaps => a_from < b_from && a_to > b_from && a_to < b_to,
        Temporal::OverlappedBy => a_from > b_from && a_from < b_to && a_to > b_to,
        Temporal::Starts => a_from == b_from && a_to < b_to,
        Temporal::StartedBy => a_from == b_from && a_to > b_to,
    })
}
