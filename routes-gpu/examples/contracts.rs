//! What many routes through a mesh are worth by the time that there is for them, as in figures 7, 8 and 10 to 12 of "Anytime algorithms for GPU
//! architectures": `contracts [--host]`.
//!
//! Three tables with commas: how long searches take by level, form and how many they are; what 6,144 routes are worth within a contract by scheduler;
//! and the same where the first third takes twice as long as planned. Every cost of a search that is over is compared with that of Dijkstra's
//! algorithm.

use std::error::Error;
use std::time::Instant;

use device::Device;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{Cost, Costed, Graph, LEVELS, Profile, SCORES, Scheduler, dijkstra, lengths_mm};
use routes_gpu::{Form, Kernels, Searcher, Tuning};
use streets::Network;

/// Nodes along an edge of the mesh of level 0; each level has half as many as the one before.
const EDGE: u32 = 32;

const QUERIES: usize = 6_144;
const BATCH: usize = 1_024;

const REPEATS: usize = 7;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let is_host = std::env::args().any(|argument| argument == "--host");
    let device = if is_host { Device::host(1 << 32) } else { Device::all()?.swap_remove(0) };
    let mut meshes = Meshes::new(&device)?;
    println!("device,{}", device.name());
    println!("level,nodes,searches,form,ms,least_ms,most_ms");
    for level in 0..LEVELS {
        for (searches, form) in [1, 32, BATCH, QUERIES]
            .into_iter()
            .flat_map(|count| [Form::Launches, Form::Composed].map(|form| (count, form)))
        {
            let numbers: Vec<_> = (0..searches).collect();
            let [ms, least, most] = spread(|| meshes.find(&numbers, level, form))?;
            println!("{level},{},{searches},{form:?},{ms:.4},{least:.4},{most:.4}", (EDGE >> level).pow(2));
        }
    }
    let numbers: Vec<_> = (0..BATCH).collect();
    let mut profile = Profile::default();
    for level in 0..LEVELS {
        let mut took = |count: usize| -> Result<(usize, u64), Failure> {
            let [ms, ..] = spread(|| meshes.find(&numbers[..count], level, Form::Composed))?;
            Ok((count, nanoseconds(ms)))
        };
        profile.note(level, [took(BATCH / 8)?, took(BATCH)?]);
    }
    let batches = QUERIES.div_ceil(BATCH) as u64;
    let all_ms = (profile.each_ns[0] * QUERIES as u64 + profile.batch_ns[0] * batches) as f64 / 1e6;
    println!("slowed,contract_ms,scheduler,score,least_score,ended_ms,most_ended_ms,answered");
    for slowed in [0, QUERIES / 3] {
        for part in [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5] {
            let contract_ms = all_ms * part;
            let fixed = (0..LEVELS).map(Scheduler::Static);
            for scheduler in fixed.chain([Scheduler::Offline, Scheduler::Online]) {
                meshes.slowed = slowed;
                let runs: Result<Vec<_>, Failure> =
                    (0..REPEATS).map(|_| meshes.run(scheduler, &profile, contract_ms)).collect();
                let mut runs = runs?;
                let most_ended = runs.iter().map(|run| run.1).fold(0.0, f64::max);
                runs.sort_by_key(|run| run.0);
                let (score, ended_ms, answered) = runs[REPEATS / 2];
                let name = format!("{scheduler:?}").to_lowercase().replace(['(', ')'], "");
                println!(
                    "{slowed},{contract_ms:.4},{name},{score},{},{ended_ms:.4},{most_ended:.4},{answered}",
                    runs[0].0
                );
            }
        }
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds at most")]
fn nanoseconds(ms: f64) -> u64 {
    (ms * 1e6) as u64
}

/// Milliseconds: the median of some runs, the least and the most.
fn spread(mut work: impl FnMut() -> Result<(), Failure>) -> Result<[f64; 3], Failure> {
    work()?;
    let mut took = Vec::new();
    for _ in 0..REPEATS {
        let began = Instant::now();
        work()?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    Ok([took[REPEATS / 2], took[0], took[REPEATS - 1]])
}

/// The meshes on a device, and routes that are asked for.
struct Meshes {
    searcher: Searcher,
    /// The ends of each route on the mesh of each level.
    ends: [Vec<[u32; 2]>; LEVELS],
    expected: [Vec<Option<Cost>>; LEVELS],
    /// Routes up to here are looked for twice.
    slowed: usize,
}

impl Meshes {
    fn new(device: &Device) -> Result<Self, Failure> {
        let mut random = StdRng::seed_from_u64(2011);
        let meshes: Vec<(Graph, Vec<Cost>)> = (0..LEVELS)
            .map(|level| {
                let network = Network::grid(EDGE >> level, EDGE >> level, 100.0);
                let costs =
                    lengths_mm(&network).iter().map(|_| random.random_range(1..=100 << level)).collect();
                (Graph::of(&network), costs)
            })
            .collect();
        let places: Vec<[[u32; 2]; 2]> =
            (0..QUERIES).map(|_| [(); 2].map(|()| [(); 2].map(|()| random.random_range(0..EDGE)))).collect();
        let ends = [0, 1, 2, 3].map(|level: usize| {
            let node = |[x, y]: [u32; 2]| (y >> level) * (EDGE >> level) + (x >> level);
            places.iter().map(|ends| ends.map(node)).collect::<Vec<_>>()
        });
        let expected = [0, 1, 2, 3].map(|level: usize| {
            let (graph, costs) = &meshes[level];
            let cost = |[from, to]: &[u32; 2]| dijkstra(graph, costs, *from, *to).map(|route| route.cost);
            ends[level].iter().map(cost).collect()
        });
        let mut searcher = Searcher::new(&Kernels::load(device)?)?;
        let costed: Vec<_> = meshes.iter().map(|(graph, costs)| Costed { graph, costs }).collect();
        searcher.load(&costed, Tuning::default())?;
        Ok(Self { searcher, ends, expected, slowed: 0 })
    }

    /// Looks for routes of a level.
    fn find(&mut self, numbers: &[usize], level: usize, form: Form) -> Result<(), Failure> {
        let queries: Vec<_> = numbers.iter().map(|number| (level, self.ends[level][*number])).collect();
        let is_slowed = numbers.first().is_some_and(|number| *number < self.slowed);
        for _ in 0..=usize::from(is_slowed) {
            self.searcher.begin(&queries)?;
            while !self.searcher.run(form, u32::MAX)? {}
        }
        let known = self.searcher.known()?;
        for (number, known) in numbers.iter().zip(&known) {
            if known.cost != self.expected[level][*number] {
                return Err(format!("route {number} of level {level} costs something else").into());
            }
        }
        Ok(())
    }

    /// What is answered within a contract: what that is worth, when the last answer came, and how many there are.
    fn run(
        &mut self,
        scheduler: Scheduler,
        profile: &Profile,
        contract_ms: f64,
    ) -> Result<(u32, f64, usize), Failure> {
        let (began, contract_ns) = (Instant::now(), nanoseconds(contract_ms));
        let now_ns = || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (mut score, mut answered, mut failure) = (0, 0, None);
        scheduler.run(profile, (BATCH, 0, QUERIES), Some(contract_ns), now_ns, |numbers, level, _| {
            failure = failure.take().or(self.find(numbers, level, Form::Composed).err());
            // What comes later is worth nothing.
            if now_ns() <= contract_ns {
                (answered, score) = (
                    answered + numbers.len(),
                    score + SCORES[level] * u32::try_from(numbers.len()).unwrap_or(u32::MAX),
                );
            }
            vec![true; numbers.len()]
        });
        failure.map_or(Ok((score, began.elapsed().as_secs_f64() * 1e3, answered)), Err)
    }
}
