//! Messages that a session hands to the application.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::{Error, Feature};

/// How far a client has come in its deliveries. Offsets of two epochs do not compare.
///
/// It is written as `epoch:offset`, which an application stores and another process hands to
/// [`Connect::resume`](crate::Connect::resume).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The session of the broker's.
    pub epoch: Arc<str>,
    /// How far.
    pub offset: u64,
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.offset)
    }
}

impl FromStr for Checkpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parts = text.rsplit_once(':').and_then(|(epoch, offset)| Some((epoch, offset.parse().ok()?)));
        let (epoch, offset) =
            parts.ok_or_else(|| Error::Invalid(format!("a checkpoint is <epoch>:<offset>, not {text:?}")))?;
        Ok(Self { epoch: epoch.into(), offset })
    }
}

/// The further of two checkpoints; that of the newer epoch where they do not compare. Alarms before their turn never lead back.
pub(crate) fn further(before: &mut Option<Checkpoint>, checkpoint: Checkpoint) {
    if !matches!(before, Some(before) if before.epoch == checkpoint.epoch && before.offset > checkpoint.offset)
    {
        *before = Some(checkpoint);
    }
}

/// A message to the application.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "nearly all messages are events")]
pub enum Message<P = Value> {
    /// A delivery.
    Event(Event<P>),
    /// Deliveries that will not come.
    Gap(Gap),
    /// A delivery that is not of the type that the application expects: anybody who may publish can send one. Nothing is wrong with the
    /// session. It is acknowledged like the others, so that it does not come again.
    Unreadable(Unreadable),
}

impl<P> Message<P> {
    /// The event, if it is one.
    #[must_use]
    pub fn event(self) -> Option<Event<P>> {
        match self {
            Self::Event(event) => Some(event),
            Self::Gap(_) | Self::Unreadable(_) => None,
        }
    }

    /// The place in the deliveries at which an application is once it has taken the message.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        match self {
            Self::Event(event) => event.checkpoint(),
            Self::Gap(gap) => gap.checkpoint(),
            Self::Unreadable(unreadable) => unreadable.checkpoint(),
        }
    }
}

/// An event that came to subscriptions, or an object that came inside of them or left.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event<P = Value> {
    /// The session of the broker's that `offset` counts in.
    pub epoch: Arc<str>,
    /// Number of the delivery in that session.
    pub offset: u64,
    /// Whether it is an alarm before its turn. Then `offset` is that of the delivery before it, a gap of reason `ahead` comes where its
    /// turn is, and a client that breaks off in between gets the alarm again.
    pub ahead: bool,
    /// The client's subscriptions that it is for.
    pub subscriptions: Vec<String>,
    /// Reason for the delivery.
    pub cause: Cause,
    /// Transition of the event's object, in deliveries to subscriptions to transitions.
    pub transition: Option<Transition>,
    /// The trace that the event belongs to.
    pub trace: Option<Trace>,
    /// Names of the checks that the event violates, of those that mark.
    pub violates: Vec<String>,
    /// The event; of an exit, the last one that was inside.
    pub feature: Feature<P>,
}

impl<P> Event<P> {
    /// The place in the deliveries at which an application is once it has taken the event.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { epoch: self.epoch.clone(), offset: self.offset }
    }
}

/// Deliveries that will not come: lost ones, or, with reason [`Ahead`](GapReason::Ahead), an alarm that came before its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The session of the broker's that the offsets count in.
    pub epoch: Arc<str>,
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
    /// How many; 0 where the session is another one than before and nothing is known to be missing.
    pub count: u64,
    /// Why.
    pub reason: GapReason,
}

impl Gap {
    /// The place in the deliveries at which an application is once it has taken the gap.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { epoch: self.epoch.clone(), offset: self.to }
    }
}

/// An event that is not of the type that the application expects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreadable {
    /// The session of the broker's that `offset` counts in.
    pub epoch: Arc<str>,
    /// Number of the delivery in that session.
    pub offset: u64,
    /// The client's subscriptions that it is for.
    pub subscriptions: Vec<String>,
    /// The Feature as it came.
    pub feature: Arc<str>,
    /// Why it cannot be read, with line and column.
    pub fault: String,
}

impl Unreadable {
    /// The place in the deliveries at which an application is once it has passed the event over.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { epoch: self.epoch.clone(), offset: self.offset }
    }
}

/// A trace as W3C Trace Context writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The ids of the trace and of the span, and flags.
    pub parent: String,
    /// The `tracestate` that belongs to `parent`.
    pub state: Option<String>,
}

macro_rules! open_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A value that a newer broker knows.
            Other(String),
        }

        impl $name {
            /// The text of it on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    _ => Self::Other(text.to_owned()),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

open_enum! {
    /// Reason for a delivery.
    Cause {
        /// The event was published.
        Published = "published",
        /// The subscriber moved.
        Moved = "moved",
        /// The subscription changed.
        Changed = "changed",
        /// The event's time ran out.
        Expired = "expired",
        /// The event was revoked.
        Revoked = "revoked",
    }
}

open_enum! {
    /// Change of an object's standing in a subscription.
    Transition {
        /// The object is inside now.
        Enter = "enter",
        /// The object is inside no more.
        Exit = "exit",
    }
}

open_enum! {
    /// Why deliveries will not come.
    GapReason {
        /// Nothing was lost: the alarm in this place was told before its turn.
        Ahead = "ahead",
        /// The client has said that it has them.
        Acknowledged = "acknowledged",
        /// They were kept for as long as they may be.
        Age = "age",
        /// The connection did not keep up.
        Overflow = "overflow",
        /// Nobody read, and the session keeps nothing.
        NotDurable = "not-durable",
        /// The session that the reader knew is over; the offsets are of the new one.
        Epoch = "epoch",
        /// A subscription remembers as many objects as it may, and one more did not enter.
        Members = "members",
        /// They were not written by the deadlines of their events.
        Late = "late",
    }
}

/// A message as it came. The properties of the event are read by its taker, which alone knows their type.
#[derive(Debug)]
pub(crate) enum Incoming {
    Event { event: Box<Event<()>>, feature: Box<RawValue> },
    Gap(Gap),
}

impl Incoming {
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        match self {
            Self::Event { event, .. } => event.checkpoint(),
            Self::Gap(gap) => gap.checkpoint(),
        }
    }

    /// Whether who is done with it is done with everything before it. An alarm before its turn says nothing of that.
    pub(crate) fn in_turn(&self) -> bool {
        match self {
            Self::Event { event, .. } => !event.ahead,
            Self::Gap(_) => true,
        }
    }

    pub(crate) fn read<P: DeserializeOwned>(self) -> Message<P> {
        match self {
            Self::Gap(gap) => Message::Gap(gap),
            Self::Event { event, feature } => match serde_json::from_str(feature.get()) {
                Ok(feature) => Message::Event(event.of(feature)),
                Err(fault) => Message::Unreadable(Unreadable {
                    epoch: event.epoch,
                    offset: event.offset,
                    subscriptions: event.subscriptions,
                    feature: feature.get().into(),
                    fault: fault.to_string(),
                }),
            },
        }
    }
}

impl Event<()> {
    fn of<P>(self, feature: Feature<P>) -> Event<P> {
        let Self { epoch, offset, ahead, subscriptions, cause, transition, trace, violates, feature: _ } =
            self;
        Event { epoch, offset, ahead, subscriptions, cause, transition, trace, violates, feature }
    }
}
