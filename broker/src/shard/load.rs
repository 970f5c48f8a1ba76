//! How much a shard has to do, and how long that will take.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Measurements of a shard's work while it is at it. Written by the shard alone, without a lock.
#[derive(Debug)]
pub(crate) struct Load {
    started: Instant,
    /// Commands that were taken out of the queue and are not done.
    in_hand: AtomicUsize,
    /// When the oldest event of these was read, or they were taken; nanoseconds from `started`, and 0 while there is nothing
    /// to do.
    oldest_ns: AtomicU64,
    /// Alarms that were put into the queue and not taken out yet.
    alarms: AtomicUsize,
    /// Time of a command, in picoseconds: a mean in which each counts for a 64th of what came before it.
    command_ps: AtomicU64,
    /// Time of the commit behind a step, in nanoseconds: a mean in which each counts for an eighth.
    commit_ns: AtomicU64,
    /// Whether a command is at hand that is no event. How long it will take is not known, and it is not what events are refused for.
    is_own: AtomicBool,
    /// When the last of these ended that took long; nanoseconds from `started`.
    own_ended_ns: AtomicU64,
    /// Number of the commands of the step at hand that took long. This and their time are written and read by the shard
    /// alone.
    own_count: AtomicUsize,
    own_ns: AtomicU64,
}

/// A command that takes longer is paid for by its client, and says nothing of what others take.
const LONG: Duration = Duration::from_millis(1);

/// Commands over which the mean cost of one is taken.
const COMMANDS: f64 = 64.0;
/// Commits over which the mean time of one is taken.
const COMMITS: u64 = 8;
/// Bound on the time of a command in one step, as a multiple of the mean. A thread that was not let run for a while says
/// nothing of what comes next.
const JUMP: f64 = 8.0;
/// The least time that a command takes, in picoseconds.
const LEAST_PS: f64 = 100_000.0;

impl Load {
    pub(super) fn new(started: Instant) -> Self {
        Self {
            started,
            in_hand: AtomicUsize::new(0),
            oldest_ns: AtomicU64::new(0),
            alarms: AtomicUsize::new(0),
            command_ps: AtomicU64::new(0),
            commit_ns: AtomicU64::new(0),
            is_own: AtomicBool::new(false),
            own_ended_ns: AtomicU64::new(0),
            own_count: AtomicUsize::new(0),
            own_ns: AtomicU64::new(0),
        }
    }

    /// An event is about to be put into the queue.
    pub(super) fn coming(&self, is_alarm: bool) {
        if is_alarm {
            self.alarms.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that `alarms` alarms were taken out of the queue. Returns whether there are others.
    pub(super) fn took(&self, alarms: usize) -> bool {
        self.alarms.fetch_sub(alarms, Ordering::Relaxed) > alarms
    }

    /// Begins a step: `commands` commands were taken, and the oldest event among them was read at `oldest`.
    pub(super) fn begin(&self, commands: usize, oldest: Instant) {
        self.in_hand.store(commands, Ordering::Relaxed);
        let oldest = oldest.saturating_duration_since(self.started);
        self.oldest_ns.store(nanoseconds(oldest).max(1), Ordering::Relaxed);
    }

    /// A command that is no event is carried out now.
    pub(super) fn begin_own(&self) {
        self.is_own.store(true, Ordering::Relaxed);
    }

    /// Notes that it has been carried out, and how long that took.
    pub(super) fn end_own(&self, took: Duration, now: Instant) {
        if took >= LONG {
            let ended = now.saturating_duration_since(self.started);
            self.own_ended_ns.store(nanoseconds(ended), Ordering::Relaxed);
            self.own_count.fetch_add(1, Ordering::Relaxed);
            self.own_ns.fetch_add(nanoseconds(took), Ordering::Relaxed);
        }
        self.is_own.store(false, Ordering::Relaxed);
    }

    /// The step has ended, and took so long with and without its commit.
    pub(super) fn end(&self, work: Duration, commit: Duration) {
        let own = Duration::from_nanos(self.own_ns.swap(0, Ordering::Relaxed));
        let work = work.saturating_sub(own);
        let commands = self.in_hand.swap(0, Ordering::Relaxed);
        let commands = commands.saturating_sub(self.own_count.swap(0, Ordering::Relaxed));
        self.oldest_ns.store(0, Ordering::Relaxed);
        let before_ns = self.commit_ns.load(Ordering::Relaxed);
        let after_ns = (before_ns * (COMMITS - 1) + nanoseconds(commit)) / COMMITS;
        self.commit_ns.store(after_ns, Ordering::Relaxed);
        if commands == 0 {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a queue holds some thousand commands")]
        let count = commands as f64;
        #[expect(clippy::cast_precision_loss, reason = "2^53 picoseconds are two hours")]
        let before = self.command_ps.load(Ordering::Relaxed) as f64;
        let one = (work.as_secs_f64() * 1e12 / count).clamp(LEAST_PS, JUMP * before.max(LEAST_PS));
        let kept = (1.0 - 1.0 / COMMANDS).powf(count);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of times")]
        let after = (before * kept + one * (1.0 - kept)) as u64;
        self.command_ps.store(after, Ordering::Relaxed);
    }

    /// Time that a command waits that comes now, behind `queued` commands in the queue: as long as these are going to take,
    /// or two thirds of what the oldest at hand has waited, should that be longer.
    pub(super) fn wait(&self, queued: usize, now: Instant) -> Duration {
        let in_hand = self.in_hand.load(Ordering::Relaxed);
        if queued + in_hand == 0 {
            return Duration::ZERO;
        }
        let coming = Duration::from_nanos(self.commit_ns.load(Ordering::Relaxed))
            .saturating_add(self.cost(queued + in_hand));
        let oldest_ns = self.oldest_ns.load(Ordering::Relaxed);
        let waited = if oldest_ns == 0 || self.is_own.load(Ordering::Relaxed) {
            Duration::ZERO
        } else {
            // What waited for a client's own command will be done as quickly as ever.
            let oldest_ns = oldest_ns.max(self.own_ended_ns.load(Ordering::Relaxed));
            now.saturating_duration_since(self.started + Duration::from_nanos(oldest_ns))
        };
        // What is at hand came when the queue was another one. If all of its wait counted, a queue in which commands wait a little longer than
        // they may would let nothing in until it is empty.
        coming.max(waited * 2 / 3)
    }

    /// The time that `commands` commands are going to take.
    pub(super) fn cost(&self, commands: usize) -> Duration {
        let command_ps = self.command_ps.load(Ordering::Relaxed);
        Duration::from_nanos(command_ps.saturating_mul(commands as u64) / 1_000)
    }
}

/// A duration in whole nanoseconds.
pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// Carries out `steps` steps of `commands` commands, of which each takes `each`.
    fn work(load: &Load, steps: usize, commands: usize, each: Duration) {
        for _ in 0..steps {
            load.begin(commands, load.started);
            load.end(each * u32::try_from(commands).unwrap(), Duration::ZERO);
        }
    }

    #[track_caller]
    fn assert_about(found: Duration, expected: Duration) {
        let is_about = found > expected * 9 / 10 && found < expected * 11 / 10;
        assert!(is_about, "{found:?} is not about {expected:?}");
    }

    #[test]
    fn a_command_waits_for_those_before_it() {
        let start = Instant::now();
        let load = Load::new(start);
        assert_eq!(load.wait(0, start), Duration::ZERO);
        work(&load, 2_000, 1, us(20));
        assert_about(load.wait(1_000, start), us(20_000));
        work(&load, 1, 2_000, us(5));
        assert_about(load.wait(1_000, start), us(5_000));
        load.begin(1_000, start);
        assert_about(load.wait(1_000, start), us(10_000));
        // Whatever is expected: what is at hand has waited longer.
        assert_about(load.wait(0, start + us(70_000)), us(46_667));
        load.end(us(5_000), us(80_000));
        assert_eq!(load.wait(0, start + us(70_000)), Duration::ZERO);
        assert_about(load.wait(1, start), us(10_005));
    }

    #[test]
    fn what_a_client_asks_for_is_no_reason_to_refuse_events() {
        let start = Instant::now();
        let load = Load::new(start);
        work(&load, 2_000, 1, us(20));
        load.begin(2, start);
        load.begin_own();
        let ended = start + us(9_000_000);
        assert_about(load.wait(0, ended), us(40));
        load.end_own(us(9_000_000), ended);
        assert_about(load.wait(0, ended + us(150)), us(100));
        load.end(us(9_000_020), Duration::ZERO);
        assert_about(load.cost(1), us(20));
        // What they take that is not theirs alone still counts.
        load.begin(1, start);
        assert_about(load.wait(0, ended + us(70_000)), us(46_667));
    }

    #[test]
    fn a_thread_that_was_held_up_once_says_nothing_of_what_comes() {
        let load = Load::new(Instant::now());
        work(&load, 2_000, 1, us(10));
        work(&load, 1, 1, us(500_000));
        assert!(load.cost(1_000) < us(12_000), "{:?}", load.cost(1_000));
        // For good, it does.
        work(&load, 500, 1, us(500_000));
        assert!(load.cost(1) > us(400_000), "{:?}", load.cost(1));
    }
}
