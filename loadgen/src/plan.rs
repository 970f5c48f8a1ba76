//! What happens in a run, in the order of time, and what everybody should get of it.

use std::time::Duration;

use matcher::event::Event;
use matcher::geo::{Position, World};
use matcher::subscription::Filter;

/// A client of the broker that listens.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its name.
    pub name: String,
    /// Where it is at first; none for one that never says.
    pub home: Option<Position>,
    /// What it wants.
    pub wishes: Vec<Wish>,
}

/// A subscription.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Its id.
    pub id: String,
    /// The alternatives.
    pub filters: Vec<Filter>,
    /// Whether what matches is kept while the client is away.
    pub is_durable: bool,
}

/// Something happens.
#[derive(Clone, Debug)]
pub struct Step {
    /// When it is to happen, since the start of the run.
    pub at: Duration,
    /// What.
    pub act: Act,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Act {
    /// A client is somewhere else now, and says so.
    Move {
        /// Who.
        client: u32,
        /// Where it says that it is.
        to: Position,
        /// Where it is in truth, if that is somewhere else.
        truth: Option<Position>,
    },
    /// Somebody publishes.
    Publish(Box<Occurrence>),
    /// A client's connection breaks, and it connects again at once.
    Reconnect {
        /// Who.
        client: u32,
    },
}

/// An event, as it is published.
#[derive(Clone, Debug)]
pub struct Occurrence {
    /// What is matched.
    pub event: Event,
    /// Where it happened in truth, if that is not where it is said to be.
    pub truth: Option<Position>,
    /// How long it stays live, in seconds; 0 for one that is over at once.
    pub ttl_s: f64,
    /// The object that it is about: a newer event of that takes its place.
    pub key: Option<String>,
    /// Whether it is an alarm.
    pub is_alarm: bool,
}

/// Steps in the order of time, each never earlier than the one before.
pub type Steps = Box<dyn Iterator<Item = Step> + Send>;

/// Who is there, and what happens. Asked twice, it says the same.
pub trait Plan: Send + Sync {
    /// What positions are.
    fn world(&self) -> World;

    /// Clients that have a connection. Steps name them by their index.
    fn clients(&self) -> Vec<Client>;

    /// How many more there are who have subscriptions and no connection.
    fn silent_count(&self) -> u64 {
        0
    }

    /// One of those.
    fn silent(&self, _index: u64) -> Client {
        unreachable!("there are none")
    }

    /// What happens.
    fn steps(&self) -> Steps;

    /// What one should know of it besides, a sentence each.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}
