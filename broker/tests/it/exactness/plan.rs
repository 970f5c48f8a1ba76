//! Subscriptions drawn from a seed: areas of every shape where the taxis are, conditions from the whole table.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::brute::{Filter, Subscription};
use super::conditions::CONDITIONS;
use super::geometry::{Area, Place};
use super::taxis::Report;

/// Draws subscriptions.
pub(crate) struct Plan {
    rng: StdRng,
    /// Multiplies every size.
    width: f64,
    /// Where areas are put.
    places: Vec<Place>,
    /// Rows of the table that few events satisfy.
    rare: Vec<usize>,
}

impl Plan {
    /// A plan over the given reports, with areas so many times as wide as usual.
    pub(crate) fn new(seed: u64, width: f64, reports: &[Report]) -> Self {
        let in_town = |place: &Place| (113.0..115.0).contains(&place[0]) && (22.0..24.0).contains(&place[1]);
        let places = reports.iter().map(|report| report.place).filter(in_town).collect();
        let sample = reports.iter().step_by(7).map(Report::properties).collect::<Vec<_>>();
        let satisfied = |idx: &usize| sample.iter().filter(|p| (CONDITIONS[*idx].holds)(p)).count();
        let rare = (0..CONDITIONS.len()).filter(|idx| satisfied(idx) * 50 < sample.len()).collect::<Vec<_>>();
        assert!(rare.len() >= 4, "the table has choosy rows");
        Self { rng: StdRng::seed_from_u64(seed), width, places, rare }
    }

    /// One to three filters.
    pub(crate) fn subscription(&mut self) -> Subscription {
        let filters_count = *[1, 1, 2, 3].choose(&mut self.rng).expect("not empty");
        (0..filters_count).map(|_| self.filter()).collect()
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.rng.random_range(0..bound)
    }

    fn filter(&mut self) -> Filter {
        let area = self.area();
        // Where taxis wait there are many, and all would get everything: most filters are choosy, as users are.
        let condition_idx = if matches!(area, Area::Everywhere) || self.below(4) > 0 {
            *self.rare.choose(&mut self.rng).expect("not empty")
        } else {
            self.below(CONDITIONS.len())
        };
        Filter { area, condition_idx }
    }

    fn area(&mut self) -> Area {
        let center = *self.places.choose(&mut self.rng).expect("not empty");
        match self.below(100) {
            0..40 => Area::Following { radius_m: self.rng.random_range(30.0..400.0) * self.width },
            40..60 => Area::Circle { center, radius_m: self.rng.random_range(20.0..350.0) * self.width },
            60..80 => self.polygons(center),
            80..98 => self.corridor(center),
            _ => Area::Everywhere,
        }
    }

    fn polygons(&mut self, center: Place) -> Area {
        match self.below(4) {
            0 => Area::Polygons(vec![vec![self.star(center, 0.001, 0.004)]]),
            3 => Area::Polygons(vec![self.with_holes(center)]),
            1 => {
                Area::Polygons(vec![vec![self.star(center, 0.002, 0.005), self.star(center, 0.0005, 0.0015)]])
            }
            _ => {
                let beside = [center[0] + 0.06, center[1] - 0.01];
                Area::Polygons(vec![
                    vec![self.star(center, 0.002, 0.003), self.star(center, 0.0005, 0.0015)],
                    vec![self.star(beside, 0.001, 0.004)],
                ])
            }
        }
    }

    /// A ring with holes that overlap, one of them twice, one across the ring and one outside of it.
    fn with_holes(&mut self, center: Place) -> Vec<Vec<Place>> {
        let beside = |degrees: f64| [center[0] + degrees * self.width, center[1]];
        let (near, across, apart) = (beside(0.000_6), beside(0.003), beside(0.012));
        let hole = self.star(center, 0.000_5, 0.001_5);
        vec![
            self.star(center, 0.002, 0.005),
            hole.clone(),
            self.star(near, 0.000_5, 0.001_5),
            self.star(across, 0.000_5, 0.002),
            hole,
            self.star(apart, 0.001, 0.003),
        ]
    }

    /// A closed ring around a centre that never crosses itself; its radius in degrees varies between two bounds.
    fn star(&mut self, center: Place, least: f64, most: f64) -> Vec<Place> {
        let corners_count = self.rng.random_range(4..12_u32);
        let mut ring = (0..corners_count)
            .map(|corner| {
                let angle = f64::from(corner) / f64::from(corners_count) * std::f64::consts::TAU;
                let radius = self.rng.random_range(least..most) * self.width;
                [center[0] + radius * angle.cos(), center[1] + radius * angle.sin()]
            })
            .collect::<Vec<_>>();
        ring.push(ring[0]);
        ring
    }

    fn corridor(&mut self, start: Place) -> Area {
        let mut line = vec![start];
        for _ in 0..self.rng.random_range(1..6_u32) {
            let [lon, lat] = line[line.len() - 1];
            line.push([lon + self.rng.random_range(-0.03..0.03), lat + self.rng.random_range(-0.02..0.02)]);
        }
        Area::Corridor { line, radius_m: self.rng.random_range(10.0..60.0) * self.width }
    }
}
