//! Times of one network.

use std::time::{Duration, Instant};

use groups::network::{Ac4Lists, Algorithm, Domains, Network};
use groups_gpu::{Loops, Method, Pace};

use crate::engines::Engines;

/// Rounds, of which there are fewer where a network takes long.
const ROUNDS: usize = 7;
const ROUNDS_MIN: usize = 3;
const LONG: Duration = Duration::from_secs(6);
/// How long a time is measured in a round, at least.
const MEASURED_FOR: Duration = Duration::from_millis(2);

/// The names of what is timed.
pub(crate) const TIMED: [&str; 12] = [
    "ac4",
    "ac4 with its lists made",
    "ac3bit+rm",
    "upload",
    "BuildNE",
    "ac4gpu",
    "ac4gpu+",
    "ac4gpu by the host",
    "ac4gpu+ by the host",
    "download",
    "upload of bits",
    "bits",
];

/// The times of a network in microseconds, a list of rounds for each that is timed, and how the paper's algorithms went.
pub(crate) struct Measured {
    pub(crate) us: [Vec<f64>; TIMED.len()],
    pub(crate) loops: Loops,
    pub(crate) rounds: u64,
}

/// The mean time of `run`; `prepare` is not timed.
fn mean_us<P, T>(mut prepare: impl FnMut() -> P, mut run: impl FnMut(P) -> T) -> f64 {
    let (mut total, mut count) = (Duration::ZERO, 0_u32);
    while total < MEASURED_FOR {
        let prepared = prepare();
        let began = Instant::now();
        let made = std::hint::black_box(run(prepared));
        total += began.elapsed();
        drop(made);
        count += 1;
    }
    total.as_secs_f64() * 1e6 / f64::from(count)
}

/// Times a network from its start, and holds every answer against AC3bit+rm.
pub(crate) fn network(engines: &mut Engines, of: &str, network: &Network) -> Measured {
    let all = Domains::new(network);
    let expected = Algorithm::Ac3Bit.enforce(network, &all).domains;
    let lists = Ac4Lists::new(network);
    engines.load(network);
    let mut us: [Vec<f64>; TIMED.len()] = Default::default();
    let (mut loops, mut rounds) = (Loops { is_consistent: true, deleted: Vec::new() }, 0);
    let began = Instant::now();
    for round in 0..=ROUNDS {
        if round > ROUNDS_MIN && began.elapsed() > LONG {
            break;
        }
        let Engines { letter, bits } = engines;
        let mut figures = vec![
            mean_us(|| (), |()| Algorithm::Ac4.enforce(network, &all)),
            mean_us(|| (), |()| lists.enforce(network, &all)),
            mean_us(|| (), |()| Algorithm::Ac3Bit.enforce(network, &all)),
            mean_us(
                || (),
                |()| {
                    letter.load(network).expect("memory");
                    letter.synchronize().expect("it goes on");
                },
            ),
            mean_us(
                || (),
                |()| {
                    letter.build(&all).expect("it goes on");
                    letter.synchronize().expect("it goes on");
                },
            ),
        ];
        for (method, pace) in [
            (Method::Ac4Gpu, Pace::Device),
            (Method::Ac4GpuPlus, Pace::Device),
            (Method::Ac4Gpu, Pace::Host),
            (Method::Ac4GpuPlus, Pace::Host),
        ] {
            let letter = std::cell::RefCell::new(&mut *letter);
            let mut went = None;
            figures.push(mean_us(
                || {
                    let mut letter = letter.borrow_mut();
                    letter.build(&all).expect("it goes on");
                    letter.synchronize().expect("it goes on");
                },
                |()| went = Some(letter.borrow_mut().run(method, pace).expect("it goes on")),
            ));
            let letter = letter.into_inner();
            loops = went.expect("it ran once");
            let run = letter.nodes(&loops).expect("it goes on");
            assert_eq!(run.of(network).domains, expected, "{of}, {method:?}, {pace:?}");
        }
        figures.push(mean_us(|| (), |()| letter.nodes(&loops).expect("it goes on")));
        figures.push(mean_us(
            || (),
            |()| {
                bits.load(network).expect("memory");
                bits.synchronize().expect("it goes on");
            },
        ));
        figures.push(mean_us(
            || (),
            |()| {
                let outcome = bits.enforce(network, &all).expect("it goes on");
                rounds = outcome.loops;
                assert_eq!(outcome.domains, expected, "{of}, bits");
            },
        ));
        // The first round warms up.
        if round > 0 {
            us.iter_mut().zip(figures).for_each(|(us, figure)| us.push(figure));
        }
    }
    Measured { us, loops, rounds }
}

/// Times of all assignments of an instance: microseconds of each, for AC4 with its lists made, AC3bit+rm, bits one by one, and bits at once.
pub(crate) fn assignments(
    engines: &mut Engines,
    network: &Network,
    starts: &[Domains],
    removed: &[Option<usize>],
) -> [Vec<f64>; 4] {
    let lists = Ac4Lists::new(network);
    engines.load(network);
    let mut us: [Vec<f64>; 4] = Default::default();
    for round in 0..=ROUNDS {
        for (which, us) in us.iter_mut().enumerate() {
            let bits = &mut engines.bits;
            let began = Instant::now();
            let outcomes: Vec<_> = match which {
                0 => starts.iter().map(|start| lists.enforce(network, start)).collect(),
                1 => starts.iter().map(|start| Algorithm::Ac3Bit.enforce(network, start)).collect(),
                2 => starts.iter().map(|start| bits.enforce(network, start).expect("it goes on")).collect(),
                _ => bits.enforce_all(network, starts).expect("it goes on"),
            };
            let took = began.elapsed().as_secs_f64() * 1e6 / starts.len() as f64;
            let found =
                outcomes.iter().map(|outcome| outcome.domains.as_ref().map(|left| left.removed(network)));
            assert!(found.eq(removed.iter().copied()), "an answer of {which} is another");
            if round > 0 {
                us.push(took);
            }
        }
    }
    us
}
