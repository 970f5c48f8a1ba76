//! Every engine on every device against the conformance suite and the oracle.

use matcher::fixtures::{MakeEngine, conformance, random};

use super::{clcb, cuda_devices, gpu, host_device};

/// Event x filter pairs that an ordinary run compares for each engine.
const PAIRS: u64 = 1_000_000;
/// The same on CUDA devices, unless `NEARCAST_PAIRS` says otherwise.
const CUDA_PAIRS: u64 = 100_000_000;
/// Where the seeds of CUDA devices begin.
const CUDA_SEED: u64 = 2_000_000;

fn check(what: &str, make: MakeEngine<'_>, seed: u64, pairs: u64) {
    conformance::check(make);
    let tally = random::run_pairs(make, seed, pairs).unwrap_or_else(|failure| panic!("{what}: {failure}"));
    println!("{what}: compared {tally:?}, 0 mismatches");
    assert!(tally.pairs >= pairs, "{tally:?}");
    // Worlds in which hardly anything matches or changes would prove little.
    assert!(tally.matches >= pairs / 100, "{tally:?}");
    assert!(tally.changes + tally.moves >= pairs / 1_000, "{tally:?}");
}

#[test]
fn clcb_answers_what_the_oracle_answers() {
    let device = host_device();
    check("clcb on the host", &|world| clcb(world, &device), 0, PAIRS);
}

#[test]
fn gpu_answers_what_the_oracle_answers() {
    let devices = [host_device()];
    check("gpu on the host", &|world| gpu(world, &devices), 0, PAIRS);
}

#[test]
fn gpu_answers_what_the_oracle_answers_on_several_devices() {
    let devices = [host_device(), host_device(), host_device()];
    check("gpu on three devices", &|world| gpu(world, &devices), 100_000, PAIRS / 2);
}

#[test]
fn cuda_devices_answer_what_the_oracle_answers() {
    let devices = cuda_devices();
    let asked = std::env::var("NEARCAST_PAIRS").ok().and_then(|pairs| pairs.parse().ok());
    let pairs = asked.unwrap_or(CUDA_PAIRS);
    for device in &devices {
        check(&format!("clcb on {}", device.name()), &|world| clcb(world, device), CUDA_SEED, pairs);
    }
    if let [first, ..] = &*devices {
        check("gpu on one device", &|world| gpu(world, &devices[..1]), CUDA_SEED, pairs);
        check("gpu on all devices", &|world| gpu(world, &devices), CUDA_SEED + 500_000, pairs / 4);
        // Shares of one device stand in for several.
        let shares = [first.clone(), first.clone()];
        check("gpu on two shares", &|world| gpu(world, &shares), CUDA_SEED + 700_000, pairs / 4);
    }
}
