//! The turn to work in a shard, and the waking of its thread.
//!
//! To wake a thread costs more than most of what it is woken for. So moves that nobody waits for lie in the queue until
//! something comes that depends on them, or a moment has passed; and who has put in little may take the turn itself. In each
//! case what is in the queue is carried out in its order.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long a move lies in the queue at most that nobody waits for.
const NAP: Duration = Duration::from_millis(1);

/// Somebody has the turn, and looks into the queue before giving it back.
const TAKEN: u8 = 0;
/// The thread was woken, and has the turn.
const CALLED: u8 = 1;
/// Nobody has it. The thread takes it in a moment by itself.
const NAPPING: u8 = 2;
/// Nobody has it, and the thread sleeps until it is called or something is due.
const ASLEEP: u8 = 3;

/// Never, in nanoseconds.
const NEVER: u64 = u64::MAX;

/// The turn, and the sleep of the thread that has it most of the time.
///
/// A sender looks at the turn after it has put something in. The holder of the turn looks into the queue after it has given
/// the turn back. So one of both sees what the other did. That holds for the thread, too, whose timer has run out while
/// another had the turn, and for that other.
pub(super) struct Bell {
    turn: AtomicU8,
    /// Set before the thread gives back its first turn.
    thread: OnceLock<Thread>,
    started: Instant,
    /// When the thread wakes by itself, and until when that is a nap; nanoseconds from `started`.
    armed_ns: AtomicU64,
    nap_ns: AtomicU64,
    /// When something was put in last for which the thread is not woken, and what of that the thread has seen; in the same way.
    left_ns: AtomicU64,
    seen_ns: AtomicU64,
    /// Whether a move may have something to tell, so that it is waited for.
    moves_tell: AtomicBool,
}

impl Bell {
    /// The thread, which is still to come, has the turn.
    pub(super) fn new() -> Self {
        Self {
            turn: AtomicU8::new(TAKEN),
            thread: OnceLock::new(),
            started: Instant::now(),
            armed_ns: AtomicU64::new(NEVER),
            nap_ns: AtomicU64::new(0),
            left_ns: AtomicU64::new(0),
            seen_ns: AtomicU64::new(0),
            moves_tell: AtomicBool::new(false),
        }
    }

    /// The caller is the thread.
    pub(super) fn begin(&self) {
        self.thread.get_or_init(std::thread::current);
    }

    /// Says whether moves may have something to tell from now on.
    pub(super) fn set_moves_tell(&self, they_do: bool) {
        self.moves_tell.store(they_do, Ordering::Relaxed);
    }

    /// Whether they may.
    pub(super) fn moves_tell(&self) -> bool {
        self.moves_tell.load(Ordering::Relaxed)
    }

    /// Something was put in: has the thread see to it now.
    pub(super) fn ring(&self) {
        fence(Ordering::SeqCst);
        let turn = self.turn.load(Ordering::Relaxed);
        if matches!(turn, NAPPING | ASLEEP) && self.change(turn, CALLED) {
            self.wake();
        }
    }

    /// Something was put in that can wait for a moment.
    pub(super) fn ring_later(&self) {
        self.left_ns.store(self.ns(Instant::now()), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.turn.load(Ordering::Relaxed) == ASLEEP && self.change(ASLEEP, CALLED) {
            self.wake();
        }
    }

    /// Takes the turn, if nobody has it.
    pub(super) fn take(&self) -> bool {
        fence(Ordering::SeqCst);
        let turn = self.turn.load(Ordering::Relaxed);
        matches!(turn, NAPPING | ASLEEP) && self.change(turn, TAKEN)
    }

    /// Whether the thread is about to wake for something that is due.
    pub(super) fn is_due(&self) -> bool {
        let armed_ns = self.armed_ns.load(Ordering::Relaxed);
        armed_ns != NEVER && armed_ns <= self.ns(Instant::now())
    }

    /// Gives the turn, which the caller has, to the thread.
    pub(super) fn call(&self) {
        self.turn.store(CALLED, Ordering::Release);
        self.wake();
    }

    /// The thread gives back the turn, and is going to [`sleep`](Self::sleep). The queue has to be looked into after it.
    pub(super) fn rest(&self, deadline: Option<Instant>) {
        let now_ns = self.ns(Instant::now());
        let left_ns = self.left_ns.load(Ordering::Relaxed);
        let seen_ns = self.seen_ns.swap(left_ns, Ordering::Relaxed);
        // Where they come less often, to nap is one wake more.
        if left_ns > seen_ns && left_ns - seen_ns < nanoseconds(NAP) {
            self.nap_ns.store(now_ns + nanoseconds(NAP), Ordering::Relaxed);
        }
        let nap_ns = Some(self.nap_ns.load(Ordering::Relaxed)).filter(|until| now_ns < *until);
        let armed_ns = deadline.map_or(NEVER, |at| self.ns(at)).min(nap_ns.unwrap_or(NEVER));
        self.armed_ns.store(armed_ns, Ordering::Relaxed);
        self.turn.store(if nap_ns.is_some() { NAPPING } else { ASLEEP }, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Another than the thread gives back the turn, and calls the thread should it wake too late. The queue has to be looked into after it.
    pub(super) fn rest_for_thread(&self, deadline: Option<Instant>) {
        let naps = self.ns(Instant::now()) < self.nap_ns.load(Ordering::Relaxed);
        let turn = if naps { NAPPING } else { ASLEEP };
        self.turn.store(turn, Ordering::Release);
        fence(Ordering::SeqCst);
        let armed_ns = self.armed_ns.load(Ordering::Relaxed);
        let has_woken = naps && armed_ns == NEVER;
        if (has_woken || deadline.is_some_and(|at| self.ns(at) < armed_ns)) && self.change(turn, CALLED) {
            self.wake();
        }
    }

    /// The thread sleeps until it has the turn.
    pub(super) fn sleep(&self) {
        loop {
            let armed_ns = self.armed_ns.load(Ordering::Relaxed);
            let now_ns = self.ns(Instant::now());
            if self.change(CALLED, TAKEN) {
                return;
            } else if armed_ns <= now_ns {
                self.armed_ns.store(NEVER, Ordering::Relaxed);
                if self.take() {
                    return;
                }
            } else if armed_ns == NEVER {
                std::thread::park();
            } else {
                std::thread::park_timeout(Duration::from_nanos(armed_ns - now_ns));
            }
        }
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.turn.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn ns(&self, at: Instant) -> u64 {
        nanoseconds(at.saturating_duration_since(self.started))
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A queue of numbers, and what was taken out.
    #[derive(Default)]
    struct Desk {
        queue: Mutex<VecDeque<usize>>,
        taken: Mutex<Vec<usize>>,
        taken_count: AtomicUsize,
        by_helpers: AtomicUsize,
        has_ended: AtomicBool,
    }

    impl Desk {
        fn put(&self, number: usize) {
            self.queue.lock().unwrap().push_back(number);
        }

        /// Takes everything that is in the queue, and says whether there was anything. Only the holder of the turn calls
        /// this.
        fn work(&self) -> bool {
            let mut taken = self.taken.try_lock().expect("one has the turn");
            let before = taken.len();
            taken.extend(self.queue.lock().unwrap().drain(..));
            self.taken_count.store(taken.len(), Ordering::Relaxed);
            taken.len() > before
        }

        fn is_empty(&self) -> bool {
            self.queue.lock().unwrap().is_empty()
        }

        fn run(&self, bell: &Bell, deadline: impl Fn() -> Option<Instant>) {
            bell.begin();
            while !self.has_ended.load(Ordering::SeqCst) {
                if self.work() {
                    continue;
                }
                bell.rest(deadline());
                if self.is_empty() || !bell.take() {
                    bell.sleep();
                }
            }
        }

        fn help(&self, bell: &Bell, deadline: Option<Instant>) {
            if !bell.take() {
                return;
            }
            self.by_helpers.fetch_add(usize::from(self.work()), Ordering::Relaxed);
            loop {
                bell.rest_for_thread(deadline);
                if self.is_empty() || !bell.take() {
                    return;
                }
                self.work();
            }
        }

        fn end(&self, bell: &Bell) {
            self.has_ended.store(true, Ordering::SeqCst);
            bell.ring();
        }
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    #[test]
    fn nothing_that_was_put_in_stays_there() {
        const PUTTERS: usize = 3;
        const ROUNDS: usize = 3_000;
        let (bell, desk) = (Bell::new(), Desk::default());
        std::thread::scope(|scope| {
            scope.spawn(|| desk.run(&bell, || None));
            let putters: Vec<_> = (0..PUTTERS)
                .map(|putter| {
                    let (bell, desk) = (&bell, &desk);
                    scope.spawn(move || {
                        for round in 0..ROUNDS {
                            desk.put(round * PUTTERS + putter);
                            match (round / 7 + putter) % 3 {
                                0 => bell.ring(),
                                1 => bell.ring_later(),
                                _ => desk.help(bell, None),
                            }
                            if round % 64 == 0 {
                                // All is done by somebody, although nothing else comes.
                                std::thread::sleep(Duration::from_micros(1_300));
                            }
                        }
                    })
                })
                .collect();
            putters.into_iter().for_each(|putter| putter.join().unwrap());
            let all = PUTTERS * ROUNDS;
            // Who was on the way out as it took the turn had the rest of it to do, or the thread has.
            wait_until("all is taken", || desk.taken_count.load(Ordering::Relaxed) == all);
            desk.end(&bell);
        });
        let taken = desk.taken.into_inner().unwrap();
        for putter in 0..PUTTERS {
            let own: Vec<_> = taken.iter().filter(|number| **number % PUTTERS == putter).collect();
            assert!(own.is_sorted() && own.len() == ROUNDS);
        }
        assert!(desk.by_helpers.into_inner() > 0);
    }

    #[test]
    fn the_thread_wakes_when_something_is_due_whoever_had_the_turn_last() {
        let (bell, desk) = (Bell::new(), Desk::default());
        let due = Arc::new(Mutex::new(None::<Instant>));
        let woken = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                desk.run(&bell, || {
                    let mut due = due.lock().unwrap();
                    if due.is_some_and(|at| at <= Instant::now()) {
                        *due = None;
                        woken.fetch_add(1, Ordering::SeqCst);
                    }
                    *due
                });
            });
            for round in 1..=50 {
                let at = Instant::now() + Duration::from_micros(200 * (round % 7));
                // Whoever has the turn finds that something is due later.
                wait_until("the thread sleeps", || {
                    let has_turn = bell.take();
                    if has_turn {
                        *due.lock().unwrap() = Some(at);
                        bell.rest_for_thread(Some(at));
                    }
                    has_turn
                });
                let round = usize::try_from(round).unwrap();
                wait_until("it woke", || woken.load(Ordering::SeqCst) == round);
            }
            desk.end(&bell);
        });
    }
}
