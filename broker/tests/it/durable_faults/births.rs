//! First starts that are cut off: whatever is in the directory then, it has not had a store yet, or has all of one.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;
use tokio::time::timeout;

use super::power_loss::Power;
use crate::harness::{Serve, soak};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_that_loses_power_is_done_again() {
    let mut cut_count = 0;
    for seed in 0..if soak() { 500 } else { 20 } {
        let mut rng = StdRng::seed_from_u64(seed);
        let data = TempDir::new().expect("a folder for the data");
        let folder = data.path().to_str().expect("a path that is a text");
        let fsync = ["always", "interval"][usize::from(rng.random_bool(0.5))];
        let serve = || Serve::new().args(&["--data", folder, "--fsync", fsync]);
        let power = Power::on(data.path());
        let watched = power.env().iter().fold(serve(), |serve, (name, value)| serve.env(name, value));
        let life = Duration::from_millis(rng.random_range(5..80));
        // Dropped, it is killed.
        let _ = timeout(life, watched.start()).await;
        let lost = power.lose(&mut rng);
        cut_count += usize::from(!data.path().join("store.redb").exists());
        match serve().try_start().await {
            Ok(program) => program.finish().await,
            Err((status, log)) => panic!("seed {seed}, {life:?}: {lost:?}: {status}\n{log}"),
        }
    }
    println!("{cut_count} were cut off before there was a store");
}
