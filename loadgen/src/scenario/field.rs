//! A made-up town: a square in which clients lie evenly, or all in one spot, and walk about.

use std::f64::consts::TAU;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use matcher::area::Area;
use matcher::condition::Condition;
use matcher::evaluation::condition_holds;
use matcher::event::{Event, Scalar, Symbol, Value};
use matcher::geo::{EARTH_RADIUS_M, Position, Radius, World};
use matcher::subscription::Filter;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::{Events, Moves, Reconnects, Scenario};
use crate::plan::{Act, Client, Occurrence, Plan, Step, Steps, Wish};

/// Digits of a coordinate in degrees that are sent: a hundredth of a metre.
const DEGREES: f64 = 1e7;

/// Events that say how many conditions hold on average.
const SAMPLE: u32 = 2_000;

/// A square town.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Field {
    /// Its middle, longitude and latitude.
    pub middle: [f64; 2],
    /// Its side in metres.
    pub side_m: f64,
    /// Distance from the middle, in metres, within which all clients and events are; 0: all over the town.
    pub crowd_m: f64,
    /// Number of places at which all clients and events are: an even grid of them, clients in turn and events by chance, all so near
    /// to it that a client at a place gets what happens there, and nothing else; 0: all over the town.
    pub places: u32,
    /// Radius of the area around each client; 0: whatever makes `fan_out`.
    pub radius_m: f64,
    /// Deliveries of an event, on average, where `radius_m` is 0.
    pub fan_out: f64,
    /// Conditions, dealt to the clients in turn, where `{type}` stands for each of `types`. Events have `type`, `severity` from 1 to 5, `lanes` from 1 to 4 and `road`.
    pub conditions: Vec<String>,
    /// Types of events, all alike.
    pub types: Vec<String>,
    /// Whether areas stay where they are.
    pub stays: bool,
    /// Subscriptions of each client without a connection.
    pub silent_subscriptions: u32,
    /// Areas of each subscription of a client without a connection; 0: it wants alarms alone.
    pub silent_filters: u32,
}

impl Default for Field {
    fn default() -> Self {
        Self {
            middle: [9.5, 45.5],
            side_m: 20_000.0,
            crowd_m: 0.0,
            places: 0,
            radius_m: 0.0,
            fan_out: 10.0,
            conditions: vec!["type = 'accident' AND severity >= 2".to_owned()],
            types: vec!["accident".to_owned(), "works".to_owned()],
            stays: false,
            silent_subscriptions: 1,
            silent_filters: 1,
        }
    }
}

/// The town with everybody in it.
#[derive(Clone)]
pub(super) struct Town {
    field: Field,
    seed: u64,
    clients: u32,
    silent: u64,
    duration: Duration,
    moves: Moves,
    events: Events,
    reconnects: Reconnects,
    conditions: Vec<Condition>,
    radius: Radius,
    alarm: Option<Filter>,
}

impl Town {
    pub(super) fn new(scenario: &Scenario, field: &Field) -> anyhow::Result<Self> {
        ensure!(
            field.side_m > 0.0 && field.side_m < 1e6,
            "field.side_m has to be more than 0 and less than 1,000,000"
        );
        if field.places > 0 {
            let apart_m = field.side_m / places_across(field.places);
            ensure!(
                field.radius_m > 0.0 && field.radius_m <= apart_m / 4.0,
                "field.radius_m has to be more than 0 and a quarter at most of the {apart_m} m that field.places are apart",
            );
            ensure!(field.crowd_m == 0.0, "field.places and field.crowd_m do not go together");
        }
        ensure!(!field.conditions.is_empty(), "field.conditions has to have one");
        ensure!(!field.types.is_empty(), "field.types has to have one");
        let mut conditions = Vec::new();
        for text in &field.conditions {
            let types = if text.contains("{type}") { &field.types[..] } else { &field.types[..1] };
            for kind in types {
                let text = text.replace("{type}", kind);
                let parsed = Condition::parse(&text).with_context(|| format!("field.conditions: {text}"))?;
                conditions.push(parsed);
            }
        }
        let mut town = Self {
            field: field.clone(),
            seed: scenario.seed,
            clients: scenario.clients.count,
            silent: scenario.clients.silent,
            duration: scenario.duration(),
            moves: scenario.moves.clone(),
            events: scenario.events.clone(),
            reconnects: scenario.reconnects.clone(),
            conditions,
            radius: Radius::new(World::Geodetic, 1.0)?,
            alarm: None,
        };
        for corner in [-field.side_m, field.side_m] {
            town.position(corner, corner).context("field.middle and field.side_m")?;
        }
        let radius_m = if field.radius_m > 0.0 { field.radius_m } else { town.radius_for_fan_out()? };
        town.radius = Radius::new(World::Geodetic, radius_m).context("field.radius_m")?;
        if !scenario.events.alarms_s.is_empty() {
            let area = Area::Circle {
                centre: World::Geodetic.position(&field.middle).context("field.middle")?,
                radius: Radius::new(World::Geodetic, field.side_m)?,
            };
            town.alarm = Some(Filter { area, condition: Condition::parse("type = 'alarm'")? });
        }
        Ok(town)
    }

    /// The radius with which an event goes to a number of clients on average, edges aside.
    fn radius_for_fan_out(&self) -> anyhow::Result<f64> {
        let Field { fan_out, side_m, .. } = self.field;
        ensure!(fan_out > 0.0, "field.fan_out or field.radius_m has to be more than 0");
        let mut rng = SmallRng::seed_from_u64(self.seed);
        let events: Vec<Event> = (0..SAMPLE).map(|_| self.event(&mut rng, 1).event).collect();
        let holds = self.conditions.iter().map(|condition| {
            let filter = Filter { area: Area::Everywhere, condition: condition.clone() };
            events.iter().filter(|event| condition_holds(&filter, None, event)).count()
        });
        let share = holds.sum::<usize>() as f64 / (events.len() * self.conditions.len()) as f64;
        ensure!(share > 0.0, "no event of this town satisfies field.conditions");
        let silent = if self.field.silent_filters == 0 { 0.0 } else { self.silent as f64 };
        let everybody = f64::from(self.clients) + silent;
        Ok((fan_out * side_m * side_m / (share * everybody * std::f64::consts::PI)).sqrt())
    }

    /// So many metres east and north of the middle.
    fn position(&self, east_m: f64, north_m: f64) -> anyhow::Result<Position> {
        let [lon, lat] = self.field.middle;
        let north = north_m / EARTH_RADIUS_M;
        let east = east_m / (EARTH_RADIUS_M * lat.to_radians().cos());
        let round = |degrees: f64| (degrees * DEGREES).round() / DEGREES;
        Ok(World::Geodetic.position(&[round(lon + east.to_degrees()), round(lat + north.to_degrees())])?)
    }

    /// A place in the town, in metres from the middle.
    fn spot(&self, rng: &mut SmallRng) -> [f64; 2] {
        if self.field.places > 0 {
            let place = rng.random_range(0..self.field.places);
            return self.at_place(u64::from(place), rng);
        }
        if self.field.crowd_m > 0.0 {
            let (angle, distance) =
                (rng.random_range(0.0..TAU), self.field.crowd_m * rng.random::<f64>().sqrt());
            return [distance * angle.cos(), distance * angle.sin()];
        }
        let half = self.field.side_m / 2.0;
        [rng.random_range(-half..half), rng.random_range(-half..half)]
    }

    fn put(&self, [east_m, north_m]: [f64; 2]) -> Position {
        self.position(east_m, north_m).expect("the town was seen to lie in the world")
    }

    /// Somewhere at a place: any two such spots are no further apart than a radius.
    fn at_place(&self, place: u64, rng: &mut SmallRng) -> [f64; 2] {
        let (across, half) = (places_across(self.field.places), self.field.side_m / 2.0);
        let (angle, distance) =
            (rng.random_range(0.0..TAU), self.radius.metres() * 0.49 * rng.random::<f64>());
        let [row, column] = [(place as f64 / across).floor(), place as f64 % across];
        let middle = |nth: f64| (nth + 0.5) * self.field.side_m / across - half;
        [middle(column) + distance * angle.cos(), middle(row) + distance * angle.sin()]
    }

    fn home(&self, index: u64) -> [f64; 2] {
        let mut rng = rng(self.seed, 1, index);
        match u64::from(self.field.places) {
            0 => self.spot(&mut rng),
            places => self.at_place(index % places, &mut rng),
        }
    }

    fn event(&self, rng: &mut SmallRng, severity_min: u8) -> Occurrence {
        let kind = &self.field.types[rng.random_range(0..self.field.types.len())];
        let text = |text: &str| Value::Scalar(Scalar::Text(Symbol::new(text)));
        let mut event = Event::at(self.put(self.spot(rng)))
            .with("type", text(kind))
            .with("severity", f64::from(rng.random_range(severity_min..=5)))
            .with("lanes", f64::from(rng.random_range(1..=4)))
            .with("road", text(["A1", "A4", "S9", "ring"][rng.random_range(0..4)]));
        if self.events.padding_bytes > 0 {
            event = event.with("note", text(&"x".repeat(self.events.padding_bytes as usize)));
        }
        Occurrence { event, truth: None, ttl_s: self.events.ttl_s, key: None, is_alarm: false }
    }

    fn wish(&self, id: String, filters: Vec<Filter>) -> Wish {
        Wish { id, filters, is_durable: self.reconnects.durable }
    }

    fn filter(&self, index: u64, centre: [f64; 2]) -> Filter {
        let area = if self.field.stays {
            Area::Circle { centre: self.put(centre), radius: self.radius }
        } else {
            Area::Following(self.radius)
        };
        let nth = usize::try_from(index % self.conditions.len() as u64).unwrap_or_default();
        Filter { area, condition: self.conditions[nth].clone() }
    }
}

/// Places of a row of the grid.
fn places_across(places: u32) -> f64 {
    f64::from(places).sqrt().ceil()
}

/// A source of chance of its own for each purpose and each index.
fn rng(seed: u64, purpose: u64, index: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed ^ (purpose << 56) ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

impl Plan for Town {
    fn world(&self) -> World {
        World::Geodetic
    }

    fn clients(&self) -> Vec<Client> {
        let client = |index: u32| {
            let home = self.home(u64::from(index));
            let mut wishes = vec![self.wish("near".to_owned(), vec![self.filter(u64::from(index), home)])];
            if let Some(alarm) = &self.alarm {
                wishes.push(self.wish("alarm".to_owned(), vec![alarm.clone()]));
            }
            Client { name: format!("client-{index}"), home: Some(self.put(home)), wishes }
        };
        (0..self.clients).map(client).collect()
    }

    fn silent_count(&self) -> u64 {
        // `clients.silent` counts areas.
        let areas =
            u64::from(self.field.silent_subscriptions.max(1)) * u64::from(self.field.silent_filters.max(1));
        self.silent.div_ceil(areas)
    }

    fn silent(&self, index: u64) -> Client {
        let (subscriptions, filters) =
            (u64::from(self.field.silent_subscriptions.max(1)), u64::from(self.field.silent_filters.max(1)));
        let first = index * subscriptions * filters;
        let home = self.home(1 << 40 | first);
        let wish = |nth: u64| {
            let filters = (0..filters).map(|filter| {
                let index = first + nth * filters + filter;
                self.filter(index, self.home(1 << 40 | index))
            });
            self.wish(format!("near-{nth}"), filters.collect())
        };
        let mut wishes: Vec<Wish> =
            if self.field.silent_filters == 0 { Vec::new() } else { (0..subscriptions).map(wish).collect() };
        if let Some(alarm) = &self.alarm {
            wishes.push(self.wish("alarm".to_owned(), vec![alarm.clone()]));
        }
        Client { name: format!("silent-{index}"), home: (!self.field.stays).then(|| self.put(home)), wishes }
    }

    fn steps(&self) -> Steps {
        Box::new(super::merge::merge(vec![
            walks(self.clone()),
            happenings(self.clone()),
            alarms(self.clone()),
            super::breaks(&self.reconnects, self.clients, self.seed, self.duration),
        ]))
    }
}

/// Everybody moves at a rhythm, each at its own beat.
fn walks(town: Town) -> Steps {
    let interval_s = town.moves.interval_s;
    if interval_s <= 0.0 || town.clients == 0 {
        return Box::new(std::iter::empty());
    }
    let mut order: Vec<(f64, u32)> = (0..town.clients)
        .map(|client| (rng(town.seed, 2, u64::from(client)).random_range(0.0..interval_s), client))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut spots: Vec<[f64; 2]> = (0..town.clients).map(|client| town.home(u64::from(client))).collect();
    let mut headings: Vec<f64> = Vec::new();
    let mut rng = rng(town.seed, 3, 0);
    headings.extend((0..town.clients).map(|_| rng.random_range(0.0..TAU)));
    let half = if town.field.crowd_m > 0.0 { town.field.crowd_m } else { town.field.side_m / 2.0 };
    let duration = town.duration;
    let steps = (0_u64..).map(move |nth| {
        let turn = nth / order.len() as u64;
        let (beat, client) = order[usize::try_from(nth % order.len() as u64).unwrap_or_default()];
        let (spot, heading) = (&mut spots[client as usize], &mut headings[client as usize]);
        *heading += rng.random_range(-0.3..0.3);
        let aim = [spot[0] + town.moves.step_m * heading.cos(), spot[1] + town.moves.step_m * heading.sin()];
        if aim.iter().any(|axis| axis.abs() > half) {
            *heading += TAU / 2.0;
        } else {
            *spot = aim;
        }
        let at = Duration::from_secs_f64(beat + turn as f64 * interval_s);
        Step { at, act: Act::Move { client, to: town.put(*spot), truth: None } }
    });
    Box::new(steps.take_while(move |step| step.at < duration))
}

/// Events come by themselves, independent of each other: a Poisson process, or evenly.
fn happenings(town: Town) -> Steps {
    let mut rng = rng(town.seed, 4, 0);
    let duration = town.duration;
    let times = super::arrivals(&town.events, town.seed);
    let steps = times.map(move |at| {
        let spike = town.events.spike.filter(|spike| at.as_secs_f64() >= spike.at_s);
        let severity_min = spike.map_or(1, |spike| spike.severity_min);
        Step { at, act: Act::Publish(Box::new(town.event(&mut rng, severity_min))) }
    });
    Box::new(steps.take_while(move |step| step.at < duration))
}

fn alarms(town: Town) -> Steps {
    let (mut times, duration) = (town.events.alarms_s.clone(), town.duration);
    times.sort_by(f64::total_cmp);
    let alarms = times.into_iter().map(move |at_s| {
        let event =
            Event::at(town.put([0.0, 0.0])).with("type", Value::Scalar(Scalar::Text(Symbol::new("alarm"))));
        let occurrence = Occurrence { event, truth: None, ttl_s: 0.0, key: None, is_alarm: true };
        Step { at: Duration::from_secs_f64(at_s), act: Act::Publish(Box::new(occurrence)) }
    });
    Box::new(alarms.take_while(move |step| step.at < duration))
}
