//! The demo's participants and their subscriptions: once as they go over the wire, once as the oracle holds them.

use matcher::area::{Area, Corridor, Polygon};
use matcher::condition::Condition;
use matcher::geo::{Position, Radius, World};
use matcher::subscription::{ClientId, Filter, Subscription};
use serde_json::json;

/// World of the demo's broker.
pub(super) const WORLD: World = World::Geodetic;

/// A participant of the demo: one client with a socket of its own.
#[derive(Clone, Debug)]
pub(super) struct Role {
    /// Name of the client.
    pub(super) client: String,
    /// Its subscriptions; at most 63, so that a set of them is a [`u64`].
    pub(super) wishes: Vec<Wish>,
}

/// A subscription of one filter.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// The client's name for the subscription.
    pub(super) id: &'static str,
    place: Place,
    condition: Option<&'static str>,
}

/// Where a wish holds. Positions are `[longitude, latitude]`.
#[derive(Clone, Copy, Debug)]
enum Place {
    Everywhere,
    Around { radius_m: f64 },
    Circle { center: [f64; 2], radius_m: f64 },
    Polygon(&'static [[f64; 2]]),
    Corridor { line: &'static [[f64; 2]], radius_m: f64 },
}

/// Bao'an airport: its runway, terminals and the road in front of them.
const AIRPORT: &[[f64; 2]] = &[
    [113.797, 22.667],
    [113.812, 22.670],
    [113.834, 22.642],
    [113.838, 22.618],
    [113.826, 22.610],
    [113.793, 22.655],
    [113.797, 22.667],
];

/// Shennan Boulevard, from Nanshan through Futian to Luohu.
const BOULEVARD: &[[f64; 2]] = &[
    [113.920, 22.543],
    [113.945, 22.540],
    [113.980, 22.537],
    [114.020, 22.538],
    [114.040, 22.542],
    [114.080, 22.543],
    [114.100, 22.5435],
    [114.115, 22.545],
];

/// Places where free taxis wait, with a radius in metres.
const RANKS: [(&str, [f64; 2], f64); 6] = [
    ("rank-airport", [113.8145, 22.651], 400.0),
    ("rank-baoan-centre", [113.882, 22.579], 600.0),
    ("rank-convention-centre", [114.060, 22.534], 500.0),
    ("rank-huanggang-port", [114.070, 22.525], 500.0),
    ("rank-railway-station", [114.117, 22.533], 500.0),
    ("rank-buji", [114.125, 22.570], 400.0),
];

/// The client that publishes the reports; it subscribes to nothing.
pub(super) fn publisher() -> Role {
    Role { client: "publisher".to_owned(), wishes: Vec::new() }
}

/// A taxi, which wants to know of slow traffic around it, wherever it goes.
pub(super) fn taxi(number: u32) -> Role {
    let jam = Wish {
        id: "slow-traffic-around-me",
        place: Place::Around { radius_m: 500.0 },
        condition: Some("speed_kmh < 10 AND status = 'hired'"),
    };
    Role { client: format!("taxi-{number}"), wishes: vec![jam] }
}

/// The one who sees everything, and fast taxis by a subscription of their own: an event that satisfies both comes once.
pub(super) fn operator() -> Role {
    let everything = Wish { id: "everything", place: Place::Everywhere, condition: None };
    let fast = Wish { id: "fast", place: Place::Everywhere, condition: Some("speed_kmh >= 80") };
    Role { client: "operator".to_owned(), wishes: vec![everything, fast] }
}

/// The clients that stay where they are: the airport, the road watch and the ranks.
pub(super) fn places() -> Vec<Role> {
    let airport = Wish { id: "at-the-airport", place: Place::Polygon(AIRPORT), condition: None };
    let road = Wish {
        id: "slow-on-the-boulevard",
        place: Place::Corridor { line: BOULEVARD, radius_m: 150.0 },
        condition: Some("speed_kmh < 20 AND status = 'hired'"),
    };
    let ranks = RANKS.iter().map(|&(client, center, radius_m)| {
        let free = Wish {
            id: "free",
            place: Place::Circle { center, radius_m },
            condition: Some("status = 'free'"),
        };
        Role { client: client.to_owned(), wishes: vec![free] }
    });
    [
        Role { client: "airport".to_owned(), wishes: vec![airport] },
        Role { client: "road-watch".to_owned(), wishes: vec![road] },
    ]
    .into_iter()
    .chain(ranks)
    .collect()
}

impl Role {
    /// The set that holds the named subscription alone: a bit. A name that the client never used is the last
    /// bit, which no expected set has.
    pub(super) fn bit(&self, id: &str) -> u64 {
        let index = self.wishes.iter().position(|wish| wish.id == id).unwrap_or(63);
        1 << index.min(63)
    }
}

impl Wish {
    /// The subscription as it goes over the wire.
    pub(super) fn document(&self) -> wire::Subscription {
        let area = match self.place {
            Place::Everywhere => None,
            Place::Around { radius_m } => {
                Some(wire::Area::Following(wire::Following { radius_m, nearest: None }))
            }
            Place::Circle { center, radius_m } => {
                Some(wire::Area::Circle { center: center.to_vec(), radius_m, nearest: None })
            }
            Place::Polygon(ring) => {
                let polygon = json!({"type": "Polygon", "coordinates": [ring]});
                Some(wire::Area::Polygon { polygon, nearest: None })
            }
            Place::Corridor { line, radius_m } => Some(wire::Area::Corridor {
                corridor: json!({"type": "LineString", "coordinates": line}),
                radius_m,
                nearest: None,
            }),
        };
        let filter = wire::Filter { area, condition: self.condition.map(Into::into) };
        wire::Subscription { id: Some(self.id.to_owned()), ..wire::Subscription::of_events(vec![filter]) }
    }

    /// The subscription as the oracle holds it. It is made from the wish itself, not from the document, so that a fault in
    /// reading documents shows.
    pub(super) fn subscription(&self, client: ClientId) -> anyhow::Result<Subscription> {
        let area = match self.place {
            Place::Everywhere => Area::Everywhere,
            Place::Around { radius_m } => Area::Following(Radius::new(WORLD, radius_m)?),
            Place::Circle { center, radius_m } => {
                Area::Circle { centre: WORLD.position(&center)?, radius: Radius::new(WORLD, radius_m)? }
            }
            Place::Polygon(ring) => Area::Polygon(Box::new(Polygon::new(WORLD, &[vec![positions(ring)?]])?)),
            Place::Corridor { line, radius_m } => {
                let radius = Radius::new(WORLD, radius_m)?;
                Area::Corridor(Box::new(Corridor::new(WORLD, &positions(line)?, radius)?))
            }
        };
        let condition = self.condition.map_or_else(|| Ok(Condition::always()), Condition::parse)?;
        Ok(Subscription { client, filters: vec![Filter { area, condition }] })
    }
}

fn positions(line: &[[f64; 2]]) -> anyhow::Result<Vec<Position>> {
    Ok(line.iter().map(|place| WORLD.position(place)).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::replay::Recording;
    use matcher::engine::scan::Scan;
    use matcher::engine::{Engine as _, MatchRows};
    use matcher::event::Event;
    use matcher::subscription::SubscriptionId;

    #[test]
    fn every_place_sees_some_of_the_recording() {
        let recording = Recording::embedded().unwrap();
        let roles: Vec<Role> = places().into_iter().chain([operator()]).collect();
        let mut scan = Scan::new(WORLD);
        let wishes: Vec<_> = roles.iter().flat_map(|role| &role.wishes).collect();
        for (id, wish) in (0_u32..).zip(&wishes) {
            scan.install(SubscriptionId(id), &wish.subscription(ClientId(id)).unwrap()).unwrap();
        }
        let mut found = vec![0; wishes.len()];
        let mut rows = MatchRows::new();
        // One in seven is enough to find each place, and quick.
        for report in recording.reports.iter().step_by(7) {
            let event = Event::at(WORLD.position(&[report.lon, report.lat]).unwrap())
                .with("speed_kmh", f64::from(report.speed_kmh))
                .with("status", report.status());
            rows.clear();
            scan.match_batch(&[&event], &mut rows).unwrap();
            rows.row(0).iter().for_each(|id| found[id.0 as usize] += 1);
        }
        for (wish, found) in wishes.iter().zip(found) {
            assert!(found > 0, "{wish:?} sees nothing");
        }
    }

    #[test]
    fn a_name_that_nobody_gave_is_a_bit_of_its_own() {
        let operator = operator();
        assert_eq!(operator.bit("everything") | operator.bit("fast"), 0b11);
        assert_eq!(operator.bit("nothing"), 1 << 63);
    }
}
