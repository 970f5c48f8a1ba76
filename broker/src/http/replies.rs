//! The answers of one WebSocket, in the order of its requests, although some have to wait until they are safe.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use wire::Fault;

use super::publish_batch::PublishBatch;
use super::{App, encode};
use crate::metrics::Metrics;
use crate::model::completion::Completion;
use crate::model::error::ApiError;
use crate::model::warning;
use crate::outbox::{Coming, Outbox};

/// Answers on their way to the outbox. Without a store none ever waits here.
pub(crate) struct Replies {
    outbox: Arc<Outbox>,
    requests: TaskTracker,
    metrics: Arc<Metrics>,
    /// Bounded by [`room`](Self::room), without which nobody reads another request.
    waiting: VecDeque<Waiting>,
    /// Bytes that the waiting answers, and those to requests for events that are not published, will take at least.
    waiting_bytes: usize,
    /// Events that were taken and are not published.
    pub(crate) batch: PublishBatch,
    /// The requests for these.
    taken: Vec<Taken>,
}

/// A request for an event that was taken.
struct Taken {
    /// Completion that the answer has to wait for once the event is published.
    receipt: Option<Arc<Completion>>,
    ok: Done,
    /// A stop waits for it.
    _request: TaskTrackerToken,
}

/// An answer that is not given yet.
enum Waiting {
    /// It only stands behind others.
    Ready(Box<str>),
    /// `ok` or a problem, when it is known which.
    Later {
        receipt: Arc<Completion>,
        ok: Done,
        is_wanted: bool,
        /// A stop waits for the request.
        _request: TaskTrackerToken,
    },
}

impl Waiting {
    fn bytes(&self) -> usize {
        match self {
            Self::Ready(text) => OK_BYTES + text.len(),
            Self::Later { ok, .. } => ok.bytes(),
        }
    }
}

/// The answer `ok` to a request, if it comes to that.
struct Done {
    reference: Option<Box<str>>,
    warnings: Vec<Fault>,
}

impl Done {
    /// Bytes of it. An answer with a problem takes some kilobytes, but those of a batch are not many.
    fn bytes(&self) -> usize {
        OK_BYTES + self.reference.as_deref().map_or(0, str::len) + warning::bytes(&self.warnings)
    }

    fn frame(&self) -> String {
        warning::insert(encode::ok(self.reference.as_deref()), &self.warnings)
    }

    fn refused(&self, refusal: &ApiError) -> String {
        refusal.frame(self.reference.as_deref())
    }
}

/// Bytes of an answer besides its reference, and of what waits for it.
const OK_BYTES: usize = 96;

impl Replies {
    pub(crate) fn new(app: &Arc<App>, outbox: &Arc<Outbox>) -> Self {
        Self {
            outbox: Arc::clone(outbox),
            requests: app.requests.clone(),
            metrics: Arc::clone(&app.metrics),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            batch: PublishBatch::default(),
            taken: Vec::new(),
        }
    }

    /// Notes whose event is the last of the batch.
    pub(crate) fn take(
        &mut self,
        receipt: Option<Arc<Completion>>,
        reference: Option<&str>,
        warnings: Vec<Fault>,
    ) {
        let (ok, _request) = (Done { reference: reference.map(Box::from), warnings }, self.requests.token());
        self.waiting_bytes += ok.bytes();
        self.taken.push(Taken { receipt, ok, _request });
    }

    /// The batch is published.
    pub(crate) fn published(&mut self) {
        let mut taken = std::mem::take(&mut self.taken);
        for Taken { receipt, ok, .. } in taken.drain(..) {
            self.waiting_bytes -= ok.bytes();
            match receipt {
                Some(receipt) => self.push_waiting(receipt, ok, true),
                None => self.push(ok.frame()),
            }
        }
        // With its memory.
        self.taken = taken;
    }

    /// Answers a batch that was published in part: the last `left` events were not, and are answered with the refusal.
    pub(crate) fn not_published(&mut self, left: usize, refusal: &ApiError) {
        let refused = self.taken.split_off(self.taken.len() - left);
        self.published();
        self.metrics.problems.add(left as u64);
        for Taken { ok, .. } in refused {
            self.waiting_bytes -= ok.bytes();
            self.push(ok.refused(refusal));
        }
    }

    /// Gives an answer, behind those that wait.
    pub(crate) fn push(&mut self, text: impl Into<Box<str>>) {
        if self.waiting.is_empty() {
            self.outbox.put_answer(text);
        } else {
            let text = text.into();
            self.waiting_bytes += OK_BYTES + text.len();
            self.waiting.push_back(Waiting::Ready(text));
        }
    }

    /// Gives the answer to a request when that is settled: a problem, or `ok` where it is wanted.
    pub(crate) fn push_later(&mut self, receipt: Arc<Completion>, reference: Option<&str>, is_wanted: bool) {
        let ok = Done { reference: reference.map(Box::from), warnings: Vec::new() };
        self.push_waiting(receipt, ok, is_wanted);
    }

    fn push_waiting(&mut self, receipt: Arc<Completion>, ok: Done, is_wanted: bool) {
        let _request = self.requests.token();
        self.waiting_bytes += ok.bytes();
        self.waiting.push_back(Waiting::Later { receipt, ok, is_wanted, _request });
    }

    /// Whether none waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waits until the first answer that waits can be given, and gives it; for good where none waits. Who gives up waiting
    /// loses nothing.
    pub(crate) async fn next(&mut self) {
        let outcome = match self.waiting.front() {
            None => return std::future::pending().await,
            Some(Waiting::Ready(_)) => Ok(()),
            Some(Waiting::Later { receipt, .. }) => receipt.settled().await,
        };
        let first = self.waiting.pop_front();
        self.waiting_bytes -= first.as_ref().map_or(0, Waiting::bytes);
        match (first, outcome) {
            (None, _) => {}
            (Some(Waiting::Ready(text)), _) => self.outbox.put_answer(text),
            (Some(Waiting::Later { ok, is_wanted, .. }), Ok(())) => {
                if is_wanted {
                    self.outbox.put_answer(ok.frame());
                }
            }
            (Some(Waiting::Later { ok, .. }), Err(refusal)) => {
                self.metrics.problems.add(1);
                self.outbox.put_answer(ok.refused(&refusal));
            }
        }
    }

    /// Gives those that can be given now.
    pub(crate) fn give(&mut self) {
        while !self.is_empty() && self.next().now_or_never().is_some() {}
    }

    /// Whether the batch should be published before anything else is read: it is as large as it should be, or there is no room for another
    /// answer behind its own.
    pub(crate) fn are_due(&self) -> bool {
        self.batch.is_due() || !self.outbox.has_room_for_answer(self.coming())
    }

    /// Count and bytes of the answers that are not in the outbox yet.
    fn coming(&self) -> Coming {
        Coming { count: self.waiting.len() + self.taken.len(), bytes: self.waiting_bytes }
    }

    /// Gives the memory of bursts back, of which there is none now.
    pub(crate) fn rest(&mut self) {
        (self.batch, self.taken) = (PublishBatch::default(), Vec::new());
    }

    /// Waits until all answers that wait are given.
    pub(crate) async fn all(&mut self) {
        while !self.is_empty() {
            self.next().await;
        }
    }

    /// Waits until there is room for another answer: at most `outbox.answers` wait, here and in the outbox, with as many bytes as
    /// `outbox.answer_bytes` and one of them.
    pub(crate) async fn room(&mut self) {
        let outbox = Arc::clone(&self.outbox);
        while !self.is_empty() {
            tokio::select! {
                biased;
                () = outbox.room_for_answer(self.coming()) => return,
                () = self.next() => {}
            }
        }
        outbox.room_for_answer(Coming::default()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Config};
    use crate::model::delivery::Entry;
    use crate::outbox::Bounds;

    fn answers(most: usize) -> Replies {
        let bounds = Bounds::new(&config::Outbox { answers: most, ..Config::default().outbox });
        Replies {
            outbox: Arc::new(Outbox::new(1, bounds)),
            requests: TaskTracker::new(),
            metrics: Arc::new(Metrics::new(1)),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            batch: PublishBatch::default(),
            taken: Vec::new(),
        }
    }

    impl Replies {
        /// Gives what can be given, and says what the writer then finds.
        fn given(&mut self) -> Vec<String> {
            while self.next().now_or_never().is_some() {}
            let mut batch = Vec::new();
            let _ = self.outbox.next_batch(&mut batch, usize::MAX).now_or_never();
            let texts = batch.into_iter().map(|entry| match entry {
                Entry::Answer(text) => text.into_string(),
                Entry::Delivery(_) | Entry::Gap(_) => panic!("{entry:?}"),
            });
            texts.map(|text| text.chars().take(26).collect()).collect()
        }
    }

    #[tokio::test]
    async fn they_are_given_in_the_order_of_the_requests() {
        let mut answers = answers(100);
        answers.push("0");
        let receipts = [Completion::new(), Completion::new(), Completion::new()];
        let [first, silent, last] = receipts.each_ref().map(Completion::ticket);
        let [a, b, c] = receipts;
        answers.push_later(a, Some("1"), true);
        answers.push("2");
        answers.push_later(b, None, false);
        answers.push_later(c, Some("3"), true);
        answers.push("4");
        assert_eq!(answers.given(), ["0"]);
        last.settle(Err(ApiError::Storage));
        assert_eq!(answers.given(), Vec::<String>::new());
        first.settle(Ok(()));
        assert_eq!(answers.given(), [r#"{"op":"ok","ref":1}"#, "2"]);
        // A stop waits for the requests that are not answered.
        assert_eq!(answers.requests.len(), 2);
        silent.settle(Ok(()));
        assert_eq!(answers.given(), [r#"{"op":"problem","ref":3,"p"#, "4"]);
        assert!(answers.is_empty() && answers.requests.is_empty());
        answers.push("5");
        assert_eq!(answers.given(), ["5"]);
    }

    #[tokio::test]
    async fn a_move_that_wants_no_answer_is_told_that_it_failed() {
        let mut answers = answers(100);
        let receipt = Completion::new();
        let ticket = receipt.ticket();
        answers.push_later(receipt, None, false);
        ticket.settle(Err(ApiError::Storage));
        assert_eq!(answers.given(), [r#"{"op":"problem","problem":"#]);
    }

    #[tokio::test]
    async fn so_many_bytes_wait_here_and_in_the_outbox_together() {
        let mut answers = answers(1_000);
        let (mut bytes, mut count) = (0, 0);
        let long = "x".repeat(4_000);
        let receipt = Completion::new();
        let ticket = receipt.ticket();
        while answers.room().now_or_never().is_some() {
            // Every other one behind one that is not given yet.
            if count == 50 {
                answers.push_later(Arc::clone(&receipt), None, true);
            }
            answers.push(long.as_str());
            (bytes, count) = (bytes + long.len(), count + 1);
        }
        let bound = Config::default().outbox.answer_bytes;
        assert!(
            (bound - 2 * 4_200..bound + 4_200).contains(&(bytes + count * 96)),
            "{bytes} bytes of {bound}"
        );
        ticket.settle(Ok(()));
        while answers.next().now_or_never().is_some() {}
        assert_eq!(answers.waiting_bytes, 0);
        assert!(answers.room().now_or_never().is_none());
        let mut batch = Vec::new();
        answers.outbox.next_batch(&mut batch, usize::MAX).await;
        assert!(answers.room().now_or_never().is_some());
    }

    #[tokio::test]
    async fn so_many_wait_here_and_in_the_outbox_together() {
        let mut answers = answers(3);
        let receipts: Vec<_> = (0..3).map(|_| Completion::new()).collect();
        let mut tickets: Vec<_> = receipts.iter().map(Completion::ticket).collect();
        for receipt in receipts {
            assert!(answers.room().now_or_never().is_some());
            answers.push_later(receipt, None, true);
        }
        assert!(answers.room().now_or_never().is_none());
        // Given, it waits for the writer.
        tickets.remove(0).settle(Ok(()));
        assert!(answers.room().now_or_never().is_none());
        let mut batch = Vec::new();
        answers.outbox.next_batch(&mut batch, usize::MAX).await;
        assert_eq!(batch.len(), 1);
        assert!(answers.room().now_or_never().is_some());
    }
}
