//! Answers a publish when every stream that it falls into has it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::writer::{Done, Outcome, PushError, Writer};
use super::{Stream, Timing};
use crate::log::{Append, AppendError, Appended, Identity};
use crate::record::Incarnation;

/// All that a broker appends to streams of events. Events of one stream keep the order in which they were published; those of several
/// streams do not.
#[derive(Debug)]
pub struct Publisher {
    incarnation: Incarnation,
    timing: Timing,
    writers: BTreeMap<Stream, Writer>,
    /// The number of the last publish.
    published: u64,
    publishes: HashMap<u64, Publish>,
    outcomes: VecDeque<(u64, Outcome)>,
    markers: VecDeque<(Stream, Option<Identity>)>,
}

#[derive(Debug)]
struct Publish {
    /// How many of its events have no outcome.
    left: usize,
    outcome: Option<Outcome>,
}

impl Publisher {
    /// The publisher of a process, in which nothing waits. No two processes have the same incarnation.
    #[must_use]
    pub fn new(incarnation: Incarnation, timing: Timing) -> Self {
        Self {
            incarnation,
            timing,
            writers: BTreeMap::new(),
            published: 0,
            publishes: HashMap::new(),
            outcomes: VecDeque::new(),
            markers: VecDeque::new(),
        }
    }

    /// Takes the events of a publish, each with its stream, and returns the number of the publish. None is taken where a stream does not
    /// take its part.
    ///
    /// # Errors
    /// Any [`PushError`] of a stream.
    pub fn publish(&mut self, now: Duration, events: Vec<(Stream, Bytes)>) -> Result<u64, PushError> {
        let mut sizes = BTreeMap::<_, Vec<_>>::new();
        for (stream, event) in &events {
            sizes.entry(*stream).or_default().push(event.len());
        }
        sizes.into_iter().try_for_each(|(stream, sizes)| self.writer(stream).check(now, sizes))?;
        self.published += 1;
        let publish = self.published;
        if events.is_empty() {
            self.outcomes.push_back((publish, Outcome::Acknowledged));
            return Ok(publish);
        }
        self.publishes.insert(publish, Publish { left: events.len(), outcome: None });
        for (stream, event) in events {
            self.writer(stream).take(publish, event);
        }
        Ok(publish)
    }

    /// Asks for a marker in a stream.
    pub fn mark(&mut self, stream: Stream) {
        self.writer(stream).mark();
    }

    /// The next append, if one is due.
    pub fn poll(&mut self, now: Duration) -> Option<(Stream, Append)> {
        let mut writers = self.writers.iter_mut();
        let next = writers.find_map(|(stream, writer)| writer.poll(now).map(|append| (*stream, append)));
        self.collect();
        next
    }

    /// Takes the answer to the last append to a stream.
    pub fn answer(&mut self, now: Duration, stream: Stream, outcome: Result<Appended, AppendError>) {
        self.writer(stream).answer(now, outcome);
        self.collect();
    }

    /// A publish that all its streams are done with, once. [`Outcome::Unknown`] is one of which some events may be in the log.
    pub fn take_outcome(&mut self) -> Option<(u64, Outcome)> {
        self.outcomes.pop_front()
    }

    /// A marker that is done, once: see [`Done::Marker`].
    pub fn take_marker(&mut self) -> Option<(Stream, Option<Identity>)> {
        self.markers.pop_front()
    }

    fn writer(&mut self, stream: Stream) -> &mut Writer {
        self.writers.entry(stream).or_insert_with(|| Writer::new(self.incarnation, self.timing))
    }

    fn collect(&mut self) {
        let done = |(stream, writer): (&Stream, &mut Writer)| {
            let stream = *stream;
            std::iter::from_fn(|| writer.take_done()).map(move |done| (stream, done)).collect::<Vec<_>>()
        };
        let done: Vec<_> = self.writers.iter_mut().flat_map(done).collect();
        for (stream, done) in done {
            match done {
                Done::Marker(identity) => self.markers.push_back((stream, identity)),
                Done::Events { publishes, outcome } => {
                    publishes.into_iter().for_each(|publish| self.finish(publish, outcome));
                }
            }
        }
    }

    fn finish(&mut self, number: u64, outcome: Outcome) {
        let Some(publish) = self.publishes.get_mut(&number) else { return };
        let so_far = *publish.outcome.get_or_insert(outcome);
        let outcome = if so_far == outcome { outcome } else { Outcome::Unknown };
        (publish.left, publish.outcome) = (publish.left - 1, Some(outcome));
        if publish.left == 0 {
            self.publishes.remove(&number);
            self.outcomes.push_back((number, outcome));
        }
    }
}
