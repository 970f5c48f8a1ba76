//! Acknowledgements: at most one every 100 deliveries or second, and the last one again on each connection, since none is answered.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use wire::ClientFrame;

use super::{
    State,
    outgoing::{Outgoing, Sort},
};
use crate::{Checkpoint, frame, messages::further};

/// Deliveries that may be done with before they are acknowledged.
const EVERY: u32 = 100;
/// Time for which a delivery may be done with before it is acknowledged.
const AFTER: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Acks {
    last: Option<Checkpoint>,
    unsaid: u32,
    pub(super) due: Option<Instant>,
}

impl Acks {
    /// Says how far the application is, where the connection is to the session that this is about.
    pub(super) fn repeat(&mut self, out: &mut Outgoing, epoch: Option<&Arc<str>>) {
        self.unsaid = 0;
        self.due = None;
        if let Some(last) = &self.last
            && epoch == Some(&last.epoch)
        {
            out.push(Sort::Ack, frame::write(&ClientFrame::Ack { offset: last.offset }));
        }
    }

    pub(super) fn flush(&mut self, out: &mut Outgoing, epoch: Option<&Arc<str>>) {
        self.due = None;
        if self.unsaid > 0 {
            self.repeat(out, epoch);
        }
    }
}

impl State {
    /// The application is done with everything up to here. Whether there is something to write, or to wait for.
    pub(crate) fn processed(&mut self, checkpoint: Checkpoint) -> bool {
        further(&mut self.acks.last, checkpoint);
        self.acks.unsaid += 1;
        if self.acks.unsaid >= EVERY {
            self.acks.flush(&mut self.out, self.epoch.as_ref());
            return true;
        }
        let waits = self.acks.due.is_none();
        self.acks.due.get_or_insert_with(|| Instant::now() + AFTER);
        waits
    }

    /// The application says so itself: told at once.
    pub(crate) fn ack(&mut self, checkpoint: Checkpoint) {
        let Checkpoint { epoch, offset } = checkpoint.clone();
        further(&mut self.acks.last, checkpoint);
        if self.epoch.as_ref() == Some(&epoch) {
            self.out.push(Sort::Ack, frame::write(&ClientFrame::Ack { offset }));
        }
    }
}
