//! Tracks through fences: one tracker holds every fence once for each way of asking for its transitions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use matcher::area::Area;
use matcher::condition::Condition;
use matcher::engine::cells::Cells;
use matcher::engine::{Engine as _, MatchRows};
use matcher::event::Event;
use matcher::geo::{Position, Radius, World};
use matcher::live::{
    Announcement, Change, Effect, Interest, Moment, Partition, Settings, Tracker, Transitions,
};
use matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::tracks::{Report, has_fix};
use super::visits::{Comparison, Visit};

/// Nobody leaves by staying silent: reports come every half a minute, and the recording has twenty minutes.
const LIFE: Duration = Duration::from_secs(86_400);

/// A way of asking for transitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// How long a vehicle has to stay before it enters.
    pub dwell_s: u32,
    /// How far outside it has to be before it leaves.
    pub hysteresis_m: f64,
}

/// Circles that stay.
#[derive(Clone, Debug)]
pub struct Fences {
    /// Their centres.
    pub centres: Vec<Position>,
    /// The radius of all.
    pub radius: Radius,
}

/// Visits by fence and vehicle.
pub type Visits = BTreeMap<(usize, u32), Vec<Visit>>;

impl Fences {
    /// So many around places where vehicles have been, drawn from a seed.
    ///
    /// # Errors
    /// When the radius is none, or nobody has been anywhere.
    pub fn draw(reports: &[Report], count: usize, radius_m: f64, seed: u64) -> anyhow::Result<Self> {
        let places: Vec<_> = reports.iter().filter(|report| has_fix(report)).collect();
        anyhow::ensure!(!places.is_empty(), "no reports");
        let mut random = StdRng::seed_from_u64(seed);
        let centres = (0..count).map(|_| places[random.random_range(0..places.len())].position).collect();
        Ok(Self { centres, radius: Radius::new(World::Geodetic, radius_m).context("a radius")? })
    }

    /// The visits as the tracks themselves have them: inside is what is within the radius.
    #[must_use]
    pub fn visits(&self, tracks: &[Report], end: Duration) -> Visits {
        let mut visits = Recorder::default();
        for report in tracks {
            for (fence, centre) in self.centres.iter().enumerate() {
                let is_inside = World::Geodetic.distance_m(centre, &report.position) <= self.radius.metres();
                visits.set(fence, report.taxi, is_inside, report.at);
            }
        }
        visits.finish(end)
    }

    /// The visits as they are reported, for each way of asking.
    ///
    /// # Errors
    /// When an engine fails, which those on the CPU never do.
    pub fn told(&self, reports: &[Report], ways: &[Way], end: Duration) -> anyhow::Result<Vec<Visits>> {
        let mut run = Run::new(self, ways)?;
        for report in reports {
            run.take(report)?;
        }
        run.advance(end);
        Ok(run.recorders.into_iter().map(|recorder| recorder.finish(end)).collect())
    }
}

/// Compares what was told with what was.
#[must_use]
pub fn compare(told: &Visits, real: &Visits) -> Comparison {
    let mut comparison = Comparison::default();
    let keys: std::collections::BTreeSet<_> = told.keys().chain(real.keys()).collect();
    let of = |visits: &Visits, key| visits.get(key).cloned().unwrap_or_default();
    for key in keys {
        comparison.add(&of(told, key), &of(real, key));
    }
    comparison
}

/// Visits under way.
#[derive(Debug, Default)]
struct Recorder {
    open: BTreeMap<(usize, u32), Duration>,
    visits: Visits,
}

impl Recorder {
    fn set(&mut self, fence: usize, taxi: u32, is_inside: bool, at: Duration) {
        let key = (fence, taxi);
        if is_inside {
            self.open.entry(key).or_insert(at);
        } else if let Some(from) = self.open.remove(&key) {
            self.visits.entry(key).or_default().push(Visit { from, to: at });
        }
    }

    fn finish(mut self, end: Duration) -> Visits {
        for (key, from) in std::mem::take(&mut self.open) {
            self.visits.entry(key).or_default().push(Visit { from, to: end });
        }
        self.visits
    }
}

/// A run of all tracks. Subscriptions are numbered way by way, and fence by fence in each.
struct Run {
    engine: Cells,
    tracker: Tracker<u32>,
    recorders: Vec<Recorder>,
    fences_count: usize,
    sequence: u64,
    rows: MatchRows,
    effects: Vec<Effect<u32>>,
}

impl Run {
    fn new(fences: &Fences, ways: &[Way]) -> anyhow::Result<Self> {
        let settings = Settings { members_max: 10_000, members_per_client: 100_000, holds_inaccurate: true };
        let mut run = Self {
            engine: Cells::new(World::Geodetic),
            tracker: Tracker::new(World::Geodetic, settings),
            recorders: ways.iter().map(|_| Recorder::default()).collect(),
            fences_count: fences.centres.len(),
            sequence: 0,
            rows: MatchRows::new(),
            effects: Vec::new(),
        };
        let each = ways.iter().flat_map(|way| fences.centres.iter().map(move |centre| (way, centre)));
        for (id, (way, centre)) in (0_u32..).zip(each) {
            let area = Area::Circle { centre: *centre, radius: fences.radius };
            let filters = vec![Filter { area, condition: Condition::always() }];
            let subscription = Subscription { client: ClientId(id), filters };
            run.engine.install(SubscriptionId(id), &subscription)?;
            let interest = Interest::Transitions(Transitions {
                enter: true,
                exit: true,
                initial: false,
                dwell: Duration::from_secs(way.dwell_s.into()),
                hysteresis_m: way.hysteresis_m,
            });
            let (id, effects) = (SubscriptionId(id), &mut run.effects);
            run.tracker.install(id, subscription, vec![None], interest, Duration::ZERO, effects);
        }
        Ok(run)
    }

    fn take(&mut self, report: &Report) -> anyhow::Result<()> {
        self.advance(report.at);
        self.sequence += 1;
        let event = Arc::new(Event { position: report.position, attributes: Vec::new(), reach: None });
        self.rows.clear();
        self.engine.match_batch(&[&event], &mut self.rows)?;
        let taxi: Arc<str> = report.taxi.to_string().into();
        let announcement = Announcement {
            object: Arc::clone(&taxi),
            id: taxi,
            sequence: self.sequence,
            expires: report.at + LIFE,
            partition: Partition::default(),
            event,
            payload: report.taxi,
        };
        self.tracker.publish(announcement, self.rows.row(0), report.at, &mut self.effects);
        self.record(report.at);
        Ok(())
    }

    /// Lets what is due happen, each at its own time.
    fn advance(&mut self, now: Moment) {
        while let Some(at) = self.tracker.next_deadline().filter(|at| *at <= now) {
            self.tracker.advance(at, &mut self.effects);
            self.record(at);
        }
    }

    fn record(&mut self, at: Duration) {
        for effect in self.effects.drain(..) {
            let id = effect.subscription.0 as usize;
            let (way, fence) = (id / self.fences_count, id % self.fences_count);
            let is_inside = match effect.change {
                Change::Entered => true,
                Change::Left | Change::Lost => false,
                Change::Reached | Change::Refused => continue,
            };
            self.recorders[way].set(fence, effect.payload, is_inside, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tracks::{cleaned, recorded};
    use super::*;

    const PLAIN: Way = Way { dwell_s: 0, hysteresis_m: 0.0 };

    #[test]
    fn a_plain_fence_tells_what_the_track_has() {
        let reports = &recorded().unwrap()[..6_000];
        let end = reports[reports.len() - 1].at + Duration::from_secs(1);
        let fences = Fences::draw(reports, 40, 300.0, 7).unwrap();
        let told = fences.told(reports, &[PLAIN], end).unwrap();
        let real = fences.visits(reports, end);
        assert!(real.len() > 100, "too few visits to mean anything");
        assert_eq!(told, [real]);
    }

    #[test]
    fn dwell_and_hysteresis_save_false_pairs() {
        let reports = &recorded().unwrap()[..12_000];
        let end = reports[reports.len() - 1].at + Duration::from_secs(1);
        let fences = Fences::draw(reports, 40, 200.0, 7).unwrap();
        let both = Way { dwell_s: 45, hysteresis_m: 100.0 };
        let told = fences.told(reports, &[PLAIN, both], end).unwrap();
        let real = fences.visits(&cleaned(reports), end);
        let [plain, both] = [&told[0], &told[1]].map(|told| compare(told, &real));
        assert!(plain.false_pairs() > 0 && both.false_pairs() < plain.false_pairs(), "{plain:?} {both:?}");
        assert_eq!(plain.visits, both.visits);
    }
}
