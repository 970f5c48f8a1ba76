//! What many routes through a mesh are worth by the time that there is for them, as in figures 7, 8 and 10 to 12 of "Anytime algorithms for GPU
//! architectures": `contracts [--host]`.
//!
//! Tables with commas: how long searches take by level, form and how many they are; the profile by level, size of a batch and number of blocks, with the rounds of the
//! longest search and what a batch takes at worst (figure 3); what 6,144 routes are worth within a contract by scheduler; and the same where the
//! first third takes twice as long as planned. Every cost of a search that is over is compared with that of Dijkstra's algorithm.

use std::cell::Cell;
use std::error::Error;
use std::time::Instant;

use device::Device;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use routes::{Batch, Cost, Costed, Graph, LEVELS, Profile, SCORES, Sample, Scheduler, dijkstra, lengths_mm};
use routes_gpu::{Form, Kernels, Known, Searcher, Tuning};
use streets::Network;

/// Nodes along an edge of the mesh of level 0; each level has half as many as the one before.
const EDGE: u32 = 32;

const QUERIES: usize = 6_144;
const BATCH: usize = 1_024;

/// Sizes of batches, and numbers of blocks of a search, that are measured.
const SIZES: [usize; 5] = [1, 32, 128, BATCH, QUERIES];
const BLOCKS: [u32; 4] = [1, 2, 4, 8];

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
    let profile = meshes.profile()?;
    let all_ms = meshes.all_ms(&profile);
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
    /// Slices take longer by the share that routes up to here have in a batch.
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
        let queries = self.queries(numbers, level);
        self.searcher.begin(&queries)?;
        while !self.searcher.run(form, u32::MAX)? {}
        let known = self.searcher.known()?;
        self.check(numbers, level, &known)
    }

    fn queries(&self, numbers: &[usize], level: usize) -> Vec<(usize, [u32; 2])> {
        numbers.iter().map(|number| (level, self.ends[level][*number])).collect()
    }

    fn check(&self, numbers: &[usize], level: usize, known: &[Known]) -> Result<(), Failure> {
        for (number, known) in numbers.iter().zip(known) {
            if known.is_over && known.cost != self.expected[level][*number] {
                return Err(format!("route {number} of level {level} costs something else").into());
            }
        }
        Ok(())
    }

    /// Measures batches of all levels, sizes and numbers of blocks, in slices as those are that can be stopped.
    fn profile(&mut self) -> Result<Profile, Failure> {
        let mut profile = Profile::default();
        let mut measured = Vec::new();
        for level in 0..LEVELS {
            for count in SIZES {
                let numbers: Vec<_> = (0..count).collect();
                self.find(&numbers, level, Form::Composed)?;
                let rounds = self.searcher.rounds()?;
                let most = (EDGE >> level).pow(2).div_ceil(128);
                for blocks in BLOCKS.into_iter().filter(|blocks| *blocks <= most) {
                    let began = Instant::now();
                    let now_ns = || nanoseconds(began.elapsed().as_secs_f64() * 1e3);
                    let [ms, least, most] = spread(|| {
                        let queries = self.queries(&numbers, level);
                        let known = self.searcher.batch(
                            &queries,
                            &mut Batch::whole(level, blocks, rounds),
                            now_ns,
                        )?;
                        self.check(&numbers, level, &known)
                    })?;
                    let [ns, most_ns] = [ms, most].map(nanoseconds);
                    let sample = Sample { count, blocks, ns, most_ns, rounds };
                    profile.note(level, sample);
                    measured.push((level, sample, least));
                }
            }
        }
        println!("level,nodes,searches,blocks,ms,least_ms,most_ms,rounds,worst_ms,kept");
        for (level, sample, least) in measured {
            let Sample { count, blocks, ns, most_ns, rounds } = sample;
            let is_kept = profile.samples(level).contains(&sample);
            let [ms, most, worst] = [ns, most_ns, profile.worst_ns(level, count)].map(|ns| ns as f64 / 1e6);
            let nodes = (EDGE >> level).pow(2);
            println!(
                "{level},{nodes},{count},{blocks},{ms:.4},{least:.4},{most:.4},{rounds},{worst:.4},{is_kept}"
            );
        }
        Ok(profile)
    }

    /// What all routes take at level 0.
    fn all_ms(&self, profile: &Profile) -> f64 {
        profile.samples(0).last().map_or(0.0, |sample| sample.ns as f64 / 1e6)
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
        // The scheduler looks at its clock after each slice; one that is slowed lasts longer then.
        let (slowed, since) = (Cell::new(0.0), Cell::new(began));
        let slowing_ns = || {
            let until = Instant::now() + since.get().elapsed().mul_f64(slowed.get());
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            since.set(Instant::now());
            now_ns()
        };
        let (mut scores, mut failure) = (vec![0; QUERIES], None);
        scheduler.run(profile, (QUERIES, 0, QUERIES), Some(contract_ns), now_ns, |numbers, batch| {
            let level = batch.level;
            let share = numbers.iter().filter(|number| **number < self.slowed).count();
            slowed.set(share as f64 / numbers.len() as f64);
            since.set(Instant::now());
            let queries = self.queries(numbers, level);
            let known = self.searcher.batch(&queries, batch, slowing_ns).map_err(Failure::from);
            let checked = known.and_then(|known| self.check(numbers, level, &known).map(|()| known));
            let known = checked.unwrap_or_else(|error| {
                failure.get_or_insert(error);
                Vec::new()
            });
            let mut found: Vec<_> = known.iter().map(|known| known.is_over).collect();
            // After a failure nothing is looked for again.
            found.resize(numbers.len(), true);
            // What comes later is worth nothing.
            if now_ns() <= contract_ns {
                let found = numbers.iter().zip(&found).filter(|(_, is_found)| **is_found);
                found.for_each(|(number, _)| scores[*number] = SCORES[level]);
            }
            found
        });
        let answered = scores.iter().filter(|score| **score > 0).count();
        let run = (scores.iter().sum(), began.elapsed().as_secs_f64() * 1e3, answered);
        failure.map_or(Ok(run), Err)
    }
}
