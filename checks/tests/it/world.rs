//! Random worlds and formulas, and small events for cases.

use std::sync::Arc;

use checks::{Arrival, Check, Clock, Context, Document, Formula};
use matcher::World;
use matcher::event::{Event, Scalar, Value};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// A generator of a test's run.
pub(crate) fn generator(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}

/// An event of a plane at a time, with attributes `x` and `k`, arriving at its time.
pub(crate) fn arrival(place: [f64; 2], time_ms: i64, attributes: &[(&str, Value)]) -> Arrival {
    let mut event = Event::at(World::Planar.position(&place).expect("small"));
    for (name, value) in attributes {
        event = event.with(name, value.clone());
    }
    Arrival { event: Arc::new(event), time_ms: Some(time_ms), arrival_ms: time_ms }
}

/// A random event, some seconds after another or a little before it.
pub(crate) fn random_arrival(random: &mut SmallRng, world: World, before_ms: i64) -> Arrival {
    let place = match world {
        World::Planar => [random.random_range(0..5) * 10, random.random_range(0..3) * 10].map(f64::from),
        // Both names of the antimeridian, and a pole.
        World::Geodetic => *[[180.0, 10.0], [-180.0, 10.0], [-179.9999, 10.0], [7.0, 90.0], [-7.0, 89.9999]]
            .choose(random)
            .expect("some places"),
    };
    let mut event = Event::at(world.position(&place).expect("a place"));
    for name in ["x", "y"] {
        if random.random_bool(0.9) {
            event = event.with(name, f64::from(random.random_range(-1..3)));
        }
    }
    match random.random_range(0..10) {
        0 => {}
        1 => {
            let elements = [Scalar::Text("p".into()), Scalar::Text("q".into()), Scalar::Number(1.0)];
            let count = random.random_range(0..=3);
            event = event.with("k", Value::Array(elements[..count].to_vec()));
        }
        2 => event = event.with("k", -0.0),
        3 => event = event.with("k", 0.0),
        _ => event = event.with("k", *["p", "q", "r"].choose(random).expect("some texts")),
    }
    let arrival_ms = before_ms + random.random_range(0..4) * 500;
    let time_ms = match random.random_range(0..8) {
        0 => None,
        1 => Some(arrival_ms - random.random_range(0..6) * 500),
        _ => Some(arrival_ms),
    };
    Arrival { event: Arc::new(event), time_ms, arrival_ms }
}

/// Sets that overlap, two of which are the same.
pub(crate) fn contexts(random: &mut SmallRng) -> Vec<Context> {
    let mut for_s = || f64::from(random.random_range(0..8)) * 0.5;
    vec![
        Context::of_all("all", for_s()),
        Context::of_all("positive", for_s()).when("x > 0"),
        Context::of_all("again", 3.0).when("x > 0"),
        Context::of_all("letters", for_s()).when("k IN ('p', 'q')"),
    ]
}

/// Leaves over one variable.
const UNARY: [&str; 6] =
    ["A.x > 0", "A.k = 'p'", "A.y <= A.x", "LON(A) < 20", "A.k IS NULL", "A.x + A.y = 1 OR A.k = 'q'"];

/// Leaves over two variables.
const BINARY: [&str; 19] = [
    "A.x = B.x",
    "A.k = B.k",
    "A.k = B.k AND ELAPSED(A, B) > 0",
    "A.k <> B.k",
    "A.k <> B.k OR A.x > B.x",
    "A.x <= B.y",
    "DISTANCE(A, B) <= 10",
    "NOT DISTANCE(A, B) > 15",
    "DISTANCE(A, B) > 5",
    "ELAPSED(A, B) BETWEEN -0.5 AND 1",
    "ELAPSED(A, B) BETWEEN 0.5 AND 0.5",
    "ABS(ELAPSED(A, B)) <= 0.5",
    "SPEED(A, B) <= 12",
    "ABS(A.x - B.x) <= 1",
    "A.x - B.x BETWEEN 1 AND 1",
    "A.x - B.y BETWEEN 0 AND 1 AND A.x = B.x",
    "(LON(A) - LON(B)) * (LON(A) - LON(B)) + (LAT(A) - LAT(B)) ^ 2 <= 100",
    "SAME(A, B)",
    "SAME(A, B) OR A.k = B.k",
];

/// A leaf over variables of which at least one is bound.
fn leaf(random: &mut SmallRng, scope: &[String]) -> Formula {
    if scope.is_empty() {
        return Formula::leaf(*["1 = 1", "1 = 2"].choose(random).expect("two"));
    }
    let a = scope.choose(random).expect("one is bound");
    let b = scope.choose(random).expect("one is bound");
    let template = if a == b || random.random_bool(0.3) {
        UNARY.choose(random).expect("some leaves")
    } else {
        BINARY.choose(random).expect("some leaves")
    };
    let mut text = (*template).to_owned();
    for (letter, variable) in [('A', a), ('B', b)] {
        for around in ["@.", "(@,", "(@)", " @)"] {
            let [written, meant] = [&letter.to_string(), variable].map(|name| around.replace('@', name));
            text = text.replace(&written, &meant);
        }
    }
    Formula::leaf(text)
}

/// A random formula that is being made.
pub(crate) struct Growing<'a> {
    pub(crate) random: &'a mut SmallRng,
    /// Quantifiers that it may still have.
    pub(crate) quantifiers: usize,
    /// Variables that are bound around.
    scope: Vec<String>,
    /// Variables that were named.
    names: usize,
}

impl<'a> Growing<'a> {
    pub(crate) fn new(random: &'a mut SmallRng, quantifiers: usize) -> Self {
        Self { random, quantifiers, scope: Vec::new(), names: 0 }
    }

    /// A formula of at most so many levels below its root; with `is_tall`, of exactly so many.
    pub(crate) fn formula(&mut self, height: usize, is_tall: bool) -> Formula {
        if height == 0 {
            return leaf(self.random, &self.scope);
        }
        // What is outside all quantifiers joins their links.
        let share = if self.scope.is_empty() && !is_tall { 0.7 } else { 0.4 };
        if self.quantifiers > 0 && self.random.random_bool(share) {
            return self.quantified(height, is_tall);
        }
        let count = match (is_tall, self.random.random_range(0..9)) {
            (_, 0) => {
                let inner = self.part(height, is_tall);
                return Formula::negated(inner);
            }
            (_, 1 | 2) => {
                let [premise, conclusion] = [self.part(height, is_tall), self.part(height, false)];
                return Formula::implies(premise, conclusion);
            }
            // The paper's connectives join two.
            (true, _) => 2,
            (false, _) => self.random.random_range(0..4),
        };
        let parts = (0..count).map(|idx| self.part(height, is_tall && idx == 0)).collect();
        if self.random.random_bool(0.5) { Formula::And(parts) } else { Formula::Or(parts) }
    }

    fn part(&mut self, height: usize, is_tall: bool) -> Formula {
        let height = if is_tall { height - 1 } else { self.random.random_range(0..height) };
        self.formula(height, is_tall)
    }

    fn quantified(&mut self, height: usize, is_tall: bool) -> Formula {
        self.quantifiers -= 1;
        let variable = format!("v{}", self.names);
        self.names += 1;
        let sets = ["all", "all", "positive", "again", "letters"];
        let set = *sets.choose(self.random).expect("some sets");
        self.scope.push(variable.clone());
        let inner = self.formula(height - 1, is_tall);
        self.scope.pop();
        if self.random.random_bool(0.5) {
            Formula::forall(&variable, set, inner)
        } else {
            Formula::exists(&variable, set, inner)
        }
    }
}

/// A check of a random formula.
pub(crate) fn check(random: &mut SmallRng, world: World) -> (Document, Arc<Check>) {
    let clock = if random.random_bool(0.5) { Clock::Event } else { Clock::Arrival };
    let contexts = contexts(random);
    let [height, quantifiers] = [random.random_range(1..6), random.random_range(1..5)];
    let formula = Growing::new(random, quantifiers).formula(height, false);
    let document = Document { contexts, formula, clock };
    let check = Check::new(world, &document).unwrap_or_else(|error| panic!("{error}: {document:?}"));
    (document, Arc::new(check))
}
