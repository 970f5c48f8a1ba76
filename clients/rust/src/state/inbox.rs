//! Messages that have come from the broker and wait for the application, and how far the application has come.

use std::{collections::VecDeque, task::Waker};

use crate::{
    Checkpoint, Error,
    messages::{Incoming, further},
};

/// Factor of the bound on waiting messages while somebody waits for an answer, which may stand behind deliveries.
const SLACK: usize = 16;

pub(crate) struct Inbox {
    bound: usize,
    queue: VecDeque<Incoming>,
    /// How far the queue has come: where a connection goes on.
    pub(crate) received: Option<Checkpoint>,
    /// How far the application has come.
    pub(crate) taken: Option<Checkpoint>,
    /// Checkpoint of the message that the application is at. `None` where being done with the message says nothing.
    current: Option<Checkpoint>,
    /// Deliveries of this connection are passed over, for there was no room for one.
    pub(crate) skipping: bool,
    /// Nobody takes messages any more.
    unread: bool,
    ended: Option<Option<Error>>,
    pub(crate) waker: Option<Waker>,
}

impl Inbox {
    pub(crate) fn new(bound: usize, resume: Option<Checkpoint>) -> Self {
        Self {
            bound: bound.max(1),
            queue: VecDeque::new(),
            received: resume.clone(),
            taken: resume,
            current: None,
            skipping: false,
            unread: false,
            ended: None,
            waker: None,
        }
    }

    /// A session that goes on from nowhere in particular begins where the broker says. One that goes on does where it was: a gap may
    /// follow.
    pub(super) fn begin(&mut self, checkpoint: Checkpoint) {
        self.skipping = false;
        self.received.get_or_insert_with(|| checkpoint.clone());
        self.taken.get_or_insert(checkpoint);
    }

    /// Takes a message in.
    pub(super) fn put(&mut self, message: Incoming) {
        if self.skipping || self.unread || self.ended.is_some() {
            return;
        }
        if self.queue.len() >= self.bound * SLACK {
            self.skipping = true;
            return;
        }
        further(&mut self.received, message.checkpoint());
        self.queue.push_back(message);
        self.wake();
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= self.bound
    }

    /// Whether the application has caught up so far that more can come.
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() <= self.bound / 2
    }

    /// Takes the checkpoint of the message that the application is done with by asking for the next one.
    pub(crate) fn done(&mut self) -> Option<Checkpoint> {
        self.current.take()
    }

    /// The next message; `Some(None)` at the end.
    #[expect(clippy::option_option, reason = "what a stream's poll says: not yet, nothing more, or this")]
    pub(crate) fn take(&mut self) -> Option<Option<Result<Incoming, Error>>> {
        if let Some(message) = self.queue.pop_front() {
            further(&mut self.taken, message.checkpoint());
            self.current = message.in_turn().then(|| message.checkpoint());
            return Some(Some(Ok(message)));
        }
        let ended = self.ended.as_mut()?;
        Some(ended.take().map(Err))
    }

    /// Nothing more comes. With an error the application gets what waits and then the error, else the end at once.
    pub(super) fn end(&mut self, error: Option<Error>) {
        if error.is_none() {
            self.queue.clear();
        }
        self.ended.get_or_insert(error);
        self.wake();
    }

    /// Nobody will take messages. They are passed over, and so not acknowledged.
    pub(crate) fn abandon(&mut self) {
        self.unread = true;
        self.queue.clear();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
