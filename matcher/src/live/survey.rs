//! Surveys: what a change is going to find, looked up ahead of it a little at a time.
//!
//! An installation or a move may have much to look at: every live event, for each filter. A survey does that in slices and changes nothing;
//! between them the tracker goes on. The change itself takes from the survey what is still true, and tests again only the events
//! that have come in the meantime. Its effects are those that it would have had without a survey.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fixedbitset::FixedBitSet;
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
use crate::violated;

/// Events that came in the meantime are left to the change itself where they are no more than this.
const FEW_FRESH: usize = 64;

/// After this many rounds through what has come in the meantime, the change has to do with what there is.
const ROUNDS_MAX: u32 = 8;

/// Searches for the nearest of one filter, each with what the one before has missed.
const SEARCHES_MAX: u32 = 20;

/// The number of a subscription that has none yet.
pub(super) const NEW: SubscriptionId = SubscriptionId(u32::MAX);

/// Findings ahead of an installation or a move. See [`Tracker::survey_installation`] and [`Tracker::survey_move`].
#[derive(Debug)]
pub struct Survey {
    client: ClientId,
    /// Where the client is, and where it is going to be.
    before: Option<Fix>,
    after: Option<Fix>,
    /// Findings along the track of the client.
    passage: Option<Passage>,
    /// The subscription that is going to be installed.
    new: Option<Box<Watch>>,
    parts: Vec<Part>,
    /// The part at hand.
    next: usize,
    /// Events announced before that are not news to it.
    since: u64,
    rounds: u32,
    /// Marks of the part at hand.
    marks: Marks,
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
        searches: u32,
        untested: Vec<u32>,
    },
    /// At what is inside and may not be known: all there is, or some.
    Inside(Looking),
    /// At one of the events whose own area the client enters.
    Entered(usize),
    /// At the events that are known.
    Known(Vec<(u32, Standing)>),
    /// At the events that were found, where some found no room before.
    Before(Vec<u32>),
    Done,
}

/// A search that is interrupted now and then.
#[derive(Debug, Default)]
struct Looking {
    /// Only among these, where there are any.
    among: Option<Vec<u32>>,
    /// The condition and the filter at hand.
    class: Option<u32>,
    filter: usize,
    /// The next filter, as a place among those by condition.
    place: usize,
    /// Events near to the area of the filter at hand that have not been looked at.
    near: Vec<u32>,
}

/// Findings about one subscription. A client may have many of these, each over all live events, and has one bit for
/// most of those.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Whether all that is inside was looked for, and not only what the last step brings.
    pub(super) looks_at_all: bool,
    found: FixedBitSet,
    /// By which filter what is known is inside, and whether it was so as a member.
    known: HashMap<u32, (bool, Option<u32>), RandomState>,
    /// The events whose own area the client enters, in the order of their numbers, and which of them are inside.
    entered: Arc<[u32]>,
    entered_inside: FixedBitSet,
    /// Found events that were inside before, where that was looked at.
    before: Option<FixedBitSet>,
    /// Whether the filter at hand, which counts the nearest, takes an event, by the event's number.
    nearest: HashMap<u32, bool, RandomState>,
    /// By filter that counts the nearest: these, and some more.
    searched: HashMap<usize, Vec<Candidate>, RandomState>,
    /// Events that have come since the last round, and were not looked for.
    fresh: HashSet<u32, RandomState>,
    /// Events that have come since the survey began.
    stale: HashSet<u32, RandomState>,
}

/// When each live event was announced: how many had been before it.
#[derive(Debug, Default)]
pub(super) struct Announced {
    count: u64,
    /// Counts by the numbers of the events.
    counts: Vec<u64>,
}

impl Announced {
    pub(super) fn note(&mut self, number: u32) {
        let number = number as usize;
        if self.counts.len() <= number {
            self.counts.resize(number + 1, 0);
        }
        self.count += 1;
        self.counts[number] = self.count;
    }

    /// The numbers of those that were announced after as many.
    fn since(&self, count: u64) -> HashSet<u32, RandomState> {
        if self.count == count {
            return HashSet::default();
        }
        let numbered = (0..).zip(&self.counts);
        numbered.filter(|(_, announced)| **announced > count).map(|(number, _)| number).collect()
    }
}

impl Findings {
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
        let (was_inside, by) = self.known.get(&number).filter(|_| !self.fresh.contains(&number))?;
        (*was_inside == (standing == Standing::Inside)).then_some(*by)
    }

    /// Whether an event is inside whose own area the client enters.
    pub(super) fn is_inside(&self, number: u32) -> Option<bool> {
        let is_known = self.entered.binary_search(&number).is_ok() && !self.stale.contains(&number);
        is_known.then(|| self.entered_inside.contains(number as usize))
    }

    /// Whether an event was inside before.
    pub(super) fn was_inside(&self, number: u32) -> Option<bool> {
        let before = self.before.as_ref()?;
        let is_known = self.found.contains(number as usize) && !self.stale.contains(&number);
        is_known.then(|| before.contains(number as usize))
    }

    /// Events that were found and have not come since, and those that have come since.
    pub(super) fn found(&self) -> (impl Iterator<Item = u32>, Vec<u32>) {
        let found = numbers(&self.found).filter(|number| !self.fresh.contains(number));
        (found, self.fresh.iter().copied().collect())
    }

    fn bytes(&self) -> usize {
        let sets = [&self.found, &self.entered_inside].into_iter().chain(&self.before);
        let maps = [
            entries_bytes::<(u32, (bool, Option<u32>))>(self.known.capacity()),
            entries_bytes::<(u32, bool)>(self.nearest.capacity()),
            entries_bytes::<u32>(self.fresh.capacity()),
            entries_bytes::<u32>(self.stale.capacity()),
        ];
        let searched = self.searched.values().map(|found| found.capacity() * size_of::<Candidate>());
        sets.map(|set| set.len() / 8).chain(maps).chain(searched).sum()
    }

    fn forget(&mut self, fresh: &HashSet<u32, RandomState>) {
        for number in fresh.iter().map(|number| *number as usize) {
            if self.found.contains(number) {
                self.found.remove(number);
            }
        }
        self.known.retain(|number, _| !fresh.contains(number));
        self.stale.extend(fresh);
    }
}

/// Bytes that a hash table with room for `capacity` entries takes.
fn entries_bytes<T>(capacity: usize) -> usize {
    capacity * (size_of::<T>() + 1) * 8 / 7
}

fn numbers(set: &FixedBitSet) -> impl Iterator<Item = u32> {
    set.ones().map(|number| u32::try_from(number).expect("it was put in as a number"))
}

/// View of the tracker that a part of a survey has.
struct View<'a, P> {
    scene: &'a Scene<P>,
    watch: &'a Watch,
    /// Events that the subscription knows now.
    known: Option<&'a Known>,
    before: Option<&'a Fix>,
    after: Option<&'a Fix>,
    is_move: bool,
}

impl Survey {
    /// The memory that it takes: for each subscription some bits of each live event, and more for what it finds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of_part = |part: &Part| size_of::<Part>() + part.findings.bytes();
        self.parts.iter().map(of_part).sum::<usize>() + self.marks.bytes()
    }
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
        survey.parts.push(Part::of(&watch, previous.unwrap_or(NEW), true, Arc::default()));
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
            let [entered, _] = self.scene.events.crossed(held.partition, &before.position, &fix.position);
            entered
        };
        let has_reaches =
            self.scene.events.places(held.partition).is_some_and(|places| places.have_reaches());
        let entered: Arc<[u32]> =
            before.as_ref().filter(|_| has_reaches).map_or_else(Vec::new, crosses).into();
        for id in &held.subscriptions {
            let Some(watch) = self.watch(*id) else {
                violated!("a client's subscription is installed");
                continue;
            };
            let looks_at_all =
                watch.has_overflowed && watch.is_for_transitions() && watch.room(&self.scene.settings) > 0;
            survey.parts.push(Part::of(watch, *id, looks_at_all, Arc::clone(&entered)));
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
            since: self.announced.count,
            rounds: 0,
            marks: Marks::default(),
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
            if !part.go_on(&view, &mut survey.marks, goes_on) {
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
        survey.since = self.announced.count;
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
    fn of(watch: &Watch, id: SubscriptionId, looks_at_all: bool, entered: Arc<[u32]>) -> Self {
        let stage = if watch.counts_nearest() {
            Stage::Nearest { filter: 0, searches: 0, untested: Vec::new() }
        } else {
            Stage::Inside(Looking::default())
        };
        Self { id, stage, findings: Findings { looks_at_all, entered, ..Findings::default() } }
    }

    /// Says whether it is done.
    fn go_on<P>(&mut self, view: &View<'_, P>, marks: &mut Marks, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let Self { stage, findings, .. } = self;
        loop {
            let next = match stage {
                Stage::Nearest { filter, searches, untested } => {
                    view.nearest((filter, searches), untested, findings, goes_on)
                }
                Stage::Inside(looking) => view.inside(looking, marks, findings, goes_on),
                Stage::Entered(next) => view.entered(next, findings, goes_on),
                Stage::Known(known) => view.known(known, findings, goes_on),
                Stage::Before(found) => view.before(found, findings, goes_on),
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
        (filter, searches): (&mut usize, &mut u32),
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
            *searches += 1;
            let is_complete = untested.is_empty();
            if is_complete {
                findings.searched.extend(searched.map(|searched| (*filter, searched)));
            }
            // Where new ones come faster than they are tested, the search is left to the change.
            if is_complete || *searches == SEARCHES_MAX {
                findings.nearest = HashMap::default();
                untested.clear();
                (*filter, *searches) = (*filter + 1, 0);
            }
            if !goes_on() {
                return None;
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
        marks: &mut Marks,
        findings: &mut Findings,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Stage> {
        let Some(range) = self.range(findings.looks_at_all) else { return Some(Stage::Done) };
        let plain = self.watch.plain();
        if looking.class.is_none() {
            marks.begin(self.scene.events.numbers_end(), self.watch.filters.len() + 1);
        }
        loop {
            while let Some(number) = looking.near.pop() {
                let filter = &self.watch.filters[looking.filter];
                if self.watch.look(self.scene, &range, filter, number, marks) {
                    findings.found.grow_and_insert(number as usize);
                }
                if !goes_on() {
                    return None;
                }
            }
            let Some((class, index)) = plain.get(looking.place).copied() else {
                // What has come in the meantime and is entered or known is tested by the change.
                return Some(if looking.among.is_none() { Stage::Entered(0) } else { Stage::Done });
            };
            if looking.class != Some(class) {
                looking.class = Some(class);
                marks.next_round();
            }
            looking.filter = index as usize;
            let (near, filter) = (&mut looking.near, &self.watch.filters[looking.filter]);
            let among = looking.among.as_deref();
            let is_all = self.watch.near(self.scene, &range, filter, among, |number| near.push(number));
            let of_class = plain[looking.place..].iter().take_while(|(other, _)| *other == class).count();
            looking.place += if is_all { of_class } else { 1 };
            if !goes_on() {
                return None;
            }
        }
    }

    fn entered(
        &self,
        next: &mut usize,
        findings: &mut Findings,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Stage> {
        while let Some(number) = findings.entered.get(*next).copied() {
            *next += 1;
            let live = self.scene.events.get(number);
            if live.is_some_and(|live| self.watch.is_inside(self.scene, self.after, &live.event, None)) {
                findings.entered_inside.grow_and_insert(number as usize);
            }
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
        let looks_before = self.is_move && self.watch.has_overflowed && self.watch.is_for_transitions();
        findings.before = looks_before.then(FixedBitSet::new);
        Some(if looks_before { Stage::Before(numbers(&findings.found).collect()) } else { Stage::Done })
    }

    fn before(
        &self,
        found: &mut Vec<u32>,
        findings: &mut Findings,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Stage> {
        while let Some(number) = found.pop() {
            let live = self.scene.events.get(number);
            if live.is_some_and(|live| self.watch.is_inside(self.scene, self.before, &live.event, None))
                && let Some(before) = &mut findings.before
            {
                before.grow_and_insert(number as usize);
            }
            if !goes_on() {
                return None;
            }
        }
        Some(Stage::Done)
    }
}
