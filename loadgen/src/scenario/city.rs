//! A city: vehicles on real streets, whose areas go with them, and what happens on the way.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use matcher::area::Area;
use matcher::condition::Condition;
use matcher::event::{Event, Scalar, Symbol, Value};
use matcher::geo::{Position, Radius, World};
use matcher::subscription::Filter;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use streets::Network;

use super::{Events, Moves, Reconnects, Scenario};
use crate::noise::{self, Noise};
use crate::plan::{Act, Client, Occurrence, Plan, Step, Steps, Wish};
use crate::traffic::{self, Change, Incident, Kind, Traffic};

/// The streets that come with the program. Where they are from and on what terms: the README beside them.
const LIECHTENSTEIN: &[u8] = include_bytes!("../../data/liechtenstein/highways.osm.pbf");

/// Their name as a file.
const LIECHTENSTEIN_NAME: &str = "liechtenstein";

/// Digits of a coordinate in degrees that are sent: a hundredth of a metre.
const DEGREES: f64 = 1e7;

/// How long the end of an incident is live, in seconds.
const OVER_TTL_S: f64 = 1.0;

/// A city.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct City {
    /// OpenStreetMap (`.osm.pbf`, `.osm`, `.osm.gz`) or a folder with `nodes.csv` and `edges.csv`, by its path from the scenario's folder; or
    /// `liechtenstein`, which comes with the program.
    pub streets: String,
    /// How it drives. The first `clients.count` vehicles are clients.
    pub traffic: traffic::Settings,
    /// How wrong told positions are; absent: not at all.
    pub noise: Option<noise::Settings>,
    /// Seconds that are driven before the run begins.
    pub before_s: f64,
    /// Seconds of a step.
    #[serde(serialize_with = "crate::traffic::as_written")]
    pub step_s: f32,
    /// How many seconds of the city go by in one of the run.
    pub speed: f64,
    /// Radius of the area around each client.
    pub radius_m: f64,
    /// Conditions, dealt to the clients in turn. Events have `type` (`breakdown`, `jam`, `parking`, `post`), incidents also `street`,
    /// `speed_kmh`, `limit_kmh`, `vehicles`, and `over` when they are; posts, of which there are `events.rate` a second, `severity` from 1 to 5.
    pub conditions: Vec<String>,
    /// For how many seconds an incident is live at most.
    pub incident_ttl_s: f64,
}

impl Default for City {
    fn default() -> Self {
        Self {
            streets: LIECHTENSTEIN_NAME.to_owned(),
            traffic: traffic::Settings::default(),
            noise: Some(noise::Settings::default()),
            before_s: 120.0,
            step_s: 0.5,
            speed: 1.0,
            radius_m: 1_000.0,
            conditions: vec![
                "type IN ('breakdown', 'jam') OR type = 'post' AND severity >= 4".to_owned(),
                "type = 'parking' OR type = 'post' AND severity >= 3".to_owned(),
                "type = 'jam' AND speed_kmh < 10 OR type = 'post' AND severity = 5".to_owned(),
            ],
            incident_ttl_s: 1_800.0,
        }
    }
}

/// The city with everybody in it.
#[derive(Clone)]
pub(super) struct CityPlan {
    city: City,
    network: Arc<Network>,
    filters: Vec<Filter>,
    clients: u32,
    duration: Duration,
    moves: Moves,
    events: Events,
    reconnects: Reconnects,
    seed: u64,
}

impl CityPlan {
    pub(super) fn new(scenario: &Scenario, city: &City) -> anyhow::Result<Self> {
        let mut city = city.clone();
        city.traffic.vehicles = city.traffic.vehicles.max(scenario.clients.count);
        for (key, value, least, most) in [
            ("before_s", city.before_s, 0.0, 1e5),
            ("step_s", f64::from(city.step_s), 0.05, 2.0),
            ("speed", city.speed, 0.01, 1_000.0),
            ("incident_ttl_s", city.incident_ttl_s, 1.0, 1e6),
        ] {
            ensure!(
                (least..=most).contains(&value),
                "city.{key} has to be from {least} to {most}, not {value}"
            );
        }
        ensure!(!city.conditions.is_empty(), "city.conditions has to have one");
        let network = network(&city.streets, &scenario.folder).context("city.streets")?;
        let radius = Radius::new(World::Geodetic, city.radius_m).context("city.radius_m")?;
        let filter = |text: &String| -> anyhow::Result<Filter> {
            let condition = Condition::parse(text).with_context(|| format!("city.conditions: {text}"))?;
            Ok(Filter { area: Area::Following(radius), condition })
        };
        let filters = city.conditions.iter().map(filter).collect::<anyhow::Result<_>>()?;
        let plan = Self {
            network: Arc::new(network),
            filters,
            clients: scenario.clients.count,
            duration: scenario.duration(),
            moves: scenario.moves.clone(),
            events: scenario.events.clone(),
            reconnects: scenario.reconnects.clone(),
            seed: scenario.seed,
            city,
        };
        Drive::new(&plan).context("city")?;
        Ok(plan)
    }
}

/// A network by its path, or the one that comes with the program.
///
/// # Errors
/// As [`streets::load_connected`].
pub fn network(name: &str, folder: &Path) -> anyhow::Result<Network> {
    if name != LIECHTENSTEIN_NAME {
        return Ok(streets::load_connected(&folder.join(name))?);
    }
    let mut file = tempfile::Builder::new().suffix(".osm.pbf").tempfile()?;
    file.write_all(LIECHTENSTEIN)?;
    Ok(streets::load_connected(file.path())?)
}

impl Plan for CityPlan {
    fn world(&self) -> World {
        World::Geodetic
    }

    fn clients(&self) -> Vec<Client> {
        let mut drive = Drive::new(self).expect("it was seen to drive");
        let client = |index: u32| {
            let filter = self.filters[index as usize % self.filters.len()].clone();
            let wish =
                Wish { id: "near".to_owned(), filters: vec![filter], is_durable: self.reconnects.durable };
            let home = Some(drive.told(index).0);
            Client { name: format!("vehicle-{index}"), home, wishes: vec![wish] }
        };
        (0..self.clients).map(client).collect()
    }

    fn steps(&self) -> Steps {
        let mut drive = Drive::new(self).expect("it was seen to drive");
        let duration = self.duration;
        let mut made = VecDeque::new();
        let steps = std::iter::from_fn(move || {
            while made.is_empty() && drive.at < duration {
                drive.step(&mut made);
            }
            made.pop_front()
        });
        let breaks = super::breaks(&self.reconnects, self.clients, self.seed, self.duration);
        let steps = steps.take_while(move |step: &Step| step.at < duration);
        Box::new(super::merge::merge(vec![Box::new(steps), breaks]))
    }

    fn remarks(&self) -> Vec<String> {
        vec![format!(
            "{} vehicles on {:.0} km of lanes, {}",
            self.city.traffic.vehicles,
            self.network.lanes_m() / 1e3,
            match &self.city.noise {
                Some(noise) => format!(
                    "told with a bias of {} m, a jitter of {} m, and {} jumps an hour",
                    noise.bias_m, noise.jitter_m, noise.jumps_per_h
                ),
                None => "told as they are".to_owned(),
            }
        )]
    }
}

/// The city as it drives.
struct Drive {
    plan: CityPlan,
    traffic: Traffic,
    noise: Option<Noise>,
    /// One thread: the others are the broker's.
    pool: rayon::ThreadPool,
    /// By time in the run: who tells where it is, within an interval of moves.
    beats: Vec<(f64, u32)>,
    next_beat: usize,
    turn: u32,
    posts: std::iter::Peekable<Box<dyn Iterator<Item = Duration> + Send>>,
    rng: SmallRng,
    /// How far the run is.
    at: Duration,
}

impl Drive {
    fn new(plan: &CityPlan) -> anyhow::Result<Self> {
        let City { traffic, noise, before_s, step_s, .. } = &plan.city;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        let mut traffic = Traffic::new(Arc::clone(&plan.network), traffic.clone(), plan.seed)?;
        let noise =
            noise.map(|noise| Noise::new(plan.city.traffic.vehicles, noise, plan.seed)).transpose()?;
        pool.install(|| {
            while traffic.now_s() < *before_s {
                traffic.step(*step_s);
            }
        });
        let mut rng = SmallRng::seed_from_u64(plan.seed ^ 0xC17);
        let interval_s = plan.moves.interval_s;
        let mut beats: Vec<(f64, u32)> = Vec::new();
        if interval_s > 0.0 {
            beats.extend((0..plan.clients).map(|client| (rng.random_range(0.0..interval_s), client)));
            beats.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let posts = super::arrivals(&plan.events, plan.seed).peekable();
        let at = Duration::ZERO;
        Ok(Self { plan: plan.clone(), traffic, noise, pool, beats, next_beat: 0, turn: 0, posts, rng, at })
    }

    /// Where a vehicle says that it is, and where it is if that is somewhere else.
    fn told(&mut self, vehicle: u32) -> (Position, Option<Position>) {
        let truth = self.traffic.position(vehicle);
        let now_s = self.traffic.now_s();
        match &mut self.noise {
            Some(noise) => {
                (position(noise.told(World::Geodetic, vehicle, now_s, truth)), Some(position(truth)))
            }
            None => (position(truth), None),
        }
    }

    /// Drives a step, and makes what everybody says in it.
    fn step(&mut self, made: &mut VecDeque<Step>) {
        let Self { traffic, pool, .. } = self;
        let step_s = self.plan.city.step_s;
        let changes: Vec<Change> = pool.install(|| traffic.step(step_s).to_vec());
        let (from, speed) = (self.at, self.plan.city.speed);
        let until = from + Duration::from_secs_f64(f64::from(step_s) / speed);
        for change in changes {
            let occurrence = Box::new(self.incident(&change));
            made.push_back(Step { at: from, act: Act::Publish(occurrence) });
        }
        while let Some(at) = self.posts.next_if(|at| *at < until) {
            let occurrence = Box::new(self.post());
            made.push_back(Step { at: at.max(from), act: Act::Publish(occurrence) });
        }
        while let Some((beat, client)) = self.beats.get(self.next_beat).copied() {
            let at = Duration::from_secs_f64(beat + f64::from(self.turn) * self.plan.moves.interval_s);
            if at >= until {
                break;
            }
            let (to, truth) = self.told(client);
            made.push_back(Step { at: at.max(from), act: Act::Move { client, to, truth } });
            self.next_beat += 1;
            if self.next_beat == self.beats.len() {
                (self.next_beat, self.turn) = (0, self.turn + 1);
            }
        }
        made.make_contiguous().sort_by_key(|step| step.at);
        self.at = until;
    }

    /// What somebody posts, somewhere on the way.
    fn post(&mut self) -> Occurrence {
        let vehicle = self.rng.random_range(0..self.traffic.vehicles_count());
        let (told, truth) = self.told(vehicle);
        let mut event = Event::at(told)
            .with("type", text("post"))
            .with("severity", f64::from(self.rng.random_range(1..=5)));
        if self.plan.events.padding_bytes > 0 {
            event = event.with("note", text(&"x".repeat(self.plan.events.padding_bytes as usize)));
        }
        Occurrence { event, truth, ttl_s: self.plan.events.ttl_s, key: None, is_alarm: false }
    }

    /// What is published of an incident.
    fn incident(&mut self, change: &Change) -> Occurrence {
        let (Change::Began(incident) | Change::Ended(incident)) = change;
        let Incident { number, kind, position: place, street, speed_kmh, limit_kmh, vehicles, .. } = incident;
        let kind = match kind {
            Kind::Breakdown => "breakdown",
            Kind::Jam => "jam",
            Kind::FreeParking => "parking",
        };
        let mut event = Event::at(position(*place))
            .with("type", text(kind))
            .with("speed_kmh", *speed_kmh)
            .with("limit_kmh", *limit_kmh)
            .with("vehicles", f64::from(*vehicles));
        if let Some(street) = street {
            event = event.with("street", text(street));
        }
        let is_over = matches!(change, Change::Ended(_));
        if is_over {
            event = event.with("over", Value::Scalar(Scalar::Bool(true)));
        }
        let ttl_s = if is_over { OVER_TTL_S } else { self.plan.city.incident_ttl_s };
        Occurrence { event, truth: None, ttl_s, key: Some(format!("incident-{number}")), is_alarm: false }
    }
}

fn text(text: &str) -> Value {
    Value::Scalar(Scalar::Text(Symbol::new(text)))
}

/// Streets lie in the world, and errors are some hundred metres.
fn position(coordinates: [f64; 2]) -> Position {
    let rounded = coordinates.map(|degrees| (degrees * DEGREES).round() / DEGREES);
    let clamped = [rounded[0].clamp(-180.0, 180.0), rounded[1].clamp(-90.0, 90.0)];
    World::Geodetic.position(&clamped).expect("clamped into the world")
}
