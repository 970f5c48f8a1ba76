//! Questions for routes.

use std::borrow::Cow;
use std::time::Duration;

use matcher::geo::{Position, World};
use serde::Deserialize as _;
use serde::de::value::CowStrDeserializer;
use wire::{Fault, RouteBy};

use super::json::{self, Members};
use super::{near, position};
use crate::model::error::ApiError;

/// The longest deadline, in milliseconds.
const DEADLINE_MS_MAX: f64 = 60_000.0;

/// A route that is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RouteQuestion {
    pub(crate) from: Position,
    pub(crate) to: Position,
    pub(crate) deadline: Option<Duration>,
    /// The coarsest level that will do.
    pub(crate) coarsest: usize,
    pub(crate) by: RouteBy,
}

impl RouteQuestion {
    /// Reads `{"from", "to", "deadline_ms", "coarsest", "by"}`.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut members = Members::parse(text)?;
        let mut faults = Vec::new();
        let from = place(&mut members, "from", &mut faults);
        let to = place(&mut members, "to", &mut faults);
        let deadline = member::<f64>(&mut members, "deadline_ms", DEADLINE, &mut faults).and_then(|ms| {
            within(ms > 0.0 && ms <= DEADLINE_MS_MAX, ms, "/deadline_ms", DEADLINE, &mut faults)
        });
        let coarsest = member::<usize>(&mut members, "coarsest", COARSEST, &mut faults)
            .and_then(|level| within(level < routes::LEVELS, level, "/coarsest", COARSEST, &mut faults));
        let by =
            members.take("by").and_then(|text| best_by(text, "/by").map_err(|fault| faults.push(fault)).ok());
        members.refuse_rest("", &near::ROUTE, 0, &mut faults);
        let (Some(from), Some(to), true) = (from, to, faults.is_empty()) else {
            return Err(ApiError::Invalid(faults));
        };
        Ok(Self {
            from,
            to,
            deadline: deadline.map(|ms| Duration::from_secs_f64(ms / 1_000.0)),
            coarsest: coarsest.unwrap_or(routes::LEVELS - 1),
            by: by.unwrap_or_default(),
        })
    }
}

const DEADLINE: &str = "a number of milliseconds above 0 and at most 60000";
const COARSEST: &str = "a level, 0 to 3";

/// Reads by what a route is the best: a text, where an object with one empty member would do for an enum.
pub(super) fn best_by(text: &str, pointer: &str) -> Result<RouteBy, Fault> {
    let expected = "\"duration\" or \"length\"";
    let by: Cow<'_, str> = json::read(text, pointer, expected)?;
    RouteBy::deserialize(CowStrDeserializer::<serde::de::value::Error>::new(by))
        .map_err(|_| Fault { pointer: pointer.to_owned(), detail: format!("must be {expected}") })
}

fn place(members: &mut Members<'_>, name: &str, faults: &mut Vec<Fault>) -> Option<Position> {
    let pointer = format!("/{name}");
    let Some(text) = members.take(name) else {
        faults.push(Fault { pointer, detail: "must be there: longitude and latitude".to_owned() });
        return None;
    };
    position::coordinates(World::Geodetic, text, &pointer).map_err(|fault| faults.push(fault)).ok()
}

fn member<'a, T: serde::Deserialize<'a>>(
    members: &mut Members<'a>,
    name: &str,
    expected: &str,
    faults: &mut Vec<Fault>,
) -> Option<T> {
    let text = members.take(name)?;
    json::read(text, &format!("/{name}"), expected).map_err(|fault| faults.push(fault)).ok()
}

fn within<T>(is_within: bool, value: T, pointer: &str, expected: &str, faults: &mut Vec<Fault>) -> Option<T> {
    if !is_within {
        faults.push(Fault { pointer: pointer.to_owned(), detail: format!("must be {expected}") });
    }
    is_within.then_some(value)
}
