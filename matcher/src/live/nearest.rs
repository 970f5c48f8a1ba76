//! Filters that only a limited number of the nearest objects count for.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::Fix;
use super::standing::{Occasion, Scene, Standing};
use super::survey::Findings;
use super::tracker::{Tracker, Watch, watch_mut};
use crate::area::Area;
use crate::evaluation;
use crate::event::Event;
use crate::geo::{Position, squared_chord};
use crate::subscription::{Filter, SubscriptionId};
use crate::violated;

/// The nearest live events that one filter takes, as they were counted last and have been kept up to date since.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranking {
    /// In their order. Those that count come first and are known; behind them are some more, of which events that have
    /// ended or been replaced since are told apart when one of them comes to count.
    candidates: Vec<Candidate>,
    extent: Extent,
}

/// Extent of a ranking: which live events are in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Extent {
    /// Nothing that could be relied on: they have not been counted, some found no room, or there is nothing to count: no
    /// place to measure from, or an area that waits for a better fix.
    #[default]
    Unknown,
    /// All live events that the filter takes.
    All,
    /// The live events that the filter takes, up to the last that is in the ranking.
    ToLast,
}

/// How many are kept beside those that count: a search is over for as many departures.
fn with_spare(most: usize) -> usize {
    most.saturating_add(most / 8 + 2)
}

impl Ranking {
    fn set(&mut self, mut candidates: Vec<Candidate>, most: usize) {
        let kept = with_spare(most);
        candidates.sort_by(Candidate::order);
        candidates.dedup();
        self.extent = if candidates.len() < kept { Extent::All } else { Extent::ToLast };
        candidates.truncate(kept);
        self.candidates = candidates;
    }

    fn nearest(&self, most: usize) -> &[Candidate] {
        &self.candidates[..most.min(self.candidates.len())]
    }

    /// Whether it has all that its filter takes, however the client moves.
    fn has_all_for_good(&self, filter: &Filter) -> bool {
        let follows = matches!(filter.area, Area::Following(_)) || filter.condition.reads_client();
        self.extent == Extent::All && !follows
    }

    fn holds(&self, candidate: &Candidate, most: usize) -> bool {
        self.nearest(most).binary_search_by(|other| other.order(candidate)).is_ok()
    }

    /// Whether something so far away is to be in it, if the filter takes it.
    fn reaches(&self, distance: f64, sequence: u64) -> bool {
        match (self.extent, self.candidates.last()) {
            (Extent::Unknown | Extent::All, _) => true,
            (Extent::ToLast, None) => false,
            (Extent::ToLast, Some(last)) => {
                distance.total_cmp(&last.distance).then(sequence.cmp(&last.sequence)).is_lt()
            }
        }
    }

    /// Puts what has changed where it belongs now, and appends which other one counts now or does so no more; says
    /// whether it still knows which do.
    fn patch<P>(
        &mut self,
        scene: &Scene<P>,
        most: usize,
        changed: u32,
        now: Option<Candidate>,
        touched: &mut Vec<u32>,
    ) -> bool {
        if self.extent == Extent::Unknown {
            return false;
        }
        let last_before = most.checked_sub(1).and_then(|index| self.candidates.get(index)).copied();
        let is_within = now.filter(|now| self.reaches(now.distance, now.sequence));
        self.candidates.retain(|candidate| candidate.number != changed);
        if let Some(now) = is_within {
            let index = self.candidates.partition_point(|other| other.order(&now).is_lt());
            self.candidates.insert(index, now);
        }
        while self.nearest(most).last().is_some_and(|last| !last.is_live(scene)) {
            self.candidates.remove(self.nearest(most).len() - 1);
        }
        if self.candidates.len() > with_spare(most) {
            self.candidates.truncate(with_spare(most));
            self.extent = Extent::ToLast;
        }
        let last = most.checked_sub(1).and_then(|index| self.candidates.get(index)).copied();
        touched.extend(last_before.iter().chain(&last).map(|candidate| candidate.number));
        self.extent == Extent::All || self.candidates.len() >= most
    }
}

/// Position that the nearest are the nearest to. `None` where there is no such position.
pub(super) fn anchor<'a>(filter: &'a Filter, fix: Option<&'a Fix>) -> Option<&'a Position> {
    match (fix, &filter.area) {
        (Some(fix), _) => Some(&fix.position),
        (None, Area::Circle { centre, .. }) => Some(centre),
        (None, _) => None,
    }
}

impl Watch {
    /// Whether some filter counts the nearest only.
    pub(super) fn counts_nearest(&self) -> bool {
        !self.nearest.is_empty()
    }

    /// Whether an event that has just come, and is not known, may be inside. If not, it pushes nobody out, either.
    pub(super) fn is_concerned<P>(
        &self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        event: &Event,
        sequence: u64,
    ) -> bool {
        let counting = self.filters.iter().zip(&self.nearest).zip(&self.rankings);
        let mut counting = counting.filter(|((_, nearest), _)| nearest.is_some());
        let is_among = |((filter, _), ranking): ((&Filter, _), &Ranking)| {
            let Some(anchor) = anchor(filter, fix) else { return false };
            ranking.reaches(squared_chord(anchor.point(), event.position.point()), sequence)
                && self.holds(scene, filter, fix, event, None)
        };
        counting.any(is_among) || self.is_inside(scene, fix, event, None)
    }

    /// The live events that are inside because they are among the nearest, over all filters that count, in the order of
    /// their numbers. `news` is what the filters may take now and did not take when they counted last; without it, that
    /// may be anything.
    pub(super) fn count_nearest<P>(
        &mut self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        news: Option<&[u32]>,
        findings: Option<&Findings>,
    ) -> Vec<u32> {
        let mut rankings = std::mem::take(&mut self.rankings);
        let inside = self.nearest_inside(scene, fix, news, findings, &mut rankings);
        self.rankings = rankings;
        inside
    }

    /// The live events that are inside because they are among the nearest to a client that is somewhere else, over all
    /// filters that count. The rankings of the subscription stay as they are.
    pub(super) fn nearest_at<P>(&self, scene: &Scene<P>, fix: Option<&Fix>) -> Vec<u32> {
        self.nearest_inside(scene, fix, None, None, &mut vec![Ranking::default(); self.nearest.len()])
    }

    fn nearest_inside<P>(
        &self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        news: Option<&[u32]>,
        findings: Option<&Findings>,
        rankings: &mut [Ranking],
    ) -> Vec<u32> {
        let mut inside = Vec::new();
        for (index, ranking) in rankings.iter_mut().enumerate() {
            let (filter, Some(count)) = (&self.filters[index], self.nearest[index]) else { continue };
            let before = std::mem::take(ranking);
            let Some(anchor) = anchor(filter, fix) else { continue };
            if self.is_held(&scene.settings, &filter.area, fix) {
                // Nothing comes in and, however many there are, nothing goes out.
                inside.extend(self.known.iter().filter_map(|(number, standing)| {
                    let event = &scene.events.get(number)?.event;
                    self.stays_held(scene, filter, fix, event, Some(standing)).then_some(number)
                }));
                continue;
            }
            let most = count.get() as usize;
            let surveyed = Surveyed { index, findings, missed: None };
            let count = Count { scene, watch: self, filter, fix, anchor, most: with_spare(most), surveyed };
            let candidates = match news {
                Some(news) if before.has_all_for_good(filter) => count.among(&before.candidates, news),
                _ => count.search_surveyed(),
            };
            ranking.set(candidates, most);
            inside.extend(ranking.nearest(most).iter().map(|candidate| candidate.number));
        }
        inside.sort_unstable();
        inside.dedup();
        inside
    }

    /// Searches for the nearest of a filter where a survey knows which events it takes, and appends those of which the survey does not, up
    /// to `most`: they count as not taken. Says which are the nearest of the others, and some more.
    pub(super) fn rehearse_nearest<P>(
        &self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        index: usize,
        findings: &Findings,
        missed: (&RefCell<Vec<u32>>, usize),
    ) -> Option<Vec<Candidate>> {
        let (filter, count) = (&self.filters[index], self.nearest(index)?);
        let anchor = anchor(filter, fix)?;
        if self.is_held(&scene.settings, &filter.area, fix) || self.rankings[index].has_all_for_good(filter) {
            return None;
        }
        let surveyed = Surveyed { index, findings: Some(findings), missed: Some(missed) };
        // More to spare: what changes in the meantime counts no more.
        let most = with_spare(count.get() as usize).saturating_mul(2);
        Some(Count { scene, watch: self, filter, fix, anchor, most, surveyed }.search())
    }

    /// Whether a filter takes a live event as one of those of which it counts the nearest.
    pub(super) fn takes_as_nearest<P>(
        &self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        index: usize,
        number: u32,
    ) -> bool {
        let Some(live) = scene.events.get(number) else { return false };
        // Chosen out of what the area itself holds: what was inside before has no advantage.
        self.stays_held(scene, &self.filters[index], fix, &live.event, None)
    }

    /// Whether an event is inside of an area that counts the nearest and waits for a better fix.
    fn stays_held<P>(
        &self,
        scene: &Scene<P>,
        filter: &Filter,
        fix: Option<&Fix>,
        event: &Event,
        standing: Option<Standing>,
    ) -> bool {
        evaluation::reaches(scene.world, event, fix.map(|fix| &fix.position))
            && self.holds(scene, filter, fix, event, standing)
    }

    /// After something changed about one: the live events, it and others, that may be inside now and were not, or the
    /// other way round. `None` where some of the nearest have to be counted anew.
    ///
    /// Cost: for each filter that counts, as many as count.
    fn patch_nearest<P>(&mut self, scene: &Scene<P>, fix: Option<&Fix>, changed: u32) -> Option<Vec<u32>> {
        let mut rankings = std::mem::take(&mut self.rankings);
        let mut touched = vec![changed];
        let mut is_known = true;
        for (index, ranking) in rankings.iter_mut().enumerate() {
            let (filter, Some(count)) = (&self.filters[index], self.nearest[index]) else { continue };
            let Some(anchor) = anchor(filter, fix) else { continue };
            if !self.is_held(&scene.settings, &filter.area, fix) {
                let most = count.get() as usize;
                let surveyed = Surveyed { index, findings: None, missed: None };
                let now =
                    Count { scene, watch: self, filter, fix, anchor, most, surveyed }.candidate(changed);
                is_known &= ranking.patch(scene, most, changed, now, &mut touched);
            }
        }
        self.rankings = rankings;
        touched.sort_unstable();
        touched.dedup();
        is_known.then_some(touched)
    }

    /// Whether an event is inside, by any filter, where it is known what the nearest are.
    pub(super) fn is_inside_by_any<P>(&self, scene: &Scene<P>, fix: Option<&Fix>, number: u32) -> bool {
        let Some(live) = scene.events.get(number) else { return false };
        let standing = self.known.get(number);
        let counting = self.filters.iter().zip(&self.nearest).zip(&self.rankings);
        let mut counting = counting.filter_map(|((filter, nearest), ranking)| {
            Some((filter, (*nearest)?.get() as usize, anchor(filter, fix)?, ranking))
        });
        counting.any(|(filter, most, anchor, ranking)| {
            if self.is_held(&scene.settings, &filter.area, fix) {
                return standing.is_some() && self.stays_held(scene, filter, fix, &live.event, standing);
            }
            let distance = squared_chord(anchor.point(), live.event.position.point());
            ranking.holds(&Candidate { distance, sequence: live.sequence, number }, most)
        }) || self.is_inside(scene, fix, &live.event, standing)
    }
}

/// The nearest of one filter as they are being counted.
struct Count<'a, P> {
    scene: &'a Scene<P>,
    watch: &'a Watch,
    filter: &'a Filter,
    fix: Option<&'a Fix>,
    anchor: &'a Position,
    /// How many are looked for.
    most: usize,
    surveyed: Surveyed<'a>,
}

/// The events that a filter is known to take.
#[derive(Clone, Copy)]
struct Surveyed<'a> {
    /// Index of the filter.
    index: usize,
    findings: Option<&'a Findings>,
    /// Where only these are asked: those of which they do not tell, and how many may be missed.
    missed: Option<(&'a RefCell<Vec<u32>>, usize)>,
}

/// A live event that the filter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// The squared distance.
    distance: f64,
    sequence: u64,
    number: u32,
}

impl Candidate {
    fn order(&self, other: &Self) -> Ordering {
        let own = self.distance.total_cmp(&other.distance).then(self.sequence.cmp(&other.sequence));
        own.then(self.number.cmp(&other.number))
    }

    /// Whether it is still the event that it was.
    fn is_live<P>(&self, scene: &Scene<P>) -> bool {
        scene.events.get(self.number).is_some_and(|live| live.sequence == self.sequence)
    }
}

impl<P> Count<'_, P> {
    fn position(&self) -> Option<&Position> {
        self.fix.map(|fix| &fix.position)
    }

    fn candidate(&self, number: u32) -> Option<Candidate> {
        let live = self.scene.events.get(number)?;
        let Surveyed { index, findings, missed } = self.surveyed;
        let is_taken = match missed {
            None => self.watch.takes_as_nearest(self.scene, self.fix, index, number),
            Some((missed, _)) => findings.and_then(|findings| findings.takes(number)).unwrap_or_else(|| {
                missed.borrow_mut().push(number);
                false
            }),
        };
        let distance = squared_chord(self.anchor.point(), live.event.position.point());
        is_taken.then_some(Candidate { distance, sequence: live.sequence, number })
    }

    fn has_missed_enough(&self) -> bool {
        self.surveyed.missed.is_some_and(|(missed, most)| missed.borrow().len() >= most)
    }

    /// All candidates, where there are none but these.
    fn among(&self, before: &[Candidate], news: &[u32]) -> Vec<Candidate> {
        let numbers = before.iter().map(|candidate| candidate.number).chain(news.iter().copied());
        numbers.filter_map(|number| self.candidate(number)).collect()
    }

    /// The nearest candidates, in any order, and some more: from a survey, but for what has come or gone since.
    fn search_surveyed(&self) -> Vec<Candidate> {
        let Surveyed { index, findings: Some(findings), .. } = self.surveyed else { return self.search() };
        let Some((surveyed, stale)) = findings.nearest_of(index) else { return self.search() };
        let mut candidates: Vec<_> = surveyed
            .iter()
            .filter(|it| it.is_live(self.scene) && !stale.contains(&it.number))
            .copied()
            .collect();
        // Where too many are missing, others that were too far away come to count.
        let has_all = surveyed.len() < self.most * 2;
        if !has_all && candidates.len() < self.most {
            return self.search();
        }
        candidates.extend(stale.iter().filter_map(|number| self.candidate(*number)));
        candidates
    }

    /// The nearest candidates, in any order, and some more: from a search among the live events.
    fn search(&self) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> = Vec::new();
        let consider = |number: u32, distance: f64| {
            let is_enough = candidates.len() >= self.most && candidates[self.most - 1].distance < distance;
            if is_enough || self.has_missed_enough() {
                return ControlFlow::Break(());
            }
            candidates.extend(self.candidate(number));
            ControlFlow::Continue(())
        };
        let Some(places) = self.scene.events.places(self.watch.partition) else { return candidates };
        let points = places.points();
        let Some(ball) = self.filter.area.ball(self.scene.world, self.position()) else {
            violated!("an area with an anchor lies somewhere");
            return candidates;
        };
        match self.filter.area {
            Area::Everywhere | Area::Following(_) => {
                let mut consider = consider;
                points.by_distance(self.anchor.point(), |number, distance| {
                    if distance > ball.reach * ball.reach {
                        return ControlFlow::Break(());
                    }
                    consider(number, distance)
                });
            }
            Area::Circle { .. } | Area::Polygon(_) | Area::Corridor(_) => {
                let mut found = Vec::new();
                points.within(&ball, |number| {
                    let distance = self.scene.squared_distance(number, self.anchor);
                    found.extend(distance.map(|distance| (distance, number)));
                });
                visit_in_order(&mut found, consider);
            }
        }
        candidates
    }
}

impl<P> Scene<P> {
    pub(super) fn squared_distance(&self, number: u32, from: &Position) -> Option<f64> {
        Some(squared_chord(from.point(), self.events.get(number)?.event.position.point()))
    }
}

/// Visits numbers by their distances, the nearest first, until `visit` breaks.
fn visit_in_order(found: &mut [(f64, u32)], mut visit: impl FnMut(u32, f64) -> ControlFlow<()>) {
    found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    for (distance, number) in found {
        if visit(*number, *distance).is_break() {
            return;
        }
    }
}

impl<P: Clone> Tracker<P> {
    /// Looks again at which objects are the nearest, after something changed about one.
    pub(super) fn recount(&mut self, id: SubscriptionId, changed: u32, occasion: &mut Occasion<'_, P>) {
        let Some(watch) = watch_mut(&mut self.watches, id) else {
            return violated!("a subscription that counts the nearest is installed");
        };
        let fix = self.clients[watch.client.0 as usize].fix;
        let fix = fix.as_ref();
        let mut found = match watch.patch_nearest(&self.scene, fix, changed) {
            Some(touched) => watch.leave_touched(&mut self.scene, occasion, id, fix, touched),
            None => watch.count_anew(&mut self.scene, occasion, id, fix, changed),
        };
        if watch.is_for_transitions() {
            watch.leave_out(&self.scene, &mut found, |_, number| number == changed);
        }
        watch.meet_all(&mut self.scene, occasion, id, &mut found, false);
    }
}

impl Watch {
    /// Looks at live events that may have come in or gone. Lets those leave that have gone, and returns those that are
    /// inside.
    fn leave_touched<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        fix: Option<&Fix>,
        touched: Vec<u32>,
    ) -> Vec<u32> {
        let is_inside = |number: &u32| self.is_inside_by_any(scene, fix, *number);
        let (inside, outside): (Vec<u32>, Vec<u32>) = touched.into_iter().partition(is_inside);
        if self.is_for_transitions() {
            let left = outside.into_iter().filter(|number| self.known.contains(*number));
            let left = left.filter_map(|number| Some((scene.events.get(number)?.sequence, number)));
            let left = left.collect();
            self.leave_all(scene, occasion, id, left);
        }
        inside
    }

    /// Counts all nearest anew and lets known events leave that have gone. Returns the nearest, and `changed` where it
    /// is inside.
    fn count_anew<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        fix: Option<&Fix>,
        changed: u32,
    ) -> Vec<u32> {
        let mut nearest = self.count_nearest(scene, fix, Some(&[changed]), None);
        if self.is_for_transitions() {
            self.review(scene, occasion, id, fix, &nearest, None);
        }
        if let Some(live) = scene.events.get(changed)
            && self.is_inside(scene, fix, &live.event, None)
        {
            nearest.push(changed);
        }
        nearest
    }
}
