//! A shard and those who work in it by turns: its thread, and now and then who has put in something small.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::Command;
use super::bell::Bell;
use super::queue::Receiver;
use super::worker::Shard;
use crate::sessions::Sessions;

/// A shard, as those who work in it share it.
pub(super) struct Turns {
    bell: Arc<Bell>,
    /// A std mutex, for a step or more: locked by who has the turn alone, so that nobody waits for it. Nothing, where work has ended or
    /// failed.
    work: Mutex<Option<Work>>,
}

/// What there is to work with.
struct Work {
    shard: Shard,
    receiver: Receiver,
    /// Commands at hand; kept for its memory.
    commands: Vec<Command>,
    has_ended: bool,
}

/// What came of a step.
enum Step {
    /// Something was done.
    Done,
    /// There was nothing to do until then.
    Idle { deadline: Option<Instant> },
    /// Nothing will ever come.
    Ended,
}

/// What is left when work is interrupted by a panic: nothing, so that senders find the queue closed.
struct Guard<'a> {
    work: MutexGuard<'a, Option<Work>>,
    bell: &'a Bell,
}

impl Turns {
    pub(super) fn new(shard: Shard, receiver: Receiver) -> Self {
        let bell = Arc::clone(&receiver.bell);
        let work = Work { shard, receiver, commands: Vec::new(), has_ended: false };
        Self { bell, work: Mutex::new(Some(work)) }
    }

    /// What the thread does from its start to the end, when it gives the sessions back.
    pub(super) fn run(&self) -> Sessions {
        self.bell.begin();
        loop {
            let mut work = self.work();
            let at_work = work.work.as_mut().expect("nobody panicked at work");
            while !at_work.has_ended {
                match at_work.step() {
                    Step::Done => {}
                    Step::Ended => at_work.has_ended = true,
                    Step::Idle { deadline } => {
                        self.bell.rest(deadline);
                        if at_work.receiver.is_empty() || !self.bell.take() {
                            break;
                        }
                    }
                }
            }
            if at_work.has_ended {
                return work.work.take().expect("it is there").shard.sessions;
            }
            drop(work);
            self.bell.sleep();
        }
    }

    /// Does, in the place of the thread, what is there, if it sleeps: little, or the thread goes on with it. Where it does not sleep, it
    /// sees to it.
    pub(super) fn help(&self) {
        if !self.bell.take() {
            return;
        }
        let mut work = self.work();
        let Some(at_work) = work.work.as_mut() else { return };
        at_work.has_ended = matches!(at_work.step(), Step::Ended);
        loop {
            if at_work.has_ended || !at_work.receiver.is_empty() {
                return self.bell.call();
            }
            self.bell.rest_for_thread(at_work.shard.sessions.next_deadline());
            if at_work.receiver.is_empty() || !self.bell.take() {
                return;
            }
        }
    }

    fn work(&self) -> Guard<'_> {
        Guard { work: self.work.lock().unwrap_or_else(PoisonError::into_inner), bell: &self.bell }
    }
}

impl Work {
    /// Does what is there or due.
    fn step(&mut self) -> Step {
        let deadline = self.shard.sessions.next_deadline();
        let Some(count) = self.receiver.take(&mut self.commands, self.shard.batch()) else {
            self.shard.end();
            return Step::Ended;
        };
        if count == 0 && deadline.is_none_or(|deadline| Instant::now() < deadline) {
            return Step::Idle { deadline };
        }
        self.shard.take_alarms(&mut self.commands, &mut self.receiver);
        self.shard.sessions.press(!self.receiver.is_empty());
        let gone_on = self.shard.step(&mut self.commands);
        self.receiver.bell.set_moves_tell(self.shard.sessions.has_live());
        if gone_on.is_break() { Step::Ended } else { Step::Done }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(self.work.take());
            self.bell.call();
        }
    }
}
