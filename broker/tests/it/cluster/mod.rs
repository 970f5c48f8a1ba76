//! Two brokers over three NATS servers: one is active, the other takes over when that one is killed, stopped or cut off.

mod lives;
mod partitions;
mod passed_on;
mod power_loss;
mod secured;
mod several_active;
mod sites;
mod situations;
mod stops;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Http, Program, Received, Serve, State, Ws, eventually, feature, soak};
use crate::nats::{SYSTEM, Servers, USER};

/// A member, by its directory.
struct Member {
    data: TempDir,
    program: Program,
}

/// What was acknowledged, and what came.
struct Watched {
    client: &'static str,
    next: u64,
    acknowledged: BTreeSet<u64>,
    epoch: String,
    offset: u64,
    came: BTreeSet<u64>,
}

fn serve(servers: &Servers, data: &TempDir) -> Serve {
    let nats = servers.addresses(USER);
    Serve::new()
        .args(&["--cluster", &nats, "--data", data.path().to_str().expect("UTF-8")])
        .env("BROKER__CLUSTER__SYSTEM_NATS", &servers.addresses(SYSTEM))
}

/// Both kinds of being away.
const AWAY: [State; 2] = [State::Cut, State::SILENT];

/// Servers tell clients of no other servers, which would lead past their links.
const NOT_TOLD: &str = "no_advertise: true";

/// Held by tests that flood several brokers, one at a time: others wait for a minute at most.
fn flooding() -> MutexGuard<'static, ()> {
    static FLOODING: Mutex<()> = Mutex::new(());
    FLOODING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn folder() -> TempDir {
    TempDir::new().expect("a folder")
}

/// A member that follows, and has come as far as the ledger had come.
async fn follow(servers: &Servers, data: TempDir) -> Member {
    let program = serve(servers, &data).listening().await;
    let rows = async || {
        let answer = program.http().get("/readyz").await;
        let problem = answer.problem(503);
        let is_standby = problem["phase"] == "standby" && problem["done"].as_u64() > Some(0);
        assert_eq!(problem["type"], "urn:nearcast:problem:recovering", "{problem}");
        is_standby.then_some(())
    };
    eventually("the standby follows", rows).await;
    Member { data, program }
}

async fn ready(program: &mut Program) {
    eventually("the standby takes over", async || {
        program.assert_healthy();
        let answer = program.http().attempt("GET", "/readyz", None, String::new()).await?;
        (answer.status == 200).then_some(())
    })
    .await;
}

impl Watched {
    /// A durable subscription of client `car` to events that are to be kept.
    async fn begin(program: &Program) -> Self {
        Self::begin_as("car", program).await
    }

    async fn begin_as(client: &'static str, program: &Program) -> Self {
        let subscription = json!({"filters": [{"where": "kind = 'kept'"}], "durable": true});
        let path = format!("/v1/clients/{client}/subscriptions/all");
        program.http().put(&path, &subscription).await.expect(201);
        let ready = Ws::connect(program.address(), client).await.ready.clone();
        let epoch = ready["epoch"].as_str().expect("a text").to_owned();
        let (acknowledged, came) = (BTreeSet::new(), BTreeSet::new());
        Self { client, next: 1, acknowledged, epoch, offset: 0, came }
    }

    /// Publishes one event, whatever becomes of it; says whether it was acknowledged.
    async fn publish(&mut self, http: &Http) -> bool {
        let number = self.next;
        self.next += 1;
        let is_taken =
            publish(http, &feature(&format!("e{number}"), [9.0, 45.0], json!({"kind": "kept"}))).await;
        if is_taken {
            self.acknowledged.insert(number);
        }
        is_taken
    }

    /// Publishes until this number more are acknowledged.
    async fn publish_more(&mut self, program: &Program, count: usize) {
        let (enough, http) = (self.acknowledged.len() + count, program.http());
        eventually("events are acknowledged", async || {
            self.publish(&http).await;
            (self.acknowledged.len() >= enough).then_some(())
        })
        .await;
    }

    /// Reads on where it was, until all that was acknowledged has come. Offsets have no holes, and nothing is lost.
    async fn read(&mut self, address: SocketAddr) {
        let mut reader = Ws::resume(address, self.client, &self.epoch, self.offset).await;
        assert_eq!(reader.ready["epoch"], *self.epoch, "{}", reader.ready);
        while !self.acknowledged.is_subset(&self.came) {
            self.take(&reader.event().await);
        }
    }

    fn take(&mut self, frame: &Value) {
        assert_eq!(frame["offset"], self.offset + 1, "{frame}");
        self.offset += 1;
        let id = frame["event"]["id"].as_str().and_then(|id| id.strip_prefix('e')).expect("an id of ours");
        assert!(self.came.insert(id.parse().expect("a number")), "it came before: {frame}");
    }
}

/// Publishes an event; says whether it was acknowledged.
async fn publish(http: &Http, event: &Value) -> bool {
    let sent = http.attempt("POST", "/v1/events", Some("application/geo+json"), event.to_string()).await;
    sent.is_some_and(|answer| {
        assert!([202, 503].contains(&answer.status), "{}", answer.text());
        answer.status == 202
    })
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test)
}

/// How often something is killed: `NEARCAST_KILLS`, or as the form of the test says.
fn kills(soak_count: usize) -> usize {
    let text = std::env::var("NEARCAST_KILLS").ok();
    let given = text.map(|text| text.parse().expect("NEARCAST_KILLS is a number"));
    given.unwrap_or(if soak() { soak_count } else { 1 })
}

#[test]
fn a_standby_takes_over_from_a_broker_that_is_killed_and_nothing_is_lost() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let data = folder();
        let program = serve(&servers, &data).start().await;
        let mut watched = Watched::begin(&program).await;
        let mut active = Member { data, program };
        let mut spare = folder();
        let mut times = Vec::new();
        for _ in 0..kills(200) {
            let mut standby = follow(&servers, spare).await;
            watched.publish_more(&active.program, 20).await;
            watched.read(active.program.address()).await;
            watched.publish_more(&active.program, 20).await;
            let Member { data, program } = active;
            let killed = Instant::now();
            program.kill();
            spare = data;
            ready(&mut standby.program).await;
            times.push(killed.elapsed());
            watched.read(standby.program.address()).await;
            watched.publish_more(&standby.program, 5).await;
            watched.read(standby.program.address()).await;
            active = standby;
        }
        told("kills of the active broker", &mut times, &watched);
        active.program.finish().await;
    });
}

#[test]
fn a_standby_takes_over_at_once_from_a_broker_that_ends() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let member = |data: &TempDir, url| serve(&servers, data).env("BROKER__CLUSTER__URL", url);
        let (one, other) = (folder(), folder());
        let active = member(&one, "http://a.example:7070").start().await;
        let mut watched = Watched::begin(&active).await;
        watched.publish_more(&active, 20).await;
        let standby = member(&other, "").listening().await;
        let roles = |cluster: &Value| {
            let members = cluster["members"].as_array().expect("members").iter();
            let mut roles: Vec<_> = members.map(|member| json!([member["role"], member["url"]])).collect();
            roles.sort_by_key(Value::to_string);
            roles
        };
        let both = [json!(["active", "http://a.example:7070"]), json!(["standby", null])];
        eventually("both are listed", async || {
            let cluster = active.http().get("/v1/cluster").await.expect(200).json();
            assert_eq!(cluster["name"], "nearcast");
            (roles(&cluster) == both).then_some(())
        })
        .await;
        let mut active = Member { data: one, program: active };
        let mut standby = Member { data: other, program: standby };
        let (mut ready_times, mut taken_times) = (Vec::new(), Vec::new());
        for _ in 0..kills(20) {
            watched.publish_more(&active.program, 5).await;
            let begun = Instant::now();
            active.program.signal("TERM");
            ready(&mut standby.program).await;
            ready_times.push(begun.elapsed());
            watched.publish_more(&standby.program, 1).await;
            taken_times.push(begun.elapsed());
            assert!(active.program.exit_status().await.success(), "{}", active.program.log());
            watched.publish_more(&standby.program, 5).await;
            watched.read(standby.program.address()).await;
            // A time-out would have been another reason.
            let log = standby.program.log();
            assert!(log.contains("the active broker has left"), "{log}");
            (active, standby) = (standby, follow(&servers, active.data).await);
        }
        told("hand-overs, until the standby was ready", &mut ready_times, &watched);
        told("hand-overs, until an event was acknowledged", &mut taken_times, &watched);
        standby.program.finish().await;
        active.program.finish().await;
    });
}

#[test]
fn a_broker_that_was_stopped_acknowledges_nothing_and_becomes_a_standby() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let data = folder();
        let mut stopped = serve(&servers, &data).start().await;
        let mut watched = Watched::begin(&stopped).await;
        let mut standby = follow(&servers, folder()).await;
        watched.publish_more(&stopped, 20).await;
        let mut reader = Ws::connect(stopped.address(), "bus").await;
        stopped.signal("STOP");
        ready(&mut standby.program).await;
        watched.publish_more(&standby.program, 5).await;
        watched.read(standby.program.address()).await;
        // What it finds when it goes on it acknowledges as little as what comes later, whether it would be stored or not.
        let http = stopped.http();
        let body = json!({"filters": [{}], "durable": true}).to_string();
        let path = "/v1/clients/van/subscriptions/s";
        let put = || http.attempt("PUT", path, Some("application/json"), body.clone());
        let goes_on = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            stopped.signal("CONT");
        };
        let (taken, sent, ()) = tokio::join!(watched.publish(&http), put(), goes_on);
        assert!(!taken && sent.is_none_or(|answer| answer.status == 503), "it acknowledged what it found");
        eventually("the stopped one is a standby", async || {
            assert!(!watched.publish(&http).await, "it acknowledged an event");
            assert!(put().await.is_none_or(|answer| answer.status == 503), "it acknowledged a subscription");
            (stopped.log().matches("nearcast follows").count() == 2).then_some(())
        })
        .await;
        while let Received::Frame(_) = reader.receive().await {}
        stopped.assert_healthy();
        watched.publish_more(&standby.program, 5).await;
        watched.read(standby.program.address()).await;
        assert!(
            stopped.log().contains("this is not the active broker of the cluster any more"),
            "{}",
            stopped.log()
        );
        let clients = standby.program.http().get("/v1/clients/van/subscriptions").await;
        assert!(!clients.text().contains("\"s\""), "{}", clients.text());
        standby.program.finish().await;
        drop(standby.data);
    });
}

#[test]
fn publishes_resume_when_a_nats_server_is_killed() {
    run(async {
        let nats = folder();
        let mut servers = Servers::start(nats.path(), 3, "always");
        let data = folder();
        let mut program = serve(&servers, &data).start().await;
        let mut watched = Watched::begin(&program).await;
        let mut times = Vec::new();
        for kill in 0..kills(100) {
            watched.publish_more(&program, 10).await;
            let killed = servers.kill(&format!("n{}", kill % 3));
            let begun = Instant::now();
            watched.publish_more(&program, 20).await;
            times.push(begun.elapsed());
            watched.read(program.address()).await;
            servers.restart(&[killed]);
            program.assert_healthy();
        }
        told("kills of a NATS server", &mut times, &watched);
        program.finish().await;
    });
}

/// Two of three servers die, or all three, for less time than the broker waits for its log, or for more (`NEARCAST_SOAK`).
#[test]
fn without_a_majority_nothing_is_acknowledged_and_nothing_is_lost() {
    run(async {
        let nats = folder();
        let mut servers = Servers::start(nats.path(), 3, "always");
        let data = folder();
        // It begins anew where it was.
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|held| held.local_addr()).expect("a port");
        let mut program = serve(&servers, &data).listen(&port.to_string()).start().await;
        let mut watched = Watched::begin(&program).await;
        for (count, pause_s) in [(2, 1), (3, 1), (2, 20), (3, 20)] {
            if pause_s > 1 && !soak() {
                break;
            }
            watched.publish_more(&program, 20).await;
            let killed: Vec<_> = (0..count).map(|at| servers.kill(&format!("n{at}"))).collect();
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(pause_s) {
                assert!(!watched.publish(&program.http()).await, "{count} servers are dead");
            }
            servers.restart(&killed);
            let begun = Instant::now();
            watched.publish_more(&program, 20).await;
            println!("{count} servers dead for {pause_s} s: back {:.1?} after them", begun.elapsed());
            watched.read(program.address()).await;
            program.assert_healthy();
        }
        program.finish().await;
    });
}

#[test]
fn a_broker_says_what_is_to_be_set() {
    run(async {
        let (nats, data) = (folder(), folder());
        let servers = Servers::start(nats.path(), 1, "\"2m\"");
        let refused = |serve: Serve| async {
            let serve = serve.env("BROKER__CLUSTER__REPLICAS", "1");
            serve.try_start().await.err().expect("it ends").1
        };
        let log = refused(serve(&servers, &data)).await;
        assert!(log.contains("set `sync_interval: always` in its block `jetstream`"), "{log}");
        let wrong = ["--cluster", "nats://nobody:nothing@127.0.0.1:1,nats://:x", "--data", "data"];
        let log = refused(Serve::new().args(&wrong)).await;
        assert!(log.contains("cluster.nats: address 2 of the NATS servers"), "{log}");
        assert!(!log.contains("nothing"), "{log}");
        let log = refused(Serve::new().args(&wrong[..2])).await;
        assert!(log.contains("cluster.nats is set, and store.data is not"), "{log}");
        // The data of a broker that is alone are not thrown away.
        let alone = folder();
        Serve::new().args(&["--data", alone.path().to_str().expect("UTF-8")]).start().await.finish().await;
        let log = refused(serve(&servers, &alone)).await;
        assert!(log.contains("has the data of a broker that is in no cluster"), "{log}");
    });
}

fn told(what: &str, times: &mut [Duration], watched: &Watched) {
    times.sort_unstable();
    let (count, middle, last) = (times.len(), times[times.len() / 2], times[times.len() - 1]);
    let (acknowledged, came) = (watched.acknowledged.len(), watched.came.len());
    println!(
        "{count} {what}: {acknowledged} acknowledged, {came} came, 0 lost; back after {middle:.1?}, at most {last:.1?}"
    );
}
