//! Requests over the WebSocket that wait for their answer.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::{
    outgoing::{Outgoing, Sort},
    positions::{Point, Track},
    subscriptions::Made,
};
use crate::Error;

/// Where the outcome of a call goes. That nobody waits for it any more is no fault.
pub(crate) type Answer = oneshot::Sender<Result<(), Error>>;

/// Purpose of a request, which decides what follows from its answer.
pub(crate) enum Purpose {
    Publish,
    Subscribe(Made),
    /// A subscription that is made again by the session itself.
    Remake(String),
    Unsubscribe {
        id: String,
        before: Option<Made>,
    },
    Position,
    Track(Track),
    /// Positions that a follower recorded without a connection.
    Recorded(Vec<Point>),
    Token,
}

impl Purpose {
    /// Whether it is sent again as it is on the next connection; the others are made anew.
    fn lasts(&self) -> bool {
        matches!(self, Self::Publish | Self::Subscribe(_) | Self::Unsubscribe { .. })
    }
}

pub(crate) struct Request {
    text: Utf8Bytes,
    pub(crate) purpose: Purpose,
    pub(crate) answers: Vec<Answer>,
    /// On how many connections it was sent.
    pub(crate) sent: u32,
    /// On which the last time.
    sent_on: Option<u64>,
}

impl Request {
    pub(crate) fn finish(self, outcome: Result<(), Error>) {
        for answer in self.answers {
            _ = answer.send(outcome.clone());
        }
    }
}

/// Requests by their `ref`, which is also the order in which they were made.
#[derive(Default)]
pub(crate) struct Requests {
    waiting: BTreeMap<u64, Request>,
    last: u64,
    connection: u64,
    publishes: usize,
}

impl Requests {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Publishes that wait.
    pub(crate) fn publishes(&self) -> usize {
        self.publishes
    }

    /// Number of waiting requests other than publishes.
    pub(crate) fn others(&self) -> usize {
        self.waiting.len() - self.publishes
    }

    /// Sends a request now, or when there is a connection. `write` makes its text with the `ref` that it gets.
    pub(crate) fn ask(
        &mut self,
        out: &mut Outgoing,
        purpose: Purpose,
        answers: Vec<Answer>,
        write: impl FnOnce(u64) -> Utf8Bytes,
    ) {
        self.last += 1;
        self.publishes += usize::from(matches!(purpose, Purpose::Publish));
        let mut request = Request { text: write(self.last), purpose, answers, sent: 0, sent_on: None };
        request.write(out, self.connection);
        self.waiting.insert(self.last, request);
    }

    /// The request with this `ref`, which waits no more.
    pub(crate) fn answered(&mut self, reference: Option<&Value>) -> Option<Request> {
        self.take(reference?.as_u64()?)
    }

    /// On a new connection: sends those that were not answered on one before.
    pub(crate) fn repeat(&mut self, out: &mut Outgoing, which: impl Fn(&Purpose) -> bool) {
        for request in self.waiting.values_mut().filter(|request| which(&request.purpose)) {
            if request.sent_on != Some(self.connection) {
                request.write(out, self.connection);
            }
        }
    }

    /// The connection is gone. Returns those that are made anew, in their order.
    pub(crate) fn lost(&mut self) -> Vec<Request> {
        self.connection += 1;
        let anew = self.waiting.iter().filter(|(_, request)| !request.purpose.lasts());
        let anew: Vec<u64> = anew.map(|(&reference, _)| reference).collect();
        anew.into_iter().filter_map(|reference| self.take(reference)).collect()
    }

    /// The one that was too long for the broker, which has closed the connection for it, will always be.
    pub(crate) fn take_longest(&mut self) -> Option<Request> {
        let sent = self.waiting.iter().filter(|(_, request)| request.sent > 0);
        let (&longest, _) = sent.max_by_key(|(_, request)| request.text.len())?;
        self.take(longest)
    }

    pub(crate) fn take_all(&mut self) -> Vec<Request> {
        self.publishes = 0;
        std::mem::take(&mut self.waiting).into_values().collect()
    }

    fn take(&mut self, reference: u64) -> Option<Request> {
        let request = self.waiting.remove(&reference)?;
        self.publishes -= usize::from(matches!(request.purpose, Purpose::Publish));
        Some(request)
    }
}

impl Request {
    fn write(&mut self, out: &mut Outgoing, connection: u64) {
        if out.push(Sort::Request, self.text.clone()) {
            self.sent += 1;
            self.sent_on = Some(connection);
        }
    }
}
