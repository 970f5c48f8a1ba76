//! A thousand brokers and a hundred thousand clients for ten minutes, in steps of five seconds.
//!
//! A square of 1,000 km has sixty towns with three of five clients and events. Clients move at 14 m/s, turn once a minute, and one of a
//! hundred appears elsewhere each minute. A broker reads the regions that its clients' areas touch, and those within a margin, and lets
//! go of a region that it has not needed for a minute. An area that touches a region which its broker does not read waits for a marker
//! in the region's stream. Every minute events are drawn, and each has to be read by the broker of each client whose area holds it.

use rand::Rng as _;

use crate::world::{Parts, Place, World};

const SIDE: f64 = 1_000.0;
const TOWNS: usize = 60;
const SPREAD: f64 = 10.0;
const BROKERS: usize = 1_000;
const CLIENTS: usize = 100_000;
/// Seconds.
const STEP: usize = 5;
const STEPS: usize = 600 / STEP;
const STEPS_A_MINUTE: usize = 60 / STEP;
/// Kilometres a second.
const SPEED: f64 = 0.014;
const EVENTS_A_SECOND: f64 = 100_000.0;
/// The events from which regions and rates are made, and those of each check.
const SAMPLE: usize = 1_000_000;
const CHECKED: usize = 100;

/// Seconds from an append to its answer. Not measured over a network.
const APPEND: f64 = 0.002;
/// The bytes of an event, of a record without its events, and from how many a record is compressed three to one.
const EVENT: f64 = 200.0;
const HEADER: f64 = 43.0;
const COMPRESSED_FROM: f64 = 4_096.0;
/// Seconds of a core to read an event and match it.
const READING: f64 = 1.5e-6;
/// Seconds from a death until the standby is ready with little to read, as measured (`docs/results/cluster.md`), and how long ago a
/// broker's place in the stream may have been stored.
const READY: std::ops::Range<f64> = 7.2..9.3;
const STORED: f64 = 1.0;
const STEPS_BETWEEN_DEATHS: usize = 30 / STEP;

/// Where events go, and where clients are served.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    regions: usize,
    radius: f64,
    is_by_place: bool,
    /// Whether a client that has been off its broker's ground for a minute goes to the broker of the ground where it is.
    is_handed_over: bool,
}

const PLAIN: Case = Case { name: "", regions: 4_096, radius: 2.0, is_by_place: true, is_handed_over: true };

const CASES: [Case; 7] = [
    Case {
        name: "as built: by hash, one stream",
        regions: 1,
        is_by_place: false,
        is_handed_over: false,
        ..PLAIN
    },
    Case { name: "by hash, 4,096 regions, 2 km", is_by_place: false, is_handed_over: false, ..PLAIN },
    Case { name: "by place, 0.5 km", radius: 0.5, ..PLAIN },
    Case { name: "by place, 2 km", ..PLAIN },
    Case { name: "by place, 10 km", radius: 10.0, ..PLAIN },
    Case { name: "by place, 2 km, stays with its first broker", is_handed_over: false, ..PLAIN },
    Case { name: "by place, 2 km, 16,384 regions", regions: 16_384, ..PLAIN },
];

struct Client {
    place: Place,
    heading: f64,
    broker: usize,
    steps_away: usize,
}

/// The regions that brokers read.
struct Reads {
    regions: usize,
    /// For each broker and region the step after which it was needed last; 0 if it never was.
    needed: Vec<u16>,
    markers: usize,
    attached: usize,
}

impl Reads {
    fn is_read(&self, broker: usize, region: usize, step: usize) -> bool {
        let needed = usize::from(self.needed[broker * self.regions + region]);
        needed > 0 && step + 1 - needed <= STEPS_A_MINUTE
    }

    /// Reads what an area touches, after a marker where it was not read before, and what is near it.
    fn need(&mut self, broker: usize, parts: &Parts, place: Place, radius: f64, step: usize) {
        let margin = (radius / 2.0).max(1.0);
        parts.touched(place, radius, |region| {
            self.markers += usize::from(!self.is_read(broker, region, step));
        });
        parts.touched(place, radius + margin, |region| {
            self.attached += usize::from(!self.is_read(broker, region, step));
            self.needed[broker * self.regions + region] = u16::try_from(step + 1).expect("few steps");
        });
    }
}

/// What goes into the log each second: messages and bytes of each region.
struct Appends {
    messages: Vec<f64>,
    bytes: Vec<f64>,
}

impl Appends {
    /// Each writer has one append under way in each stream, and takes along what has come meanwhile.
    fn of(case: Case, grounds: &Parts, parts: &Parts, events: &[Place]) -> Self {
        let mut writers = std::collections::HashMap::<(usize, usize), f64>::new();
        for (number, event) in events.iter().enumerate() {
            let broker = if case.is_by_place { grounds.holding(*event) } else { number % BROKERS };
            *writers.entry((broker, parts.holding(*event))).or_default() +=
                EVENTS_A_SECOND / events.len() as f64;
        }
        let (mut messages, mut bytes) = (vec![0.0; case.regions], vec![0.0; case.regions]);
        for ((_, region), rate) in writers {
            let each_second = 1.0 / (APPEND + 1.0 / rate);
            let text = EVENT * rate / each_second;
            let stored = if text < COMPRESSED_FROM { text } else { text / 3.0 };
            messages[region] += each_second;
            bytes[region] += each_second * (HEADER + stored);
        }
        Self { messages, bytes }
    }
}

/// The least and the greatest of what was seen.
struct Span(f64, f64);

impl Span {
    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        values
            .into_iter()
            .fold(Self(f64::INFINITY, 0.0), |span, value| Self(span.0.min(value), span.1.max(value)))
    }
}

fn run(case: Case) {
    let mut world = World::new(SIDE, TOWNS, SPREAD, 1);
    let events = world.places(SAMPLE);
    let parts = Parts::of(SIDE, &events, case.regions);
    let mut share = vec![0.0; case.regions];
    events.iter().for_each(|event| share[parts.holding(*event)] += 1.0 / SAMPLE as f64);
    let places = world.places(CLIENTS);
    let grounds = Parts::of(SIDE, &places, BROKERS);
    let mut clients: Vec<Client> = Vec::with_capacity(CLIENTS);
    for (number, place) in places.into_iter().enumerate() {
        let broker = if case.is_by_place { grounds.holding(place) } else { number % BROKERS };
        let heading = world.random.random_range(0.0..std::f64::consts::TAU);
        clients.push(Client { place, heading, broker, steps_away: 0 });
    }
    let appends = Appends::of(case, &grounds, &parts, &events);
    let mut reads =
        Reads { regions: case.regions, needed: vec![0; BROKERS * case.regions], markers: 0, attached: 0 };
    for client in &clients {
        reads.need(client.broker, &parts, client.place, case.radius, 0);
    }
    (reads.markers, reads.attached) = (0, 0);
    let (mut handed_over, mut pairs) = (0, 0);
    let (mut k, mut busiest, mut out, mut takeovers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for step in 1..=STEPS {
        for client in &mut clients {
            let seconds = STEP as f64;
            if world.random.random_bool(seconds / 6_000.0) {
                client.place = world.place();
            } else if world.random.random_bool(seconds / 60.0) {
                client.heading = world.random.random_range(0.0..std::f64::consts::TAU);
            }
            let way = [client.heading.cos(), client.heading.sin()].map(|part| part * SPEED * seconds);
            client.place = [0, 1].map(|axis| (client.place[axis] + way[axis]).clamp(0.0, SIDE));
            if case.is_handed_over {
                let ground = grounds.holding(client.place);
                client.steps_away = if ground == client.broker { 0 } else { client.steps_away + 1 };
                if client.steps_away > STEPS_A_MINUTE {
                    (client.broker, client.steps_away) = (ground, 0);
                    handed_over += 1;
                }
            }
            reads.need(client.broker, &parts, client.place, case.radius, step);
        }
        let read_by = |broker: usize| -> f64 {
            let is_read = |region: &usize| reads.is_read(broker, *region, step);
            (0..case.regions).filter(is_read).map(|region| share[region]).sum()
        };
        if step % STEPS_BETWEEN_DEATHS == 0 {
            let load = EVENTS_A_SECOND * read_by(world.random.random_range(0..BROKERS)) * READING;
            let ready = world.random.random_range(READY);
            takeovers.push(ready + (ready + STORED) * load / (1.0 - load));
        }
        if step % STEPS_A_MINUTE == 0 {
            let shares: Vec<f64> = (0..BROKERS).map(read_by).collect();
            k.push(shares.iter().sum());
            busiest.push(Span::of(shares).1);
            let readers =
                |region| (0..BROKERS).filter(|broker| reads.is_read(*broker, region, step)).count() as f64;
            let readers: Vec<f64> = (0..case.regions).map(readers).collect();
            let sum = |each: &[f64]| -> f64 {
                each.iter().zip(&readers).map(|(each, readers)| each * readers).sum()
            };
            out.push((sum(&appends.messages), sum(&appends.bytes)));
            for event in world.places(CHECKED) {
                let region = parts.holding(event);
                for client in &clients {
                    if (client.place[0] - event[0]).hypot(client.place[1] - event[1]) <= case.radius {
                        assert!(
                            reads.is_read(client.broker, region, step),
                            "an event that its area holds is not read"
                        );
                        pairs += 1;
                    }
                }
            }
        }
    }
    takeovers.sort_unstable_by(f64::total_cmp);
    let a_second = |count: usize| count as f64 / (STEPS * STEP) as f64;
    let (k, busiest) = (Span::of(k), Span::of(busiest));
    println!(
        "| {} | {:.1} to {:.1} | {:.4} to {:.4} | {:.1} | {:.0} | {:.0} | {:.0} | {:.1} | {:.0} | {:.0} | {:.1}, {:.1} | {pairs} |",
        case.name,
        k.0,
        k.1,
        busiest.0,
        busiest.1,
        a_second(reads.markers),
        a_second(reads.attached),
        a_second(handed_over),
        appends.messages.iter().sum::<f64>(),
        appends.bytes.iter().sum::<f64>() / 1e6,
        Span::of(out.iter().map(|out| out.0)).1,
        Span::of(out.iter().map(|out| out.1)).1 / 1e6,
        takeovers[takeovers.len() / 2],
        takeovers[takeovers.len() - 1],
    );
}

pub(crate) fn main() {
    println!(
        "| clients and areas | k | busiest | markers/s | regions taken up/s | hand-overs/s | appends/s | MB/s | messages read/s | MB/s read | takeover s: middle, longest | pairs checked |"
    );
    println!("| --- |{}", " ---: |".repeat(11));
    CASES.into_iter().for_each(run);
}
