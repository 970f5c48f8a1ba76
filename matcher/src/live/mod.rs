//! Live events: what is found when it is not the event that comes to the subscribers but a subscriber that comes to
//! the event, and who enters and leaves where.

mod points;

use std::num::NonZeroU32;
use std::time::Duration;

pub use points::Points;

/// What a subscription is told of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interest {
    /// Each matching event, once.
    Events,
    /// Live objects that come inside and leave.
    Transitions(Transitions),
}

/// How a subscription is told of transitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transitions {
    /// Whether enters are told.
    pub enter: bool,
    /// Whether exits are told.
    pub exit: bool,
    /// Whether a new subscription begins with an enter for each object that is inside already.
    pub initial: bool,
    /// How long an object has to stay before it enters.
    pub dwell: Duration,
    /// How many metres outside an object has to be before it leaves.
    pub hysteresis_m: f64,
}

/// Of a filter: only so many of the nearest live objects count as inside.
pub type Nearest = Option<NonZeroU32>;
