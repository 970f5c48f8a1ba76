//! Random definitions and candidates, and what of a matching is compared.

use std::sync::Arc;

use groups::matching::{Candidate, Change, Count, Definition, Group, Matching, Naive, RoleSet};
use matcher::World;
use matcher::event::{Event, Scalar, Value};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

pub(super) const ROLES: [&str; 4] = ["taxi", "rider", "stand", "depot"];

/// A definition as it is written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) world: World,
    pub(super) roles: usize,
    pub(super) conditions: Vec<String>,
    pub(super) order: Option<String>,
    pub(super) limit: usize,
}

const UNARY: [&str; 5] = ["A.x > 0", "A.k = 'p' OR A.y < 2", "LON(A) < 25", "A.k IS NULL", "A.x + A.y >= 1"];

const BINARY: [&str; 17] = [
    "DISTANCE(A, B) <= 12",
    "DISTANCE(A, B) < 10",
    "15 >= DISTANCE(B, A) AND A.x <= B.x",
    "NOT DISTANCE(A, B) > 15",
    "DISTANCE(A, B) > 5",
    "A.k = B.k",
    "A.k = B.k AND DISTANCE(A, B) <= 20",
    "A.k <> B.k",
    "A.k <> B.k OR A.x > B.x",
    "A.x <= B.y",
    "A.x = B.y",
    "A.x + B.y > 1",
    "A.x * 2 = B.x OR A.y = B.y",
    "ABS(A.x - B.x) <= 1",
    "ELAPSED(A, B) BETWEEN -2 AND 1",
    "SPEED(A, B) <= 5",
    "SAME(A, B) OR A.y < B.y",
];

const ORDERS: [&str; 9] = [
    "DISTANCE(A, B)",
    "-DISTANCE(A, B)",
    "A.x",
    "A.x + B.y",
    "A.x - A.x",
    "1 / A.x",
    "A.k",
    "A.x + B.x + C.x",
    "B.y * C.y",
];

impl Written {
    /// A definition over some of the roles.
    pub(super) fn random(random: &mut SmallRng, world: World, roles: usize) -> Self {
        let mut conditions = Vec::new();
        // Mostly roles are joined in a chain or a circle, sometimes one is alone.
        for role in 0..roles {
            let other = (role + 1) % roles;
            if other != role && random.random_bool(0.85) {
                conditions.push(named(BINARY.choose(random).expect("some"), [role, other, 0]));
            }
        }
        for _ in 0..random.random_range(0..3) {
            let [a, b] = [random.random_range(0..roles), random.random_range(0..roles)];
            let template = if a == b { UNARY.choose(random) } else { BINARY.choose(random) };
            conditions.push(named(template.expect("some"), [a, b, a]));
        }
        let order = random.random_bool(0.75).then(|| {
            let any = [(); 3].map(|()| random.random_range(0..roles));
            named(ORDERS.choose(random).expect("some"), any)
        });
        let limit =
            if random.random_bool(0.8) { random.random_range(1..6) } else { random.random_range(0..40) };
        Self { world, roles, conditions, order, limit }
    }

    pub(super) fn definition(&self) -> Arc<Definition> {
        let conditions: Vec<_> = self.conditions.iter().map(String::as_str).collect();
        let roles = &ROLES[..self.roles];
        let definition = Definition::new(self.world, roles, &conditions, self.order.as_deref(), self.limit);
        Arc::new(definition.unwrap_or_else(|faults| panic!("{faults:?}: {self:?}")))
    }
}

/// A template with the names of roles in the place of letters.
fn named(template: &str, roles: [usize; 3]) -> String {
    let mut text = template.to_owned();
    for (letter, role) in ["A", "B", "C"].into_iter().zip(roles) {
        for around in ["@.", "(@,", "(@)", " @)"] {
            let [written, meant] = [letter, ROLES[role]].map(|name| around.replace('@', name));
            text = text.replace(&written, &meant);
        }
    }
    text
}

pub(super) fn generator(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}

/// Both names of the antimeridian, both poles, and places some metres from them.
const PLACES: [[f64; 2]; 10] = [
    [180.0, 10.0],
    [-180.0, 10.0],
    [-179.9999, 10.0],
    [179.999_95, 10.000_05],
    [7.0, 90.0],
    [-173.0, 89.9999],
    [90.0, 89.999_95],
    [-90.0, 89.999_95],
    [12.0, -90.0],
    [-180.0, -89.9999],
];

pub(super) fn candidate(random: &mut SmallRng, world: World) -> Candidate {
    let place = match world {
        World::Planar => [random.random_range(0..5) * 10, random.random_range(0..3) * 10].map(f64::from),
        World::Geodetic => *PLACES.choose(random).expect("some"),
    };
    let mut event = Event::at(world.position(&place).expect("a place"));
    for name in ["x", "y"] {
        if random.random_bool(0.9) {
            event = event.with(name, f64::from(random.random_range(-1..4)));
        }
    }
    match random.random_range(0..8) {
        0 => {}
        1 => {
            // One of them twice.
            let elements = ["p", "q", "p"].map(|text| Scalar::Text(text.into()));
            let count = random.random_range(0..=3);
            event = event.with("k", Value::Array(elements[..count].to_vec()));
        }
        2 => event = event.with("k", 1.0),
        _ => event = event.with("k", *["p", "q"].choose(random).expect("some")),
    }
    Candidate { event: Arc::new(event), time_ms: random.random_range(0..8) * 1_000 }
}

/// An event of a plane, with attributes.
pub(super) fn at(place: [f64; 2], attributes: &[(&str, f64)]) -> Candidate {
    let mut event = Event::at(World::Planar.position(&place).expect("small"));
    for (name, value) in attributes {
        event = event.with(name, *value);
    }
    Candidate { event: Arc::new(event), time_ms: 0 }
}

/// What objects are named: some in another order than numbers, and one the beginning of another.
pub(super) fn name(object: u32) -> String {
    ["b", "a", "ab", "é", "z"][object as usize % 5].to_owned() + &"0".repeat(object as usize / 5)
}

pub(super) fn roles(random: &mut SmallRng, count: usize) -> RoleSet {
    let one = RoleSet::EMPTY.with(random.random_range(0..count));
    match random.random_range(0..12) {
        0 => RoleSet::EMPTY,
        1..=3 => one.with(random.random_range(0..count)),
        4 => (0..count).collect(),
        _ => one,
    }
}

/// Everything that can be asked of both.
pub(super) type State = (Vec<Group>, Vec<Count>);

pub(super) fn state(matching: &Matching) -> State {
    (matching.groups(), matching.counts())
}

pub(super) fn expected(naive: &Naive) -> State {
    (naive.groups().to_vec(), naive.counts())
}

/// A change as text: `+` and `-` with the objects.
pub(super) fn shown(changes: &[Change]) -> Vec<String> {
    let line = |sign: char, group: &Group| format!("{sign}{}", group.objects().join(" "));
    let change = |change: &Change| match change {
        Change::Enter(group) => line('+', group),
        Change::Exit(group) => line('-', group),
    };
    changes.iter().map(change).collect()
}
