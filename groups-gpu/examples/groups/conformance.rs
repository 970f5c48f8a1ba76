//! Every answer against the processor's.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use groups::network::{Domains, Network};
use groups_gpu::Kernels;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;

use crate::engines::Engines;
use crate::folder::{Assigned, assignments, instances};
use crate::generator;

/// What was compared.
#[derive(Default)]
struct Counts {
    closures: AtomicU64,
    assignments: AtomicU64,
    networks: AtomicU64,
    differences: AtomicU64,
}

impl Counts {
    /// Counts a comparison, and tells the first differences.
    fn count(&self, compared: &AtomicU64, of: &str, result: Result<(), String>) {
        compared.fetch_add(1, Ordering::Relaxed);
        if let Err(what) = result
            && self.differences.fetch_add(1, Ordering::Relaxed) < 20
        {
            println!("{of}: {what}");
        }
    }
}

/// Compares all instances, all assignments and `runs` random networks.
pub(crate) fn run(kernels: &Kernels, folder: &Path, runs: u64) -> ExitCode {
    let began = Instant::now();
    let instances = instances(folder);
    let networks: BTreeMap<_, _> =
        instances.iter().map(|(fields, network)| (fields[0].clone(), network.clone())).collect();
    let assigned = assignments(folder, &networks);
    let counts = Counts::default();
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut engines = Engines::new(kernels);
                while let Some((fields, network)) = instances.get(next.fetch_add(1, Ordering::Relaxed)) {
                    engines.load(network);
                    counts.count(&counts.closures, &fields[0], of_instance(&mut engines, fields, network));
                    of_assignments(&mut engines, network, &assigned[&fields[0]], &counts);
                }
            });
        }
    });
    println!("instances: {:.1} s", began.elapsed().as_secs_f64());
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut engines = Engines::new(kernels);
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= runs {
                        break;
                    }
                    let of = format!("seed {seed}");
                    counts.count(&counts.networks, &of, of_seed(&mut engines, seed));
                }
            });
        }
    });
    let [closures, assignments, networks, differences] =
        [counts.closures, counts.assignments, counts.networks, counts.differences].map(AtomicU64::into_inner);
    println!(
        "conformance: {closures} closures, {assignments} assignments, {networks} random networks, {differences} differences, {:.1} s on {}",
        began.elapsed().as_secs_f64(),
        kernels.device().name()
    );
    let is_whole = (closures, assignments, networks) == (42, 9_075, runs);
    if differences == 0 && is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn of_instance(engines: &mut Engines, fields: &[String], network: &Network) -> Result<(), String> {
    let left = engines.check(network, &Domains::new(network))?.ok_or("it is not consistent")?;
    let found = (left.removed(network).to_string(), left.closure(network));
    let expected = (fields[9].clone(), fields[10].clone());
    if found == expected { Ok(()) } else { Err(format!("{found:?} and not {expected:?}")) }
}

fn of_assignments(engines: &mut Engines, network: &Network, assigned: &[Assigned], counts: &Counts) {
    let starts: Vec<_> = assigned.iter().map(|assigned| assigned.start.clone()).collect();
    let batch = engines.bits.enforce_all(network, &starts).expect("a batch");
    for (Assigned { line, start, removed }, outcome) in assigned.iter().zip(batch) {
        let compared = engines.check(network, start).and_then(|left| {
            let found = left.as_ref().map(|left| left.removed(network));
            let is_same = found == *removed && left == outcome.domains;
            if is_same { Ok(()) } else { Err(format!("{found:?} and not {removed:?}, or another batch")) }
        });
        counts.count(&counts.assignments, line, compared);
    }
}

/// Nine of ten are small, one has domains of several words.
fn of_seed(engines: &mut Engines, seed: u64) -> Result<(), String> {
    let random = &mut SmallRng::seed_from_u64(seed);
    let (size_max, variables_max) = if seed.is_multiple_of(10) { (200, 4) } else { (6, 8) };
    let described = generator::described(random, size_max, variables_max);
    let network = generator::network(random, &described);
    let start = generator::start(random, &network);
    engines.load(&network);
    engines.check(&network, &start).map(drop)
}
