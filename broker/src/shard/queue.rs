//! The queue of a shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::mpsc::{self, PermitIterator, error::TrySendError};
use wakeup::Wakeup;

use super::Command;
use crate::model::error::ApiError;

/// Makes a queue for `commands` commands.
pub(super) fn queue(commands: usize) -> (Sender, Receiver) {
    let (sender, receiver) = mpsc::channel(commands);
    let (wakeup, moves_tell) = (Arc::new(Wakeup::default()), Arc::new(AtomicBool::new(false)));
    let sender = Sender {
        commands: sender,
        moves_tell: Arc::clone(&moves_tell),
        wakeup: NotifyOnDrop(Arc::clone(&wakeup)),
    };
    (sender, Receiver { commands: receiver, moves_tell, wakeup })
}

/// The end where commands are put in.
pub(super) struct Sender {
    commands: mpsc::Sender<Command>,
    moves_tell: Arc<AtomicBool>,
    /// Dropped after the sender: a thread that it wakes finds the queue closed.
    wakeup: NotifyOnDrop,
}

/// Room in a queue. Dropping it notifies the shard of the commands that were put there.
pub(super) struct Room<'a> {
    permits: PermitIterator<'a, Command>,
    sender: &'a Sender,
    due: Due,
}

/// When the shard has to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// Never: the sender of the command runs the shard.
    Never,
    Soon,
    Now,
}

/// The end where they are taken out.
pub(crate) struct Receiver {
    commands: mpsc::Receiver<Command>,
    /// Whether a move may have something to tell, so that it is waited for.
    moves_tell: Arc<AtomicBool>,
    pub(super) wakeup: Arc<Wakeup>,
}

/// Notifies the executor when it is dropped.
struct NotifyOnDrop(Arc<Wakeup>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify();
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

    /// Whether the queue is closed: no command will be taken out any more.
    pub(super) fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }

    /// Waits until the queue is closed.
    pub(super) async fn closed(&self) {
        self.commands.closed().await;
    }

    /// Has the shard run.
    pub(super) fn notify(&self) {
        self.wakeup.0.notify();
    }

    /// Waits for room for `count` commands, no more than the queue holds, for as long as `wait`. A ticket is for a command
    /// that has room: a refused one has nothing to settle.
    pub(super) async fn room(&self, count: usize, wait: Duration) -> Result<Room<'_>, ApiError> {
        let permits = match self.commands.try_reserve_many(count) {
            Ok(permits) => permits,
            Err(TrySendError::Closed(())) => return Err(ApiError::Stopping),
            Err(TrySendError::Full(())) => {
                self.notify();
                match tokio::time::timeout(wait, self.commands.reserve_many(count)).await {
                    Ok(Ok(permits)) => permits,
                    Ok(Err(_)) => return Err(ApiError::Stopping),
                    Err(_) => return Err(ApiError::Overloaded),
                }
            }
        };
        Ok(Room { permits, sender: self, due: Due::Never })
    }

    /// Puts a command in, however long that takes. A queue that is closed has no use for it.
    pub(super) async fn send(&self, command: Command) {
        if self.commands.capacity() == 0 {
            self.notify();
        }
        let _ = self.commands.send(command).await;
        self.notify();
    }
}

impl Room<'_> {
    /// Puts in a command, for which there has to be room.
    pub(super) fn put(&mut self, command: Command) {
        self.due = Due::Now;
        self.put_in(command);
    }

    /// Puts in a move, which is notified lazily unless it may have something to tell.
    pub(super) fn put_move(&mut self, command: Command) {
        let Sender { commands, moves_tell, .. } = self.sender;
        let is_half_full = commands.capacity() < commands.max_capacity() / 2;
        let is_awaited = is_half_full || moves_tell.load(Ordering::Relaxed);
        self.due = if is_awaited { Due::Now } else { Due::Soon };
        self.put_in(command);
    }

    /// Leaves the commands to the caller, which runs the shard itself.
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
            Due::Soon => self.sender.wakeup.0.notify_lazy(),
            Due::Now => self.sender.notify(),
        }
    }
}

impl Receiver {
    /// Says whether moves may have something to tell from now on.
    pub(super) fn set_moves_tell(&self, they_do: bool) {
        self.moves_tell.store(they_do, Ordering::Relaxed);
    }

    /// Whether the queue is empty and not closed.
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
