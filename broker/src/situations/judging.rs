//! Verdicts of a situation's task on events that are held for it ([`super::gate`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wire::OnViolation;

use super::gate::{Ask, Asks};
use super::runner::Work;
use super::{Finding, Input, Logic, Situation};
use crate::model::error::ApiError;

/// Held events that are judged before others have a turn.
const ASKED_MAX: usize = 64;

/// Verdicts that take less are given where the task runs; so much may others wait there.
const LIGHT: Duration = Duration::from_micros(200);

/// Takes what publishers ask by now.
pub(super) fn ready(asks: &mut Option<Asks>) -> Vec<Ask> {
    let asks = asks.iter_mut().flat_map(|asks| std::iter::from_fn(|| asks.try_recv().ok()));
    asks.take(ASKED_MAX).collect()
}

/// Waits for what publishers ask; where there is no gate, for ever.
pub(super) async fn next(asks: &mut Option<Asks>, asked: &mut Vec<Ask>) {
    let count = match asks {
        Some(asks) => asks.recv_many(asked, ASKED_MAX).await,
        None => 0,
    };
    if count == 0 {
        std::future::pending::<()>().await;
    }
}

impl Work {
    /// Lets the events go on that are held while it is paused.
    pub(super) fn pass_on(&mut self, mut logic: Box<dyn Logic>) -> Box<dyn Logic> {
        while let Some(Ok(ask)) = self.asks.as_mut().map(Asks::try_recv) {
            if let Ask::Withdraw(input) = ask {
                logic = self.situation.without(logic, &input);
            }
        }
        logic
    }

    /// Answers the publishers of held events, beside the threads that serve everybody unless that is quick.
    pub(super) async fn judge(
        &mut self,
        mut logic: Box<dyn Logic>,
        asked: Vec<Ask>,
    ) -> Result<Box<dyn Logic>, ApiError> {
        let (situation, share) = (Arc::clone(&self.situation), Arc::clone(&self.holding.share));
        let mut verdicts = self.verdicts;
        let _turn = self.stage.threads.acquire().await.map_err(|_| ApiError::Stopping)?;
        let work = move || {
            let (turn, figures) = (Instant::now(), &situation.figures);
            for ask in asked {
                let (input, reply) = match ask {
                    Ask::Withdraw(input) => {
                        logic = situation.without(logic, &input);
                        continue;
                    }
                    Ask::Rehearse(input, reply) => {
                        if let Some(verdict) = logic.rehearse(&input) {
                            let _ = reply.send(verdict);
                        }
                        continue;
                    }
                    // Nobody waits for it any more, or nobody is to.
                    Ask::Judge(_, reply) if reply.is_closed() || figures.is_paused() => continue,
                    Ask::Judge(input, reply) => (input, reply),
                };
                let (began, before) = (Instant::now(), logic.evaluations());
                let judged = logic.judge(&input);
                figures.took(began.elapsed(), logic.engine());
                figures.evaluations.fetch_add(logic.evaluations() - before, Ordering::Relaxed);
                match judged {
                    // It goes on, since nobody answers it.
                    Ok(None) => {}
                    Ok(Some(mut verdict)) => {
                        let findings = std::mem::take(&mut verdict.findings);
                        if !reply.send(verdict) {
                            logic = situation.without(logic, &input);
                            continue;
                        }
                        situation.list_judged(&input, &findings, &mut verdicts);
                    }
                    Err(why) => logic = situation.anew(&why),
                }
            }
            let took = turn.elapsed();
            share.pay(Instant::now(), took);
            (logic, verdicts, took)
        };
        // A thread of its own would double what a publisher waits.
        let (logic, verdicts, took) = if self.is_light {
            work()
        } else {
            let worked = self.stage.host.runtime.spawn_blocking(work).await;
            worked.map_err(|_| ApiError::Internal("an evaluation panicked"))?
        };
        (self.verdicts, self.is_light) = (verdicts, took < LIGHT);
        Ok(logic)
    }
}

impl Situation {
    /// The logic without an event that was judged and is not published.
    fn without(&self, mut logic: Box<dyn Logic>, input: &Arc<Input>) -> Box<dyn Logic> {
        match logic.withdraw(input) {
            Ok(()) => logic,
            Err(why) => self.anew(&why),
        }
    }

    fn drops(&self) -> bool {
        self.plan.gate.as_ref().is_some_and(|gate| gate.on_violation == OnViolation::Drop)
    }

    /// Lists what was found in an event that is marked or dropped.
    fn list_judged(&self, input: &Input, findings: &[Finding], number: &mut u64) {
        let outcome = if self.drops() { "dropped" } else { "marked" };
        for finding in findings {
            let mut finding = finding.clone();
            finding.properties.insert("outcome".to_owned(), outcome.into());
            finding.properties.insert("event".to_owned(), (*input.id).into());
            *number += 1;
            self.figures.list(finding.event(&self.by(), &self.version, *number).into());
        }
    }
}
