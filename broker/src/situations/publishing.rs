//! What a situation found is published: numbered, within bounds, and without what not every reader may see.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Finding;
use super::runner::{RETRY, Work};
use crate::ingest::Confinement;
use crate::model::completion::Completion;
use crate::model::error::ApiError;
use crate::model::event::{Origin, Published};
use crate::shard::Coming;

/// Findings of one input, at most: their numbers are in the lower bits of a finding's number.
pub(super) const FINDINGS_BITS: u32 = 16;

/// The first number of findings that tell the end of what lasts after too much state, behind all those of the input before.
pub(super) const ENDS: u64 = 1 << (FINDINGS_BITS - 1);

/// Findings of the second at hand.
#[derive(Default)]
pub(super) struct Window {
    began: Option<Instant>,
    count: u32,
}

impl Window {
    /// Whether one more may come.
    pub(super) fn takes(&mut self, now: Instant, limit: u32) -> bool {
        if self.began.is_none_or(|began| now.duration_since(began) >= Duration::from_secs(1)) {
            (self.began, self.count) = (Some(now), 0);
        }
        self.count += 1;
        limit == 0 || self.count <= limit
    }
}

impl Work {
    /// Publishes what was found, and waits until it is in force and safe. What the broker cannot take now is tried again. Findings of
    /// an input are numbered from `first` on.
    pub(super) async fn publish(&mut self, findings: Vec<Finding>, first: u64) -> Result<(), ApiError> {
        let mut texts = Vec::new();
        let mut events = Vec::new();
        let by = self.situation.by();
        let is_about_objects = self.situation.plan.is_about_objects;
        let (mut offset, mut index, mut last) = (0, first, self.told);
        for finding in findings {
            index = if finding.offset == offset { index + 1 } else { first };
            offset = finding.offset;
            let number = offset << FINDINGS_BITS | index;
            if number <= self.told || index >> FINDINGS_BITS > 0 {
                continue;
            }
            let mut taken = self.take_one();
            // An enter without its exit would be wrong for ever: they come later.
            while let (Err(why), true) = (&taken, is_about_objects) {
                self.situation.figures.problem(format!("{why}, so that it waits"));
                self.send(std::mem::take(&mut events), std::mem::take(&mut texts), last).await?;
                tokio::time::sleep(RETRY).await;
                taken = self.take_one();
            }
            last = number;
            match taken.and_then(|()| self.event(&finding, &by, number)) {
                Ok(published) => {
                    texts.push((published.body.text.clone(), finding.rule));
                    events.push(published);
                }
                Err(why) => {
                    self.situation.figures.dropped.fetch_add(1, Ordering::Relaxed);
                    self.situation.figures.problem(why);
                }
            }
        }
        self.send(events, texts, last).await
    }

    /// Publishes events, of which the last finding has a number.
    async fn send(
        &mut self,
        events: Vec<Published>,
        texts: Vec<(Box<str>, Option<Arc<str>>)>,
        last: u64,
    ) -> Result<(), ApiError> {
        let receipt = Completion::new();
        let coming = |event| Coming { event, pass: None, receipt: Some(Arc::clone(&receipt)) };
        let mut events: Vec<_> = events.into_iter().map(coming).collect();
        let count = events.len() as u64;
        while !events.is_empty() {
            match self.stage.host.shards.publish(&mut events).await {
                Ok(()) => {}
                Err(ApiError::Stopping) => return Err(ApiError::Stopping),
                Err(refusal) => {
                    self.situation.figures.problem(refusal.problem().detail.unwrap_or_default());
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
        receipt.settled().await?;
        // Its session may come again in this run, too.
        self.told = last;
        self.stage.host.metrics.events.add(count);
        for (text, rule) in texts {
            self.situation.figures.found(text, rule);
        }
        Ok(())
    }

    /// Takes a place among the findings of this second; the error says why there is none.
    fn take_one(&mut self) -> Result<(), String> {
        let settings = &self.stage.host.config.situations;
        let limit = settings.findings_per_second;
        if !self.findings.takes(Instant::now(), limit) {
            return Err(format!("more than {limit} were found in a second (situations.findings_per_second)"));
        }
        let limit = settings.tenant_findings_per_second;
        if !self.holding.share.takes_finding(Instant::now(), limit) {
            return Err(format!(
                "its tenant's checks, rule sets and groups found more than {limit} in a second (situations.tenant_findings_per_second)"
            ));
        }
        Ok(())
    }

    /// The event of a finding; the error says why there is none.
    fn event(&mut self, finding: &Finding, by: &str, number: u64) -> Result<Published, String> {
        let depth_max = self.stage.host.config.limits.derived_depth;
        // Objects of that depth were refused when they came, and the exit of one that was taken in has to be told.
        if finding.depth >= depth_max && !self.situation.plan.is_about_objects {
            if self.situation.figures.dropped.load(Ordering::Relaxed) == 0 {
                tracing::warn!(
                    by,
                    depth_max,
                    "events are derived from events again and again: the deepest are not published"
                );
            }
            return Err(format!(
                "events were derived {depth_max} times one from another (limits.derived_depth)"
            ));
        }
        let text = finding.event(by, &self.situation.version, number);
        let published = self.stage.host.features.parse_own(self.situation.behalf(), &text);
        let mut published = published.map_err(|refusal| refusal.problem().detail.unwrap_or_default())?;
        // Without tokens nobody is confined.
        if self.stage.host.config.wants_tokens() {
            published.veil(self.situation.confinement.as_deref().map(Confinement::text));
        }
        Ok(published.derived(Origin {
            client: Arc::clone(&self.situation.client),
            version: Arc::clone(&self.situation.version),
            number,
        }))
    }
}
