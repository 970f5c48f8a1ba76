//! What a situation does, in figures, and what it found last.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use groups::matching::{Count, Group};
use hdrhistogram::Histogram;
use serde_json::{Map, json};
use tokio::sync::Notify;
use wire::SituationActivity;

use super::Standing;
use super::groups::shown;
use super::series::Sums;

/// Findings that are shown.
const FINDINGS_MAX: usize = 1_000;

/// How often the inputs that wait are counted while it is paused.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Times above this count as this, in nanoseconds.
const TOOK_MAX_NS: u64 = 60_000_000_000;

/// Figures of one situation.
#[derive(Default)]
pub(super) struct Figures {
    state: Mutex<State>,
    pub(super) inputs: AtomicU64,
    pub(super) evaluations: AtomicU64,
    pub(super) published: AtomicU64,
    /// Inputs that wait.
    pub(super) queued: AtomicU64,
    /// Findings that were not published, for they were too many, too deep, or outside of the confinement; events that it refused.
    pub(super) dropped: AtomicU64,
    /// Events that it marked.
    pub(super) marked: AtomicU64,
    /// Events that were to be held for it and went on before its verdict.
    pub(super) passed: AtomicU64,
    /// Events that it left out, for they were dated too far ahead.
    pub(super) ahead: AtomicU64,
    /// Constraints in its store; the largest number where it has no store.
    pub(super) stored: AtomicU64,
    /// How often it began anew, since inputs were lost.
    pub(super) restarts: AtomicU64,
    /// Time of threads that it took, in nanoseconds.
    pub(super) took_ns: AtomicU64,
    is_paused: AtomicBool,
    /// Rung when it may go on.
    resumed: Notify,
}

/// A std mutex guards it: held for a record or a copy.
#[derive(Default)]
struct State {
    took_ns: Option<Histogram<u64>>,
    engine: &'static str,
    /// What was found last, with the rule that made it.
    findings: VecDeque<(Box<str>, Option<Arc<str>>)>,
    /// What it holds, where it is about live objects.
    standing: Option<Standing>,
    problem: Option<String>,
}

impl State {
    fn list(&mut self, text: Box<str>, rule: Option<Arc<str>>) {
        self.findings.truncate(FINDINGS_MAX - 1);
        self.findings.push_front((text, rule));
    }
}

impl Figures {
    /// A panic under the lock is impossible but for memory running out.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the engine that is going to work, and what is in its store.
    pub(super) fn begins(&self, engine: &'static str, stored: Option<u64>) {
        self.state().engine = engine;
        self.note_stored(stored);
    }

    /// Notes how many constraints are in its store, if it has one.
    pub(super) fn note_stored(&self, count: Option<u64>) {
        self.stored.store(count.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Notes how many inputs are dated too far ahead, and which ones.
    pub(super) fn note_ahead(&self, count: u64, which: &str) {
        self.ahead.fetch_add(count, Ordering::Relaxed);
        self.problem(format!(
            "dated more than a minute ahead of the arrival, and therefore left out: {which}"
        ));
    }

    /// Notes what it holds.
    pub(super) fn note_standing(&self, standing: Standing) {
        self.state().standing = Some(standing);
    }

    /// The groups that it holds, as JSON, where it is about live objects.
    pub(super) fn groups(&self) -> Option<String> {
        let state = self.state();
        let Standing { counts, groups } = state.standing.as_ref()?;
        let named = |group: &Group| -> Map<_, _> {
            let named = counts.iter().zip(group.objects());
            named.map(|((role, _), object)| (role.to_string(), json!(shown(object)))).collect()
        };
        Some(json!(groups.iter().map(named).collect::<Vec<_>>()).to_string())
    }

    /// Notes how long an input took, and by which engine.
    pub(super) fn took(&self, took: Duration, engine: &'static str) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).min(TOOK_MAX_NS);
        self.took_ns.fetch_add(ns, Ordering::Relaxed);
        let mut state = self.state();
        state.engine = engine;
        if state.took_ns.is_none() {
            state.took_ns = Histogram::new_with_max(TOOK_MAX_NS, 2).ok();
        }
        if let Some(histogram) = &mut state.took_ns {
            histogram.saturating_record(ns);
        }
    }

    /// Notes an event that was published.
    pub(super) fn found(&self, text: Box<str>, rule: Option<Arc<str>>) {
        self.published.fetch_add(1, Ordering::Relaxed);
        self.state().list(text, rule);
    }

    /// Notes a finding that is shown and not published.
    pub(super) fn list(&self, text: Box<str>) {
        self.state().list(text, None);
    }

    /// Notes that something does not go as it should; the last word stands.
    pub(super) fn problem(&self, problem: impl Into<String>) {
        self.state().problem = Some(problem.into());
    }

    /// What was published last, the newest first.
    pub(super) fn findings(&self) -> Vec<Box<str>> {
        self.state().findings.iter().map(|(text, _)| text.clone()).collect()
    }

    /// The first answer about what was found last, the newest first, each with the rule that made it.
    pub(super) fn look<T>(&self, ask: impl Fn(&str, Option<&str>) -> Option<T>) -> Option<T> {
        self.state().findings.iter().find_map(|(text, rule)| ask(text, rule.as_deref()))
    }

    pub(super) fn pause(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Relaxed);
        self.resumed.notify_waiters();
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Relaxed)
    }

    /// Waits while it is paused. Meanwhile `behind` says how many inputs wait.
    pub(super) async fn while_paused(&self, behind: impl Fn() -> u64) {
        let mut resumed = std::pin::pin!(self.resumed.notified());
        loop {
            resumed.as_mut().enable();
            if !self.is_paused() {
                return;
            }
            self.queued.store(behind(), Ordering::Relaxed);
            if tokio::time::timeout(LOOK_EVERY, resumed.as_mut()).await.is_ok() {
                resumed.set(self.resumed.notified());
            }
        }
    }

    pub(super) fn sums(&self) -> Sums {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Sums {
            inputs: of(&self.inputs),
            evaluations: of(&self.evaluations),
            published: of(&self.published),
            dropped: of(&self.dropped),
            marked: of(&self.marked),
            passed: of(&self.passed),
            ahead: of(&self.ahead),
            restarts: of(&self.restarts),
            took_s: Duration::from_nanos(of(&self.took_ns)).as_secs_f64(),
            queued: of(&self.queued),
        }
    }

    pub(super) fn activity(&self) -> SituationActivity {
        let state = self.state();
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (mean_us, p99_us) =
            state.took_ns.as_ref().filter(|took| !took.is_empty()).map_or((0.0, 0.0), |took| {
                #[expect(clippy::cast_precision_loss, reason = "two digits of it are known")]
                let p99 = took.value_at_quantile(0.99) as f64;
                (took.mean() / 1e3, p99 / 1e3)
            });
        let round = |value: f64| (value * 10.0).round() / 10.0;
        SituationActivity {
            inputs: of(&self.inputs),
            evaluations: of(&self.evaluations),
            published: of(&self.published),
            queued: of(&self.queued),
            mean_us: round(mean_us),
            p99_us: round(p99_us),
            engine: state.engine.to_owned(),
            dropped: of(&self.dropped),
            marked: of(&self.marked),
            passed: of(&self.passed),
            ahead: of(&self.ahead),
            restarts: of(&self.restarts),
            constraints: Some(of(&self.stored)).filter(|count| *count != u64::MAX),
            candidates: counted(&state, |count| count.candidates),
            consistent: counted(&state, |count| count.consistent),
            paused: self.is_paused.load(Ordering::Relaxed),
            problem: state.problem.clone(),
        }
    }
}

/// A count of each role, where it is about live objects.
fn counted(state: &State, count: impl Fn(&Count) -> usize) -> Option<BTreeMap<String, u64>> {
    let Standing { counts, .. } = state.standing.as_ref()?;
    Some(counts.iter().map(|(role, counts)| (role.to_string(), count(counts) as u64)).collect())
}
