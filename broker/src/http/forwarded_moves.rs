//! Moves of clients that other brokers of the cluster serve: they are given on to them, many at a time.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use wire::{Moved, Problem, Rejected};

use super::batch::Tally;
use super::peers::{self, Answer, Forward};
use crate::config::Limits;

/// Bytes of moves for one broker after which they are given on.
const BATCH_BYTES: usize = 256 << 10;
/// Before each of a sequence of texts.
const SEPARATOR: char = '\u{1e}';

/// The moves of a batch that go to other brokers.
pub(super) struct ForwardedMoves {
    forward: Forward,
    /// What waits, by the address of the broker.
    waiting: BTreeMap<String, Waiting>,
    /// Brokers that have not answered, with the problem of each: no other call waits for them.
    silent: BTreeMap<String, Problem>,
    /// What became of the others, with as many rejections as are listed at most.
    told: Moved,
    listed_max: usize,
}

#[derive(Default)]
struct Waiting {
    texts: String,
    /// The index of each in the batch.
    indices: Vec<u64>,
}

impl ForwardedMoves {
    pub(super) fn new(forward: Forward, limits: &Limits) -> Self {
        let (told, listed_max) = (Moved::default(), limits.rejected_listed);
        Self { forward, waiting: BTreeMap::new(), silent: BTreeMap::new(), told, listed_max }
    }

    /// Takes the element of an index on, for the broker at an address.
    pub(super) async fn take(&mut self, url: String, index: u64, text: &str) {
        let waiting = self.waiting.entry(url.clone()).or_default();
        waiting.texts.extend([SEPARATOR].into_iter().chain(text.chars()).chain(['\n']));
        waiting.indices.push(index);
        if waiting.texts.len() >= BATCH_BYTES {
            let full = std::mem::take(waiting);
            self.give_on(&url, full).await;
        }
    }

    /// Gives the rest on, and says what became of all of them.
    pub(super) async fn settle(mut self, limits: &Limits, tally: &mut Tally) {
        for (url, waiting) in std::mem::take(&mut self.waiting) {
            self.give_on(&url, waiting).await;
        }
        tally.told(limits, self.told);
    }

    async fn give_on(&mut self, url: &str, Waiting { texts, indices }: Waiting) {
        if indices.is_empty() {
            return;
        }
        if let Some(problem) = self.silent.get(url).cloned() {
            return self.reject(indices.into_iter().map(|index| (index, &problem)));
        }
        let answer = self.forward.post_sequence(url, "/v1/positions", texts).await;
        let (moved, ended) = match answer {
            Ok(Answer { status: StatusCode::ACCEPTED, body, .. }) => {
                (serde_json::from_slice(&body).unwrap_or_default(), None)
            }
            Ok(Answer { body, .. }) => {
                let problem =
                    serde_json::from_slice(&body).unwrap_or_else(|_| peers::unreadable(url).problem());
                (of_first(&problem), Some(problem))
            }
            Err(refusal) => {
                let problem = refusal.problem();
                self.silent.insert(url.to_owned(), problem.clone());
                (Moved::default(), Some(problem))
            }
        };
        let of_batch = |index: u64| usize::try_from(index).ok().and_then(|index| indices.get(index)).copied();
        let told_count = moved.moved + moved.rejected.len() as u64 + moved.rejected_unlisted;
        let rejected = moved.rejected.iter();
        self.reject(rejected.filter_map(|one| Some((of_batch(one.index)?, &one.problem))));
        self.told.rejected_unlisted += moved.rejected_unlisted;
        self.told.warnings.extend(moved.warnings.into_iter().map(|mut warning| {
            warning.index = warning.index.and_then(of_batch);
            warning
        }));
        self.told.warnings_unlisted += moved.warnings_unlisted;
        // The broker ended the batch: it has not said what became of the rest.
        let rest = indices.get(usize::try_from(told_count).unwrap_or(usize::MAX)..).unwrap_or_default();
        match ended {
            Some(problem) => self.reject(rest.iter().map(|index| (*index, &problem))),
            None => self.told.rejected_unlisted += rest.len() as u64,
        }
    }

    fn reject<'a>(&mut self, elements: impl Iterator<Item = (u64, &'a Problem)>) {
        for (index, problem) in elements {
            if self.told.rejected.len() < self.listed_max {
                self.told.rejected.push(Rejected { index, problem: problem.clone() });
            } else {
                self.told.rejected_unlisted += 1;
            }
        }
    }
}

/// What a problem says of the first elements of a batch that did not come to its end.
fn of_first(problem: &Problem) -> Moved {
    let facts = problem.facts.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let moved = serde_json::Value::Object(facts);
    let number = |name: &str| moved[name].as_u64().unwrap_or_default();
    Moved {
        moved: number("moved"),
        rejected: serde_json::from_value(moved["rejected"].clone()).unwrap_or_default(),
        rejected_unlisted: number("rejected_unlisted"),
        ..Moved::default()
    }
}
