//! A check at work: its sets, and the engine that evaluates it.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::check::Check;
use crate::engine::{Engine, Evaluation, Kind};
use crate::links::{Binding, Bounds, Link, Overflow};
use crate::sets::{Arrival, Held, Sets, Slot};

/// A check that takes events in and tells violations.
///
/// `P` is what you want back for each event that a link binds: your own id, or the whole document.
pub struct Checker<P> {
    check: Arc<Check>,
    sets: Sets,
    engine: Box<dyn Engine>,
    /// What belongs to each held event, by slot.
    payloads: Vec<Option<P>>,
    evaluations: u64,
}

/// What an event that came into a set brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the check is violated.
    pub violated: bool,
    /// Links that were not there at the evaluation before: where there are some, this event brought a violation.
    pub told: Vec<Link>,
}

impl<P> Checker<P> {
    /// A check over no events.
    #[must_use]
    pub fn new(check: Arc<Check>, kind: Kind, bounds: Bounds) -> Self {
        let engine = kind.engine(&check, bounds);
        Self::with_engine(check, engine)
    }

    /// A check over no events, evaluated by an engine that was made for it.
    #[must_use]
    pub fn with_engine(check: Arc<Check>, engine: Box<dyn Engine>) -> Self {
        Self { sets: Sets::new(&check), engine, payloads: Vec::new(), evaluations: 0, check }
    }

    /// Takes an event in and evaluates; `None` where no set takes it.
    ///
    /// # Errors
    /// [`Overflow`]. The check goes on with empty sets then, as a new one.
    pub fn take(&mut self, payload: P, arrival: &Arrival) -> Result<Option<Outcome>, Overflow> {
        if !self.sets.admit(&self.check, arrival) {
            return Ok(None);
        }
        self.evaluations += 1;
        let slot = self.sets.changes().added.expect("the event was added");
        self.put(slot, payload);
        let Evaluation { violated, told } = self.evaluate()?;
        Ok(Some(Outcome { violated, told }))
    }

    /// Takes events in, and calls `each` after each of them as if it had been taken in by itself: with this, while it still knows the events of
    /// that outcome, and with what [`Checker::take`] answers. An engine that takes several changes at once evaluates them at once. Where `each`
    /// breaks, no more events are asked for; some may have been taken in already.
    pub fn take_all(
        &mut self,
        events: impl IntoIterator<Item = (P, Arrival)>,
        mut each: impl FnMut(&Self, Result<Option<Outcome>, Overflow>) -> ControlFlow<()>,
    ) {
        let mut events = events.into_iter();
        let steps_max = self.engine.steps_max();
        if steps_max == 1 {
            for (payload, arrival) in events {
                let taken = self.take(payload, &arrival);
                if each(self, taken).is_break() {
                    return;
                }
            }
            return;
        }
        loop {
            let batch: Vec<_> = events.by_ref().take(steps_max).collect();
            if batch.is_empty() || self.take_batch(batch, &mut each).is_break() {
                return;
            }
        }
    }

    fn take_batch(
        &mut self,
        batch: Vec<(P, Arrival)>,
        each: &mut impl FnMut(&Self, Result<Option<Outcome>, Overflow>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let ahead = self.sets.ahead;
        let mut steps = Vec::new();
        let mut refused = Vec::new();
        let mut arrivals = Vec::with_capacity(batch.len());
        for (payload, arrival) in batch {
            match self.sets.admit_more(&self.check, &arrival) {
                Some(step) => {
                    self.put(step.added, payload);
                    arrivals.push((arrival, true));
                    steps.push(step);
                }
                None => {
                    arrivals.push((arrival, false));
                    refused.push(payload);
                }
            }
        }
        if steps.is_empty() {
            return arrivals.iter().try_for_each(|_| each(self, Ok(None)));
        }
        if let Some(evaluations) = self.engine.evaluate_all(&self.sets, &steps) {
            let mut evaluations = evaluations.into_iter();
            self.evaluations += steps.len() as u64;
            let told = arrivals.iter().try_for_each(|(_, is_taken)| {
                let evaluation = if *is_taken { evaluations.next() } else { None };
                each(self, Ok(evaluation.map(|Evaluation { violated, told }| Outcome { violated, told })))
            });
            self.settle();
            return told;
        }
        let taken = steps.iter().map(|step| self.payloads[step.added as usize].take());
        let mut taken = taken.collect::<Vec<_>>().into_iter().flatten();
        let mut refused = refused.into_iter();
        self.sets.rewind(&steps);
        self.sets.ahead = ahead;
        for (arrival, is_taken) in arrivals {
            let payload = if is_taken { taken.next() } else { refused.next() };
            let outcome = self.take(payload.expect("each event has one"), &arrival);
            each(self, outcome)?;
        }
        ControlFlow::Continue(())
    }

    fn put(&mut self, slot: Slot, payload: P) {
        let slot = slot as usize;
        if self.payloads.len() <= slot {
            self.payloads.resize_with(slot + 1, || None);
        }
        self.payloads[slot] = Some(payload);
    }

    fn settle(&mut self) {
        let payloads = &mut self.payloads;
        self.sets.settle_by(|slot| payloads[slot as usize] = None);
    }

    /// Takes the event that came last out of all sets again, so that later events are not compared with it. Its links count
    /// as never told. The event clock keeps its time.
    ///
    /// # Errors
    /// [`Overflow`]. The check goes on with empty sets then.
    pub fn retract(&mut self) -> Result<(), Overflow> {
        self.sets.retract();
        self.evaluate().map(drop)
    }

    /// Does what [`retract`](Self::retract) does with an event that came some time ago; whether a set held one that is wanted.
    ///
    /// # Errors
    /// [`Overflow`]. The check goes on with empty sets then.
    pub fn withdraw(&mut self, wanted: impl Fn(&P) -> bool) -> Result<bool, Overflow> {
        let is_wanted = |payload: &Option<P>| payload.as_ref().is_some_and(&wanted);
        let slot = self.payloads.iter().position(is_wanted).and_then(|slot| slot.try_into().ok());
        let Some(slot) = slot.filter(|slot| self.sets.find(*slot).is_some_and(Held::is_held)) else {
            return Ok(false);
        };
        self.sets.remove(slot);
        self.evaluate()?;
        Ok(true)
    }

    fn evaluate(&mut self) -> Result<Evaluation, Overflow> {
        let evaluated = self.engine.evaluate(&self.sets);
        if evaluated.is_ok() {
            self.settle();
        } else {
            self.clear();
        }
        evaluated
    }

    /// Empties the sets and forgets what was told.
    pub fn clear(&mut self) {
        self.sets = Sets::new(&self.check);
        self.engine.clear();
        self.payloads = Vec::new();
    }

    /// The check.
    #[must_use]
    pub fn check(&self) -> &Arc<Check> {
        &self.check
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// All links at the last evaluation.
    #[must_use]
    pub fn links(&self) -> Vec<Link> {
        self.engine.links(&self.sets)
    }

    /// The sets.
    #[must_use]
    pub fn sets(&self) -> &Sets {
        &self.sets
    }

    /// The event that a binding of the last outcome names; `None` for one of an older outcome whose event is gone.
    #[must_use]
    pub fn event(&self, binding: &Binding) -> Option<(&Held, &P)> {
        let held = self.sets.find(binding.slot).filter(|held| held.number == binding.number)?;
        Some((held, self.payloads.get(binding.slot as usize)?.as_ref()?))
    }

    /// All events that some set holds, in the order in which they came. A new checker that takes them in, whatever it tells, goes on where
    /// this one is.
    #[must_use]
    pub fn held(&self) -> Vec<(&Held, &P)> {
        let slots =
            self.payloads.iter().enumerate().filter_map(|(slot, payload)| Some((slot, payload.as_ref()?)));
        let held =
            slots.filter_map(|(slot, payload)| Some((self.sets.find(slot.try_into().ok()?)?, payload)));
        let mut held: Vec<_> = held.filter(|(held, _)| held.is_held()).collect();
        held.sort_unstable_by_key(|(held, _)| held.number);
        held
    }

    /// How many events came into a set.
    #[must_use]
    pub fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// How many events were refused since their own time is further ahead of their arrival than
    /// [`AHEAD_MS_MAX`](crate::AHEAD_MS_MAX).
    #[must_use]
    pub fn ahead(&self) -> u64 {
        self.sets.ahead
    }

    /// The memory that sets and engine take, events included, payloads not. It walks over what the engine remembers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.sets.bytes() + self.engine.bytes() + self.payloads.capacity() * size_of::<Option<P>>()
    }
}
