//! The loops that run a task: on a thread of its own, and inline on others.

use std::sync::{Arc, PoisonError};

use crate::sync::{Instant, Mutex, MutexGuard, yield_now};
use crate::{Doze, Wakeup};

/// A task that an executor runs: it has a queue, and perhaps something that is due later.
pub trait Task {
    /// Does what is there or due.
    fn step(&mut self) -> Step;

    /// Whether something is in the queue, or about to be there, or the queue has ended.
    fn has_more(&self) -> bool;

    /// When there is something to do next, should nothing come.
    fn deadline(&self) -> Option<Instant>;
}

/// The outcome of a step.
#[derive(Debug)]
pub enum Step {
    /// Something was done.
    Done,
    /// There was nothing to do until then.
    Idle {
        /// When something is due, if ever.
        deadline: Option<Instant>,
    },
    /// Nothing is to be done any more.
    Ended,
}

/// A task, as the threads that run it share it.
pub struct Executor<T> {
    wakeup: Arc<Wakeup>,
    /// A mutex for a step or more. It is never waited for longer than a look into the queue: only the holder of the executor lock locks
    /// it, or a thread that has just released that.
    inside: Mutex<Inside<T>>,
}

struct Inside<T> {
    /// Nothing, where it has ended.
    task: Option<T>,
    has_ended: bool,
    doze: Doze,
}

impl<T: Task> Executor<T> {
    /// Makes an executor of a task whose producers notify it by `wakeup`. A thread has to [`run`](Self::run) it.
    pub fn new(task: T, wakeup: Arc<Wakeup>) -> Self {
        let inside = Inside { task: Some(task), has_ended: false, doze: Doze::default() };
        Self { wakeup, inside: Mutex::new(inside) }
    }

    /// Runs the task on the executor's own thread to its end, and gives it back.
    ///
    /// # Panics
    /// After a panic in [`run_inline`](Self::run_inline).
    pub fn run(&self) -> T {
        self.wakeup.parker.register();
        loop {
            let mut guard = self.lock();
            let inside = &mut *guard;
            let task = inside.task.as_mut().expect("a panic in `run_inline` has ended the task");
            while !inside.has_ended {
                match task.step() {
                    Step::Done => {}
                    Step::Ended => inside.has_ended = true,
                    Step::Idle { deadline } => {
                        self.wakeup.release_to_park(&mut inside.doze, deadline);
                        if !task.has_more() || !self.wakeup.try_run() {
                            break;
                        }
                        // What is there may be about to be there: its producer is to go on.
                        yield_now();
                    }
                }
            }
            if inside.has_ended {
                return inside.task.take().expect("it was there");
            }
            drop(guard);
            self.wakeup.park();
        }
    }

    /// Runs the task on the caller's thread, if the lock is free: a step, and the executor's thread goes on with the rest. Where the
    /// lock is not free, its holder sees to what is there.
    pub fn run_inline(&self) {
        if !self.wakeup.try_run() {
            return;
        }
        let mut guard = self.lock();
        let inside = &mut *guard;
        let Some(task) = inside.task.as_mut() else { return };
        inside.has_ended = matches!(task.step(), Step::Ended);
        while !inside.has_ended && !task.has_more() {
            self.wakeup.release_inline(&inside.doze, task.deadline());
            if !task.has_more() || !self.wakeup.try_run() {
                return;
            }
        }
        drop(guard);
        self.wakeup.hand_over();
    }

    /// Whether the parked thread is about to wake, because something is due.
    pub fn is_due(&self) -> bool {
        self.wakeup.is_due()
    }

    /// Ends after a panic in the task, on the thread that it was on: gives the task to `end`, and then the executor's thread
    /// learns of it.
    pub fn abort(&self, end: impl FnOnce(T)) {
        let task = self.lock().task.take();
        if let Some(task) = task {
            end(task);
            self.wakeup.hand_over();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside<T>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
