//! Attachments to the simulated log. What arrives is found when it is asked for, so that nothing is planned.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use rand::Rng as _;

use super::{Partition, Simulated, micros};
use crate::log::{self, Sent, Stored};

/// How often an attachment says that it has nothing to send.
const REPORT: Duration = Duration::from_secs(1);

/// An attachment of a client. It ends without a word where the connection is another one by now.
#[derive(Debug)]
pub struct Attachment {
    side: Simulated,
    /// The connection that it is over.
    connection: u64,
    next: u64,
    nth: u64,
    /// The next record and when it arrives, not before the one before it.
    due: Option<(Stored, Duration)>,
    /// When the last message arrived, or the attachment is made.
    last_at: Duration,
    is_silent: bool,
    /// A record that arrives once more.
    again: Option<Sent>,
}

impl Attachment {
    pub(super) fn new(side: Simulated, from: u64) -> Self {
        let mut state = side.world.state();
        let connection = state.clients[side.client].connection;
        let lost = state.faults.lost_requests;
        let is_silent = state.random.random_bool(lost);
        let last_at = state.now + state.latency() + state.latency();
        drop(state);
        Self { side, connection, next: from, nth: 0, due: None, last_at, is_silent, again: None }
    }

    /// The next message, if one has arrived. Messages of a connection that is interrupted arrive later.
    fn arrived(&mut self) -> Option<Sent> {
        let mut state = self.side.world.state();
        let client = &state.clients[self.side.client];
        let is_over = client.connection != self.connection || client.partition != Partition::None;
        if self.is_silent || is_over || state.now < self.last_at {
            return None;
        }
        if let Some(again) = self.again.take() {
            return Some(again);
        }
        let (behind, lost, silences) = (client.behind, state.faults.lost_messages, state.faults.silences);
        let seen = state.seen(self.side.client);
        if self.due.is_none() {
            self.next = self.next.max(state.records.bounds().first);
            let stored =
                state.records.read(self.next, seen, 0).ok().and_then(|found| found.into_iter().next());
            self.due = stored.map(|stored| {
                let at = stored.time_us + micros(behind) + micros(state.latency());
                let at = Duration::from_micros(u64::try_from(at).unwrap_or(0));
                (stored, at.max(self.last_at))
            });
        }
        let sent = match self.due.take_if(|(_, at)| *at <= state.now) {
            Some((stored, at)) => {
                (self.next, self.nth, self.last_at) = (stored.sequence + 1, self.nth + 1, at);
                Sent::Record { nth: self.nth, pending: seen.saturating_sub(stored.sequence), stored }
            }
            None if self.due.is_some() || state.now < self.last_at + REPORT => return None,
            None => {
                self.last_at = state.now;
                Sent::Idle { nth: self.nth, last: seen.max(self.next.saturating_sub(1)) }
            }
        };
        self.is_silent = state.random.random_bool(silences);
        let is_lost = state.random.random_bool(lost);
        let repeated = state.faults.repeated_messages;
        self.again = state.random.random_bool(repeated).then(|| sent.clone());
        drop(state);
        if is_lost { self.arrived() } else { Some(sent) }
    }
}

impl log::Attachment for Attachment {
    /// Wakes nobody: it is asked again when the time has gone on.
    async fn receive(&mut self) -> Option<Sent> {
        poll_fn(|_| self.arrived().map_or(Poll::Pending, |sent| Poll::Ready(Some(sent)))).await
    }
}
