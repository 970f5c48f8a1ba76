//! Gates: checks that mark or drop see an event before anybody receives it.
//!
//! A gate admits the events that the check's contexts take. Its publisher waits for the verdict of the check's task, but no longer than
//! `checks.hold_ms`: then the event goes on as if there were no gate. Checks that drop are asked first, so that one that marks
//! knows nothing of what was dropped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use checks::Check;
use matcher::event::Event;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use wire::{ExplainedCheck, OnViolation};

use super::{Finding, Input, Situation};
use crate::ingest::Behalf;
use crate::ingest::feature::{FeatureReader, Observed};
use crate::model::clock;
use crate::model::error::{ApiError, Link};
use crate::model::event::Published;

/// Events that wait at one gate. Further ones go on as if there were no gate.
const QUEUE: usize = 1_024;

/// Links of a refusal, and findings of an event, at most.
pub(super) const LINKS_MAX: usize = 64;

/// What a gate needs to know of its check.
pub(crate) struct GatePlan {
    pub(super) check: Arc<Check>,
    pub(super) on_violation: OnViolation,
}

/// What a check says of an event that was held for it.
#[derive(Default)]
pub(crate) struct Verdict {
    /// Links that the event brought, each as it is listed; none where the event fits.
    pub(super) findings: Vec<Finding>,
    /// The same, as events that its variables are bound to.
    pub(super) links: Vec<Vec<(Arc<str>, Arc<Input>)>>,
}

/// What the task of a check is asked.
pub(super) enum Ask {
    /// What it says of an event.
    Judge(Arc<Input>, Reply),
    /// What it would say of an event.
    Rehearse(Arc<Input>, oneshot::Sender<Verdict>),
    /// To take an event out of its sets, since it is not published.
    Withdraw(Arc<Input>),
}

/// Where a verdict goes.
pub(super) struct Reply {
    verdict: oneshot::Sender<Verdict>,
    /// Held until the task is done with the event.
    _busy: Arc<()>,
}

impl Reply {
    /// Whether no publisher waits for it any more.
    pub(super) fn is_closed(&self) -> bool {
        self.verdict.is_closed()
    }

    /// Answers. Returns whether a publisher waits for it.
    pub(super) fn send(self, verdict: Verdict) -> bool {
        self.verdict.send(verdict).is_ok()
    }
}

/// Asks of a gate, at the side of the check's task.
pub(super) type Asks = mpsc::Receiver<Ask>;

/// A check that events are held for.
struct Gate {
    situation: Arc<Situation>,
    on_violation: OnViolation,
    check: Arc<Check>,
    asks: mpsc::Sender<Ask>,
    /// Shared with each ask that the task is not done with.
    busy: Arc<()>,
    /// Whether the last verdict came too late.
    is_late: AtomicBool,
}

/// All gates, those that drop before those that mark, each in the order of their names.
pub(super) struct Gates {
    /// A std lock: held for a look at the list.
    all: RwLock<Vec<Arc<Gate>>>,
    hold: Duration,
}

impl Gates {
    pub(super) fn new(hold: Duration) -> Self {
        Self { all: RwLock::default(), hold }
    }

    /// Sets up the gate of a situation; `None` where its plan has none.
    pub(super) fn open(&self, situation: &Arc<Situation>) -> Option<Asks> {
        let GatePlan { check, on_violation } = situation.plan.gate.as_ref()?;
        let (asks, receiver) = mpsc::channel(QUEUE);
        let gate = Gate {
            situation: Arc::clone(situation),
            on_violation: *on_violation,
            check: Arc::clone(check),
            asks,
            busy: Arc::default(),
            is_late: AtomicBool::new(false),
        };
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::new(gate));
        all.sort_by(|one, other| one.order().cmp(&other.order()));
        Some(receiver)
    }

    /// Removes the gate of a situation. What waits at it goes on when its task has ended.
    pub(super) fn close(&self, situation: &Arc<Situation>) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|gate| !Arc::ptr_eq(&gate.situation, situation));
    }

    /// The gates that hold an event that is no alarm.
    pub(super) fn hold(&self, behalf: Behalf<'_>, event: &Event) -> Option<Held> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let gates: Vec<_> = all.iter().filter(|gate| gate.admits(behalf, event)).map(Arc::clone).collect();
        (!gates.is_empty()).then_some(Held { gates, hold: self.hold })
    }
}

/// An event that some gates hold.
pub(crate) struct Held {
    gates: Vec<Arc<Gate>>,
    hold: Duration,
}

/// An event that checks were asked about. Unless it is published, it leaves their sets again.
pub(crate) struct Judged {
    input: Arc<Input>,
    event: Arc<Event>,
    gates: Vec<Arc<Gate>>,
}

impl Judged {
    /// Whether it is this event.
    pub(crate) fn is(&self, event: &Published) -> bool {
        Arc::ptr_eq(&self.event, &event.event)
    }

    /// The event is published.
    pub(crate) fn published(mut self) {
        self.gates.clear();
    }
}

impl Drop for Judged {
    fn drop(&mut self) {
        for gate in self.gates.drain(..) {
            // Where there is no room it stays in those sets for its time.
            let _ = gate.asks.try_send(Ask::Withdraw(Arc::clone(&self.input)));
        }
    }
}

impl Held {
    /// Waits for the verdicts. Gives back the names of the checks that mark the event, in their order.
    ///
    /// # Errors
    /// [`ApiError::Inconsistent`] where a check drops it.
    pub(crate) async fn judged(
        self,
        features: &FeatureReader,
        behalf: Behalf<'_>,
        event: &Published,
    ) -> Result<(Judged, Vec<Arc<str>>), ApiError> {
        let deadline = Instant::now() + self.hold;
        let input = Arc::new(Input::of(features, &event.body, 0)?);
        let mut judged = Judged { input, event: Arc::clone(&event.event), gates: Vec::new() };
        let mut marks = Vec::new();
        for gate in self.gates {
            // Before the verdict: it may not be waited for to its end.
            judged.gates.push(Arc::clone(&gate));
            let figures = &gate.situation.figures;
            let Some(verdict) = gate.verdict(&judged.input, deadline).await else {
                figures.passed.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let name = Arc::clone(&gate.situation.key.name);
            match gate.on_violation {
                _ if verdict.links.is_empty() => {}
                OnViolation::Drop => {
                    figures.dropped.fetch_add(1, Ordering::Relaxed);
                    // Others are counted when they come by the session.
                    figures.inputs.fetch_add(1, Ordering::Relaxed);
                    let links = verdict.links.iter().map(|link| visible(link, behalf)).collect();
                    return Err(ApiError::Inconsistent { check: name, links });
                }
                OnViolation::Mark | OnViolation::Tell => {
                    figures.marked.fetch_add(1, Ordering::Relaxed);
                    marks.push(name);
                }
            }
        }
        Ok((judged, marks))
    }

    /// What the checks would say of an event, up to the first that would drop it. Those that do not answer in time are left out.
    pub(crate) async fn rehearsed(self, behalf: Behalf<'_>, event: &Observed) -> Vec<ExplainedCheck> {
        let deadline = Instant::now() + self.hold;
        let input = Arc::new(Input::observed(event, clock::unix_ms().cast_signed(), 0));
        let text = |(variable, id): &(Arc<str>, Arc<str>)| (variable.to_string(), id.to_string());
        let mut broken = Vec::new();
        for gate in self.gates {
            let Some(verdict) = gate.rehearsed(&input, deadline).await else { continue };
            if verdict.links.is_empty() {
                continue;
            }
            let links = verdict.links.iter().map(|link| visible(link, behalf).iter().map(text).collect());
            let check = gate.situation.key.name.to_string();
            broken.push(ExplainedCheck { check, on_violation: gate.on_violation, links: links.collect() });
            if gate.on_violation == OnViolation::Drop {
                break;
            }
        }
        broken
    }
}

/// A link without the events that are not for the reader.
fn visible(link: &[(Arc<str>, Arc<Input>)], behalf: Behalf<'_>) -> Link {
    let bound = link.iter().filter(|(_, input)| behalf.check(&input.event).is_ok());
    bound.map(|(variable, input)| (Arc::clone(variable), Arc::clone(&input.id))).collect()
}

impl Gate {
    fn order(&self) -> (bool, &Arc<str>) {
        (self.on_violation == OnViolation::Mark, &self.situation.key.name)
    }

    /// Whether the check's own subscription would receive an event.
    fn admits(&self, behalf: Behalf<'_>, event: &Event) -> bool {
        *self.situation.key.tenant == *behalf.tenant_name()
            && self.situation.behalf().check(event).is_ok()
            && self.check.takes(event)
    }

    /// What the check says; `None` where that is not known in time.
    async fn verdict(&self, input: &Arc<Input>, deadline: Instant) -> Option<Verdict> {
        // A batch is not to wait for each of its events while the check is at the first.
        if self.is_late.load(Ordering::Relaxed) && Arc::strong_count(&self.busy) > 1 {
            return None;
        }
        let (verdict, answer) = oneshot::channel();
        let reply = Reply { verdict, _busy: Arc::clone(&self.busy) };
        let answered = self.answered(Ask::Judge(Arc::clone(input), reply), answer, deadline).await;
        self.is_late.store(answered.is_none(), Ordering::Relaxed);
        answered
    }

    /// What the check would say; `None` where that is not known in time.
    async fn rehearsed(&self, input: &Arc<Input>, deadline: Instant) -> Option<Verdict> {
        let (verdict, answer) = oneshot::channel();
        self.answered(Ask::Rehearse(Arc::clone(input), verdict), answer, deadline).await
    }

    async fn answered(
        &self,
        ask: Ask,
        mut answer: oneshot::Receiver<Verdict>,
        deadline: Instant,
    ) -> Option<Verdict> {
        if self.situation.figures.is_paused() || deadline <= Instant::now() {
            return None;
        }
        self.asks.try_send(ask).ok()?;
        match tokio::time::timeout_at(deadline, &mut answer).await {
            Ok(answered) => answered.ok(),
            Err(_) => {
                // Either the task learns that it is not waited for any more, or its answer counts.
                answer.close();
                answer.try_recv().ok()
            }
        }
    }
}
