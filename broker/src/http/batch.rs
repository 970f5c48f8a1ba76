//! Batches: elements that are carried out one by one while the body comes.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use wire::{Fault, Moved, Rejected, Warning};

use super::App;
use super::body::{self, Format, Parts};
use super::error;
use super::slice::CoopBudget;
use crate::config::Limits;
use crate::ingest::framing::{Elements, Framed, Records};
use crate::model::completion::Completion;
use crate::model::error::ApiError;

/// Bound on each list in an answer: a multiple of the bytes of the batch, and a number of bytes besides.
const LISTED_TIMES: usize = 4;
const LISTED_BYTES_LEAST: usize = 16 * 1_024;

/// The work on each element of a batch.
pub(crate) trait Work {
    /// Name that the answer gives to the elements that were carried out.
    const DONE: &'static str;

    /// Carries the element of an index out, or takes it on until [`finish`](Self::finish). Gives back what is probably not meant so in it.
    async fn element(&mut self, index: u64, text: &str) -> Result<Vec<Fault>, ApiError>;

    /// Whether so much was taken on that it should be carried out.
    fn is_due(&self) -> bool {
        false
    }

    /// Carries out what was taken on. A refusal tells how many of the last elements were not.
    async fn finish(&mut self) -> Result<(), (usize, ApiError)> {
        Ok(())
    }

    /// The refusal of an element that is too large.
    fn too_large(&self) -> ApiError;
}

/// Entries of an answer, as many as there is room for.
pub(crate) struct Listed<T> {
    pub(crate) entries: Vec<T>,
    /// How many there were no room for.
    pub(crate) unlisted: u64,
    /// Bytes of the list in the answer.
    bytes: usize,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), unlisted: 0, bytes: 0 }
    }
}

impl<T: Serialize> Listed<T> {
    /// Lists an entry where there is room for it beside what was sent, and counts it otherwise. The first that is not listed is the end
    /// of the list.
    fn add(&mut self, limits: &Limits, sent_bytes: usize, entry: T) {
        if self.unlisted == 0 && self.entries.len() < limits.rejected_listed {
            let bytes = serde_json::to_string(&entry).map_or(0, |text| text.len() + 1);
            let room = sent_bytes.saturating_mul(LISTED_TIMES) + LISTED_BYTES_LEAST;
            if self.bytes + bytes <= room.min(limits.rejected_bytes) {
                self.bytes += bytes;
                return self.entries.push(entry);
            }
        }
        self.unlisted += 1;
    }
}

/// The tally of a batch.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) done: u64,
    pub(crate) rejected: Listed<Rejected>,
    pub(crate) warnings: Listed<Warning>,
    /// Bytes of the elements that have come.
    sent_bytes: usize,
    index: u64,
    /// Whether some of the work done is not known to be safe, without a way to tell which.
    is_torn: bool,
}

impl Tally {
    /// Counts an element. A refusal that concerns the broker and not the element ends the batch.
    async fn count<W: Work>(
        &mut self,
        app: &App,
        work: &mut W,
        element_bytes: usize,
        outcome: Result<Vec<Fault>, ApiError>,
    ) -> Result<(), ApiError> {
        self.sent_bytes += element_bytes;
        if outcome.is_err() {
            // So that what was taken on is always the last that came.
            self.finish(work).await?;
        }
        match outcome {
            Ok(warnings) => {
                self.warn(&app.config.limits, warnings);
                self.done += 1;
            }
            Err(
                refusal @ (ApiError::Overloaded
                | ApiError::Storage
                | ApiError::Stopping
                | ApiError::TooFast { .. }
                | ApiError::TokenExpired
                | ApiError::Internal(_)),
            ) => return Err(refusal),
            Err(refusal) => self.reject(&app.config.limits, &refusal),
        }
        self.index += 1;
        if work.is_due() { self.finish(work).await } else { Ok(()) }
    }

    /// Lists a rejection.
    fn reject(&mut self, limits: &Limits, refusal: &ApiError) {
        let rejected = Rejected { index: self.index, problem: refusal.problem() };
        self.rejected.add(limits, self.sent_bytes, rejected);
    }

    /// Lists what is probably not meant so in the element that was carried out.
    pub(crate) fn warn(&mut self, limits: &Limits, warnings: Vec<Fault>) {
        for Fault { pointer, detail } in warnings {
            self.warnings.add(limits, self.sent_bytes, Warning { index: Some(self.index), pointer, detail });
        }
    }

    /// Takes in what another broker has said of elements that it was given on; they were counted as done before.
    pub(crate) fn told(&mut self, limits: &Limits, told: Moved) {
        let refused = told.rejected.len() as u64 + told.rejected_unlisted;
        self.done = self.done.saturating_sub(refused);
        // Of all of them those with the least indices are listed.
        let own = std::mem::take(&mut self.rejected);
        let mut all = own.entries;
        all.extend(told.rejected);
        all.sort_by_key(|rejected| rejected.index);
        for rejected in all {
            self.rejected.add(limits, self.sent_bytes, rejected);
        }
        self.rejected.unlisted += own.unlisted + told.rejected_unlisted;
        for warning in told.warnings {
            self.warnings.add(limits, self.sent_bytes, warning);
        }
        self.warnings.unlisted += told.warnings_unlisted;
    }

    /// Has carried out what was taken on. Where that fails, it does not count.
    async fn finish<W: Work>(&mut self, work: &mut W) -> Result<(), ApiError> {
        work.finish().await.map_err(|(left, refusal)| {
            self.done -= left as u64;
            self.index -= left as u64;
            refusal
        })
    }

    /// Waits until all that was done is safe; counts no more than what is known to be, and says what the batch is answered.
    /// A ticket that failed is one element's, of which others may be, too.
    pub(crate) async fn settle(
        &mut self,
        receipt: Option<Arc<Completion>>,
        outcome: Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let Some(receipt) = receipt else { return outcome };
        let settled = receipt.settled().await;
        self.is_torn = settled.is_err();
        self.done = self.done.saturating_sub(receipt.failed());
        // A sender that learns that something is not safe sends everything again, faults included.
        settled.and(outcome)
    }

    /// The answer to a batch that did not come to its end. What was done before stays done: it says what became of the first
    /// elements, so that the sender goes on behind these.
    pub(crate) fn interrupted(self, refusal: &ApiError, done: &str) -> Response {
        let mut problem = refusal.problem();
        let mut tell = |name: &str, value: Value| problem.facts.insert(name.to_owned(), value);
        if self.is_torn {
            // A number alone, which is not that of the first ones. Clients know that of `storage` only.
            if self.done > 0 && matches!(refusal, ApiError::Storage | ApiError::Full) {
                tell(done, self.done.into());
            }
        } else if self.index > 0 {
            tell(done, self.done.into());
            tell("rejected", serde_json::to_value(self.rejected.entries).unwrap_or_default());
            if self.rejected.unlisted > 0 {
                tell("rejected_unlisted", self.rejected.unlisted.into());
            }
        }
        error::respond(refusal, &problem)
    }
}

/// Lines or a sequence.
pub(crate) async fn records<W: Work>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    format: Format,
    limit: usize,
    work: &mut W,
    tally: &mut Tally,
) -> Result<(), ApiError> {
    let mut parts = Parts::of_batch(app, headers, body)?;
    let separator = if format == Format::Sequence { 0x1e } else { b'\n' };
    let mut records = Records::new(separator, limit);
    let mut slice = CoopBudget::default();
    while let Some(part) = parts.next().await? {
        let mut at = 0;
        while let Some(framed) = records.next(&part, &mut at) {
            parts.begin_anew();
            if slice.spend(records.element().len()) {
                tally.finish(work).await?;
                tokio::task::yield_now().await;
            }
            let outcome = record(framed, tally.index, records.element(), work).await;
            tally.count(app, work, records.element().len(), outcome).await?;
        }
        // The next part may be long in coming.
        tally.finish(work).await?;
    }
    if let Some(framed) = records.finish() {
        let outcome = record(framed, tally.index, records.element(), work).await;
        tally.count(app, work, records.element().len(), outcome).await?;
    }
    tally.finish(work).await
}

async fn record<W: Work>(
    framed: Framed,
    index: u64,
    element: &[u8],
    work: &mut W,
) -> Result<Vec<Fault>, ApiError> {
    match framed {
        Framed::Element => work.element(index, body::text(element)?).await,
        Framed::TooLarge => Err(work.too_large()),
    }
}

/// Elements of an array, of which `head` has come already.
pub(crate) async fn elements<W: Work>(
    app: &App,
    head: Bytes,
    parts: Option<&mut Parts>,
    elements: &mut Elements,
    work: &mut W,
    tally: &mut Tally,
) -> Result<(), ApiError> {
    let read = read_elements(app, head, parts, elements, work, tally).await;
    // What came before the end counts, whatever that was.
    tally.finish(work).await.and(read)
}

async fn read_elements<W: Work>(
    app: &App,
    head: Bytes,
    mut parts: Option<&mut Parts>,
    elements: &mut Elements,
    work: &mut W,
    tally: &mut Tally,
) -> Result<(), ApiError> {
    let mut slice = CoopBudget::default();
    let mut part = Some(head.slice_ref(body::without_mark(&head)));
    while let Some(bytes) = part {
        let mut at = 0;
        while let Some(framed) = elements.next(&bytes, &mut at)? {
            if let Some(parts) = &mut parts {
                parts.begin_anew();
            }
            if slice.spend(elements.element().len()) {
                tally.finish(work).await?;
                tokio::task::yield_now().await;
            }
            let outcome = match framed {
                Framed::TooLarge => Err(work.too_large()),
                Framed::Element => match body::text(elements.element()) {
                    Ok(text) => work.element(tally.index, text).await,
                    Err(refusal) => Err(refusal),
                },
            };
            // Where an element is not JSON the document is not, and where the next begins cannot be said.
            if let Err(ApiError::Malformed { detail, line, column }) = outcome {
                let (line, column) = elements.place(line, column);
                return Err(ApiError::Malformed { detail, line, column });
            }
            tally.count(app, work, elements.element().len(), outcome).await?;
        }
        tally.finish(work).await?;
        part = match &mut parts {
            Some(parts) => parts.next().await?,
            None => None,
        };
    }
    elements.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Config;

    /// Facts of the answer besides the problem.
    async fn facts(tally: Tally, refusal: &ApiError) -> Value {
        let body = tally.interrupted(refusal, "accepted").into_body();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let problem: wire::Problem = serde_json::from_slice(&body).unwrap();
        problem.facts.into_iter().collect()
    }

    /// Work of which the last elements cannot be carried out.
    struct Refusing(usize);

    impl Work for Refusing {
        const DONE: &'static str = "done";

        async fn element(&mut self, _: u64, _: &str) -> Result<Vec<Fault>, ApiError> {
            Ok(Vec::new())
        }

        async fn finish(&mut self) -> Result<(), (usize, ApiError)> {
            Err((self.0, ApiError::Overloaded))
        }

        fn too_large(&self) -> ApiError {
            ApiError::Overloaded
        }
    }

    #[tokio::test]
    async fn what_was_taken_on_and_not_carried_out_does_not_count() {
        let mut tally = Tally { done: 7, index: 9, ..Tally::default() };
        assert_eq!(tally.finish(&mut Refusing(3)).await, Err(ApiError::Overloaded));
        assert_eq!((tally.done, tally.index), (4, 6));
    }

    #[test]
    fn what_is_listed_of_rejections_is_bounded_by_what_was_sent_and_by_a_setting() {
        let limits = Limits { rejected_listed: 100_000, ..Config::default().limits };
        let refusal = ApiError::invalid("/geometry", "must be a GeoJSON Point");
        for element_bytes in [2, 60, 60_000] {
            let mut tally = Tally::default();
            for index in 0..10_000 {
                (tally.index, tally.sent_bytes) = (index, tally.sent_bytes + element_bytes);
                tally.reject(&limits, &refusal);
            }
            let (listed, bytes) =
                (tally.rejected.entries.len(), serde_json::to_string(&tally.rejected.entries).unwrap().len());
            assert_eq!(listed as u64 + tally.rejected.unlisted, 10_000);
            let bound = limits.rejected_bytes.min(tally.sent_bytes * LISTED_TIMES + LISTED_BYTES_LEAST);
            assert!(bytes <= bound + 2, "{element_bytes}: {bytes} bytes of {listed}");
            // Of batches as they are all that is allowed for is listed.
            assert!(listed >= if element_bytes > 50 { 1_000 } else { 40 }, "{element_bytes}: {listed}");
        }
    }

    #[tokio::test]
    async fn only_what_is_safe_is_counted() {
        let receipt = Completion::new();
        let mut tickets: Vec<_> = (0..6).map(|_| receipt.ticket()).collect();
        let mut tally = Tally { done: 3, ..Tally::default() };
        // Three elements, each of two shards. That both are the same one's cannot be known.
        for outcome in [Err(ApiError::Storage), Err(ApiError::Storage), Ok(()), Ok(()), Ok(()), Ok(())] {
            tickets.pop().unwrap().settle(outcome);
        }
        let settled = tally.settle(Some(receipt), Err(ApiError::TooSlow)).await;
        assert_eq!((settled, tally.done), (Err(ApiError::Storage), 1));
        assert_eq!(facts(tally, &ApiError::Storage).await, json!({"accepted": 1}));

        let mut tally = Tally { done: 3, index: 3, ..Tally::default() };
        let settled = tally.settle(Some(Completion::new()), Err(ApiError::TooSlow)).await;
        assert_eq!((settled, tally.done), (Err(ApiError::TooSlow), 3));
        assert_eq!(facts(tally, &ApiError::TooSlow).await, json!({"accepted": 3, "rejected": []}));

        let receipt = Completion::new();
        drop(receipt.ticket());
        let mut tally = Tally { done: 3, index: 3, ..Tally::default() };
        let settled = tally.settle(Some(receipt), Ok(())).await;
        assert_eq!((settled, tally.done), (Err(ApiError::Stopping), 2));
        assert_eq!(facts(tally, &ApiError::Stopping).await, json!({}), "which two is not known");

        let mut tally = Tally::default();
        assert_eq!(tally.settle(None, Ok(())).await, Ok(()));
    }
}
