//! Search for events that are live, inside and not known yet, by where they are.
//!
//! An event is tested only with the filters whose area holds it, and each condition of a subscription at most once an
//! event, however many filters have it.

use super::Fix;
use super::standing::Scene;
use super::survey::Findings;
use super::tracker::Watch;
use crate::area::Area;
use crate::evaluation;
use crate::event::Event;
use crate::subscription::Filter;

/// Memory that searches keep to use it again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Numbers of live events, of the step at hand.
    pub(super) found: Vec<u32>,
    marks: Marks,
}

/// Which live events need no further look, in one search.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// By the numbers of live events: the round in which one was marked last.
    rounds: Vec<u32>,
    /// The first round of this search, in which it marks what it found.
    first: u32,
    last: u32,
}

impl Marks {
    /// Begins a search.
    pub(super) fn begin(&mut self, numbers_end: usize, rounds_count: usize) {
        let rounds_count = u32::try_from(rounds_count).unwrap_or(u32::MAX - 1);
        if self.last.checked_add(rounds_count).is_none_or(|last| last == u32::MAX) {
            self.rounds.fill(0);
            self.last = 0;
        }
        if self.rounds.len() < numbers_end {
            self.rounds.resize(numbers_end, 0);
        }
        self.last += 1;
        self.first = self.last;
    }

    pub(super) fn bytes(&self) -> usize {
        self.rounds.capacity() * size_of::<u32>()
    }

    pub(super) fn next_round(&mut self) {
        self.last += 1;
    }

    /// Whether an event is marked. One that came after the search began counts as marked.
    fn is_marked(&self, number: u32) -> bool {
        self.rounds.get(number as usize).is_none_or(|round| *round == self.first || *round == self.last)
    }

    /// Marks an event for this round.
    fn mark(&mut self, number: u32) {
        self.rounds[number as usize] = self.last;
    }

    /// Marks an event for all rounds of the search.
    fn mark_found(&mut self, number: u32) {
        self.rounds[number as usize] = self.first;
    }
}

/// Filters that have equal conditions: the number of that, and which filter.
pub(super) type Alike = [(u32, u32)];

/// The filters that do not count the nearest, those with equal conditions together and an area that is everywhere first.
pub(super) fn by_condition(filters: &[Filter], is_plain: impl Fn(usize) -> bool) -> Box<Alike> {
    let mut alike: Vec<(u32, u32)> = Vec::new();
    for index in (0..filters.len()).filter(|index| is_plain(*index)) {
        let condition = filters[index].condition.expression();
        let same = |(_, other): &&(u32, u32)| filters[*other as usize].condition.expression() == condition;
        let index = u32::try_from(index).expect("a subscription has few filters");
        let class = alike.iter().find(same).map_or(index, |(class, _)| *class);
        alike.push((class, index));
    }
    alike.sort_by_key(|(class, index)| (*class, filters[*index as usize].area != Area::Everywhere));
    alike.into()
}

/// Range of a search, with the places of the client.
#[derive(Clone, Copy)]
pub(super) enum Range<'a> {
    /// All that is inside.
    Inside(Option<&'a Fix>),
    /// Events in areas that follow the client, and in those of conditions that depend on where it is, but for those that the
    /// filters held before: these are known, had found no room, or are not wanted.
    News { before: Option<&'a Fix>, after: &'a Fix },
}

impl<'a> Range<'a> {
    fn fix(&self) -> Option<&'a Fix> {
        match self {
            Self::Inside(fix) => *fix,
            Self::News { after, .. } => Some(after),
        }
    }
}

impl Watch {
    /// The filters that do not count the nearest, by their conditions.
    pub(super) fn alike(&self) -> impl Iterator<Item = &Alike> {
        self.plain().chunk_by(|a, b| a.0 == b.0)
    }

    /// All filters that do not count the nearest, in one slice.
    pub(super) fn plain(&self) -> &Alike {
        if self.has_one_plain() { &[(0, 0)] } else { &self.by_condition }
    }

    /// Appends what is inside by a filter that does not count and not known: each once, in any order. Only what is `among` some, where
    /// these are given.
    ///
    /// Cost: for each filter what is near to its area, a look each; for each condition a test of each event that one of
    /// its areas holds.
    pub(super) fn find<P>(
        &self,
        scene: &Scene<P>,
        range: &Range<'_>,
        among: Option<&[u32]>,
        scratch: &mut Scratch,
    ) {
        let Scratch { found, marks } = scratch;
        marks.begin(scene.events.numbers_end(), self.filters.len() + 1);
        for alike in self.alike() {
            marks.next_round();
            for (_, index) in alike {
                let filter = &self.filters[*index as usize];
                let is_all = self.near(scene, range, filter, among, |number| {
                    if !self.known.contains(number) && self.look(scene, range, filter, number, marks) {
                        found.push(number);
                    }
                });
                if is_all {
                    break;
                }
            }
        }
    }

    /// The same, where a survey may have found it.
    pub(super) fn find_surveyed<P>(
        &self,
        scene: &Scene<P>,
        range: &Range<'_>,
        findings: Option<&Findings>,
        scratch: &mut Scratch,
    ) {
        let looks_at_all = matches!(range, Range::Inside(_));
        let Some(findings) = findings.filter(|findings| findings.looks_at_all == looks_at_all) else {
            return self.find(scene, range, None, scratch);
        };
        let (found, fresh) = findings.found();
        self.find(scene, range, Some(&fresh), scratch);
        // What has ended takes no room.
        scratch.found.extend(found.filter(|number| scene.events.get(*number).is_some()));
    }

    /// Calls `look` for what is near to a filter's area; says whether that is all there is.
    pub(super) fn near<P>(
        &self,
        scene: &Scene<P>,
        range: &Range<'_>,
        filter: &Filter,
        among: Option<&[u32]>,
        look: impl FnMut(u32),
    ) -> bool {
        let fix = range.fix();
        let radius = match (range, &filter.area) {
            // Such a condition may become true of whatever is in the area.
            (Range::News { .. }, _) if filter.condition.reads_client() => None,
            (Range::News { .. }, Area::Following(radius)) => Some(radius),
            (Range::News { .. }, _) => return false,
            (Range::Inside(_), _) => None,
        };
        if self.is_held(&scene.settings, &filter.area, fix) {
            return false;
        }
        let is_all = filter.area == Area::Everywhere;
        if let Some(among) = among {
            among.iter().copied().for_each(look);
            return is_all;
        }
        let Some(places) = scene.events.places(self.partition) else { return is_all };
        let ball = filter.area.ball(scene.world, fix.map(|fix| &fix.position));
        match (self.held_at(scene, range, filter), radius, fix, ball) {
            (Some(before), Some(radius), Some(after), _) => {
                places.come_within(scene.world, radius, &before.position, &after.position, look);
            }
            (.., Some(ball)) => places.within(&ball, look),
            (.., None) => {}
        }
        is_all
    }

    /// From where a filter's area held something that is no news. Where it held nothing while it waited for a better fix, all of it is new.
    fn held_at<'a, P>(&self, scene: &Scene<P>, range: &Range<'a>, filter: &Filter) -> Option<&'a Fix> {
        let Range::News { before, .. } = range else { return None };
        before.filter(|before| !self.is_held(&scene.settings, &filter.area, Some(before)))
    }

    /// Whether a filter held for an event that is no news: by its area, and by a condition that depends on where the client is.
    fn held_before<P>(&self, scene: &Scene<P>, range: &Range<'_>, filter: &Filter, event: &Event) -> bool {
        let Range::News { before, .. } = range else { return false };
        let reads_client = filter.condition.reads_client();
        if before.is_none() && !reads_client || self.is_held(&scene.settings, &filter.area, *before) {
            return false;
        }
        let position = before.map(|before| &before.position);
        filter.area.holds(scene.world, position, &event.position)
            && (!reads_client || scene.condition_holds(filter, position, event))
    }

    /// Looks at one event for one filter; says whether it is what is looked for, and was not found before.
    pub(super) fn look<P>(
        &self,
        scene: &Scene<P>,
        range: &Range<'_>,
        filter: &Filter,
        number: u32,
        marks: &mut Marks,
    ) -> bool {
        if marks.is_marked(number) {
            return false;
        }
        let Some(live) = scene.events.get(number) else { return false };
        scene.work(1);
        let position = range.fix().map(|fix| &fix.position);
        let place = &live.event.position;
        if !filter.area.holds(scene.world, position, place)
            || self.held_before(scene, range, filter, &live.event)
        {
            return false;
        }
        marks.mark(number);
        let is_it = evaluation::reaches(scene.world, &live.event, position)
            && scene.condition_holds(filter, position, &live.event);
        if is_it {
            marks.mark_found(number);
        }
        is_it
    }
}
