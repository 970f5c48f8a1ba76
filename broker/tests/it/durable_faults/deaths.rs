//! A broker that dies again and again under load, and what it remembers.

use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::changers::Changer;
use super::copies;
use super::gate::Gate;
use super::judge;
use super::ledger::Ledger;
use super::power_loss::Power;
use super::publishers::{BRIEF, Publisher};
use super::readers::Reader;
use crate::harness::{DEADLINE, Program, Serve, eventually, feature, soak};

/// Clients that somebody reads for.
const READERS: usize = 9;

/// Clients that come and go, and leave nothing.
const VISITORS: usize = 3;

/// After so many deaths everything comes to rest and is compared.
const STRETCH: usize = 5;

/// Of so many lives one has a copy made of the data, and another one is killed while that is under way.
const COPIES: usize = 4;

/// How the broker ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Death {
    /// The process is gone; what it has written is there.
    Kill,
    /// The same with a broker that leaves syncs for later.
    KillUnsynced,
    /// So is what was not synced.
    PowerLoss,
    /// As the first, after or in a time in which the disk takes nothing.
    FullDisk,
}

#[test]
fn nothing_acknowledged_is_lost_when_the_broker_is_killed() {
    die(Death::Kill, if soak() { 1_000 } else { 10 }, 20_071_126);
}

#[test]
fn nothing_acknowledged_is_lost_when_a_broker_is_killed_that_syncs_later() {
    die(Death::KillUnsynced, if soak() { 1_000 } else { 5 }, 20_071_128);
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_is() {
    die(Death::PowerLoss, if soak() { 200 } else { 5 }, 20_071_127);
}

#[test]
fn nothing_acknowledged_is_lost_when_the_disk_is_full() {
    die(Death::FullDisk, if soak() { 200 } else { 5 }, 20_071_130);
}

/// Deaths of several brokers side by side, of which each is a run of its own under the next seed. `NEARCAST_DEATHS` is how
/// many deaths there are in all, `NEARCAST_BROKERS` among how many brokers, and `NEARCAST_SEED` the first seed.
fn die(death: Death, deaths_count: usize, seed: u64) {
    let deaths_count = number_from("NEARCAST_DEATHS").unwrap_or(deaths_count);
    let one_seed = number_from("NEARCAST_SEED");
    let brokers_count = number_from("NEARCAST_BROKERS").unwrap_or_else(|| {
        let cores_count = std::thread::available_parallelism().map_or(1, usize::from);
        if soak() && one_seed.is_none() { cores_count.div_ceil(2) } else { 1 }
    });
    let brokers_count = brokers_count.clamp(1, deaths_count);
    let runs = (0..brokers_count).map(|idx| {
        let share = deaths_count * (idx + 1) / brokers_count - deaths_count * idx / brokers_count;
        let seed = one_seed.unwrap_or(seed) + idx as u64;
        std::thread::spawn(move || die_in_one_run(death, share, seed))
    });
    let (mut deliveries_count, mut repeated_count) = (0, 0);
    for run in runs.collect::<Vec<_>>() {
        let (deliveries, repeated) = run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        deliveries_count += deliveries;
        repeated_count += repeated;
    }
    println!(
        "{death:?} {deaths_count} times, {brokers_count} brokers side by side: {deliveries_count} deliveries, \
         {repeated_count} came again, none missing, none spurious"
    );
}

fn number_from<T: FromStr>(variable: &str) -> Option<T> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text:?} is not a number")))
}

/// Returns how many deliveries there were, and how many that came again.
fn die_in_one_run(death: Death, deaths_count: usize, seed: u64) -> (u64, u64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut run = Run::new(death, seed);
        for number in 1..=deaths_count {
            run.live_and_die(number).await;
            if number % STRETCH == 0 || number == deaths_count {
                run.settle(number).await;
                let deliveries_count = run.lock().deliveries_count;
                println!("{death:?} {number} of {deaths_count}, seed {seed}: {deliveries_count} deliveries are right");
            }
        }
        let ledger = run.lock();
        assert!(ledger.deliveries_count > 5 * deaths_count as u64, "too little happened to mean anything");
        (ledger.deliveries_count, ledger.repeated_count)
    })
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

    fn watch(&self) -> Option<Power> {
        match self.death {
            Death::Kill | Death::KillUnsynced => None,
            Death::PowerLoss | Death::FullDisk => Some(Power::on(self.data.path())),
        }
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
        let power = self.watch();
        let program = with_env(self.serve(), power.as_ref()).start().await;
        judge::check_recovered(&self.ledger, &program.http()).await;
        self.assert_no_faults(number, &program.log());
        self.gate.set(Some(program.address()));
        // Some die while the data is written anew.
        let wiping = copies::wipe_on(self.data.path(), power.as_ref());
        // Some die young.
        let life_ms = if self.rng.random_bool(0.3) { 60 } else { 1_200 };
        tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..life_ms))).await;
        match self.death {
            Death::Kill | Death::KillUnsynced if number % COPIES == 2 => {
                copies::check_one(self.data.path(), &self.ledger).await;
            }
            Death::FullDisk => self.fill_the_disk(&program, power.as_ref().expect("it is watched")).await,
            Death::Kill | Death::KillUnsynced | Death::PowerLoss => {}
        }
        let is_copied = power.is_none() && number.is_multiple_of(COPIES);
        let cut = is_copied.then(|| copies::Cut::begin(self.data.path()));
        if is_copied {
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..40))).await;
        }
        let log = program.log();
        program.kill();
        self.gate.set(None);
        wiping.await.expect("no panic");
        if let Some(cut) = cut {
            cut.check().await;
        }
        self.lose(power);
        self.assert_no_faults(number, &log);
        assert!(
            self.tasks.try_join_next().is_none(),
            "NEARCAST_SEED={}: one of the clients has failed",
            self.seed
        );
    }

    /// For a while nothing can be written. That is told to who changes something, who asks is answered, and when there is
    /// room again all goes on; or the broker ends before.
    async fn fill_the_disk(&mut self, program: &Program, power: &Power) {
        let http = program.http();
        power.fill();
        let readyz = async |status: u16| {
            eventually(&format!("/readyz says {status}"), async || {
                (http.get("/readyz").await.status == status).then_some(())
            })
            .await;
        };
        readyz(503).await;
        let event = feature("probe", [-60.0, -30.0], json!({"number": 0})).to_string();
        let wish = json!({"filters": [{}]});
        for answer in [
            http.post("/v1/events", "application/geo+json", event.replacen('{', "{\"ttl_s\":1,", 1)).await,
            http.put("/v1/clients/probe/subscriptions/s", &wish).await,
        ] {
            let told = answer.problem(503);
            assert_eq!(told["type"], "urn:nearcast:problem:storage", "{told}");
        }
        http.get("/v1/clients/car-0/subscriptions").await.expect(200);
        tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..1_500))).await;
        if self.rng.random_bool(0.7) {
            power.empty();
            readyz(200).await;
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..500))).await;
        }
    }

    /// Starts the broker and ends it before it is ready.
    async fn die_at_birth(&mut self) {
        let power = self.watch();
        let life = Duration::from_millis(self.rng.random_range(0..100));
        // Dropped, it is killed.
        let _ = tokio::time::timeout(life, with_env(self.serve(), power.as_ref()).start()).await;
        self.lose(power);
    }

    fn lose(&mut self, power: Option<Power>) {
        if let Some(power) = power
            && self.death == Death::PowerLoss
        {
            let lost = power.lose(&mut self.rng);
            println!("seed {}: {lost:?}", self.seed);
        }
    }

    /// Lets everything come to rest, and compares all that came with all that had to.
    async fn settle(&mut self, number: usize) {
        let power = self.watch();
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
        assert!(!log.contains("refer to what is not there"), "NEARCAST_SEED={}: {log}", self.seed);
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
