//! Taxis and riders that move through a town, and the groups among them.

use std::f64::consts::TAU;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{anyhow, ensure};
use groups::matching::{Bounds, Candidate, Definition, Matching, RoleSet};
use matcher::World;
use matcher::event::Event;
use matcher::geo::{Position, Radius};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Metres between a taxi and a rider that fit.
pub const PICKUP_M: f64 = 800.0;
/// Metres between a rider and a stand that fit.
pub const STAND_M: f64 = 200.0;
/// Metres that somebody moves in a second.
pub const STEP_M: f64 = 10.0;

/// Where the corner of a geodetic town is, in degrees, and how many metres a degree has there, about.
const CORNER_DEG: [f64; 2] = [10.5, 59.8];
const DEGREE_M: [f64; 2] = [56_000.0, 111_195.0];

/// What there is.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The world.
    pub world: World,
    /// Taxis.
    pub taxis: usize,
    /// Riders.
    pub riders: usize,
    /// Stands, which do not move; without any, groups have two roles.
    pub stands: usize,
    /// Metres of the side of the square that they are in.
    pub side_m: f64,
    /// Reported groups.
    pub limit: usize,
}

/// Who moves in a square, and the matching that follows it.
pub struct Town {
    setting: Setting,
    random: StdRng,
    matching: Matching,
    objects: Vec<Object>,
    told: usize,
}

struct Object {
    name: String,
    role: usize,
    place: [f64; 2],
    heading: f64,
    /// Seats of a taxi, or persons of a rider.
    number: f64,
}

impl Town {
    /// Puts everybody in.
    ///
    /// # Errors
    /// When there is more than a matching takes by its default bounds.
    pub fn new(setting: Setting, seed: u64) -> anyhow::Result<Self> {
        let conditions = [
            format!("DISTANCE(taxi, rider) <= {PICKUP_M}"),
            "taxi.seats >= rider.party".to_owned(),
            format!("DISTANCE(rider, stand) <= {STAND_M}"),
        ];
        let conditions: Vec<_> = conditions.iter().map(String::as_str).collect();
        let roles = if setting.stands > 0 { 3 } else { 2 };
        let definition = Definition::new(
            setting.world,
            &["taxi", "rider", "stand"][..roles],
            &conditions[..if roles == 3 { 3 } else { 1 }],
            Some("DISTANCE(taxi, rider)"),
            setting.limit,
        );
        let definition = definition.map_err(|faults| anyhow!("{faults:?}"))?;
        let mut town = Self {
            setting,
            random: StdRng::seed_from_u64(seed),
            matching: Matching::new(Arc::new(definition), Bounds::default()),
            objects: Vec::new(),
            told: 0,
        };
        let counts = [("taxi", setting.taxis), ("rider", setting.riders), ("stand", setting.stands)];
        for (role, (what, count)) in counts.into_iter().enumerate() {
            for number in 0..count {
                let place = town.anywhere();
                let heading = town.random.random_range(0.0..TAU);
                let name = format!("{what}-{number:05}");
                let number = f64::from(town.random.random_range(1..=[6, 4, 1][role]));
                town.objects.push(Object { name, role, place, heading, number });
                town.put(town.objects.len() - 1)?;
            }
        }
        town.told = 0;
        Ok(town)
    }

    fn anywhere(&mut self) -> [f64; 2] {
        [(); 2].map(|()| self.random.random_range(0.0..self.setting.side_m))
    }

    fn position(&self, place: [f64; 2]) -> anyhow::Result<Position> {
        let coordinates = match self.setting.world {
            World::Planar => place,
            World::Geodetic => [0, 1].map(|axis| CORNER_DEG[axis] + place[axis] / DEGREE_M[axis]),
        };
        Ok(self.setting.world.position(&coordinates)?)
    }

    /// Tells the matching where an object is; nanoseconds that this takes.
    fn put(&mut self, idx: usize) -> anyhow::Result<u64> {
        let object = &self.objects[idx];
        let attribute = ["seats", "party", "places"][object.role];
        let event = Event::at(self.position(object.place)?).with(attribute, object.number);
        let candidate = Candidate { event: Arc::new(event), time_ms: 0 };
        let roles = RoleSet::EMPTY.with(object.role);
        let began = Instant::now();
        let changes = self.matching.put(&object.name, roles, candidate)?;
        let took = began.elapsed();
        self.told += changes.len();
        Ok(u64::try_from(took.as_nanos())?)
    }

    /// All taxis and riders move once, in a random order; appends the nanoseconds of each move.
    ///
    /// # Errors
    /// When a bound is passed.
    pub fn second(&mut self, took_ns: &mut Vec<u64>) -> anyhow::Result<()> {
        let moving = self.setting.taxis + self.setting.riders;
        for _ in 0..moving {
            let idx = self.random.random_range(0..moving);
            let turn = self.random.random_range(-0.3..0.3);
            let side_m = self.setting.side_m;
            let object = &mut self.objects[idx];
            object.heading += turn;
            let [x, y] = object.place;
            let to = [x + STEP_M * object.heading.cos(), y + STEP_M * object.heading.sin()];
            if to.iter().any(|coordinate| !(0.0..side_m).contains(coordinate)) {
                object.heading += TAU / 2.0;
            } else {
                object.place = to;
            }
            took_ns.push(self.put(idx)?);
        }
        Ok(())
    }

    /// The rider of the first group is served: it is gone, and another one comes somewhere else; appends the nanoseconds of both together.
    ///
    /// # Errors
    /// When a bound is passed, or there is no group.
    pub fn serve(&mut self, took_ns: &mut Vec<u64>) -> anyhow::Result<()> {
        let groups = self.matching.groups();
        let name = groups.first().ok_or_else(|| anyhow!("nobody to serve"))?.objects()[1].clone();
        let idx = self.setting.taxis + name.trim_start_matches("rider-").parse::<usize>()?;
        let began = Instant::now();
        let changes = self.matching.remove(&name)?;
        let took = began.elapsed();
        self.told += changes.len();
        self.objects[idx].place = self.anywhere();
        took_ns.push(u64::try_from(took.as_nanos())? + self.put(idx)?);
        Ok(())
    }

    /// Enters and exits since this was asked last.
    pub fn take_told(&mut self) -> usize {
        std::mem::take(&mut self.told)
    }

    /// Bytes of the matching.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.matching.bytes()
    }

    /// Holds the groups against all pairs; how many pairs of a taxi and a rider fit.
    ///
    /// # Errors
    /// When the groups are others.
    pub fn check(&self) -> anyhow::Result<usize> {
        let positions: Vec<_> =
            self.objects.iter().map(|object| self.position(object.place)).collect::<Result<_, _>>()?;
        let world = self.setting.world;
        let [pickup_radius, stand_radius] = [Radius::new(world, PICKUP_M)?, Radius::new(world, STAND_M)?];
        let of_role =
            |role: usize| (0..self.objects.len()).filter(move |idx| self.objects[*idx].role == role);
        let has_stands = self.setting.stands > 0;
        let (mut pairs, mut expected) = (0, Vec::new());
        for rider in of_role(1) {
            let is_near = |stand: &usize| stand_radius.holds(world, &positions[rider], &positions[*stand]);
            let stands: Vec<_> =
                of_role(2).filter(is_near).map(|stand| Some(&*self.objects[stand].name)).collect();
            let stands = if has_stands { stands } else { vec![None] };
            for taxi in of_role(0) {
                if !pickup_radius.holds(world, &positions[taxi], &positions[rider]) {
                    continue;
                }
                let distance_m = world.distance_m(&positions[taxi], &positions[rider]);
                let [taxi, rider] = [taxi, rider].map(|idx| &self.objects[idx]);
                if !has_stands || taxi.number >= rider.number {
                    pairs += 1;
                    let group = |stand: &Option<_>| (distance_m, &*taxi.name, &*rider.name, *stand);
                    expected.extend(stands.iter().map(group));
                }
            }
        }
        expected.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| (a.1, a.2, a.3).cmp(&(b.1, b.2, b.3))));
        expected.truncate(self.setting.limit);
        let groups = self.matching.groups();
        ensure!(groups.len() == expected.len(), "{} groups, not {}", groups.len(), expected.len());
        for (group, (_, taxi, rider, stand)) in groups.iter().zip(expected) {
            let names = [Some(taxi), Some(rider), stand];
            let is_same = group
                .objects()
                .iter()
                .map(|name| Some(&**name))
                .eq(names.into_iter().filter(Option::is_some));
            ensure!(is_same, "{:?} stands where {names:?} should", group.objects());
        }
        Ok(pairs)
    }
}
