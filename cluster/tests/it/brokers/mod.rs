//! Five brokers that publish to the streams of nine regions and read them, for clients that move, under every fault of the logs and of
//! theirs, in virtual time.

mod broker;
mod judge;
mod plane;

use std::time::Duration;

use cluster::events::Stream;
use cluster::record::Incarnation;
use cluster::simulated::{Faults, Partition, World};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use broker::{Broker, Request};
use judge::{Judge, Tally};
use plane::{Disc, Event, Point, STREAMS};

const BROKERS: usize = 5;
const CLIENTS: usize = 15;
/// Faults happen until then; after that there are none.
const FAULTY: Duration = Duration::from_secs(40);
/// What is sent from then on is taken: a log that went back has been noticed, and records of a pause are through.
const RECOVERED: Duration = Duration::from_secs(56);
/// Nothing is sent any more.
const QUIET: Duration = Duration::from_secs(62);
const WHOLE: Duration = Duration::from_secs(66);
const TICK: Duration = Duration::from_millis(20);
/// How far a replica is behind.
const BEHIND: f64 = 1.0;
/// How long after its answer an event may be matched: `Timing::stale`, a replica that is behind, messages on their way, and the
/// engine's queue.
const LAG: Duration = Duration::from_millis(3_300);

/// Something that a broker does wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sabotage {
    None,
    /// A change is answered before its markers are acknowledged.
    AnswersBeforeMarker,
    /// A stream that was read before is read from the last record on that is known, and not from a marker.
    ReadsFromKnown,
    /// A change that is answered comes into the queue later.
    QueuesLate,
    /// A publish is answered before it is appended.
    AcknowledgesAtOnce,
    /// A record is appended again under another name.
    AppendsAnew,
    /// Records that the log dropped are not told to be lost.
    LosesInSilence,
}

struct Simulation {
    random: StdRng,
    worlds: Vec<World>,
    brokers: Vec<Broker>,
    judge: Judge,
    discs: Vec<Disc>,
    next_change: Vec<Duration>,
    next_fault: Duration,
    is_log_safe: bool,
    starts: u64,
    events: u64,
}

fn faults() -> Faults {
    Faults {
        lost_requests: 0.01,
        lost_answers: 0.01,
        duplicates: 0.02,
        duplicate_after: Duration::from_secs(15),
        lost_messages: 0.002,
        repeated_messages: 0.01,
        silences: 0.001,
        names_kept: Duration::from_secs(40),
        ..Faults::default()
    }
}

impl Simulation {
    fn new(seed: u64, sabotage: Sabotage) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let worlds: Vec<_> = (0..STREAMS).map(|_| World::new(random.random(), faults())).collect();
        let mut starts = 0;
        let brokers = (0..BROKERS).map(|number| {
            starts += 1;
            let sides = worlds.iter().map(World::log).collect();
            Broker::new(number, sides, Incarnation { term: 1, nonce: starts }, sabotage)
        });
        let brokers = brokers.collect();
        let mut disc = || Disc { at: Point::any(&mut random), radius: random.random_range(0.01..0.2) };
        let discs = (0..CLIENTS).map(|_| disc()).collect();
        Self {
            judge: Judge::new(worlds.clone(), CLIENTS, RECOVERED),
            is_log_safe: random.random_bool(0.7),
            random,
            worlds,
            brokers,
            discs,
            next_change: vec![Duration::ZERO; CLIENTS],
            next_fault: Duration::from_secs(3),
            starts,
            events: 0,
        }
    }

    fn run(mut self) -> Result<Tally, String> {
        let mut now = Duration::ZERO;
        while now < WHOLE {
            now += TICK;
            for world in &self.worlds {
                while world.step(now) {}
            }
            if now >= self.next_fault && now < FAULTY {
                self.break_something(now)?;
            }
            if now >= FAULTY && now < FAULTY + TICK {
                self.mend();
            }
            self.restart(now);
            if now < QUIET {
                self.change(now);
                self.publish(now);
            }
            for broker in &mut self.brokers {
                broker.run(now, &mut self.random, &mut self.judge)?;
            }
        }
        for broker in &self.brokers {
            for (stream, last) in broker.frontier() {
                let bounds = self.worlds[stream.0 as usize].bounds();
                if last != bounds.last {
                    let number = broker.number;
                    return Err(format!("broker {number} has read {stream:?} up to {last} of {bounds:?}"));
                }
            }
        }
        if let Some(client) = (0..CLIENTS).find(|client| self.judge.is_waiting(*client)) {
            return Err(format!("client {client} has no answer"));
        }
        self.judge.check(|client| client % BROKERS)?;
        Ok(self.judge.tally)
    }

    fn break_something(&mut self, now: Duration) -> Result<(), String> {
        let random = &mut self.random;
        self.next_fault = now + Duration::from_millis(random.random_range(300..4_000));
        let mut seconds = |least: f64, most: f64| Duration::from_secs_f64(random.random_range(least..most));
        let (pause, stop, down, behind) =
            (seconds(1.0, 9.0), seconds(0.5, 12.0), seconds(0.1, 5.0), seconds(0.0, BEHIND));
        let region = random.random_range(0..self.worlds.len());
        let (world, stream) = (&self.worlds[region], Stream(u32::try_from(region).unwrap()));
        let number = random.random_range(0..BROKERS);
        let broker = &mut self.brokers[number];
        match random.random_range(0..14_u8) {
            0..2 => world.pause(pause),
            2 => self.worlds.iter().for_each(|world| world.pause(pause)),
            3 => broker.set_partition(Partition::Requests),
            4 => broker.set_partition(Partition::Answers),
            5 => broker.sides[region].set_partition(Partition::Requests),
            6 => broker.sides.iter().for_each(|side| side.set_behind(behind)),
            7..9 if broker.down_until.is_none() => broker.stopped_until = now + stop,
            9 if broker.down_until.is_none() => {
                broker.die(now + down, &mut self.judge);
                for client in (0..CLIENTS).filter(|client| client % BROKERS == number) {
                    self.judge.disconnected(now, client);
                }
            }
            10 => world.drop_oldest(random.random_range(1..100)),
            11 if !self.is_log_safe => {
                let gone = world.go_back(random.random_range(1..6));
                self.judge.gone(stream, &gone)?;
            }
            _ => self.brokers.iter().for_each(|broker| broker.set_partition(Partition::None)),
        }
        Ok(())
    }

    fn mend(&mut self) {
        self.worlds.iter().for_each(|world| world.set_faults(Faults::default()));
        for broker in &mut self.brokers {
            broker.set_partition(Partition::None);
            broker.sides.iter().for_each(|side| side.set_behind(Duration::ZERO));
            broker.stopped_until = Duration::ZERO;
        }
    }

    fn restart(&mut self, now: Duration) {
        for broker in &mut self.brokers {
            if broker.down_until.is_some_and(|until| until <= now || now >= FAULTY) {
                self.starts += 1;
                broker.start(Incarnation { term: 1, nonce: self.starts });
            }
        }
    }

    /// Clients move, come and go.
    fn change(&mut self, now: Duration) {
        let random = &mut self.random;
        for client in 0..CLIENTS {
            let broker = &mut self.brokers[client % BROKERS];
            // Some do not wait for the answer.
            let is_patient = self.judge.is_waiting(client) && !random.random_bool(0.03);
            if broker.down_until.is_some() || is_patient || now < self.next_change[client] {
                continue;
            }
            self.next_change[client] = now + Duration::from_millis(random.random_range(100..9_000));
            let disc = &mut self.discs[client];
            disc.at = match random.random_range(0..4_u8) {
                0 => Point::any(random),
                _ => disc.at.near(random, 0.1),
            };
            let disc = (!random.random_bool(0.05)).then_some(*disc);
            let change = self.judge.change(now, client, disc, random.random_bool(0.5));
            broker.ask(now, random, Request::Change(change));
        }
    }

    /// Events are published where clients are, some in tracks through several regions.
    fn publish(&mut self, now: Duration) {
        let random = &mut self.random;
        for broker in self.brokers.iter_mut().filter(|broker| broker.down_until.is_none()) {
            if !random.random_bool(0.15) {
                continue;
            }
            let mut at = self.discs[random.random_range(0..CLIENTS)].at.near(random, 0.15);
            let count = if random.random_bool(0.15) { random.random_range(2..6) } else { 1 };
            let events = (0..count).map(|_| {
                self.events += 1;
                at = at.near(random, 0.1);
                let padding = if random.random_bool(0.02) { 5_000 } else { random.random_range(0..50) };
                (Event { id: self.events, at }, padding)
            });
            let events: Vec<_> = events.collect();
            let publish = self.judge.publish(now, events.iter().map(|(event, _)| *event).collect());
            broker.ask(now, random, Request::Publish { publish, events });
        }
    }
}

/// The tally of seeds, or the first that fails and why.
fn simulate(seeds: impl IntoIterator<Item = u64>, sabotage: Sabotage) -> Result<Tally, String> {
    let mut sum = Tally::default();
    for seed in seeds {
        if seed % 1_000 == 999 {
            eprintln!("{seed}: {sum:?}");
        }
        sum += Simulation::new(seed, sabotage).run().map_err(|why| format!("seed {seed}: {why}"))?;
    }
    Ok(sum)
}

#[test]
fn what_is_published_after_an_answer_sees_the_move() {
    let seeds = match std::env::var("NEARCAST_SEED") {
        Ok(seed) => seed.parse().map(|seed| seed..seed + 1).unwrap(),
        Err(_) if crate::is_soak() => 0..10_000,
        Err(_) => 0..10,
    };
    let has_all = seeds.end - seeds.start > 1;
    let tally = simulate(seeds, Sabotage::None).unwrap_or_else(|why| panic!("{why}"));
    eprintln!("{tally:?}");
    let Tally { unknown, refused, changes_refused, detached, faults, .. } = tally;
    let Tally { told_dropped, told_went_back, required, free, forbidden, excused, .. } = tally;
    let happened = [unknown, refused, changes_refused, detached, faults].into_iter().chain([
        told_dropped,
        told_went_back,
        required,
        free,
        forbidden,
        excused,
    ]);
    assert!(!has_all || happened.into_iter().all(|count| count > 0), "{tally:?}");
}

/// What is wrong is noticed within some seeds, and for one of the reasons that are expected.
#[track_caller]
fn check_noticed(sabotage: Sabotage, reasons: &[&str]) {
    let found = simulate(0..30, sabotage);
    let is_expected = |why: &String| reasons.iter().any(|reason| why.contains(reason));
    assert!(found.as_ref().is_err_and(is_expected), "{found:?}");
}

#[test]
fn an_answer_before_the_marker_would_be_noticed() {
    check_noticed(Sabotage::AnswersBeforeMarker, &["missing"]);
}

#[test]
fn reading_from_another_place_than_the_marker_would_be_noticed() {
    check_noticed(Sabotage::ReadsFromKnown, &["spurious"]);
}

#[test]
fn a_command_that_comes_late_into_the_queue_would_be_noticed() {
    check_noticed(Sabotage::QueuesLate, &["missing", "spurious"]);
}

#[test]
fn an_answer_to_a_publish_before_its_record_would_be_noticed() {
    check_noticed(Sabotage::AcknowledgesAtOnce, &["is acknowledged and not in the log"]);
}

#[test]
fn another_name_for_the_same_record_would_be_noticed() {
    check_noticed(Sabotage::AppendsAnew, &["twice", "behind"]);
}

#[test]
fn a_loss_that_is_not_told_would_be_noticed() {
    check_noticed(Sabotage::LosesInSilence, &["left something out"]);
}
