//! A broker that dies again and again under load, and what it remembers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::changers::Changer;
use super::gate::Gate;
use super::judge;
use super::ledger::Ledger;
use super::power_loss::Power;
use super::publishers::{BRIEF, Publisher};
use super::readers::Reader;
use crate::harness::{DEADLINE, Serve, eventually, soak};

/// Clients that somebody reads for.
const READERS: usize = 9;

/// Clients that come and go, and leave nothing.
const VISITORS: usize = 3;

/// After so many deaths everything comes to rest and is compared.
const STRETCH: usize = 5;

/// How the broker ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Death {
    /// The process is gone; what it has written is there.
    Kill,
    /// The same with a broker that leaves syncs for later.
    KillUnsynced,
    /// So is what was not synced.
    PowerLoss,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_broker_is_killed() {
    die(Death::Kill, if soak() { 1_000 } else { 10 }, 20_071_126).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_a_broker_is_killed_that_syncs_later() {
    die(Death::KillUnsynced, if soak() { 1_000 } else { 5 }, 20_071_128).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_power_is() {
    die(Death::PowerLoss, if soak() { 200 } else { 5 }, 20_071_127).await;
}

/// A run of deaths. `NEARCAST_SEED` is another run.
async fn die(death: Death, deaths_count: usize, seed: u64) {
    let seed = std::env::var("NEARCAST_SEED").map_or(seed, |text| text.parse().expect("a seed is a number"));
    let mut run = Run::new(death, seed);
    for number in 1..=deaths_count {
        run.live_and_die(number).await;
        if number % STRETCH == 0 || number == deaths_count {
            run.settle(number).await;
        }
    }
    let ledger = run.lock();
    println!(
        "{death:?} {deaths_count} times, seed {seed}: {} deliveries, {} came again, none missing, none spurious",
        ledger.deliveries_count, ledger.repeated_count
    );
    assert!(ledger.deliveries_count > 5 * deaths_count as u64, "too little happened to mean anything");
}

struct Run {
    death: Death,
    seed: u64,
    rng: StdRng,
    data: TempDir,
    gate: Gate,
    ledger: Arc<Mutex<Ledger>>,
    tasks: JoinSet<()>,
    last: Publisher,
}

impl Run {
    fn new(death: Death, seed: u64) -> Self {
        let (gate, ledger) = (Gate::new(), Arc::new(Mutex::new(Ledger::default())));
        let mut tasks = JoinSet::new();
        for idx in 0..READERS + VISITORS {
            let is_visitor = idx >= READERS;
            let name = format!("{}-{idx}", if is_visitor { "visitor" } else { "car" });
            let client_idx = ledger.lock().expect("new").add_client(name);
            let mut changer = Changer::new(&gate, &ledger, client_idx, is_visitor, seed);
            let reader = (!is_visitor).then(|| Reader::new(&gate, &ledger, client_idx, seed));
            tasks.spawn(async move {
                let Some(reader) = reader else { return changer.roam().await };
                changer.settle_in().await;
                tokio::join!(changer.roam(), reader.read());
            });
        }
        tasks.spawn(Publisher::new(&gate, &ledger, 1, seed).batches());
        tasks.spawn(Publisher::new(&gate, &ledger, 2, seed).pipelined());
        tasks.spawn(Publisher::new(&gate, &ledger, 3, seed).batches());
        let last = Publisher::new(&gate, &ledger, 0, seed);
        let data = TempDir::new().expect("a folder for the data");
        Self { death, seed, rng: StdRng::seed_from_u64(seed), data, gate, ledger, tasks, last }
    }

    fn serve(&self) -> Serve {
        let data = self.data.path().to_str().expect("a path that is a text");
        // What one engine has written and another has not is lost in ways of its own.
        let shards = (1 + self.seed % 3).to_string();
        let fsync = if self.death == Death::KillUnsynced { "interval" } else { "always" };
        Serve::new().args(&["--shards", &shards, "--data", data, "--fsync", fsync])
    }

    /// Starts the broker, checks what it remembers, lets everybody at it for a while, and ends it.
    async fn live_and_die(&mut self, number: usize) {
        if self.rng.random_range(0..5) == 0 {
            self.die_at_birth().await;
        }
        let power = (self.death == Death::PowerLoss).then(|| Power::on(self.data.path()));
        let program = with_env(self.serve(), power.as_ref()).start().await;
        judge::check_recovered(&self.ledger, &program.http()).await;
        self.assert_no_faults(number, &program.log());
        self.gate.set(Some(program.address()));
        // Some die young.
        let life_ms = if self.rng.random_bool(0.3) { 60 } else { 1_200 };
        tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..life_ms))).await;
        let log = program.log();
        program.kill();
        self.gate.set(None);
        self.lose(power);
        self.assert_no_faults(number, &log);
        assert!(
            self.tasks.try_join_next().is_none(),
            "NEARCAST_SEED={}: one of the clients has failed",
            self.seed
        );
    }

    /// Starts the broker and ends it before it is ready.
    async fn die_at_birth(&mut self) {
        let power = (self.death == Death::PowerLoss).then(|| Power::on(self.data.path()));
        let life = Duration::from_millis(self.rng.random_range(0..100));
        // Dropped, it is killed.
        let _ = tokio::time::timeout(life, with_env(self.serve(), power.as_ref()).start()).await;
        self.lose(power);
    }

    fn lose(&mut self, power: Option<Power>) {
        if let Some(power) = power {
            let lost = power.lose(&mut self.rng);
            println!("seed {}: {lost:?}", self.seed);
        }
    }

    /// Lets everything come to rest, and compares all that came with all that had to.
    async fn settle(&mut self, number: usize) {
        let power = (self.death == Death::PowerLoss).then(|| Power::on(self.data.path()));
        let mut program = with_env(self.serve(), power.as_ref()).start().await;
        judge::check_recovered(&self.ledger, &program.http()).await;
        self.gate.set(Some(program.address()));
        let calm = tokio::time::timeout(DEADLINE, self.gate.calm()).await;
        self.assert_no_faults(number, &program.log());
        let calm = calm.expect("all is answered some time");
        // Everything brief is over then, and its end is told.
        tokio::time::sleep(BRIEF + Duration::from_millis(200)).await;
        let last = self.last.publish_last().await;
        let clients = 0..READERS;
        eventually("everybody reads to the end", async || {
            self.assert_no_faults(number, &program.log());
            let ledger = self.lock();
            let has_read = |idx: usize| ledger.clients[idx].told.contains_key(&("last".to_owned(), last));
            clients.clone().all(has_read).then_some(())
        })
        .await;
        judge::settle(&mut self.lock());
        self.assert_no_faults(number, &program.log());
        program.assert_healthy();
        self.gate.set(None);
        match power {
            // Ended by itself, so that the journal has to know everything.
            Some(power) => {
                program.finish().await;
                power.assert_complete();
            }
            None => program.kill(),
        }
        drop(calm);
    }

    fn assert_no_faults(&self, number: usize, log: &str) {
        let ledger = self.lock();
        if ledger.faults.is_empty() {
            return;
        }
        let faults = ledger.faults.iter().take(10).map(|fault| format!("\n- {fault}")).collect::<String>();
        let count = ledger.faults.len();
        drop(ledger);
        panic!("NEARCAST_SEED={}, {:?} {number}: {count} faults{faults}\n{log}", self.seed, self.death);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("nobody panicked")
    }
}

fn with_env(serve: Serve, power: Option<&Power>) -> Serve {
    let env = power.map(Power::env).into_iter().flatten();
    env.fold(serve, |serve, (name, value)| serve.env(name, &value))
}
