//! What is known of something that others change at times that are known to lie between two instants.

use std::time::Instant;

/// A stretch of time; without an end it goes on.
pub(crate) type Span = (Instant, Option<Instant>);

/// Values one after the other. A change takes effect between when it was asked for and when that was answered.
#[derive(Clone, Debug)]
pub(crate) struct Timeline<T> {
    changes: Vec<Change<T>>,
}

#[derive(Clone, Debug)]
struct Change<T> {
    sent: Instant,
    acked: Option<Instant>,
    value: T,
}

impl<T: Copy> Timeline<T> {
    /// Something that is so since then.
    pub(crate) fn new(value: T, since: Instant) -> Self {
        Self { changes: vec![Change { sent: since, acked: Some(since), value }] }
    }

    /// Another value is asked for.
    pub(crate) fn send(&mut self, value: T) {
        self.changes.push(Change { sent: Instant::now(), acked: None, value });
    }

    /// The last change is answered.
    pub(crate) fn ack(&mut self) {
        self.last_mut().acked = Some(Instant::now());
    }

    /// The last value, be it answered or not.
    pub(crate) fn last(&self) -> T {
        self.changes.last().expect("there is always one").value
    }

    /// The values that may have been in force some time in a stretch.
    pub(crate) fn during(&self, stretch: Span) -> Vec<T> {
        let perhaps = self.perhaps().filter(|(span, _)| overlap(&[*span, stretch]).is_some());
        perhaps.map(|(_, value)| value).collect()
    }

    /// When each change took effect, some time in it.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (Span, T)> {
        self.changes.iter().map(|change| ((change.sent, change.acked), change.value))
    }

    /// When each value may have been in force.
    pub(crate) fn perhaps(&self) -> impl Iterator<Item = (Span, T)> {
        self.changes.iter().enumerate().map(|(idx, change)| {
            let end = self.changes.get(idx + 1).and_then(|next| next.acked);
            ((change.sent, end), change.value)
        })
    }

    /// When each value was certainly in force.
    pub(crate) fn certain(&self) -> impl Iterator<Item = (Span, T)> {
        self.changes.iter().enumerate().filter_map(|(idx, change)| {
            let end = self.changes.get(idx + 1).map(|next| next.sent);
            Some(((change.acked?, end), change.value))
        })
    }

    /// Forgets all but the last value.
    pub(crate) fn forget(&mut self) {
        self.changes.drain(..self.changes.len() - 1);
    }

    fn last_mut(&mut self) -> &mut Change<T> {
        self.changes.last_mut().expect("there is always one")
    }
}

/// The time that several stretches share; `None` where there is none.
pub(crate) fn overlap(spans: &[Span]) -> Option<Span> {
    let from = spans.iter().map(|span| span.0).max()?;
    let to = spans.iter().filter_map(|span| span.1).min();
    to.is_none_or(|to| from <= to).then_some((from, to))
}
