//! Whether one filter takes one event: what matching means, for one pair at a time.
//!
//! Live events, transitions and explanations ask here; the engines answer the same for many pairs at once.

use crate::condition::expression::Truth;
use crate::condition::reading::Reading;
use crate::event::Event;
use crate::geo::{Position, World};
use crate::subscription::Filter;

/// Whether a filter takes an event: its condition is true of the content, and its area holds the place. `client` is
/// where the filter's client is. The event's own area is another matter, see [`reaches`].
#[must_use]
pub fn filter_matches(world: World, filter: &Filter, client: Option<&Position>, event: &Event) -> bool {
    condition_holds(filter, client, event) && filter.area.holds(world, client, &event.position)
}

/// Whether the condition of a filter is true of an event, for a client that is there.
#[must_use]
pub fn condition_holds(filter: &Filter, client: Option<&Position>, event: &Event) -> bool {
    condition_holds_by(filter, event, &mut Reading::of_client(client))
}

/// Whether the condition of a filter is true of an event, for the client of `reading`. The effort is counted in `reading`.
pub(crate) fn condition_holds_by<'a>(filter: &Filter, event: &'a Event, reading: &mut Reading<'a>) -> bool {
    filter.condition.expression().truth_by(event, reading) == Truth::True
}

/// Whether the client is in the event's own area. An event without one reaches everybody, and a client without a
/// position is not held to it.
#[must_use]
pub fn reaches(world: World, event: &Event, client: Option<&Position>) -> bool {
    match (&event.reach, client) {
        (Some(reach), Some(client)) => reach.holds(world, &event.position, client),
        (None, _) | (_, None) => true,
    }
}
