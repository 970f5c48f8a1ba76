//! How brokers are spoken to: bytes made and bytes read, without sockets.

pub mod cells;
pub mod documents;
mod frames;
pub(crate) mod http;
pub mod mqtt;
pub mod nats;
pub mod nearcast;
mod topics;

use std::sync::Arc;
use std::time::Duration;

use matcher::geo::{Position, World};

use crate::plan::{Client, Occurrence};

/// A protocol, and what it can express of a plan.
pub trait Wire: Send + Sync {
    /// The broker that it belongs to.
    fn name(&self) -> &'static str;

    /// What this broker, or this way of using it, does not do that nearcast does.
    fn lacks(&self) -> &'static [&'static str];

    /// Whether the broker alone decides who gets what: a delivery that nobody asked for is then wrong, and else one that the
    /// receiver throws away.
    fn is_exact(&self) -> bool {
        self.lacks().is_empty()
    }

    /// The ends of a connection of somebody who listens.
    fn subscriber(&self, client: &Client) -> (Box<dyn Speak>, Box<dyn Hear>);

    /// The ends of a connection of somebody who publishes.
    fn publisher(&self, name: &str) -> (Box<dyn Speak>, Box<dyn Hear>);
}

/// What a scenario's positions and settings are, for all protocols.
#[derive(Clone, Debug)]
pub struct Common {
    /// What positions are.
    pub world: World,
    /// Address and port, as requests name them.
    pub host: Arc<str>,
    /// What says who we are, where the broker wants to know.
    pub token: Option<Arc<str>>,
}

/// The end of a connection that says something. What it says is appended to `out`.
pub trait Speak: Send {
    /// Opens the conversation; of a durable session it goes on where that was left.
    fn open(&mut self, resume: Option<&str>, out: &mut Vec<u8>);

    /// Says where the client is and what it wants; how many answers come to that.
    fn introduce(&mut self, position: Option<&Position>, out: &mut Vec<u8>) -> u64;

    /// Says where the client is, and wants an answer to that.
    fn move_home(&mut self, to: &Position, out: &mut Vec<u8>);

    /// Says where the client is now. With a number it is answered by that.
    fn move_to(&mut self, to: &Position, number: Option<u64>, out: &mut Vec<u8>);

    /// Publishes an event under a number.
    fn publish(&mut self, number: u64, occurrence: &Occurrence, out: &mut Vec<u8>);

    /// Nothing more is published for now: what was held together goes out. The numbers of a request that is answered as a
    /// whole, when it goes.
    fn flush(&mut self, _out: &mut Vec<u8>) -> Option<Vec<u64>> {
        None
    }

    /// Bytes that are held together and wait for that.
    fn waiting(&self) -> usize {
        0
    }

    /// Drops the bytes that wait: they will not go out.
    fn forget(&mut self) {}

    /// Such a request was answered.
    fn answered(&mut self) {}

    /// Says that nothing up to an offset is needed any more.
    fn acknowledge(&mut self, _offset: u64, _out: &mut Vec<u8>) {}

    /// Answers a question whether somebody is there.
    fn pong(&mut self, payload: &[u8], out: &mut Vec<u8>);
}

/// The end that listens.
pub trait Hear: Send {
    /// Reads what has come, as far as it is whole; says how many bytes that was.
    ///
    /// # Errors
    /// What is wrong, when it is not this protocol.
    fn hear(&mut self, bytes: &[u8], told: &mut dyn FnMut(Told<'_>)) -> Result<usize, Garbled>;
}

/// Something that the broker said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told<'a> {
    /// The conversation can begin. With the name of the session, and the offset after which deliveries come.
    Ready {
        /// The session's; empty where there is no such thing.
        epoch: &'a str,
        /// The offset before the next delivery's.
        offset: u64,
    },
    /// What was asked under a number is done.
    Done(Option<u64>),
    /// It is not, for a reason.
    Refused(Option<u64>, &'a str),
    /// A request of several events was answered: the number that was taken, or the reason why none was.
    Batch(Result<u64, &'a str>),
    /// A delivery.
    Event {
        /// The number that it was published under; none when it was not one of ours.
        number: Option<u64>,
        /// Its place in the session, where there is one.
        offset: Option<u64>,
        /// What brought it.
        cause: Cause,
        /// Whether it is an alarm that came before its turn, which takes no place.
        is_ahead: bool,
    },
    /// Deliveries were lost.
    Gap {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
        /// How many.
        count: u64,
        /// Why, in the protocol's words.
        reason: &'a str,
    },
    /// Is somebody there?
    Ping(&'a [u8]),
    /// The broker is about to stop, and wants the client back after this time.
    Retry(Duration),
    /// The broker ends the conversation.
    Closed(&'a str),
}

/// What brings a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The event was published.
    Published,
    /// The client moved.
    Moved,
    /// Something else: its subscription is a new one.
    Other,
}

/// What came is not what the protocol says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the broker said what cannot be read: {0}")]
pub struct Garbled(pub String);
