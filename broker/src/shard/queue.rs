//! The queue of a shard.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::mpsc::{self, PermitIterator, error::TrySendError};

use super::Command;
use super::bell::Bell;
use crate::model::error::Refusal;

/// Makes a queue for `commands` commands.
pub(super) fn queue(commands: usize) -> (Sender, Receiver) {
    let (sender, receiver) = mpsc::channel(commands);
    let bell = Arc::new(Bell::new());
    let sender = Sender { commands: sender, bell: LastRing(Arc::clone(&bell)) };
    (sender, Receiver { commands: receiver, bell })
}

/// The end where commands are put in.
pub(super) struct Sender {
    commands: mpsc::Sender<Command>,
    /// Goes behind the sender: a thread that is called by it finds the queue closed.
    bell: LastRing,
}

/// Room in a queue. When it is dropped the shard sees to what was put there.
pub(super) struct Room<'a> {
    permits: PermitIterator<'a, Command>,
    sender: &'a Sender,
    due: Due,
}

/// When the shard has to see to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// Never: the sender of the command sees to it.
    Never,
    Soon,
    Now,
}

/// The end where they are taken out.
pub(crate) struct Receiver {
    commands: mpsc::Receiver<Command>,
    pub(super) bell: Arc<Bell>,
}

/// Rings when it goes.
struct LastRing(Arc<Bell>);

impl Drop for LastRing {
    fn drop(&mut self) {
        self.0.ring();
    }
}

impl Sender {
    /// How many commands it holds at most.
    pub(super) fn max(&self) -> usize {
        self.commands.max_capacity()
    }

    /// How many wait.
    pub(super) fn depth(&self) -> usize {
        self.commands.max_capacity() - self.commands.capacity()
    }

    /// Whether nobody takes commands any more.
    pub(super) fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }

    /// Waits until nobody does.
    pub(super) async fn closed(&self) {
        self.commands.closed().await;
    }

    /// Has the shard's thread see to what is there.
    pub(super) fn ring(&self) {
        self.bell.0.ring();
    }

    /// Waits for room for `count` commands, no more than the queue holds, for as long as `wait`. A ticket is for a command
    /// that has room: a refused one has nothing to settle.
    pub(super) async fn room(&self, count: usize, wait: Duration) -> Result<Room<'_>, Refusal> {
        let permits = match self.commands.try_reserve_many(count) {
            Ok(permits) => permits,
            Err(TrySendError::Closed(())) => return Err(Refusal::Stopping),
            Err(TrySendError::Full(())) => {
                self.ring();
                match tokio::time::timeout(wait, self.commands.reserve_many(count)).await {
                    Ok(Ok(permits)) => permits,
                    Ok(Err(_)) => return Err(Refusal::Stopping),
                    Err(_) => return Err(Refusal::Overloaded),
                }
            }
        };
        Ok(Room { permits, sender: self, due: Due::Never })
    }

    /// Puts a command in, however long that takes. A queue that is closed has no use for it.
    pub(super) async fn send(&self, command: Command) {
        if self.commands.capacity() == 0 {
            self.ring();
        }
        let _ = self.commands.send(command).await;
        self.ring();
    }
}

impl Room<'_> {
    /// Puts in a command, for which there has to be room.
    pub(super) fn put(&mut self, command: Command) {
        self.due = Due::Now;
        self.put_in(command);
    }

    /// Puts in a move for which nobody waits, unless it may have something to tell.
    pub(super) fn put_move(&mut self, command: Command) {
        let Sender { commands, bell } = self.sender;
        let is_half_full = commands.capacity() < commands.max_capacity() / 2;
        self.due = if is_half_full || bell.0.moves_tell() { Due::Now } else { Due::Soon };
        self.put_in(command);
    }

    /// Leaves what was put in to the caller, who sees to it.
    pub(super) fn hand_over(mut self) {
        self.due = Due::Never;
    }

    fn put_in(&mut self, command: Command) {
        self.permits.next().expect("as many as were asked for").send(command);
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        match self.due {
            Due::Never => {}
            Due::Soon => self.sender.bell.0.ring_later(),
            Due::Now => self.sender.bell.0.ring(),
        }
    }
}

impl Receiver {
    /// Whether nothing is there, not even the end.
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty() && !self.commands.is_closed()
    }

    /// How many commands are there.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Takes a command that is there.
    pub(crate) fn take_one(&mut self) -> Option<Command> {
        self.commands.try_recv().ok()
    }

    /// Appends up to `count_max` commands that are there, and returns their number; `None` where none will ever come again.
    pub(super) fn take(&mut self, commands: &mut Vec<Command>, count_max: usize) -> Option<usize> {
        match self.commands.poll_recv_many(&mut Context::from_waker(Waker::noop()), commands, count_max) {
            Poll::Ready(0) => None,
            Poll::Ready(count) => Some(count),
            Poll::Pending => Some(0),
        }
    }
}
