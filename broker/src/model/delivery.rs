//! Deliveries: events on their way to a client, and told losses.

use std::sync::Arc;
use std::time::Instant;

use matcher::live::Cause;
use serde::Deserialize;

use super::clock;
use super::event::Body;

/// Something to write.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// The answer to a request, ready to be written. An empty one stands for a pong.
    Answer(Box<str>),
    /// An event for the client.
    Delivery(Delivery),
    /// Deliveries were lost here.
    Gap(Gap),
}

/// An event for a client.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// Its number in the client's session.
    pub(crate) offset: u64,
    /// The client's subscriptions that it satisfies, or that its object entered or left.
    pub(crate) subscriptions: SubscriptionIds,
    /// Cause of the delivery.
    pub(crate) cause: Cause,
    /// Change of the object in the subscriptions, if they receive transitions.
    pub(crate) transition: Option<Transition>,
    /// The event.
    pub(crate) body: Arc<Body>,
    /// The wish of the subscriptions for the bound, if one of them has said so.
    pub(crate) overflow: Option<OverflowName>,
    /// Whether it was kept and comes later than it could have.
    pub(crate) is_late: bool,
    /// Whether it comes ahead of its turn, with the offset that the connection has come to. A gap takes its turn.
    pub(crate) is_ahead: bool,
}

/// A change of an object in a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// It is inside now.
    Enter,
    /// It is inside no more.
    Exit,
}

/// Ids of subscriptions, as JSON texts. Mostly one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SubscriptionIds {
    One(Arc<str>),
    Many(Arc<[Arc<str>]>),
}

/// Deliveries that were lost: all from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) reason: GapReason,
}

/// Why deliveries were lost. Of two the greater is the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GapReason {
    /// It is an alarm that the connection was told before its turn.
    Ahead,
    /// The client has said that it has them.
    Acknowledged,
    /// They were of subscriptions that are not durable, and came while nobody took them.
    NotDurable,
    /// Objects did not enter, because the subscription holds as many as it may.
    Members,
    /// They were not written by the deadlines of their events.
    Late,
    /// They were kept for as long as they may be.
    Age,
    /// More came than may wait.
    Overflow,
    /// The reader asked for another session, or for what this one has not reached.
    Epoch,
}

/// Policy for losses at the bound of what waits (`outbox.overflow`). The greater one is the stricter wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverflowName {
    /// Deliveries after which a newer one of the same object waits are lost first, then the oldest; told by gaps.
    KeepLatest,
    /// The oldest deliveries are lost, told by a gap.
    DropOldest,
    /// The connection is closed.
    Disconnect,
}

/// Bytes of an entry besides its text.
pub(crate) const ENTRY_BYTES: usize = 96;

impl GapReason {
    /// All reasons.
    pub(crate) const ALL: [Self; 8] = [
        Self::Ahead,
        Self::Acknowledged,
        Self::NotDurable,
        Self::Members,
        Self::Late,
        Self::Age,
        Self::Overflow,
        Self::Epoch,
    ];

    /// The protocol's word.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Acknowledged => "acknowledged",
            Self::NotDurable => "not-durable",
            Self::Members => "members",
            Self::Late => "late",
            Self::Age => "age",
            Self::Overflow => "overflow",
            Self::Epoch => "epoch",
        }
    }
}

impl Gap {
    /// How many they are.
    pub(crate) const fn count(&self) -> u64 {
        (self.to + 1).saturating_sub(self.from)
    }
}

impl SubscriptionIds {
    pub(crate) fn as_slice(&self) -> &[Arc<str>] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }
}

impl Entry {
    /// Whether it only stands for a pong (see `Outbox::note_pong`): there is nothing to be written of it.
    pub(crate) fn is_pong(&self) -> bool {
        matches!(self, Self::Answer(text) if text.is_empty())
    }

    /// Bytes that the entry takes.
    pub(crate) fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Self::Answer(text) => text.len(),
                Self::Delivery(delivery) => delivery.bytes(),
                Self::Gap(_) => 0,
            }
    }
}

impl Delivery {
    /// When its event was read, where nothing but the broker's own work lies between that and now: a transition may
    /// have waited for `dwell_s`, and what a subscriber came by is as old as it is.
    pub(crate) fn fresh_since(&self) -> Option<Instant> {
        (self.cause == Cause::Published && self.transition.is_none() && !self.is_late)
            .then_some(self.body.received)
    }

    /// Whether it is too late for it. For an exit it never is: it says what is so since.
    pub(crate) fn is_past_deadline(&self) -> bool {
        self.transition != Some(Transition::Exit)
            && self.body.deadline.is_some_and(|deadline| deadline <= clock::now())
    }

    /// Bytes of the delivery's texts and of the pointers to them.
    pub(crate) fn bytes(&self) -> usize {
        let name_bytes = |name: &Arc<str>| size_of::<Arc<str>>() + name.len();
        let names: usize = self.subscriptions.as_slice().iter().map(name_bytes).sum();
        self.body.text.len() + self.body.trace_members().len() + names
    }
}

/// The cause as a document tells it.
pub(crate) const fn wire_cause(cause: Cause) -> wire::Cause {
    match cause {
        Cause::Published => wire::Cause::Published,
        Cause::Moved => wire::Cause::Moved,
        Cause::Changed => wire::Cause::Changed,
        Cause::Expired => wire::Cause::Expired,
        Cause::Revoked => wire::Cause::Revoked,
    }
}

/// A transition as a document tells it.
pub(crate) const fn wire_transition(transition: Transition) -> wire::Transition {
    match transition {
        Transition::Enter => wire::Transition::Enter,
        Transition::Exit => wire::Transition::Exit,
    }
}
