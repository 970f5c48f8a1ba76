//! Feedback control of admission: events may wait for the engines as long as their deliveries are in time.
//!
//! Tardiness is the time from reading an event until its deliveries are on their way, as a share of `admission.delay_ms`. The
//! greatest tardiness of each step is held at a set-point by a proportional-integral controller, whose output is the allowance: the
//! time that events may wait before the engines. What is behind the engines and how wrong the estimate of a wait is need not be known
//! for that, as they must be for an allowance that is a fixed part of the delay.
//!
//! Source: Mangharam and Saba, Anytime Algorithms for GPU Architectures, RTSS 2011, section VI, whose controller sets the number of
//! requests of a step. Here it sets a time, so that a change of what events cost does not have to be learnt by the controller.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::config;

/// Time of a control step.
pub(super) const STEP: Duration = Duration::from_millis(50);

/// The least allowance, as a share of the delay: an event that waits for nothing is always admitted.
const SHARE_MIN: f64 = 1.0 / 16.0;

/// The allowance, as a share of the delay, where it decides nothing: what it is with a fixed one. The next spike finds it there, and what is admitted before
/// its lateness can be seen comes in time.
const SHARE_AT_REST: f64 = 0.5;

/// The part of the way to [`SHARE_AT_REST`] that it goes in a step.
const REST_PART: f64 = 0.1;

/// Tardiness above which it makes no difference. One event that was held up for long would otherwise close the door, and the end of
/// that would open it too far.
const TARDINESS_MAX: f64 = 2.0;

/// The most steps that one counts for, if it comes late.
const STEPS_MAX: f64 = 4.0;

/// A proportional-integral controller in velocity form. It adds changes to a bounded output, so that nothing winds up at a bound.
///
/// - Input: tardiness, a share of the delay, by steps. Output: allowance, a share of the delay, from [`SHARE_MIN`] to 1.
/// - As long as events wait for less than half of what they may, nothing is integrated: that error is not the allowance's. It goes back to
///   [`SHARE_AT_REST`].
/// - Stability: an allowance of x is seen as a tardiness of x plus what is behind the engines, up to a delay later. With that dead
///   time of d steps the loop is stable for `kp` below 1 and `ki` times d below 1 or so; by default that is 0.4.
#[derive(Debug)]
pub(super) struct Controller {
    set_point: f64,
    kp: f64,
    ki: f64,
    /// The error of the last step.
    error: f64,
    share: f64,
}

/// The controller with its measurements, shared by those who measure and those who admit.
#[derive(Debug)]
pub(super) struct Feedback {
    delay: Duration,
    /// The greatest time of this step, in nanoseconds; 0 as long as there is none.
    longest_ns: AtomicU64,
    allowance_ns: AtomicU64,
    /// A std mutex: held for a step, by the one task that makes them, and for a look.
    steps: Mutex<Steps>,
}

#[derive(Debug)]
struct Steps {
    controller: Controller,
    /// That of the last step.
    tardiness: f64,
}

impl Controller {
    pub(super) fn new(settings: &config::Admission) -> Self {
        let config::Admission { tardiness: set_point, kp, ki, .. } = *settings;
        // As it is after a long time without anything to do.
        Self { set_point, kp, ki, error: set_point, share: SHARE_AT_REST }
    }

    /// Goes on by the greatest tardiness of a step that took `elapsed`. Returns the allowance from now on.
    pub(super) fn step(&mut self, tardiness: f64, elapsed: Duration) -> f64 {
        // No number where there is no delay.
        let tardiness = if tardiness.is_nan() { 0.0 } else { tardiness.clamp(0.0, TARDINESS_MAX) };
        let error = self.set_point - tardiness;
        let steps = elapsed.div_duration_f64(STEP).min(STEPS_MAX);
        let change = if tardiness < self.share / 2.0 {
            (SHARE_AT_REST - self.share) * REST_PART * steps
        } else {
            self.kp * (error - self.error) + self.ki * error * steps
        };
        self.error = error;
        self.share = (self.share + change).clamp(SHARE_MIN, 1.0);
        self.share
    }
}

impl Feedback {
    pub(super) fn new(settings: &config::Admission) -> Self {
        let delay = Duration::from_millis(settings.delay_ms);
        let steps = Steps { controller: Controller::new(settings), tardiness: 0.0 };
        Self {
            delay,
            longest_ns: AtomicU64::new(0),
            allowance_ns: AtomicU64::new(nanoseconds(delay.mul_f64(SHARE_AT_REST))),
            steps: Mutex::new(steps),
        }
    }

    /// Time that events may wait before the engines.
    pub(super) fn allowance(&self) -> Duration {
        Duration::from_nanos(self.allowance_ns.load(Ordering::Relaxed))
    }

    /// An event took so long until it was dealt out, or a delivery until it was its turn to be written.
    pub(super) fn took(&self, time: Duration) {
        let time_ns = nanoseconds(time);
        // Most are not the longest, and then nobody has to wait for the cache line.
        if time_ns > self.longest_ns.load(Ordering::Relaxed) {
            self.longest_ns.fetch_max(time_ns, Ordering::Relaxed);
        }
    }

    /// Ends a step that took `elapsed`. `is_idle` says that no engine has anything to do: then nothing is late. If nothing was
    /// measured and they do have something to do, tardiness is what it was.
    pub(super) fn step(&self, is_idle: bool, elapsed: Duration) {
        let longest_ns = self.longest_ns.swap(0, Ordering::Relaxed);
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if longest_ns > 0 || is_idle {
            steps.tardiness = Duration::from_nanos(longest_ns).div_duration_f64(self.delay);
        }
        let tardiness = steps.tardiness;
        let share = steps.controller.step(tardiness, elapsed);
        self.allowance_ns.store(nanoseconds(self.delay.mul_f64(share)), Ordering::Relaxed);
    }

    /// Tardiness of the last step.
    pub(super) fn tardiness(&self) -> f64 {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).tardiness
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;
    use crate::config::Config;

    const DELAY_S: f64 = 2.0;
    const STEP_S: f64 = 0.05;

    fn settings() -> config::Admission {
        config::Admission { delay_ms: 2_000, ..Config::default().admission }
    }

    /// What a queue is served and offered from some step on.
    #[derive(Clone, Copy)]
    struct Phase {
        steps: usize,
        offered_a_second: f64,
        served_a_second: f64,
        /// Time behind the engines, in seconds.
        behind_s: f64,
    }

    /// What a step came to.
    #[derive(Clone, Copy, Debug)]
    struct Seen {
        tardiness: f64,
        share: f64,
        refused: bool,
    }

    /// A queue of events, each with the time at which it was admitted. Its expected wait goes by the true rate, `estimate` times.
    fn run(phases: &[Phase], estimate: f64) -> Vec<Seen> {
        let mut controller = Controller::new(&settings());
        let (mut queue, mut share, mut tardiness): (VecDeque<f64>, _, _) =
            (VecDeque::new(), SHARE_AT_REST, 0.0);
        let (mut now_s, mut seen) = (0.0, Vec::new());
        for phase in phases {
            let (mut offers, mut serves) = (0.0, 0.0);
            for _ in 0..phase.steps {
                let (mut longest, mut refused) = (0.0_f64, false);
                // Within a step by parts, so that no part of a step is a burst.
                for _ in 0..50 {
                    now_s += STEP_S / 50.0;
                    offers += phase.offered_a_second * STEP_S / 50.0;
                    serves += phase.served_a_second * STEP_S / 50.0;
                    while offers >= 1.0 {
                        offers -= 1.0;
                        let wait_s = estimate * queue.len() as f64 / phase.served_a_second;
                        if wait_s < share * DELAY_S {
                            queue.push_back(now_s);
                        } else {
                            refused = true;
                        }
                    }
                    while serves >= 1.0 {
                        serves -= 1.0;
                        let Some(admitted_s) = queue.pop_front() else { break };
                        longest = longest.max(now_s - admitted_s + phase.behind_s);
                    }
                    serves = serves.min(1.0);
                }
                if longest > 0.0 || queue.is_empty() {
                    tardiness = longest / DELAY_S;
                }
                share = controller.step(tardiness, STEP);
                seen.push(Seen { tardiness, share, refused });
            }
        }
        seen
    }

    const QUIET: Phase =
        Phase { steps: 200, offered_a_second: 200.0, served_a_second: 1_000.0, behind_s: 0.01 };
    const SPIKE: Phase = Phase { steps: 1_200, offered_a_second: 3_000.0, ..QUIET };

    /// Tardiness of the last 200 steps is at the set-point.
    #[track_caller]
    fn assert_settled(seen: &[Seen]) {
        let last = &seen[seen.len() - 200..];
        let (low, high) = last.iter().fold((f64::MAX, 0.0_f64), |(low, high), seen| {
            (low.min(seen.tardiness), high.max(seen.tardiness))
        });
        assert!(low > 0.85 && high < 0.95, "from {low} to {high}");
    }

    #[test]
    fn tardiness_settles_at_the_set_point_after_a_spike() {
        // The wait is known, or up to twice as long as expected; much lies behind the engines, or little.
        for (estimate, behind_s) in
            [(1.0, 0.01), (1.1, 0.01), (1.0, 0.3), (1.0, 0.8), (0.8, 0.2), (0.6, 0.5), (0.5, 0.01)]
        {
            let spike = Phase { behind_s, ..SPIKE };
            let seen = run(&[QUIET, spike], estimate);
            assert_settled(&seen);
            assert!(seen[..QUIET.steps].iter().all(|seen| !seen.refused), "it refuses while it is quiet");
            let controlled = &seen[QUIET.steps..];
            let highest = controlled.iter().map(|seen| seen.tardiness).fold(0.0, f64::max);
            let late = controlled.iter().filter(|seen| seen.tardiness > 1.0).count();
            // A delay has 40 steps.
            assert!(
                highest < 1.1 && late <= 20,
                "estimate {estimate}, {behind_s} s behind: {highest}, {late} late"
            );
        }
    }

    #[test]
    fn a_server_that_becomes_slower_is_controlled_again() {
        let slower = Phase { served_a_second: 400.0, ..SPIKE };
        let seen = run(&[QUIET, SPIKE, slower, SPIKE], 1.0);
        assert_settled(&seen[..QUIET.steps + SPIKE.steps]);
        assert_settled(&seen[..QUIET.steps + 2 * SPIKE.steps]);
        assert_settled(&seen);
        // What had been admitted before it became slower is late, whatever is done; what is admitted from then on is not.
        let since = &seen[QUIET.steps + SPIKE.steps..][..SPIKE.steps];
        let late = since.iter().rposition(|seen| seen.tardiness > 1.2).map_or(0, |last| last + 1);
        assert!(late <= 120, "{late} steps are late");
    }

    #[test]
    fn a_quiet_broker_allows_as_much_again() {
        let seen = run(&[QUIET, Phase { behind_s: 3.0, ..SPIKE }, Phase { steps: 400, ..QUIET }], 1.0);
        let spike = &seen[QUIET.steps + SPIKE.steps - 1];
        assert!(
            (spike.share - SHARE_MIN).abs() < 1e-9,
            "what is behind the engines is too much alone: {spike:?}"
        );
        let last = seen[seen.len() - 1];
        assert!(!last.refused && (last.share - SHARE_AT_REST).abs() < 1e-9, "{last:?}");
    }

    #[test]
    fn the_allowance_is_within_its_bounds_whatever_comes() {
        for seed in 0..200 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let mut settings = settings();
            (settings.tardiness, settings.kp, settings.ki) =
                (rng.random_range(0.01..=1.0), rng.random_range(0.0..=1.0), rng.random_range(0.0001..=1.0));
            let mut controller = Controller::new(&settings);
            for _ in 0..1_000 {
                let tardiness = match rng.random_range(0..8) {
                    0 => f64::NAN,
                    1 => f64::INFINITY,
                    2 => f64::NEG_INFINITY,
                    3 => f64::MAX,
                    _ => rng.random_range(-1.0..4.0),
                };
                let elapsed =
                    if rng.random_bool(0.1) { Duration::MAX } else { STEP * rng.random_range(0..100) };
                let share = controller.step(tardiness, elapsed);
                assert!((SHARE_MIN..=1.0).contains(&share), "seed {seed}: {share}");
            }
            // And from wherever that was it comes back.
            (0..40_000).for_each(|_| _ = controller.step(0.0, STEP));
            let share = controller.step(0.0, STEP);
            assert!((share - SHARE_AT_REST).abs() < 1e-9, "seed {seed}: {share}");
        }
    }

    #[test]
    fn the_greatest_time_of_a_step_counts_and_is_kept_while_there_is_work() {
        let feedback = Feedback::new(&settings());
        let delay = Duration::from_secs(2);
        let at_rest = feedback.allowance();
        assert_eq!(at_rest, delay / 2);
        [1_000, 2_000, 1_500].into_iter().for_each(|ms| feedback.took(Duration::from_millis(ms)));
        feedback.step(false, STEP);
        assert_eq!(feedback.tardiness(), 1.0);
        let first = feedback.allowance();
        assert!(first < at_rest, "{first:?}");
        feedback.step(false, STEP);
        assert_eq!(feedback.tardiness(), 1.0, "nothing was measured, and there is work");
        assert!(feedback.allowance() < first);
        feedback.step(true, STEP);
        assert_eq!(feedback.tardiness(), 0.0);
        (0..400).for_each(|_| feedback.step(true, STEP));
        assert_eq!(feedback.allowance(), at_rest);
    }
}
