//! Events that were taken one by one and go before the engines together: a thread that is woken for each of them spends more on that
//! than on matching.

use std::sync::Arc;
use std::time::Instant;

use super::App;
use crate::admission::InFlightGuard;
use crate::model::completion::Completion;
use crate::model::error::ApiError;
use crate::model::event::Published;
use crate::shard::Coming;
use crate::situations::Judged;
use crate::telemetry::{Trace, trace_of};

/// Events of a batch. Twice as many save next to nothing more.
const EVENTS: usize = 64;

/// Events on their way before the engines. They stay here no longer than something else is there to be read.
#[derive(Default)]
pub(crate) struct PublishBatch {
    events: Vec<Coming>,
    alarms: u64,
    /// Where spans are recorded of them, with when each came.
    traces: Vec<(Arc<Trace>, Instant)>,
    /// Events of the batch that checks have judged.
    judged: Vec<Judged>,
}

impl PublishBatch {
    /// Adds an event that was taken at some time.
    pub(crate) fn add(
        &mut self,
        event: Published,
        pass: Option<Arc<InFlightGuard>>,
        receipt: Option<&Arc<Completion>>,
        taken: Instant,
        judged: Option<Judged>,
    ) {
        self.judged.extend(judged);
        self.alarms += u64::from(event.body.is_alarm);
        self.traces.extend(trace_of(event.body.carried.as_deref()).map(|trace| (trace, taken)));
        self.events.push(Coming { event, pass, receipt: receipt.cloned() });
    }

    /// Whether it should go. An alarm does not wait for company.
    pub(crate) fn is_due(&self) -> bool {
        self.alarms > 0 || self.events.len() >= EVENTS
    }

    /// Puts what came over something before the engines. After a refusal it is still here.
    pub(crate) async fn publish(&mut self, app: &App, over: &'static str) -> Result<(), ApiError> {
        if self.events.is_empty() {
            return Ok(());
        }
        let before = self.events.len();
        let published = app.shards.publish(&mut self.events).await;
        self.published(app, over, before, published)
    }

    /// Publishes the batch as [`publish`](Self::publish) does, for a caller that would do the work of the engines' threads
    /// itself. Returns whether the caller is to do so.
    pub(crate) async fn publish_inline(&mut self, app: &App, over: &'static str) -> Result<bool, ApiError> {
        if self.events.is_empty() {
            return Ok(false);
        }
        let before = self.events.len();
        let published = app.shards.publish_inline(&mut self.events).await;
        self.published(app, over, before, published)
    }

    fn published<T>(
        &mut self,
        app: &App,
        over: &'static str,
        before: usize,
        published: Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        app.metrics.events.add((before - self.events.len()) as u64);
        let published = published?;
        app.metrics.alarms.add(std::mem::take(&mut self.alarms));
        self.judged.drain(..).for_each(Judged::published);
        self.traced(over, &Ok(()));
        Ok(published)
    }

    /// Gives up what could not be published, and says how many events that were.
    pub(crate) fn refuse(&mut self, app: &App, over: &'static str, refusal: &ApiError) -> usize {
        let is_left = |judged: &Judged| self.events.iter().any(|left| judged.is(&left.event));
        for judged in std::mem::take(&mut self.judged).into_iter().filter(|judged| !is_left(judged)) {
            // Those that are left leave the sets.
            judged.published();
        }
        let left = self.events.drain(..).count();
        app.admission.refused_late(refusal, left as u64);
        app.metrics.events_rejected.add(left as u64);
        self.alarms = 0;
        self.traced(over, &Err(refusal.clone()));
        left
    }

    fn traced(&mut self, over: &'static str, outcome: &Result<(), ApiError>) {
        for (trace, taken) in self.traces.drain(..) {
            trace.published(taken, over, outcome);
        }
    }
}
