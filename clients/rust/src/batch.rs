//! Many elements over HTTP: as lines, in batches with one request under way, no faster than the broker takes them.

use std::time::Duration;

use futures_util::{Stream, StreamExt};
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use wire::{Problem, Warning};

use crate::{
    Error,
    backoff::{self, Backoff},
    chance::Chance,
    http::{Body, Http},
    problem,
};

/// How many elements go at a time, and how long it is tried.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Batch {
    size: usize,
    patience: Duration,
}

impl Default for Batch {
    fn default() -> Self {
        Self { size: 500, patience: Duration::from_secs(60) }
    }
}

impl Batch {
    /// Elements of a request (500). One has no more than a megabyte besides, or a single element.
    pub fn size(mut self, elements: usize) -> Self {
        self.size = elements;
        self
    }

    /// For how long it is tried again when nothing at all gets through, since the broker is away or takes no more (a minute).
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

/// Outcome of a batch of many events or positions.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// How many were carried out: events accepted, or positions that are in force.
    pub accepted: u64,
    /// The first 1,000 of those that were not.
    pub rejected: Vec<Rejected>,
    /// How many more were rejected than are listed.
    pub rejected_unlisted: u64,
    /// The first 1,000 things that are probably not meant so in elements that were accepted, such as a misspelt member of an event. Each
    /// has the index of its element, counted from 0 over the whole input.
    pub warnings: Vec<Warning>,
    /// How many more warnings there were than are listed.
    pub warnings_unlisted: u64,
}

/// An element that was not accepted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rejected {
    /// Index of the element, counted from 0 over the whole input.
    pub index: u64,
    /// The reason.
    pub problem: Problem,
}

const BATCH_BYTES: usize = 1 << 20;
const LISTED: usize = 1000;

/// Sends lines to a call of the broker's.
pub(crate) struct Batcher<'a> {
    pub(crate) http: &'a Http,
    pub(crate) chance: Chance,
    pub(crate) path: &'static str,
    pub(crate) options: Batch,
    report: Report,
    /// Elements whose fate is known.
    done: u64,
}

/// Counts of accepted and refused elements, as an answer tells them, or the problem of a batch that ended midway.
#[derive(Deserialize)]
struct Tally {
    #[serde(alias = "moved")]
    accepted: u64,
    rejected: Option<Vec<Refusal>>,
    #[serde(default)]
    rejected_unlisted: u64,
    #[serde(default)]
    warnings: Vec<Warning>,
    #[serde(default)]
    warnings_unlisted: u64,
}

impl Tally {
    /// Number of elements that the tally accounts for: accepted, refused and listed, or refused and not listed.
    fn through(&self) -> u64 {
        let listed = self.rejected.as_ref().map_or(0, Vec::len) as u64;
        self.accepted.saturating_add(listed).saturating_add(self.rejected_unlisted)
    }
}

#[derive(Deserialize)]
struct Refusal {
    index: u64,
    problem: Value,
}

impl<'a> Batcher<'a> {
    pub(crate) fn new(http: &'a Http, chance: Chance, path: &'static str, options: Batch) -> Self {
        Self { http, chance, path, options, report: Report::default(), done: 0 }
    }

    /// Sends what the source has; takes from it no further than it sends.
    pub(crate) async fn send(
        mut self,
        lines: impl Stream<Item = Result<String, Error>>,
    ) -> Result<Report, Error> {
        let mut lines = std::pin::pin!(lines);
        let mut batch = Lines::default();
        while let Some(line) = lines.next().await {
            let line = match line {
                Ok(line) => line,
                Err(error) => {
                    self.deliver(batch).await?;
                    return Err(self.given_up(error));
                }
            };
            if batch.text.len() + line.len() > BATCH_BYTES {
                self.deliver(std::mem::take(&mut batch)).await?;
            }
            batch.push(&line);
            if batch.ends.len() >= self.options.size.max(1) {
                self.deliver(std::mem::take(&mut batch)).await?;
            }
        }
        self.deliver(batch).await?;
        Ok(self.report)
    }

    /// One request after the other until each element of the batch was taken or refused.
    async fn deliver(&mut self, mut batch: Lines) -> Result<(), Error> {
        let mut backoff = Backoff::new(backoff::BASE, backoff::CAP, self.chance.clone());
        let mut progress = Instant::now();
        while !batch.ends.is_empty() {
            let body = Body { media_type: "application/x-ndjson", text: batch.text.clone().into() };
            let error = match self.http.call(Method::POST, self.path, Some(body)).await {
                Ok(answer) => match serde_json::from_slice(&answer) {
                    Ok::<Tally, _>(tally) => {
                        let (told, sent) = (tally.through(), batch.elements());
                        if told != sent {
                            // Sent again they would come twice.
                            let fault = format!("{sent} elements were sent, and {told} are accounted for");
                            return Err(self.given_up(Error::broken(fault)));
                        }
                        self.take_down(tally);
                        self.done += batch.ends.len() as u64;
                        return Ok(());
                    }
                    Err(fault) => Error::connection("the answer is none of this broker's", fault),
                },
                Err(error) => error,
            };
            let taken = self.partly(&error, batch.ends.len());
            if taken > 0 {
                batch.drop_first(taken);
                progress = Instant::now();
                backoff.reset();
            }
            if !passes(&error) || progress.elapsed() >= self.options.patience {
                return Err(self.given_up(error));
            }
            tokio::time::sleep(backoff.next(error.is_away(), error.retry_after())).await;
        }
        Ok(())
    }

    /// Takes down what became of the next elements, and returns how many those are.
    fn take_down(&mut self, tally: Tally) -> u64 {
        let through = tally.through();
        let Tally { accepted, rejected, rejected_unlisted, warnings, warnings_unlisted } = tally;
        self.report.warnings_unlisted += warnings_unlisted;
        for warning in warnings {
            if self.report.warnings.len() < LISTED {
                let index = warning.index.map(|index| self.done + index);
                self.report.warnings.push(Warning { index, ..warning });
            } else {
                self.report.warnings_unlisted += 1;
            }
        }
        let rejected = rejected.unwrap_or_default();
        self.report.accepted += accepted;
        self.report.rejected_unlisted += rejected_unlisted;
        for Refusal { index, problem } in rejected {
            if self.report.rejected.len() < LISTED {
                let problem = problem::of_frame(problem);
                self.report.rejected.push(Rejected { index: self.done + index, problem });
            } else {
                self.report.rejected_unlisted += 1;
            }
        }
        through
    }

    /// How many elements a batch that ended midway is through: the first ones. A broker that does not tell which of them were rejected is
    /// an older one: where some were, as many come twice. Or it does not know which are on disk (`storage`): all come again.
    fn partly(&mut self, error: &Error, elements: usize) -> usize {
        let Some(problem) = error.problem() else { return 0 };
        let facts: Value = problem.facts.clone().into_iter().collect();
        let Ok(tally) = serde_json::from_value::<Tally>(facts) else { return 0 };
        if tally.rejected.is_none() && problem.code() == "storage" {
            return 0;
        }
        let through = self.take_down(tally).min(elements as u64);
        self.done += through;
        usize::try_from(through).unwrap_or(elements)
    }

    fn given_up(&mut self, source: Error) -> Error {
        Error::Batch { report: std::mem::take(&mut self.report), index: self.done, source: Box::new(source) }
    }
}

/// A batch that can be tried again: the broker is overloaded, starts, stops, or cannot be reached.
fn passes(error: &Error) -> bool {
    match error {
        Error::Connection { .. } => true,
        Error::Problem { problem, .. } => [429, 502, 503, 504].contains(&problem.status),
        // An answer that does not come may have been carried out: it is tried no further, and the report says how far it came.
        Error::Timeout { .. }
        | Error::Closed { .. }
        | Error::QueueFull { .. }
        | Error::Batch { .. }
        | Error::Invalid(_) => false,
    }
}

/// Lines, and where each of them ends.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Lines {
    fn push(&mut self, line: &str) {
        self.text.extend_from_slice(line.as_bytes());
        self.text.push(b'\n');
        self.ends.push(self.text.len());
    }

    /// How many are elements: empty ones are none to the broker.
    fn elements(&self) -> u64 {
        self.text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count() as u64
    }

    fn drop_first(&mut self, count: usize) {
        let Some(&end) = count.checked_sub(1).and_then(|last| self.ends.get(last)) else { return };
        self.text.drain(..end);
        self.ends.drain(..count);
        self.ends.iter_mut().for_each(|later| *later -= end);
    }
}
