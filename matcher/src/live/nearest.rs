//! Filters that only so many of the nearest count for.

use std::ops::ControlFlow;

use super::Fix;
use super::standing::{Occasion, Scene};
use super::tracker::{Tracker, Watch, watch_mut};
use crate::area::Area;
use crate::evaluation;
use crate::event::Event;
use crate::geo::{Position, squared_chord};
use crate::subscription::{Filter, SubscriptionId};

/// How far the nearest of a filter reach since they were counted last. Where it is known, all of them are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Horizon {
    /// They have not been counted, some found no room, or there is nothing to count: no place to measure from, or an
    /// area that waits for a better fix.
    Unknown,
    /// There are fewer than count: all live events that the filter takes are known.
    Open,
    /// The last of those that count has this squared distance and this sequence number.
    At(f64, u64),
}

/// What the nearest are the nearest to.
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
        let counting = self.filters.iter().zip(&self.nearest).zip(&self.horizons);
        let mut counting = counting.filter(|((_, nearest), _)| nearest.is_some());
        let is_among = |((filter, _), horizon): ((&Filter, _), &Horizon)| {
            let Some(anchor) = anchor(filter, fix) else { return false };
            let is_near = match *horizon {
                Horizon::Unknown | Horizon::Open => true,
                Horizon::At(distance, last) => {
                    (squared_chord(anchor.point(), event.position.point()), sequence) < (distance, last)
                }
            };
            is_near && self.holds(scene, filter, fix, event, None)
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
    ) -> Vec<u32> {
        let mut horizons = std::mem::take(&mut self.horizons);
        let inside = self.nearest_inside(scene, fix, news, &mut horizons);
        self.horizons = horizons;
        inside
    }

    /// The same for a client that is somewhere else.
    pub(super) fn nearest_at<P>(&self, scene: &Scene<P>, fix: Option<&Fix>) -> Vec<u32> {
        self.nearest_inside(scene, fix, None, &mut self.horizons.clone())
    }

    fn nearest_inside<P>(
        &self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        news: Option<&[u32]>,
        horizons: &mut [Horizon],
    ) -> Vec<u32> {
        let mut inside = Vec::new();
        for ((filter, nearest), horizon) in self.filters.iter().zip(&self.nearest).zip(horizons) {
            let Some(count) = nearest else { continue };
            let before = std::mem::replace(horizon, Horizon::Unknown);
            let Some(anchor) = anchor(filter, fix) else { continue };
            if self.is_held(&scene.settings, &filter.area, fix) {
                // Nothing comes in and, however many there are, nothing goes out.
                inside.extend(self.known.iter().filter_map(|(number, standing)| {
                    let event = &scene.events.get(number)?.event;
                    let stays = evaluation::reaches(scene.world, event, fix.map(|fix| &fix.position))
                        && self.holds(scene, filter, fix, event, Some(standing));
                    stays.then_some(number)
                }));
                continue;
            }
            let count = Count { scene, watch: self, filter, fix, anchor, most: count.get() as usize };
            let follows = matches!(filter.area, Area::Following(_));
            let mut candidates = match news {
                Some(news) if before == Horizon::Open && !follows => count.among_known(news),
                _ => count.search(),
            };
            candidates.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.sequence.cmp(&b.sequence)));
            candidates.dedup();
            candidates.truncate(count.most);
            *horizon = match candidates.last() {
                Some(last) if candidates.len() == count.most => Horizon::At(last.distance, last.sequence),
                _ => Horizon::Open,
            };
            inside.extend(candidates.iter().map(|candidate| candidate.number));
        }
        inside.sort_unstable();
        inside.dedup();
        inside
    }
}

/// The nearest of one filter as they are being counted.
struct Count<'a, P> {
    scene: &'a Scene<P>,
    watch: &'a Watch,
    filter: &'a Filter,
    fix: Option<&'a Fix>,
    anchor: &'a Position,
    /// How many count.
    most: usize,
}

/// A live event that the filter takes.
#[derive(Clone, Copy, PartialEq)]
struct Candidate {
    /// Squared.
    distance: f64,
    sequence: u64,
    number: u32,
}

impl<P> Count<'_, P> {
    fn position(&self) -> Option<&Position> {
        self.fix.map(|fix| &fix.position)
    }

    fn candidate(&self, number: u32) -> Option<Candidate> {
        let live = self.scene.events.get(number)?;
        // Chosen out of what the area itself holds: what was inside before has no advantage.
        let is_taken = evaluation::reaches(self.scene.world, &live.event, self.position())
            && self.watch.holds(self.scene, self.filter, self.fix, &live.event, None);
        let distance = squared_chord(self.anchor.point(), live.event.position.point());
        is_taken.then_some(Candidate { distance, sequence: live.sequence, number })
    }

    /// All candidates, where others are not known than these.
    fn among_known(&self, news: &[u32]) -> Vec<Candidate> {
        let numbers = self.watch.known.numbers().chain(news.iter().copied());
        numbers.filter_map(|number| self.candidate(number)).collect()
    }

    /// The nearest candidates, in any order, and some more.
    fn search(&self) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> = Vec::new();
        let consider = |number: u32, distance: f64| {
            if candidates.len() >= self.most && candidates[self.most - 1].distance < distance {
                return ControlFlow::Break(());
            }
            candidates.extend(self.candidate(number));
            ControlFlow::Continue(())
        };
        let Some(places) = self.scene.events.places(self.watch.partition) else { return candidates };
        let points = places.points();
        let Some(ball) = self.filter.area.ball(self.scene.world, self.position()) else { return candidates };
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
        let Some(watch) = watch_mut(&mut self.watches, id) else { return };
        let fix = self.clients[watch.client.0 as usize].fix;
        let fix = fix.as_ref();
        let mut nearest = watch.count_nearest(&self.scene, fix, Some(&[changed]));
        if watch.is_for_transitions() {
            watch.review(&mut self.scene, occasion, id, fix, &nearest);
        }
        if let Some(live) = self.scene.events.get(changed)
            && watch.is_inside(&self.scene, fix, &live.event, None)
        {
            nearest.push(changed);
        }
        if watch.is_for_transitions() {
            watch.leave_out(&self.scene, &mut nearest, |_, number| number == changed);
        }
        watch.meet_all(&mut self.scene, occasion, id, &mut nearest, false);
    }
}
