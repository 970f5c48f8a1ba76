//! Surveys: what a change is going to find, looked up ahead of it a little at a time.
//!
//! An installation or a move may have much to look at: every live event, for each filter. A survey does that in slices and changes nothing;
//! between them the tracker goes on. The change itself takes from the survey what is still true, and tests again only the events
//! that have come in the meantime. Its effects are those that it would have had without a survey.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::along::Passage;
use super::known::Known;
use super::nearest::Candidate;
use super::search::{Marks, Range};
use super::standing::{Scene, Standing};
use super::tracker::{Tracker, Watch};
use super::{Fix, Interest, Nearest, Partition};
use crate::geo::Position;
use crate::subscription::{ClientId, Subscription, SubscriptionId};

/// So few events that have come in the meantime are left to the change itself.
const FEW_FRESH: usize = 64;

/// After so many rounds through what has come in the meantime, the change has to do with what there is.
const ROUNDS_MAX: u32 = 8;

/// The number of a subscription that has none yet.
pub(super) const NEW: SubscriptionId = SubscriptionId(u32::MAX);

/// What an installation or a move is going to find. See [`Tracker::survey_installation`] and [`Tracker::survey_move`].
#[derive(Debug)]
pub struct Survey {
    client: ClientId,
    /// Where the client is, and where it is going to be.
    before: Option<Fix>,
    after: Option<Fix>,
    /// What the client is going to pass.
    passage: Option<Passage>,
    /// The subscription that is going to be installed.
    new: Option<Box<Watch>>,
    parts: Vec<Part>,
    /// The part at hand.
    next: usize,
    /// Events announced before that are not news to it.
    since: u64,
    rounds: u32,
    _open: Arc<()>,
}

/// The part of a survey that is about one subscription.
#[derive(Debug)]
struct Part {
    id: SubscriptionId,
    stage: Stage,
    findings: Findings,
}

/// How far a part has come.
#[derive(Debug)]
enum Stage {
    /// At the nearest of a filter, and the events to be tested for it.
    Nearest {
        filter: usize,
        untested: Vec<u32>,
    },
    /// At what is inside and may not be known: all there is, or some.
    Inside(Looking),
    /// At the events whose own area the client enters.
    Entered(Vec<u32>),
    /// At what is known.
    Known(Vec<(u32, Standing)>),
    /// At what found no room before.
    Before(usize),
    Done,
}

/// A search that is interrupted now and then.
#[derive(Debug, Default)]
struct Looking {
    /// Only among these, where there are any.
    among: Option<Vec<u32>>,
    marks: Marks,
    /// The condition and the filter at hand.
    class: Option<u32>,
    filter: usize,
    /// The next filter, as a place among those by condition.
    place: usize,
    /// What is near to the area of the filter at hand and has not been looked at.
    near: Vec<u32>,
}

/// What has been found about one subscription.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Whether all that is inside was looked for, and not only what the last step brings.
    pub(super) looks_at_all: bool,
    found: Vec<u32>,
    /// By which filter what is known is inside, and whether it was so as a member.
    known: HashMap<u32, (bool, Option<u32>), RandomState>,
    /// Of the events whose own area the client enters: whether they are inside.
    entered: HashMap<u32, bool, RandomState>,
    /// Of what was found: whether it was inside before.
    before: HashMap<u32, bool, RandomState>,
    /// Of the filter at hand that counts the nearest: whether it takes an event.
    nearest: HashMap<u32, bool, RandomState>,
    /// By filter that counts the nearest: these, and some more.
    searched: HashMap<usize, Vec<Candidate>, RandomState>,
    /// What has come since, of which nothing here is true.
    fresh: HashSet<u32, RandomState>,
    /// The same since the nearest were searched.
    stale: HashSet<u32, RandomState>,
}

/// The live events announced while surveys are open.
#[derive(Debug, Default)]
pub(super) struct Announced {
    open: Arc<()>,
    numbers: Vec<u32>,
    /// How many were announced before the first of these.
    first: u64,
}

impl Announced {
    pub(super) fn note(&mut self, number: u32) {
        if Arc::strong_count(&self.open) > 1 {
            self.numbers.push(number);
        } else if !self.numbers.is_empty() {
            self.first = self.end();
            self.numbers = Vec::new();
        }
    }

    fn end(&self) -> u64 {
        self.first + self.numbers.len() as u64
    }

    fn since(&self, since: u64) -> HashSet<u32, RandomState> {
        let skipped = usize::try_from(since.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.numbers.iter().skip(skipped).copied().collect()
    }
}

impl Findings {
    fn unless_fresh<T>(&self, number: u32, found: Option<T>) -> Option<T> {
        found.filter(|_| !self.fresh.contains(&number))
    }

    /// Whether the filter at hand, one that counts the nearest, takes an event.
    pub(super) fn takes(&self, number: u32) -> Option<bool> {
        self.nearest.get(&number).copied()
    }

    /// The nearest that a filter takes, and some more; and of which events that may not be true any more.
    pub(super) fn nearest_of(&self, filter: usize) -> Option<(&[Candidate], &HashSet<u32, RandomState>)> {
        Some((self.searched.get(&filter)?, &self.stale))
    }

    /// By which filter an event is inside that is known and stands so, if by any.
    pub(super) fn inside_by(&self, number: u32, standing: Standing) -> Option<Option<u32>> {
        let (was_inside, by) = self.unless_fresh(number, self.known.get(&number).copied())?;
        (was_inside == (standing == Standing::Inside)).then_some(by)
    }

    /// Whether an event is inside whose own area the client enters.
    pub(super) fn is_inside(&self, number: u32) -> Option<bool> {
        self.unless_fresh(number, self.entered.get(&number).copied())
    }

    /// Whether an event was inside before.
    pub(super) fn was_inside(&self, number: u32) -> Option<bool> {
        self.unless_fresh(number, self.before.get(&number).copied())
    }

    /// What was found and is still there, and what has come since.
    pub(super) fn found(&self) -> (impl Iterator<Item = u32>, Vec<u32>) {
        let found = self.found.iter().copied().filter(|number| !self.fresh.contains(number));
        (found, self.fresh.iter().copied().collect())
    }

    fn forget(&mut self, fresh: &HashSet<u32, RandomState>) {
        self.found.retain(|number| !fresh.contains(number));
        self.known.retain(|number, _| !fresh.contains(number));
        self.entered.retain(|number, _| !fresh.contains(number));
        self.before.retain(|number, _| !fresh.contains(number));
        self.stale.extend(fresh);
    }
}

/// What a part looks at.
struct View<'a, P> {
    scene: &'a Scene<P>,
    watch: &'a Watch,
    /// What the subscription knows now.
    known: Option<&'a Known>,
    before: Option<&'a Fix>,
    after: Option<&'a Fix>,
    is_move: bool,
}

impl<P: Clone> Tracker<P> {
    /// Begins a survey for [`install`](Self::install), of a subscription that is going to replace one or is new, of a client that is, or is
    /// going to be, [placed](Self::place) there. Until then the client may not be moved, and none of its subscriptions changed.
    #[must_use]
    pub fn survey_installation(
        &self,
        previous: Option<SubscriptionId>,
        subscription: Subscription,
        nearest: Vec<Nearest>,
        interest: Interest,
        partition: Partition,
    ) -> Survey {
        let after = self.fix(subscription.client).copied();
        let watch = Watch::new(subscription, nearest, interest).within(partition);
        let mut survey = self.survey(watch.client, None, after);
        survey.parts.push(Part::of(&watch, previous.unwrap_or(NEW), true, Vec::new()));
        survey.new = Some(Box::new(watch));
        survey
    }

    /// Begins a survey for [`move_client`](Self::move_client) to a place, in the same way; and for [`reach_along`](Self::reach_along) before
    /// that, where there is a track.
    #[must_use]
    pub fn survey_move(&self, client: ClientId, fix: Fix, track: Option<&[Position]>) -> Survey {
        let held = self.clients.get(client.0 as usize);
        let before = held.and_then(|held| held.fix);
        let mut survey = self.survey(client, before, Some(fix));
        let Some(held) = held else { return survey };
        survey.passage = track.and_then(|track| self.passage(client, track));
        let crosses = |before: &Fix| {
            self.scene.events.crossed(held.partition, &before.position, &fix.position)[0].clone()
        };
        let has_reaches =
            self.scene.events.places(held.partition).is_some_and(|places| places.have_reaches());
        let entered = before.as_ref().filter(|_| has_reaches).map_or_else(Vec::new, crosses);
        for id in &held.subscriptions {
            let Some(watch) = self.watch(*id) else { continue };
            let looks_at_all =
                watch.has_overflowed && watch.is_for_transitions() && watch.room(&self.scene.settings) > 0;
            survey.parts.push(Part::of(watch, *id, looks_at_all, entered.clone()));
        }
        survey
    }

    fn survey(&self, client: ClientId, before: Option<Fix>, after: Option<Fix>) -> Survey {
        Survey {
            client,
            before,
            after,
            passage: None,
            new: None,
            parts: Vec::new(),
            next: 0,
            since: self.announced.end(),
            rounds: 0,
            _open: Arc::clone(&self.announced.open),
        }
    }

    /// Goes on with a survey for as long as `goes_on` says so, which is asked at each event that is tested; says whether nothing is left to
    /// do.
    pub fn go_on(&self, survey: &mut Survey, goes_on: &mut dyn FnMut() -> bool) -> bool {
        if let Some(passage) = &mut survey.passage
            && !self.go_along(survey.client, passage, goes_on)
        {
            return false;
        }
        loop {
            let Some(part) = survey.parts.get_mut(survey.next) else {
                if self.has_all(survey) {
                    return true;
                }
                continue;
            };
            let held = self.watch(part.id).filter(|held| held.client == survey.client);
            let (watch, known) = match &survey.new {
                Some(new) => {
                    let alike = std::mem::discriminant(&new.interest);
                    let kept = held.filter(|held| std::mem::discriminant(&held.interest) == alike);
                    (Some(&**new), kept.map(|held| &held.known))
                }
                None => (held, held.map(|held| &held.known)),
            };
            let Some(watch) = watch else {
                survey.next += 1;
                continue;
            };
            let view = View {
                scene: &self.scene,
                watch,
                known,
                before: survey.before.as_ref(),
                after: survey.after.as_ref(),
                is_move: survey.new.is_none(),
            };
            if !part.go_on(&view, goes_on) {
                return false;
            }
            survey.next += 1;
        }
    }

    /// Whether a survey that has come to its end is up to date enough. Otherwise it goes on with what has come since.
    fn has_all(&self, survey: &mut Survey) -> bool {
        let fresh = self.announced.since(survey.since);
        if fresh.len() <= FEW_FRESH || survey.rounds == ROUNDS_MAX {
            return true;
        }
        survey.since = self.announced.end();
        survey.rounds += 1;
        survey.next = 0;
        if let Some(passage) = &mut survey.passage {
            passage.fresh.extend(&fresh);
        }
        for part in &mut survey.parts {
            part.findings.forget(&fresh);
            let looking = Looking { among: Some(fresh.iter().copied().collect()), ..Looking::default() };
            part.stage = Stage::Inside(looking);
        }
        false
    }

    /// Has the next change, which has to be the one that it was made for, use a survey. One that was made for a client that was somewhere
    /// else is of no use.
    pub fn use_survey(&mut self, survey: Survey) {
        let place = if survey.new.is_some() { survey.after } else { survey.before };
        if place.as_ref() != self.fix(survey.client) {
            return;
        }
        let fresh = self.announced.since(survey.since);
        self.passage = survey.passage.map(|mut passage| {
            passage.fresh.extend(&fresh);
            passage
        });
        self.surveyed = survey.parts.into_iter().map(|part| (part.id, part.findings)).collect();
        for findings in self.surveyed.values_mut() {
            findings.fresh.clone_from(&fresh);
            findings.stale.extend(&fresh);
        }
    }
}

impl Part {
    fn of(watch: &Watch, id: SubscriptionId, looks_at_all: bool, entered: Vec<u32>) -> Self {
        let stage = if watch.counts_nearest() {
            Stage::Nearest { filter: 0, untested: Vec::new() }
        } else {
            Stage::Inside(Looking::default())
        };
        let mut part = Self { id, stage, findings: Findings { looks_at_all, ..Findings::default() } };
        part.findings.entered = entered.into_iter().map(|number| (number, false)).collect();
        part
    }

    /// Says whether it is done.
    fn go_on<P>(&mut self, view: &View<'_, P>, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let Self { stage, findings, .. } = self;
        loop {
            let next = match stage {
                Stage::Nearest { filter, untested } => view.nearest(filter, untested, findings, goes_on),
                Stage::Inside(looking) => view.inside(looking, findings, goes_on),
                Stage::Entered(numbers) => view.entered(numbers, findings, goes_on),
                Stage::Known(known) => view.known(known, findings, goes_on),
                Stage::Before(next) => view.before(next, findings, goes_on),
                Stage::Done => return true,
            };
            match next {
                Some(next) => *stage = next,
                None => return false,
            }
        }
    }
}

/// Each goes on with one stage, and says which is next once nothing is left of it.
impl<P> View<'_, P> {
    fn nearest(
        &self,
        filter: &mut usize,
        untested: &mut Vec<u32>,
        findings: &mut Findings,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Stage> {
        while *filter < self.watch.filters.len() {
            while let Some(number) = untested.pop() {
                let takes = self.watch.takes_as_nearest(self.scene, self.after, *filter, number);
                findings.nearest.insert(number, takes);
                if !goes_on() {
                    return None;
                }
            }
            // What is not tested counts as not taken, so that the search goes too far rather than not far enough. Twice as many each time.
            let most = findings.nearest.len().max(FEW_FRESH);
            let missed = RefCell::new(Vec::new());
            let searched =
                self.watch.rehearse_nearest(self.scene, self.after, *filter, findings, (&missed, most));
            *untested = missed.into_inner();
            if untested.is_empty() {
                findings.nearest = HashMap::default();
                findings.searched.extend(searched.map(|searched| (*filter, searched)));
                *filter += 1;
                if !goes_on() {
                    return None;
                }
            }
        }
        Some(Stage::Inside(Looking::default()))
    }

    fn range(&self, looks_at_all: bool) -> Option<Range<'_>> {
        match self.after {
            after if looks_at_all => Some(Range::Inside(after)),
            after => Some(Range::News { before: self.before, after: after? }),
        }
    }

    fn inside(
        &self,
        looking: &mut Looking,
        findings: &mut Findings,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Stage> {
        let Some(range) = self.range(findings.looks_at_all) else { return Some(Stage::Done) };
        let plain = self.watch.plain();
        if looking.class.is_none() {
            looking.marks.begin(self.scene.events.numbers_end(), self.watch.filters.len() + 1);
        }
        loop {
            while let Some(number) = looking.near.pop() {
                let filter = &self.watch.filters[looking.filter];
                let found = &mut findings.found;
                self.watch.look(self.scene, &range, filter, number, &mut looking.marks, found);
                if !goes_on() {
                    return None;
                }
            }
            let Some((class, index)) = plain.get(looking.place).copied() else {
                // What has come in the meantime and is entered or known is tested by the change.
                let is_first = looking.among.is_none();
                let entered = || Stage::Entered(findings.entered.keys().copied().collect());
                return Some(if is_first { entered() } else { Stage::Done });
            };
            if looking.class != Some(class) {
                looking.class = Some(class);
                looking.marks.next_round();
            }
            looking.filter = index as usize;
            let (near, filter) = (&mut looking.near, &self.watch.filters[looking.filter]);
            let among = looking.among.as_deref();
            let is_all = self.watch.near(self.scene, &range, filter, among, |number| near.push(number));
            let of_class = plain[looking.place..].iter().take_while(|(other, _)| *other == class).count();
            looking.place += if is_all { of_class } else { 1 };
        }
    }

    fn entered(
        &self,
        numbers: &mut Vec<u32>,
        findings: &mut Findings,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Stage> {
        while let Some(number) = numbers.pop() {
            let live = self.scene.events.get(number);
            let is_inside =
                live.is_some_and(|live| self.watch.is_inside(self.scene, self.after, &live.event, None));
            findings.entered.insert(number, is_inside);
            if !goes_on() {
                return None;
            }
        }
        let looks_at_known = self.watch.is_for_transitions();
        let known = self.known.filter(|_| looks_at_known);
        Some(Stage::Known(known.map_or_else(Vec::new, |known| known.iter().collect())))
    }

    fn known(
        &self,
        known: &mut Vec<(u32, Standing)>,
        findings: &mut Findings,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Stage> {
        while let Some((number, standing)) = known.pop() {
            if let Some(live) = self.scene.events.get(number) {
                let hint = self.known.filter(|_| self.is_move).and_then(|known| known.hint(number));
                let by = self.watch.inside_by_hint(self.scene, self.after, &live.event, Some(standing), hint);
                findings.known.insert(number, (standing == Standing::Inside, by));
            }
            if !goes_on() {
                return None;
            }
        }
        Some(Stage::Before(0))
    }

    fn before(
        &self,
        next: &mut usize,
        findings: &mut Findings,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Stage> {
        if !(self.is_move && self.watch.has_overflowed && self.watch.is_for_transitions()) {
            return Some(Stage::Done);
        }
        while let Some(number) = findings.found.get(*next) {
            let live = self.scene.events.get(*number);
            let was_inside =
                live.is_some_and(|live| self.watch.is_inside(self.scene, self.before, &live.event, None));
            findings.before.insert(*number, was_inside);
            *next += 1;
            if !goes_on() {
                return None;
            }
        }
        Some(Stage::Done)
    }
}
