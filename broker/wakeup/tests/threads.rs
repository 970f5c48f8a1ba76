//! The executor on the machine's own threads and clock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use wakeup::{Executor, Step, Task, Wakeup};

/// A queue of numbers, as its producers and its task share it.
#[derive(Default)]
struct Queue {
    numbers: Mutex<VecDeque<usize>>,
    has_ended: AtomicBool,
    /// What was taken out, and what of that inline.
    taken_count: AtomicUsize,
    inline_count: AtomicUsize,
    /// When something is due that the next inline run is to leave for later.
    later: Mutex<Option<Instant>>,
    done_later: AtomicUsize,
}

/// A task that takes numbers out of the queue. It keeps their order.
struct Taking {
    queue: Arc<Queue>,
    taken: Vec<usize>,
    due: Option<Instant>,
}

impl Task for Taking {
    fn step(&mut self) -> Step {
        if self.queue.has_ended.load(Ordering::SeqCst) {
            return Step::Ended;
        }
        let before = self.taken.len();
        self.taken.extend(self.queue.numbers.lock().unwrap().drain(..));
        self.queue.taken_count.store(self.taken.len(), Ordering::Relaxed);
        if thread::current().name() != Some(EXECUTOR) {
            self.queue.inline_count.fetch_add(self.taken.len() - before, Ordering::Relaxed);
            self.due = self.due.or_else(|| self.queue.later.lock().unwrap().take());
        } else if self.due.take_if(|at| *at <= Instant::now()).is_some() {
            self.queue.done_later.fetch_add(1, Ordering::SeqCst);
            return Step::Done;
        }
        if self.taken.len() > before { Step::Done } else { Step::Idle { deadline: self.due } }
    }

    fn has_more(&self) -> bool {
        !self.queue.numbers.lock().unwrap().is_empty() || self.queue.has_ended.load(Ordering::SeqCst)
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

/// The name of the executor's thread.
const EXECUTOR: &str = "executor";

/// Runs an executor on a thread while `produce` feeds it, and returns what it took.
fn run(produce: impl FnOnce(&Queue, &Wakeup, &Executor<Taking>)) -> (Vec<usize>, Arc<Queue>) {
    let (queue, wakeup) = (Arc::new(Queue::default()), Arc::new(Wakeup::default()));
    let task = Taking { queue: Arc::clone(&queue), taken: Vec::new(), due: None };
    let executor = Arc::new(Executor::new(task, Arc::clone(&wakeup)));
    let own = Arc::clone(&executor);
    let running = thread::Builder::new().name(EXECUTOR.to_owned()).spawn(move || own.run()).unwrap();
    produce(&queue, &wakeup, &executor);
    queue.has_ended.store(true, Ordering::SeqCst);
    wakeup.notify();
    (running.join().unwrap().taken, queue)
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_micros(50));
    }
}

#[test]
fn nothing_that_was_enqueued_stays_there() {
    const PRODUCERS: usize = 3;
    const ROUNDS: usize = 3_000;
    let (taken, queue) = run(|queue, wakeup, executor| {
        thread::scope(|scope| {
            for producer in 0..PRODUCERS {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        queue.numbers.lock().unwrap().push_back(round * PRODUCERS + producer);
                        match (round / 7 + producer) % 3 {
                            0 => wakeup.notify(),
                            1 => wakeup.notify_lazy(),
                            _ => executor.run_inline(),
                        }
                        if round % 64 == 0 {
                            // The thread parks, and what comes next finds it dozing or parked.
                            thread::sleep(Duration::from_micros(1_300));
                        }
                    }
                });
            }
        });
        let all = PRODUCERS * ROUNDS;
        wait_until("all is taken", || queue.taken_count.load(Ordering::Relaxed) == all);
    });
    for producer in 0..PRODUCERS {
        let own: Vec<_> = taken.iter().filter(|number| **number % PRODUCERS == producer).collect();
        assert!(own.is_sorted() && own.len() == ROUNDS);
    }
    assert!(queue.inline_count.load(Ordering::Relaxed) > 0);
}

#[test]
fn the_thread_wakes_for_what_an_inline_run_has_left_for_later() {
    run(|queue, _, executor| {
        for round in 1..=50 {
            *queue.later.lock().unwrap() = Some(Instant::now() + Duration::from_micros(200 * (round % 7)));
            wait_until("it ran inline", || {
                executor.run_inline();
                queue.later.lock().unwrap().is_none()
            });
            let round = usize::try_from(round).unwrap();
            wait_until("it was done", || queue.done_later.load(Ordering::SeqCst) == round);
        }
    });
}
