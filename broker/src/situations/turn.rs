//! A turn of a situation: it takes entries of its session in, for some time, on a thread beside those that serve everybody.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use matcher::live::Cause;

use super::share::Share;
use super::{Decided, Finding, Input, Logic, Situation, Stage};
use crate::ingest::feature::FeatureReader;
use crate::ingest::subscription::quoted;
use crate::model::delivery::{Delivery, Entry};
use crate::outbox::Log;
use crate::store::Decision;

/// Time after which others have a turn; where events are held, their publishers.
const TURN: Duration = Duration::from_millis(50);
const TURN_OF_GATE: Duration = Duration::from_millis(1);

/// The ids of its subscriptions, as JSON.
#[derive(Clone)]
pub(super) struct Names {
    events: [String; 2],
    exits: String,
}

impl Names {
    pub(super) fn of(situation: &Situation) -> Self {
        let events = [quoted(&situation.version), quoted(&situation.again())];
        Self { events, exits: quoted(&situation.exits()) }
    }

    /// Whether a delivery is an input.
    fn are_of(&self, delivery: &Delivery, is_about_objects: bool) -> bool {
        let has = |name: &str| delivery.subscriptions.as_slice().iter().any(|one| **one == *name);
        match delivery.transition {
            None => {
                self.events.iter().any(|name| has(name))
                    && (is_about_objects || delivery.cause == Cause::Published)
            }
            Some(_) => has(&self.exits),
        }
    }

    /// The next inputs, at most `max` and up to the first that is lost. They are no live objects.
    fn coming(&self, features: &FeatureReader, entries: &[Entry], max: usize) -> Vec<Arc<Input>> {
        fn delivery(entry: &Entry) -> Option<&Delivery> {
            match entry {
                Entry::Delivery(delivery) => Some(delivery),
                Entry::Gap(_) | Entry::Answer(_) => None,
            }
        }
        let coming = entries.iter().map_while(delivery).filter(|one| self.are_of(one, false));
        let read = coming.filter_map(|one| Input::of(features, &one.body, one.offset).ok());
        read.take(max).map(Arc::new).collect()
    }
}

/// What is left of the logic after a turn.
pub(super) struct Evaluated {
    pub(super) logic: Box<dyn Logic>,
    /// Whether it began anew, and is to get all that is live once more. What knew too much would soon know as much again.
    pub(super) is_anew: bool,
    /// What bounds decided: a restart would not decide that again, and has to know it before what follows is published.
    pub(super) decisions: Vec<(u64, Decision)>,
    pub(super) findings: Vec<Finding>,
    pub(super) last: u64,
    /// Bytes of what was taken in.
    pub(super) bytes: usize,
    /// Entries that were not taken in yet.
    pub(super) rest: std::vec::IntoIter<Entry>,
    /// What the logic knows, where that is to be kept.
    pub(super) state: Option<Box<[u8]>>,
    /// Memory that the logic takes, and how long it took to find that, where that was to be done.
    pub(super) measured: Option<(usize, Duration)>,
}

/// A turn, and what is known before it.
pub(super) struct Turn {
    pub(super) stage: Arc<Stage>,
    pub(super) situation: Arc<Situation>,
    /// What it takes of its tenant's share.
    pub(super) share: Arc<Share>,
    pub(super) names: Names,
    /// The last input that is in the state that was kept.
    pub(super) kept_up_to: u64,
    /// The last input whose findings were dealt out before.
    pub(super) replayed_up_to: u64,
    /// What bounds decided before.
    pub(super) decisions: Vec<(u64, Decision)>,
}

/// Inputs that were evaluated ahead: up to an offset, and how long each took.
struct Ahead {
    up_to: u64,
    each: Duration,
}

impl Turn {
    /// Takes entries in until its time is over, and says what is left.
    pub(super) fn take(
        self,
        logic: Box<dyn Logic>,
        rest: std::vec::IntoIter<Entry>,
        is_late: bool,
        is_measured: bool,
    ) -> Evaluated {
        let began = Instant::now();
        let turn_max = if self.situation.plan.gate.is_some() { TURN_OF_GATE } else { TURN };
        let mut taken = Evaluated {
            logic,
            is_anew: false,
            decisions: Vec::new(),
            findings: Vec::new(),
            last: 0,
            bytes: 0,
            rest,
            state: None,
            measured: None,
        };
        let ahead = self.look_ahead(&mut taken);
        // What was evaluated ahead is taken in, whatever the time.
        while (began.elapsed() < turn_max || taken.last < ahead.up_to)
            && let Some(entry) = taken.rest.next()
        {
            match entry {
                // It knows of them, and has not acknowledged them yet.
                Entry::Gap(gap) if gap.to <= self.kept_up_to => taken.last = gap.to,
                Entry::Delivery(delivery) if delivery.offset <= self.kept_up_to => {
                    taken.last = delivery.offset;
                }
                Entry::Gap(gap) => {
                    taken.last = gap.to;
                    self.begin_anew(&mut taken, &format!("inputs were lost ({})", gap.reason.text()));
                }
                Entry::Delivery(delivery) => {
                    taken.last = delivery.offset;
                    taken.bytes += Log::kept_bytes_of(&delivery);
                    self.take_delivery(&mut taken, &delivery, &ahead);
                }
                Entry::Answer(_) => {}
            }
        }
        let (logic, measuring) = (&mut taken.logic, Instant::now());
        taken.measured = is_measured.then(|| (logic.bytes(), measuring.elapsed()));
        taken.state = logic.state(taken.is_anew || is_late);
        self.situation.figures.note_stored(logic.stored());
        if let Some(standing) = logic.standing() {
            self.situation.figures.note_standing(standing);
        }
        self.share.pay(Instant::now(), began.elapsed());
        taken
    }

    /// Evaluates the inputs to come at once, where the logic does that.
    fn look_ahead(&self, Evaluated { logic, rest, .. }: &mut Evaluated) -> Ahead {
        let began = Instant::now();
        let coming = self.names.coming(&self.stage.host.accepted, rest.as_slice(), logic.ahead_max());
        let before = logic.ahead();
        logic.look_ahead(&coming);
        let count = logic.ahead() - before;
        if count > 0 {
            self.situation.figures.note_ahead(count, &format!("{count} of {} events", coming.len()));
        }
        let each = began.elapsed() / u32::try_from(coming.len().max(1)).unwrap_or(u32::MAX);
        Ahead { up_to: coming.last().map_or(0, |input| input.offset), each }
    }

    /// Takes a delivery in, if it is an input.
    fn take_delivery(&self, taken: &mut Evaluated, delivery: &Delivery, ahead: &Ahead) {
        let Self { stage, situation, .. } = self;
        let (features, figures) = (&stage.host.accepted, &situation.figures);
        let is_about_objects = situation.plan.is_about_objects;
        if !self.names.are_of(delivery, is_about_objects) {
            return;
        }
        let input = if is_about_objects {
            Input::about_object(features, delivery)
        } else {
            Input::of(features, &delivery.body, delivery.offset)
        };
        let Ok(input) = input else { return };
        let Some(decided) = self.decided(delivery.offset) else {
            return self.begin_anew(taken, "a bound was passed before the restart");
        };
        let logic = &mut taken.logic;
        let id = Arc::clone(&input.id);
        let (began, evaluations, dated_ahead) = (Instant::now(), logic.evaluations(), logic.ahead());
        logic.decided(decided);
        let outcome = logic.take(Arc::new(input), &mut taken.findings);
        figures.inputs.fetch_add(1, Ordering::Relaxed);
        let evaluations = logic.evaluations() - evaluations;
        if evaluations > 0 || situation.plan.gate.is_none() {
            let before = if taken.last <= ahead.up_to { ahead.each } else { Duration::ZERO };
            figures.took(began.elapsed() + before, logic.engine());
        }
        figures.evaluations.fetch_add(evaluations, Ordering::Relaxed);
        if logic.ahead() > dated_ahead {
            figures.note_ahead(1, &format!("event {id}"));
        }
        if let Some(problem) = logic.problem() {
            figures.dropped.fetch_add(1, Ordering::Relaxed);
            figures.problem(problem);
        }
        if let Err(why) = outcome {
            self.begin_anew(taken, &why);
            taken.decisions.push((delivery.offset, Decision::Anew));
            return;
        }
        let left_out = logic.left_out();
        if left_out != 0 && decided == Decided::Nothing {
            taken.decisions.push((delivery.offset, Decision::LeftOut(left_out)));
        }
    }

    /// What was decided before of an input; `None` where the situation began anew with it.
    fn decided(&self, offset: u64) -> Option<Decided> {
        let decided_up_to = self.decisions.last().map_or(0, |(offset, _)| *offset).max(self.replayed_up_to);
        let known = self.decisions.binary_search_by_key(&offset, |(offset, _)| *offset);
        match known.map(|index| self.decisions[index].1) {
            Ok(Decision::Anew) => None,
            Ok(Decision::LeftOut(without)) => Some(Decided::Taken { without }),
            Err(_) if offset <= decided_up_to => Some(Decided::Taken { without: 0 }),
            Err(_) => Some(Decided::Nothing),
        }
    }

    /// Tells the end of what lasts, and begins anew.
    fn begin_anew(&self, taken: &mut Evaluated, why: &str) {
        taken.is_anew = true;
        taken.logic.end(taken.last, &mut taken.findings);
        taken.logic = self.situation.anew(why);
    }
}
