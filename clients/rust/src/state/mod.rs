//! State of a session, without sockets: it decides what the connection sends, and what follows from what the broker
//! sends. Everything here is done under one lock, without waiting.

mod acks;
mod inbox;
mod outgoing;
mod positions;
mod requests;
mod subscriptions;

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::{sync::broadcast, time::Instant};

use self::{
    acks::Acks,
    inbox::Inbox,
    outgoing::Outgoing,
    positions::Positions,
    requests::{Purpose, Requests},
    subscriptions::Subscriptions,
};
pub(crate) use self::{outgoing::Sort, positions::Track, requests::Answer};
use crate::{Checkpoint, Connection, Error, Trace, frame, frame::ServerFrame};

/// Changes of the connection that a slow listener may be behind, before it misses the oldest.
const CHANGES: usize = 256;

pub(crate) struct State {
    pub(crate) out: Outgoing,
    pub(crate) requests: Requests,
    pub(crate) inbox: Inbox,
    acks: Acks,
    positions: Positions,
    subscriptions: Subscriptions,
    /// The session of the broker's that the connection is to, or was.
    pub(crate) epoch: Option<Arc<str>>,
    /// How many publishes, and how many other calls, may wait for their answer.
    limit: usize,
    pub(crate) connection: Connection,
    pub(crate) changes: broadcast::Sender<Connection>,
    /// The application closes the session.
    pub(crate) closing: bool,
    /// When something was heard last.
    pub(crate) heard: Instant,
}

impl State {
    pub(crate) fn new(inbox: usize, limit: usize, track_points: usize, resume: Option<Checkpoint>) -> Self {
        Self {
            out: Outgoing::default(),
            requests: Requests::default(),
            inbox: Inbox::new(inbox, resume),
            acks: Acks::default(),
            positions: Positions::new(track_points),
            subscriptions: Subscriptions::default(),
            epoch: None,
            limit,
            connection: Connection::Connecting,
            changes: broadcast::Sender::new(CHANGES),
            closing: false,
            heard: Instant::now(),
        }
    }

    /// Fails where there is no session any more.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        let ended = if let Connection::Closed { error } = &self.connection { Some(error) } else { None };
        match ended {
            Some(Some(error)) => Err(error.clone()),
            None if !self.closing => Ok(()),
            Some(None) | None => Err(Error::closed("by the application")),
        }
    }

    fn check_others(&self) -> Result<(), Error> {
        self.check_open()?;
        if self.requests.others() < self.limit { Ok(()) } else { Err(Error::QueueFull { limit: self.limit }) }
    }

    pub(crate) fn publish(
        &mut self,
        event: &RawValue,
        trace: Option<&Trace>,
        answer: Answer,
    ) -> Result<(), Error> {
        self.check_open()?;
        if self.requests.publishes() >= self.limit {
            return Err(Error::QueueFull { limit: self.limit });
        }
        self.requests.ask(&mut self.out, Purpose::Publish, vec![answer], |reference| {
            frame::publish(reference, trace, event)
        });
        Ok(())
    }

    pub(crate) fn auth(&mut self, token: String) {
        self.requests.ask(&mut self.out, Purpose::Token, Vec::new(), |reference| {
            frame::write(&wire::ClientFrame::Auth { reference: Some(reference.into()), token })
        });
    }

    pub(crate) fn ping(&mut self) {
        self.out.push(Sort::Ping, frame::write(&wire::ClientFrame::Ping));
    }

    /// A connection is there: tells all that the broker has to know, in the contract's order.
    pub(crate) fn ready(&mut self, epoch: Arc<str>, offset: u64, resumed: bool) {
        self.epoch = Some(epoch.clone());
        self.inbox.begin(Checkpoint { epoch: epoch.clone(), offset });
        self.out.ready = true;
        self.acks.repeat(&mut self.out, Some(&epoch));
        self.tell_positions();
        self.make_again();
        let kinds =
            |purpose: &Purpose| matches!(purpose, Purpose::Subscribe(_) | Purpose::Unsubscribe { .. });
        self.requests.repeat(&mut self.out, kinds);
        self.requests.repeat(&mut self.out, |purpose| matches!(purpose, Purpose::Publish));
        self.change(Connection::Ready { epoch, offset, resumed });
    }

    /// Something came.
    pub(crate) fn frame(&mut self, frame: ServerFrame) {
        match frame {
            ServerFrame::Message(message) if !self.closing => self.inbox.put(message),
            ServerFrame::Answer { reference, problem, warnings } => {
                if !warnings.is_empty() {
                    self.change(Connection::Warned { warnings });
                }
                let outcome = problem.map_or(Ok(()), |problem| Err(Error::refused(problem)));
                let Some(request) = self.requests.answered(reference.as_ref()) else {
                    return outcome.err().into_iter().for_each(|error| self.refused(error));
                };
                match &request.purpose {
                    Purpose::Publish | Purpose::Position | Purpose::Track(_) => request.finish(outcome),
                    Purpose::Subscribe(_) => self.subscribed(request, outcome),
                    Purpose::Remake(id) => self.remade(&id.clone(), outcome),
                    Purpose::Unsubscribe { .. } => self.unsubscribed(request, outcome),
                    Purpose::Recorded(_) => self.recorded(outcome),
                    // Where it is refused the connection ends with its token, and the next one asks for another.
                    Purpose::Token => outcome.err().into_iter().for_each(|error| self.refused(error)),
                }
            }
            ServerFrame::Message(_)
            | ServerFrame::Ready { .. }
            | ServerFrame::Retry(_)
            | ServerFrame::Pong
            | ServerFrame::Unknown => {}
        }
    }

    /// The connection is gone.
    pub(crate) fn lost(&mut self, too_long: Option<&Error>) {
        self.out.lost();
        if let Some((error, longest)) = too_long.zip(too_long.and_then(|_| self.requests.take_longest())) {
            longest.finish(Err(error.clone()));
        }
        for request in self.requests.lost() {
            self.position_lost(request);
        }
    }

    /// There will be no further connection.
    pub(crate) fn end(&mut self, error: Option<Error>) {
        self.out.lost();
        let reason = error.clone().unwrap_or_else(|| Error::closed("by the application"));
        self.requests.take_all().into_iter().for_each(|request| request.finish(Err(reason.clone())));
        for answer in self.take_position_answers() {
            _ = answer.send(Err(reason.clone()));
        }
        self.inbox.end(error.clone());
        self.change(Connection::Closed { error });
    }

    /// Says what was processed and not acknowledged yet.
    pub(crate) fn flush_acks(&mut self) {
        self.acks.flush(&mut self.out, self.epoch.as_ref());
    }

    /// When [`tick`](Self::tick) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.acks.due, self.again()].into_iter().flatten().min()
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        if self.acks.due.is_some_and(|due| due <= now) {
            self.flush_acks();
        }
        self.tick_subscriptions(now);
    }

    /// Whether the reader has to wait for the application. It does not while somebody waits for an answer, or who publishes within the
    /// loop that takes messages would wait for himself.
    pub(crate) fn holds(&self) -> bool {
        self.inbox.is_full() && self.requests.is_empty() && !self.closing
    }

    /// Whether the connection is to be made anew: deliveries were passed over on it, and the application has caught up.
    pub(crate) fn renews(&self) -> bool {
        self.inbox.skipping && self.inbox.has_room()
    }

    pub(crate) fn change(&mut self, change: Connection) {
        if !matches!(change, Connection::Refused { .. } | Connection::Warned { .. }) {
            self.connection = change.clone();
        }
        // Perhaps nobody listens.
        _ = self.changes.send(change);
    }

    /// Tells what was refused without anybody waiting for the answer.
    fn refused(&mut self, error: Error) {
        self.change(Connection::Refused { error });
    }
}
