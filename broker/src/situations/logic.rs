//! What a kind of situations has to say of itself: how its documents are read, and what is done with the inputs.

use std::sync::Arc;

use matcher::event::Event;
use wire::ExplainedObject;

use super::{Finding, GatePlan, Verdict};
use crate::ingest::feature::{FeatureReader, Observed};
use crate::model::delivery::{Delivery, Transition};
use crate::model::error::ApiError;
use crate::model::event::Body;

/// An event that came to a situation.
#[derive(Debug)]
pub(crate) struct Input {
    /// Its text, for situations about live objects.
    pub(crate) text: Option<Box<str>>,
    /// Whether its object has left all filters, or is not live any more. For situations about live objects.
    pub(crate) is_exit: bool,
    pub(crate) event: Arc<Event>,
    pub(crate) id: Arc<str>,
    /// Short name of its publisher's confinement, if there is one. For situations about live objects.
    pub(crate) within: Option<Box<str>>,
    /// Its number in the situation's session.
    pub(crate) offset: u64,
    /// Its `time`, and when it arrived, in Unix milliseconds.
    pub(crate) time_ms: i64,
    pub(crate) arrived_ms: i64,
    /// How many times it was derived from other events.
    pub(crate) depth: u32,
    pub(crate) key: Option<Arc<str>>,
    /// Whether it stays live.
    pub(crate) is_live: bool,
}

impl Input {
    /// Reads an event as it is delivered.
    pub(super) fn of(features: &FeatureReader, body: &Body, offset: u64) -> Result<Self, ApiError> {
        Ok(Self::observed(&features.observe(&body.text)?, body.arrived_ms().cast_signed(), offset))
    }

    /// Reads what is delivered about a live object.
    pub(super) fn about_object(features: &FeatureReader, delivery: &Delivery) -> Result<Self, ApiError> {
        let text = Some(delivery.body.text.clone());
        let is_exit = delivery.transition == Some(Transition::Exit);
        let within = delivery.body.within.clone();
        Ok(Self { text, is_exit, within, ..Self::of(features, &delivery.body, delivery.offset)? })
    }

    /// An event as it was read.
    pub(super) fn observed(observed: &Observed, arrived_ms: i64, offset: u64) -> Self {
        let Observed { event, id, time_ms, has_time: _, depth, key, is_live } = observed;
        Self {
            text: None,
            is_exit: false,
            event: Arc::clone(event),
            id: Arc::clone(id),
            within: None,
            offset,
            time_ms: *time_ms,
            arrived_ms,
            depth: *depth,
            key: key.clone(),
            is_live: *is_live,
        }
    }
}

/// What another run decided of an input, which its findings followed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decided {
    /// Nothing: bounds decide now.
    Nothing,
    /// It was taken in without these parts of it, whatever the bounds are now.
    Taken { without: Parts },
}

impl Decided {
    /// The parts that were left out.
    pub(super) fn without(self) -> Parts {
        match self {
            Self::Nothing => 0,
            Self::Taken { without } => without,
        }
    }
}

/// Parts of an input, a bit each: the facts that it becomes, in the order of the document. A candidate for groups has one part.
pub(crate) type Parts = u64;

/// What a situation does with its inputs, in their order. The same inputs make the same findings.
pub(crate) trait Logic: Send {
    /// Takes an input. What is found goes to `findings`.
    ///
    /// # Errors
    /// Why it cannot go on: then it has to begin anew.
    fn take(&mut self, input: Arc<Input>, findings: &mut Vec<Finding>) -> Result<(), String>;

    /// How many of the inputs to come it evaluates at once; 0 where it takes each by itself.
    fn ahead_max(&self) -> usize {
        0
    }

    /// Evaluates the next inputs at once. Each comes to [`take`](Self::take) afterwards, in their order, unless it begins anew before.
    fn look_ahead(&mut self, _inputs: &[Arc<Input>]) {}

    /// Says what another run decided of the input to come.
    fn decided(&mut self, _decided: Decided) {}

    /// The parts of the last input that were left out for a bound. Another run has to leave them out as well.
    fn left_out(&mut self) -> Parts {
        0
    }

    /// Takes an event that is held until the verdict is known; `None` where too many are under way. The same event comes to
    /// [`take`](Self::take) when it was published. Only what has a gate is asked.
    ///
    /// # Errors
    /// As of [`take`](Self::take).
    fn judge(&mut self, _input: &Arc<Input>) -> Result<Option<Verdict>, String> {
        Ok(None)
    }

    /// Says of an event what [`judge`](Self::judge) would, and changes nothing; `None` where that would cost too much.
    fn rehearse(&self, _input: &Arc<Input>) -> Option<Verdict> {
        None
    }

    /// Forgets an event that was judged.
    ///
    /// # Errors
    /// As of [`take`](Self::take).
    fn withdraw(&mut self, _input: &Arc<Input>) -> Result<(), String> {
        Ok(())
    }

    /// Tells the end of what was told and lasts, before it begins anew after the delivery of that offset.
    fn end(&mut self, _offset: u64, _findings: &mut Vec<Finding>) {}

    /// What it knows, with the note that it is about to end, where it would tell an end of what lasts. After a restart it tells the same one.
    fn ending(&mut self) -> Option<Box<[u8]>> {
        None
    }

    /// Whether what was restored has that note.
    fn is_ending(&self) -> bool {
        false
    }

    /// Why a live object is in groups or in none; `None` where there is no such candidate.
    fn why(&self, _object: &str) -> Option<ExplainedObject> {
        None
    }

    /// What it holds now, where that has changed since it was asked last.
    fn standing(&mut self) -> Option<Standing> {
        None
    }

    /// The offset of the oldest input that is still needed; `None` where none is.
    fn needs(&self) -> Option<u64>;

    /// What it knows, where that is to be kept now, so that the inputs up to here are needed no more. It goes on as one does to which
    /// [`restore`](Self::restore) gives that.
    fn state(&mut self, _is_wanted: bool) -> Option<Box<[u8]>> {
        None
    }

    /// Goes on from what was kept.
    ///
    /// # Errors
    /// Why it cannot.
    fn restore(&mut self, _state: &[u8]) -> Result<(), String> {
        Err("it keeps nothing".to_owned())
    }

    /// What went wrong with the last input, where it went on without that.
    fn problem(&mut self) -> Option<String> {
        None
    }

    /// Constraints in its store, where it has one.
    fn stored(&self) -> Option<u64> {
        None
    }

    /// How many inputs were left out, for they are dated too far ahead.
    fn ahead(&self) -> u64;

    /// How many evaluations the inputs caused.
    fn evaluations(&self) -> u64;

    /// Name of the engine at work.
    fn engine(&self) -> &'static str;

    /// The memory that it takes, by estimate. It may walk over all that it holds.
    fn bytes(&self) -> usize;
}

/// What a situation about live objects holds.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// Candidates and consistent candidates of each role.
    pub(crate) counts: Vec<(Arc<str>, groups::matching::Count)>,
    /// The reported groups, in the order of the ranking.
    pub(crate) groups: Vec<groups::matching::Group>,
}

/// A document that was read.
pub(crate) struct Plan {
    /// Its normalised form, a JSON object.
    pub(crate) document: String,
    /// The filters of the inputs, as a subscription has them.
    pub(crate) filters: Vec<String>,
    /// Whether its inputs are live objects: those that are there when it begins as well, and exits.
    pub(crate) is_about_objects: bool,
    /// Comparisons that one event that comes costs, by estimate.
    pub(crate) comparisons: f64,
    /// Makes what is done with the inputs, at its beginning.
    pub(crate) begin: Box<dyn Fn() -> Box<dyn Logic> + Send + Sync>,
    /// The gate before which events wait, if it has one.
    pub(crate) gate: Option<GatePlan>,
}
