//! Live events: what is found when it is not the event that comes to the subscribers but a subscriber that comes to
//! the event, and who enters and leaves where.
//!
//! [`Tracker`] is matching with the roles exchanged: live events are indexed by their places, so that a move costs what
//! it brings and not a look at everything. It keeps which live objects each subscription has had, or has inside, and
//! says what changes. It knows no clock: the caller tells it what time it is.

mod account;
mod along;
mod deadlines;
mod events;
mod known;
mod nearest;
mod places;
mod points;
mod publishing;
mod query;
mod recording;
mod recovery;
mod rectangle;
mod search;
mod standing;
mod survey;
mod tracker;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

pub use account::{Account, FilterAccount, LiveAccount, Membership, Prospect, Rank};
pub use points::Points;
pub use query::{PLACE_BYTES, Page, Place, Query, View, Wanted, Within};
pub use recording::StandingNow;
pub use rectangle::{Rectangle, RectangleError};
pub use standing::Standing;
pub use survey::Survey;
pub use tracker::{Tracker, Watch};

use crate::event::Event;
use crate::geo::Position;
use crate::subscription::SubscriptionId;

/// A time: how long after a moment of the caller's choice.
pub type Moment = Duration;

/// Interest of a subscription: events, or transitions.
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

/// Limit of a filter: only this number of the nearest live objects count as inside.
pub type Nearest = Option<NonZeroU32>;

/// Position that a client says it is at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fix {
    /// The place.
    pub position: Position,
    /// How far off that may be; 0 where nothing was said.
    pub accuracy_m: f64,
}

/// A part of the world in which live events and clients meet, and neither looks at another's: what there is in one costs
/// nothing in the others. It does not decide who is told of what: events reach the subscriptions whose filters take them.
/// Two parts that have one number by chance are one, and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Partition(pub u64);

/// A live event, as it is published.
#[derive(Clone, Debug)]
pub struct Announcement<P> {
    /// The object that the event is about: a newer live event of the same object replaces it.
    pub object: Arc<str>,
    /// Id by which the event is revoked.
    pub id: Arc<str>,
    /// Number that orders the events of one object: the event with the greater number is the newer, whichever comes
    /// first.
    pub sequence: u64,
    /// When its life is over.
    pub expires: Moment,
    /// Where it can be met: only clients that are [placed](Tracker::place) there may have filters that take it.
    pub partition: Partition,
    /// The event that is matched.
    pub event: Arc<Event>,
    /// Payload that goes out with the event. Cloned for each effect.
    pub payload: P,
}

/// Change that a subscription has to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect<P> {
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The change.
    pub change: Change,
    /// Reason for the change.
    pub cause: Cause,
    /// The sequence number of the event that is told.
    pub sequence: u64,
    /// That event's payload.
    pub payload: P,
}

/// Change between a subscription and a live event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// The object is inside no more; the event is the last that was inside.
    Left,
    /// The object is inside no more after a recovery that did not find an event by which the object was inside. The
    /// event is one that the subscription does not hold for: it is not to be told.
    Lost,
    /// The object is inside now.
    Entered,
    /// The event reached a subscription to events.
    Reached,
    /// The object would be inside, but the subscription holds as many as it may. Told at an event of the object's own, and
    /// when a move or a change brings it inside; but not where neither its enter nor its exit would have been.
    Refused,
}

/// Reason for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A newer event of the object.
    Published,
    /// The subscriber moved.
    Moved,
    /// The subscription was made or changed.
    Changed,
    /// The event's life ran out.
    Expired,
    /// The event was revoked.
    Revoked,
}

/// Limits and rules of a tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many live objects one subscription may hold. Further ones do not enter, and further events that it has had
    /// are not remembered, so that they may come again.
    pub members_max: usize,
    /// How many live objects all subscriptions of one client may hold together. Further ones are treated as with
    /// [`members_max`](Self::members_max).
    pub members_per_client: usize,
    /// Whether an area neither lets in nor out while its client's position is less accurate than the area is large.
    pub holds_inaccurate: bool,
}
