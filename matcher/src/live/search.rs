//! What is live, inside and not known yet, found by where it is.
//!
//! An event is tested only with the filters whose area holds it, and each condition of a subscription at most once an
//! event, however many filters have it.

use super::Fix;
use super::standing::Scene;
use super::tracker::Watch;
use crate::area::Area;
use crate::evaluation;
use crate::geo::Position;
use crate::subscription::Filter;

/// What searches keep for their memory.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Numbers of live events, of the step at hand.
    pub(super) found: Vec<u32>,
    marks: Marks,
}

/// Which live events need no further look, in one search.
#[derive(Debug, Default)]
struct Marks {
    /// By the numbers of live events: the round in which one was marked last.
    rounds: Vec<u32>,
    /// The first round of this search, in which it marks what it found.
    first: u32,
    last: u32,
}

impl Marks {
    /// Begins a search.
    fn begin(&mut self, numbers_end: usize, rounds_count: usize) {
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

    fn next_round(&mut self) {
        self.last += 1;
    }

    fn is_marked(&self, number: u32) -> bool {
        let round = self.rounds[number as usize];
        round == self.first || round == self.last
    }

    /// For this round.
    fn mark(&mut self, number: u32) {
        self.rounds[number as usize] = self.last;
    }

    /// For all rounds of the search.
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

impl Watch {
    /// The filters that do not count the nearest, by their conditions.
    pub(super) fn alike(&self) -> impl Iterator<Item = &Alike> {
        let alike: &Alike = if self.has_one_plain() { &[(0, 0)] } else { &self.by_condition };
        alike.chunk_by(|a, b| a.0 == b.0)
    }

    /// Appends what is inside by a filter that does not count and not known: each once, in any order.
    ///
    /// Cost: for each filter what is near to its area, a look each; for each condition a test of each event that one of
    /// its areas holds.
    pub(super) fn find_inside<P>(&self, scene: &Scene<P>, fix: Option<&Fix>, scratch: &mut Scratch) {
        let position = fix.map(|fix| &fix.position);
        let areas = |filter: &Filter, look: &mut dyn FnMut(u32)| {
            if self.is_held(&scene.settings, &filter.area, fix) {
                return false;
            }
            let places = scene.events.places(self.partition);
            if let Some((places, ball)) = places.zip(filter.area.ball(scene.world, position)) {
                places.within(&ball, look);
            }
            filter.area == Area::Everywhere
        };
        let is_there = |filter: &Filter, place: &Position| filter.area.holds(scene.world, position, place);
        self.find(scene, fix, areas, is_there, scratch);
    }

    /// Appends what areas hold that follow the client, but for what they held before: that is known, had found no room,
    /// or is not wanted.
    pub(super) fn find_news<P>(
        &self,
        scene: &Scene<P>,
        before: Option<&Fix>,
        after: &Fix,
        scratch: &mut Scratch,
    ) {
        // Where the area held nothing while it waited for a better fix, all of it is new.
        let held_at =
            |area: &Area| before.filter(|before| !self.is_held(&scene.settings, area, Some(before)));
        let areas = |filter: &Filter, look: &mut dyn FnMut(u32)| {
            let Area::Following(radius) = &filter.area else { return false };
            if self.is_held(&scene.settings, &filter.area, Some(after)) {
                return false;
            }
            let Some(places) = scene.events.places(self.partition) else { return false };
            match (held_at(&filter.area), filter.area.ball(scene.world, Some(&after.position))) {
                (Some(before), _) => {
                    places.come_within(scene.world, radius, &before.position, &after.position, look);
                }
                (None, Some(ball)) => places.within(&ball, look),
                (None, None) => {}
            }
            false
        };
        let is_there = |filter: &Filter, place: &Position| {
            filter.area.holds(scene.world, Some(&after.position), place)
                && held_at(&filter.area)
                    .is_none_or(|before| !filter.area.holds(scene.world, Some(&before.position), place))
        };
        self.find(scene, Some(after), areas, is_there, scratch);
    }

    /// `areas` looks at what is near to a filter's area and says whether that is all there is.
    fn find<P>(
        &self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        areas: impl Fn(&Filter, &mut dyn FnMut(u32)) -> bool,
        is_there: impl Fn(&Filter, &Position) -> bool,
        scratch: &mut Scratch,
    ) {
        let Scratch { found, marks } = scratch;
        marks.begin(scene.events.numbers_end(), self.filters.len() + 1);
        for alike in self.alike() {
            marks.next_round();
            for (_, index) in alike {
                let filter = &self.filters[*index as usize];
                let is_all = areas(filter, &mut |number| {
                    if marks.is_marked(number) {
                        return;
                    }
                    let Some(live) = scene.events.get(number) else { return };
                    scene.work(1);
                    if !is_there(filter, &live.event.position) {
                        return;
                    }
                    marks.mark(number);
                    if !self.known.contains(number)
                        && evaluation::reaches(scene.world, &live.event, fix.map(|fix| &fix.position))
                        && scene.condition_holds(filter, &live.event)
                    {
                        marks.mark_found(number);
                        found.push(number);
                    }
                });
                if is_all {
                    break;
                }
            }
        }
    }
}
