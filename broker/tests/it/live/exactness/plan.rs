//! Steps drawn from a seed, each with what it leads to. No step comes so near to a border that formulas could differ:
//! such a one is drawn again, so that everything is decided and compared.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::Scale;
use super::oracle::{Event, Filter, Interest, OnBorder, Oracle, Outcome, Question, Subscription};
use crate::exactness::conditions::CONDITIONS;
use crate::exactness::geometry::{Area, Place};
use crate::exactness::taxis::Report;
use crate::harness::feature;

/// The middle of the town in which everything happens.
const MIDDLE: Place = [9.19, 45.46];

/// Metres of a degree of latitude.
const DEGREE_M: f64 = 111_195.0;

/// How long an event lives whose end is waited for.
const BRIEFLY_S: f64 = 0.05;

/// One thing that happens.
#[derive(Debug)]
pub(crate) enum Step {
    Move {
        client_idx: usize,
        place: Place,
        accuracy_m: f64,
    },
    Publish {
        document: Value,
    },
    /// The event of a number is over by itself.
    Expired {
        number: u64,
    },
    Revoke {
        id: String,
        lives: bool,
    },
    Subscribe {
        client_idx: usize,
        id: String,
        document: Value,
        replaces: bool,
    },
    Unsubscribe {
        client_idx: usize,
        id: String,
    },
    /// A client's reader goes.
    Leave {
        client_idx: usize,
    },
    /// It comes back.
    Return {
        client_idx: usize,
    },
    /// Somebody asks why.
    Ask {
        questions: Vec<Question>,
    },
}

/// A step, and what every client must be told of it.
pub(crate) struct Planned {
    pub(crate) step: Step,
    pub(crate) outcome: Outcome,
}

/// Draws steps.
pub(crate) struct Plan {
    rng: StdRng,
    oracle: Oracle,
    scale: Scale,
    /// Half a side of the town, metres.
    reach_m: f64,
    /// The id of the last event of each object.
    ids: Vec<String>,
    /// Of the last event.
    number: u64,
    subscriptions_count: usize,
    /// Whose readers are away.
    away: Vec<bool>,
    /// Rows of the table of conditions that few events satisfy.
    rare: Vec<usize>,
    /// How many steps came too near to a border.
    pub(crate) redrawn_count: usize,
    /// An object whose event is about to be over.
    brief: Option<usize>,
}

impl Plan {
    pub(crate) fn new(seed: u64, scale: Scale) -> Self {
        let mut plan = Self {
            rng: StdRng::seed_from_u64(seed),
            oracle: Oracle::new(scale.clients, scale.objects),
            scale,
            // A larger town for more objects, so that everybody has as many around as in a smaller one.
            reach_m: 2_000.0 * (f64::from(u32::try_from(scale.objects).expect("few")) / 200.0).sqrt(),
            ids: (0..scale.objects).map(|object| format!("never-{object}")).collect(),
            number: 0,
            subscriptions_count: 0,
            away: vec![false; scale.clients],
            rare: Vec::new(),
            redrawn_count: 0,
            brief: None,
        };
        let sample = (0..500).map(|_| plan.properties(0)).collect::<Vec<_>>();
        let satisfied = |idx: &usize| sample.iter().filter(|p| (CONDITIONS[*idx].holds)(p)).count();
        plan.rare = (0..CONDITIONS.len()).filter(|idx| (1..50).contains(&satisfied(idx))).collect();
        assert!(plan.rare.len() >= 4, "the table has choosy rows");
        plan
    }

    /// The first steps: everybody somewhere, with some subscriptions, and most objects alive.
    pub(crate) fn scene(&mut self) -> Vec<Planned> {
        let mut planned = Vec::new();
        for object in 0..self.scale.objects {
            if self.below(10) > 0 {
                planned.push(self.until_clear(|plan| plan.publish(object, false)));
            }
        }
        for client_idx in 0..self.scale.clients {
            if has_position(client_idx) {
                planned.push(self.until_clear(|plan| plan.move_client(client_idx)));
            }
            for _ in 0..1 + self.below(3) {
                planned.push(self.until_clear(|plan| plan.subscribe(client_idx, false)));
            }
        }
        planned
    }

    /// The next step.
    pub(crate) fn next(&mut self) -> Planned {
        if let Some(object) = self.brief.take() {
            return Planned {
                step: Step::Expired { number: self.number },
                outcome: self.oracle.end(object, "expired"),
            };
        }
        self.until_clear(|plan| {
            let client_idx = plan.below(plan.scale.clients);
            match plan.below(1_000) {
                0..400 => plan.move_client(client_idx),
                400..650 => {
                    // Objects with a key have even numbers.
                    let object = plan.below(plan.scale.objects / 2) * 2;
                    plan.publish(object, false)
                }
                650..770 => {
                    let object = plan.below(plan.scale.objects);
                    plan.publish(object, false)
                }
                770..775 => {
                    let object = plan.below(plan.scale.objects);
                    plan.publish(object, true)
                }
                775..805 => plan.pass(),
                805..850 => plan.revoke(),
                850..900 => plan.subscribe(client_idx, false),
                900..940 => plan.subscribe(client_idx, true),
                940..980 => plan.unsubscribe(client_idx),
                _ => plan.come_or_go(client_idx),
            }
        })
    }

    /// Questions about a random subscription: two that must be answered with yes, as far as there are any, and two with no.
    pub(crate) fn ask(&mut self) -> Planned {
        let client_idx = self.below(self.scale.clients);
        let present = self.oracle.subscriptions(client_idx);
        let id = present.choose(&mut self.rng).expect("everybody keeps one");
        let questions = self.oracle.questions(client_idx, id, &self.ids);
        let (yes, no): (Vec<_>, Vec<_>) =
            questions.into_iter().partition(|question| question.matched || question.inside);
        let mut chosen = Vec::new();
        for questions in [yes, no] {
            chosen.extend(questions.choose_multiple(&mut self.rng, 2).cloned());
        }
        Planned { step: Step::Ask { questions: chosen }, outcome: Outcome::new() }
    }

    /// Questions about every pair of the first clients' subscriptions and the live objects, a step for each subscription.
    pub(crate) fn ask_all(&self, clients_count: usize) -> impl Iterator<Item = Planned> {
        let pairs = (0..clients_count).flat_map(|client_idx| {
            self.oracle.subscriptions(client_idx).into_iter().map(move |id| (client_idx, id))
        });
        pairs.map(|(client_idx, id)| {
            let questions = self.oracle.questions(client_idx, &id, &self.ids);
            Planned { step: Step::Ask { questions }, outcome: Outcome::new() }
        })
    }

    fn until_clear(&mut self, mut draw: impl FnMut(&mut Self) -> Result<Planned, OnBorder>) -> Planned {
        loop {
            match draw(self) {
                Ok(planned) => return planned,
                Err(OnBorder) => self.redrawn_count += 1,
            }
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.rng.random_range(0..bound)
    }

    fn anywhere(&mut self) -> Place {
        let reach_m = self.reach_m;
        self.near(MIDDLE, reach_m)
    }

    fn near(&mut self, [lon, lat]: Place, reach_m: f64) -> Place {
        let [east, north] = [(); 2].map(|()| self.rng.random_range(-reach_m..reach_m) / DEGREE_M);
        [lon + east / MIDDLE[1].to_radians().cos(), lat + north]
    }

    fn move_client(&mut self, client_idx: usize) -> Result<Planned, OnBorder> {
        let place = match self.oracle.place(client_idx) {
            _ if !has_position(client_idx) => return self.come_or_go(client_idx),
            Some(place) if self.below(20) > 0 => self.near(place, 300.0),
            _ => self.anywhere(),
        };
        let accuracy_m = if is_vague(client_idx) && self.below(2) == 0 {
            self.rng.random_range(10.0..1_000.0)
        } else {
            0.0
        };
        let outcome = self.oracle.move_client(client_idx, place, accuracy_m)?;
        Ok(Planned { step: Step::Move { client_idx, place, accuracy_m }, outcome })
    }

    fn publish(&mut self, object: usize, briefly: bool) -> Result<Planned, OnBorder> {
        let has_key = object.is_multiple_of(2);
        let place = match self.oracle.object_place(object) {
            Some(place) if has_key && self.below(20) > 0 => self.near(place, 400.0),
            Some(place) if !has_key => place,
            _ => self.anywhere(),
        };
        let number = self.number + 1;
        let id = if has_key || !self.oracle.lives(object) {
            format!("e{number}")
        } else {
            self.ids[object].clone()
        };
        let (mut document, event) = self.event(number, &id, place, briefly);
        if has_key {
            document["key"] = json!(format!("k{object}"));
        }
        if briefly {
            document["ttl_s"] = json!(BRIEFLY_S);
        } else if !has_key || self.below(2) == 0 {
            document["ttl_s"] = json!(3_600 + number % 7);
        }
        let outcome = self.oracle.publish(object, event)?;
        self.number = number;
        self.ids[object] = id;
        self.brief = briefly.then_some(object);
        Ok(Planned { step: Step::Publish { document }, outcome })
    }

    /// An event that does not live, now and then with the id of one that does.
    fn pass(&mut self) -> Result<Planned, OnBorder> {
        let number = self.number + 1;
        let object = self.below(self.scale.objects);
        let id = if self.below(4) == 0 { self.ids[object].clone() } else { format!("e{number}") };
        let place = self.anywhere();
        let (document, event) = self.event(number, &id, place, false);
        let outcome = self.oracle.pass(&event)?;
        self.number = number;
        Ok(Planned { step: Step::Publish { document }, outcome })
    }

    fn event(&mut self, number: u64, id: &str, place: Place, briefly: bool) -> (Value, Event) {
        let mut properties = self.properties(number);
        let truths = CONDITIONS.iter().map(|condition| (condition.holds)(&properties)).collect();
        if briefly {
            properties["brief"] = json!(true);
        }
        let mut document = feature(id, place, properties);
        let reach_m = (self.below(8) == 0).then(|| self.rng.random_range(200.0..3_000.0));
        if let Some(reach_m) = reach_m {
            document["reach_m"] = json!(reach_m);
        }
        (document, Event { number, place, reach_m, truths })
    }

    /// Properties as taxis tell them.
    fn properties(&mut self, number: u64) -> Value {
        let report = Report {
            seq: self.below(10_000),
            taxi_id: self.rng.random_range(10_000..25_000),
            place: MIDDLE,
            speed_kmh: self.rng.random_range(0..100),
            status: self.rng.random_range(0..3),
        };
        let mut properties = report.properties();
        properties["number"] = json!(number);
        properties
    }

    /// One in four asks for what does not live, or not any more.
    fn revoke(&mut self) -> Result<Planned, OnBorder> {
        let object = self.below(self.scale.objects);
        let lives = self.oracle.lives(object);
        let id = self.ids[object].clone();
        let outcome = if lives { self.oracle.end(object, "revoked") } else { Outcome::new() };
        Ok(Planned { step: Step::Revoke { id, lives }, outcome })
    }

    fn subscribe(&mut self, client_idx: usize, replaces: bool) -> Result<Planned, OnBorder> {
        let present = self.oracle.subscriptions(client_idx);
        let previous = if replaces { present.choose(&mut self.rng).cloned() } else { None };
        if previous.is_none() && present.len() >= 5 {
            return self.unsubscribe(client_idx);
        }
        let replaces = previous.is_some();
        let id = previous.unwrap_or_else(|| format!("s{}", self.subscriptions_count));
        let subscription = self.subscription(client_idx);
        let document = subscription.document();
        let outcome = self.oracle.subscribe(client_idx, &id, subscription)?;
        self.subscriptions_count += usize::from(!replaces);
        Ok(Planned { step: Step::Subscribe { client_idx, id, document, replaces }, outcome })
    }

    fn unsubscribe(&mut self, client_idx: usize) -> Result<Planned, OnBorder> {
        let present = self.oracle.subscriptions(client_idx);
        let Some(id) = present.choose(&mut self.rng).filter(|_| present.len() > 1).cloned() else {
            return self.subscribe(client_idx, false);
        };
        self.oracle.unsubscribe(client_idx, &id);
        Ok(Planned { step: Step::Unsubscribe { client_idx, id }, outcome: Outcome::new() })
    }

    fn come_or_go(&mut self, client_idx: usize) -> Result<Planned, OnBorder> {
        // Those with odd numbers roam.
        let client_idx = client_idx | 1;
        let client_idx = if client_idx < self.scale.clients { client_idx } else { 1 };
        self.away[client_idx] = !self.away[client_idx];
        let step =
            if self.away[client_idx] { Step::Leave { client_idx } } else { Step::Return { client_idx } };
        Ok(Planned { step, outcome: Outcome::new() })
    }

    fn subscription(&mut self, client_idx: usize) -> Subscription {
        let counts = !is_vague(client_idx) && self.below(5) == 0;
        let filters_count = *[1, 1, 1, 2, 3].choose(&mut self.rng).expect("not empty");
        let filters = (0..filters_count).map(|idx| self.filter(counts && idx == 0)).collect();
        let interest = if self.below(3) == 0 {
            Interest::Events
        } else {
            let (enter, exit) = *[(true, true), (true, true), (true, true), (true, false), (false, true)]
                .choose(&mut self.rng)
                .expect("not empty");
            let hysteresis_m =
                if counts || self.below(2) == 0 { 0.0 } else { self.rng.random_range(10.0..300.0) };
            Interest::Transitions { enter, exit, initial: self.below(2) == 0, hysteresis_m }
        };
        Subscription { filters, interest }
    }

    fn filter(&mut self, counts: bool) -> Filter {
        let center = self.anywhere();
        let area = if counts {
            match self.below(4) {
                0 => Area::Everywhere,
                1 => Area::Circle { center, radius_m: self.rng.random_range(500.0..3_000.0) },
                _ => Area::Following { radius_m: self.rng.random_range(300.0..2_000.0) },
            }
        } else {
            match self.below(100) {
                0..50 => Area::Following { radius_m: self.rng.random_range(100.0..900.0) },
                50..70 => Area::Circle { center, radius_m: self.rng.random_range(100.0..900.0) },
                70..82 => Area::Polygons(vec![vec![self.star(center, 200.0, 900.0)]]),
                82..86 => {
                    let beside = self.near(center, 2_000.0);
                    let ring = vec![self.star(center, 500.0, 900.0), self.star(center, 100.0, 300.0)];
                    Area::Polygons(vec![ring, vec![self.star(beside, 100.0, 500.0)]])
                }
                86..96 => {
                    let line = vec![center, self.near(center, 1_500.0), self.near(center, 1_500.0)];
                    Area::Corridor { line, radius_m: self.rng.random_range(30.0..300.0) }
                }
                _ => Area::Everywhere,
            }
        };
        let condition_idx = if matches!(area, Area::Everywhere) && !counts {
            *self.rare.choose(&mut self.rng).expect("not empty")
        } else if self.below(2) == 0 {
            0
        } else {
            self.below(CONDITIONS.len())
        };
        let nearest = counts.then(|| 1 + self.below(8));
        Filter { area, condition_idx, nearest }
    }

    /// A closed ring around a centre that never crosses itself; its radius varies between two bounds.
    fn star(&mut self, center: Place, least_m: f64, most_m: f64) -> Vec<Place> {
        let corners_count = self.rng.random_range(4..10_u32);
        let mut ring = (0..corners_count)
            .map(|corner| {
                let angle = f64::from(corner) / f64::from(corners_count) * std::f64::consts::TAU;
                let radius = self.rng.random_range(least_m..most_m) / DEGREE_M;
                [center[0] + radius * angle.cos(), center[1] + radius * angle.sin()]
            })
            .collect::<Vec<_>>();
        ring.push(ring[0]);
        ring
    }
}

/// Some never tell where they are.
fn has_position(client_idx: usize) -> bool {
    client_idx % 25 != 7
}

/// Some do not always know it well.
fn is_vague(client_idx: usize) -> bool {
    client_idx % 10 == 3
}
