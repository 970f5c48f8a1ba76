//! Frames on their way to the broker, in order.

use std::collections::VecDeque;

use tokio_tungstenite::tungstenite::Utf8Bytes;

/// What a frame is, as far as a newer one makes it out of date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Waits for an answer; how many of them may wait is bounded where they are made.
    Request,
    /// Only the newest place counts.
    Place,
    /// Only the highest acknowledgement counts.
    Ack,
    Ping,
}

/// Where so many frames wait, an older place or acknowledgement is taken out wherever it stands, so that the queue stays bounded.
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

    /// The connection is gone. What went out on it is made anew from what it was made of.
    pub(crate) fn lost(&mut self) {
        self.ready = false;
        self.frames.clear();
    }
}
