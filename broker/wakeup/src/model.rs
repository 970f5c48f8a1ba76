//! Model checks: each runs a few threads in every interleaving that interrupts a thread a few times, and with every value that
//! a load may see.
//!
//! The executor ends by itself once it has carried out everything that its producers enqueue. No check tells it anything
//! afterwards, so a lost wake-up is a deadlock, which loom reports. Two holders of the executor lock are found by the
//! assertion of the one that releases it second.

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread::{self, JoinHandle};

use crate::sync::{Instant, Parker, Timers};
use crate::{DOZE_NS, Executor, Step, Task, Wakeup};

/// A task that counts commands, and ends after the last.
struct Counting {
    wakeup: Arc<Wakeup>,
    queue: Arc<Queue>,
    done: usize,
    last: usize,
    /// What each command leaves to be done later, after this time.
    delay_ns: Option<u64>,
    due: Option<Instant>,
}

/// A queue of commands that are all alike, in two steps as a channel has them.
#[derive(Default)]
struct Queue {
    reserved: AtomicUsize,
    filled: AtomicUsize,
}

impl Queue {
    fn put(&self) {
        self.reserved.fetch_add(1, Ordering::Relaxed);
        self.filled.fetch_add(1, Ordering::Release);
    }
}

impl Task for Counting {
    fn step(&mut self) -> Step {
        let filled = self.queue.filled.load(Ordering::Acquire);
        let is_due = self.due.is_some_and(|at| at.0 <= self.wakeup.parker.now_ns());
        if filled == self.done && !is_due {
            return Step::Idle { deadline: self.due };
        }
        self.due = self.due.filter(|_| !is_due);
        if filled > self.done {
            self.done = filled;
            self.due = self.delay_ns.map(|delay_ns| Instant(self.wakeup.parker.now_ns() + delay_ns));
        }
        if self.done == self.last && self.due.is_none() { Step::Ended } else { Step::Done }
    }

    fn has_more(&self) -> bool {
        self.queue.reserved.load(Ordering::Relaxed) > self.done
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

/// How a producer has its command carried out.
#[derive(Clone, Copy)]
enum Manner {
    Eager,
    Lazy,
    Inline,
}

use Manner::{Eager, Inline, Lazy};

/// A check: each producer enqueues its commands on a thread of its own, while this one runs the executor.
struct Check<'a> {
    producers: &'a [&'a [Manner]],
    timers: Timers,
    delay_ns: Option<u64>,
    /// How often a thread that could go on is interrupted at most, in one interleaving.
    preemptions: usize,
}

impl Check<'_> {
    fn run(&self) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(self.preemptions);
        let producers: Vec<Vec<Manner>> = self.producers.iter().map(|manners| manners.to_vec()).collect();
        let (timers, delay_ns) = (self.timers, self.delay_ns);
        model.check(move || {
            let wakeup = Arc::new(Wakeup::new(Parker::new(timers)));
            let queue = Arc::new(Queue::default());
            let last = producers.iter().map(Vec::len).sum();
            let task = Counting {
                wakeup: Arc::clone(&wakeup),
                queue: Arc::clone(&queue),
                done: 0,
                last,
                delay_ns,
                due: None,
            };
            let executor = Arc::new(Executor::new(task, Arc::clone(&wakeup)));
            let produce = |manners: &Vec<Manner>| {
                let (executor, wakeup, queue) =
                    (Arc::clone(&executor), Arc::clone(&wakeup), Arc::clone(&queue));
                let manners = manners.clone();
                thread::spawn(move || {
                    for manner in manners {
                        queue.put();
                        match manner {
                            Eager => wakeup.notify(),
                            Lazy => wakeup.notify_lazy(),
                            Inline => executor.run_inline(),
                        }
                    }
                })
            };
            let threads: Vec<JoinHandle<()>> = producers.iter().map(produce).collect();
            assert_eq!(executor.run().done, last);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

/// Without timers: an eager notification is not to wait for one.
const EAGER: Check<'_> = Check { producers: &[], timers: Timers::Never, delay_ns: None, preemptions: 2 };
const LAZY: Check<'_> = Check { timers: Timers::Fire, ..EAGER };

#[test]
fn an_eager_notification_is_not_lost() {
    Check { producers: &[&[Eager], &[Eager]], ..EAGER }.run();
}

#[test]
fn a_lazy_notification_is_not_lost() {
    Check { producers: &[&[Lazy], &[Lazy]], ..LAZY }.run();
}

#[test]
fn an_eager_notification_reaches_a_thread_that_dozes() {
    Check { producers: &[&[Lazy, Eager]], ..EAGER }.run();
}

#[test]
fn a_command_is_not_lost_to_a_thread_that_runs_inline() {
    Check { producers: &[&[Inline], &[Eager]], ..EAGER }.run();
}

#[test]
fn of_two_that_would_run_inline_one_or_the_thread_does() {
    Check { producers: &[&[Inline], &[Inline]], ..EAGER }.run();
}

#[test]
fn a_lazy_notification_is_not_lost_to_a_thread_that_runs_inline() {
    Check { producers: &[&[Inline], &[Lazy]], ..LAZY }.run();
}

#[test]
fn a_thread_whose_timer_fires_while_another_runs_inline_wakes_later() {
    Check { producers: &[&[Lazy, Inline], &[Lazy]], preemptions: 2, ..LAZY }.run();
}

#[test]
fn what_is_due_after_an_inline_run_is_done_by_the_thread() {
    for delay_ns in [DOZE_NS / 2, DOZE_NS * 2] {
        Check { producers: &[&[Inline], &[Lazy]], delay_ns: Some(delay_ns), ..LAZY }.run();
    }
}
