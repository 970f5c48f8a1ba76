//! Frames on their way to the broker, in order.

use std::collections::VecDeque;

use tokio_tungstenite::tungstenite::Utf8Bytes;

/// Kind of a frame, as far as a newer frame makes it out of date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Waits for an answer; how many of them may wait is bounded where they are made.
    Request,
    /// Only the newest position counts.
    Position,
    /// Only the highest acknowledgement counts.
    Ack,
    Ping,
}

/// Waiting frames from which on an older position or acknowledgement is taken out wherever it stands, so that the queue
/// stays bounded.
const CONGESTED: usize = 256;

#[derive(Default)]
pub(crate) struct Outgoing {
    pub(crate) ready: bool,
    frames: VecDeque<(Sort, Utf8Bytes)>,
}

impl Outgoing {
    /// Adds a frame where there is a connection, and says whether there is.
    pub(crate) fn push(&mut self, sort: Sort, text: Utf8Bytes) -> bool {
        if !self.ready {
            return false;
        }
        if sort != Sort::Request {
            let congested = self.frames.len() >= CONGESTED;
            let reach = if congested { self.frames.len() } else { 1 };
            let older = self.frames.iter().rev().take(reach).position(|(other, _)| *other == sort);
            if let Some(older) = older {
                self.frames.remove(self.frames.len() - 1 - older);
            }
        }
        self.frames.push_back((sort, text));
        true
    }

    pub(crate) fn pop(&mut self) -> Option<Utf8Bytes> {
        Some(self.frames.pop_front()?.1)
    }

    /// Drops all frames, since the connection is gone. They are made anew from their sources.
    pub(crate) fn lost(&mut self) {
        self.ready = false;
        self.frames.clear();
    }
}
