//! Runs against the program: what came is right, and where it is not, that is seen.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use loadgen::check::check;
use loadgen::endpoint::Endpoint;
use loadgen::plan::{Plan, Step};
use loadgen::report::Record;
use loadgen::report::verdict::Answer;
use loadgen::run::capacity::{self, Search};
use loadgen::run::{Place, Stage, Target, Watched, record};
use loadgen::scenario::{BUILT_IN, Scenario};

/// The program: `$NEARCAST`, or what `make` builds.
fn program() -> PathBuf {
    let built = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/debug/nearcast"));
    let program = std::env::var_os("NEARCAST").map_or_else(built, PathBuf::from);
    assert!(
        program.exists(),
        "there is no {}: cargo build --package broker --bin nearcast, or set NEARCAST",
        program.display()
    );
    program
}

/// A scenario, small and short; machines that run tests are slow and busy.
fn small(name: &str, sets: &[&str]) -> Scenario {
    let small = [
        "run.duration_s=4.0",
        "run.warmup_s=0.5",
        "clients.count=60",
        "load.checked_clients=60",
        // Others use the machine while tests run, so that anything may be late.
        "broker.admission.delay_ms=60000",
    ];
    let sets: Vec<String> = small.iter().chain(sets).map(|set| (*set).to_owned()).collect();
    Scenario::load(name, &sets).expect("a scenario")
}

struct Run {
    scenario: Scenario,
    plan: Box<dyn Plan>,
    stage: Stage,
    watched: Watched,
}

fn run(name: &str, sets: &[&str]) -> Run {
    run_at(started(false), name, sets)
}

/// A broker that is started for a run.
fn started(is_secure: bool) -> Place {
    Place::Started { program: Some(program()), is_secure }
}

/// Everybody connected.
fn stage_at(place: Place, scenario: &Scenario, plan: &dyn Plan) -> anyhow::Result<Stage> {
    Stage::set(scenario, plan, &Target { peer: None, place }, None, |_| ())
}

fn run_at(place: Place, name: &str, sets: &[&str]) -> Run {
    let scenario = small(name, sets);
    let plan = scenario.plan().expect("a plan");
    let mut stage = stage_at(place, &scenario, &*plan).expect("everybody is in");
    let watched = stage.phase(&scenario, &*plan, |_| ()).expect("a phase");
    Run { scenario, plan, stage, watched }
}

impl Run {
    /// Everything that was due came, nothing else did, and nothing went wrong.
    #[track_caller]
    fn has_to_be_right(self) -> Record {
        let Self { scenario, plan, stage, watched } = self;
        let is_own = stage.pid.is_some();
        let record = record(&scenario, &*plan, &stage, watched).expect("a record");
        let check = record.check.as_ref().expect("nearcast is compared with the oracle");
        assert!(check.required > 20, "too little was due to say anything: {check:?}");
        assert_eq!((check.came, check.missing, check.spurious), (check.required, 0, 0), "{check:?}");
        let totals = &record.totals;
        assert_eq!((check.duplicates, totals.duplicates, totals.gap_deliveries), (0, 0, 0), "{totals:?}");
        assert_eq!(totals.errors_count() + totals.left_over, 0, "{totals:?}");
        assert_eq!(totals.events.accepted, totals.events.intended, "{totals:?}");
        assert!(record.latency("publish to delivery").is_some_and(|latency| latency.count > 0));
        let seen =
            record.timeline.iter().any(|row| row.broker.is_some() == is_own && !row.scraped.is_empty());
        assert!(seen, "nobody looked at the broker: {:?}", record.timeline);
        record
    }
}

#[test]
fn a_town_is_right_over_websockets() {
    run("field", &["events.rate=100"]).has_to_be_right();
}

#[test]
fn a_town_is_right_over_http() {
    run("field", &["events.rate=400", "load.over=http", "load.batch=50", "load.publishers=2"])
        .has_to_be_right();
}

#[test]
fn a_town_is_right_over_tls() {
    let sets =
        ["events.rate=100", "reconnects.at_s=[1.5]", "reconnects.share=0.5", "reconnects.within_s=0.5"];
    let sets: Vec<&str> = sets.into_iter().chain(["reconnects.durable=true"]).collect();
    let record = run_at(started(true), "field", &sets).has_to_be_right();
    assert!(record.target.address.starts_with("https://"), "{}", record.target.address);
    assert!(record.totals.reconnects > 10, "{:?}", record.totals);
}

#[test]
fn batches_and_silent_subscriptions_are_right_over_tls() {
    let sets = ["events.rate=200", "clients.silent=200", "paper.coverage=0.5", "paper.selectivity=0.02"];
    let sets: Vec<&str> = sets.into_iter().chain(["load.over=http", "load.batch=50"]).collect();
    run_at(started(true), "paper", &sets).has_to_be_right();
}

#[test]
fn who_is_not_trusted_or_speaks_otherwise_is_refused() {
    let secure = run_at(started(true), "field", &["events.rate=100"]).stage;
    let plain = run("field", &["events.rate=100"]).stage;
    let (secure, plain) = (&secure.endpoint, &plain.endpoint);
    for (name, sets) in [
        ("field", &["events.rate=100"][..]),
        ("field", &["load.over=http", "load.publishers=1"]),
        ("paper", &["clients.silent=20", "paper.coverage=0.5", "paper.selectivity=0.02"]),
    ] {
        for (target, told) in [
            (secure.url(), "its certificate is not taken"),
            (secure.authority.to_string(), "it speaks TLS: name it https://HOST:PORT"),
            (format!("https://{}", plain.authority), "it does not speak TLS: name it HOST:PORT"),
        ] {
            let (scenario, endpoint) = (small(name, sets), Endpoint::parse(&target, None).unwrap());
            let plan = scenario.plan().expect("a plan");
            let stage = stage_at(Place::Running(endpoint), &scenario, &*plan);
            let error = format!("{:#}", stage.map(drop).expect_err("it is refused"));
            assert!(error.contains(told), "{name}: {error}");
        }
    }
}

#[test]
fn loads_with_different_names_share_a_broker() {
    let first = run("city", &["events.rate=50", "city.traffic.vehicles=120", "city.before_s=20"]);
    let place = Place::Running(first.stage.endpoint.clone());
    std::thread::scope(|scope| {
        for prefix in ["a-", "b-"] {
            let place = place.clone();
            scope.spawn(move || {
                // Elsewhere at the same time: clients and objects of the same names would get in each other's way.
                let (own, seed) =
                    (format!("load.prefix=\"{prefix}\""), format!("seed={}", prefix.as_bytes()[0]));
                let sets = [
                    "events.rate=100",
                    "city.traffic.vehicles=120",
                    "city.before_s=20",
                    "city.radius_m=8000",
                ];
                let sets: Vec<&str> = sets.into_iter().chain([own.as_str(), seed.as_str()]).collect();
                run_at(place, "city", &sets).has_to_be_right();
            });
        }
    });
}

#[test]
fn a_broker_that_is_killed_is_told() {
    let scenario = small("field", &["events.rate=100"]);
    let plan = scenario.plan().expect("a plan");
    let mut stage = stage_at(started(false), &scenario, &*plan).expect("everybody is in");
    let pid = stage.pid.expect("a process");
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(2));
        Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill")
    });
    let watched = stage.phase(&scenario, &*plan, |_| ()).expect("a phase");
    assert!(killer.join().expect("it kills").success());
    let record = record(&scenario, &*plan, &stage, watched).expect("a record");
    let verdict = record.verdict();
    assert!(verdict.answer != Answer::Right && !verdict.faults.is_empty(), "{verdict:?}");
    let told = verdict.faults.join("; ");
    for part in ["the broker closed the connection", "every connection has ended: the rest was not sent"] {
        assert!(told.contains(part), "{told}");
    }
    let remarks = record.scenario.remarks.join("; ");
    assert!(remarks.contains("ended by itself: signal: 9"), "{remarks}");
    assert!(record.measured_s < 3.0, "it waited for nothing: {} s", record.measured_s);
}

/// A broker as an operator runs it. Killed when dropped.
struct Operated(std::process::Child);

impl Operated {
    /// Starts it at an address, and waits until it is ready.
    fn start(address: &str) -> Self {
        let child =
            Command::new(program()).args(["serve", "--listen", address]).stdout(Stdio::piped()).spawn();
        let mut broker = Self(child.expect("the program starts"));
        let said = BufReader::new(broker.0.stdout.take().expect("stdout is a pipe")).lines();
        let ready = said.map_while(Result::ok).find(|line| line.contains("nearcast listens on"));
        assert!(ready.is_some(), "it is not ready");
        broker
    }

    /// Stops it as an operator does, and waits for its end.
    fn stop(mut self) {
        let asked = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(
            asked.is_ok_and(|status| status.success()) && self.0.wait().is_ok_and(|status| status.success())
        );
    }
}

impl Drop for Operated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn everybody_comes_back_to_a_broker_that_is_started_again() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    let address = free.to_string();
    let broker = Operated::start(&address);
    let scenario = small("field", &["events.rate=100", "run.duration_s=8.0"]);
    let plan = scenario.plan().expect("a plan");
    let endpoint = Endpoint::parse(&address, None).expect("an address");
    let mut stage = stage_at(Place::Running(endpoint), &scenario, &*plan).expect("everybody is in");
    let operator = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(2));
        broker.stop();
        Operated::start(&address)
    });
    let watched = stage.phase(&scenario, &*plan, |_| ()).expect("a phase");
    let _broker = operator.join().expect("it is started again");
    let returned = watched.phase.heard.reconnect_us.len();
    assert_eq!(returned, 60, "clients that are back of 60");
    let record = record(&scenario, &*plan, &stage, watched).expect("a record");
    let check = record.check.as_ref().expect("nearcast is compared with the oracle");
    assert!(check.required > 20 && check.spurious == 0, "{check:?}");
    let errors = format!("{:?}", record.totals);
    assert!(!errors.contains("the broker ended it") && !errors.contains("cannot be read"), "{errors}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_load_that_is_killed_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut load = Command::new(env!("CARGO_BIN_EXE_nearcast-load"))
        .args(["run", "field", "--clients", "10", "--rate", "10", "--duration", "600", "--program"])
        .arg(program())
        .env("TMPDIR", folder.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program");
    let children = format!("/proc/{0}/task/{0}/children", load.id());
    let broker = await_some("a broker", || {
        let pids = std::fs::read_to_string(&children).unwrap_or_default();
        let is_broker = |pid: &&str| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.starts_with("nearcast")
        };
        pids.split_whitespace().find(is_broker).map(str::to_owned)
    });
    assert!(std::fs::read_dir(folder.path()).is_ok_and(|mut made| made.next().is_some()), "it has a folder");
    await_some("its guard", || {
        let pids = std::fs::read_to_string(&children).unwrap_or_default();
        (pids.split_whitespace().count() > 1).then_some(())
    });
    load.kill().expect("it is killed");
    load.wait().expect("it ends");
    await_some("the broker's end", || {
        let stat = std::fs::read_to_string(format!("/proc/{broker}/stat")).unwrap_or_default();
        // In a container nobody may collect those whose parent is gone.
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
    await_some("an empty folder", || std::fs::read_dir(folder.path()).ok()?.next().is_none().then_some(()));
}

/// Looks until there is something.
#[track_caller]
fn await_some<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        match look() {
            Some(found) => return found,
            None if since.elapsed() > Duration::from_secs(60) => panic!("there is not {what}"),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[test]
fn live_events_are_right_as_areas_move_into_their_reach() {
    let sets =
        ["events.rate=20", "events.ttl_s=1.5", "moves.step_m=400", "moves.interval_s=0.2", "field.fan_out=4"];
    let record = run("field", &sets).has_to_be_right();
    assert!(record.latency("move to delivery").is_some(), "no move brought anything");
}

#[test]
fn the_paper_s_workload_is_right() {
    let sets = ["events.rate=200", "clients.silent=200", "paper.coverage=0.5", "paper.selectivity=0.02"];
    run("paper", &sets).has_to_be_right();
}

#[test]
fn a_recording_is_right() {
    run("replay", &["replay.speed=20", "replay.radius_m=5000"]).has_to_be_right();
}

#[test]
fn a_city_is_right() {
    let sets = ["events.rate=100", "city.traffic.vehicles=120", "city.before_s=20", "city.radius_m=8000"];
    run("city", &sets).has_to_be_right();
}

#[test]
fn an_alarm_comes_to_all() {
    let record =
        run("alarm", &["clients.silent=100", "events.alarms_s=[2.0]", "events.rate=20"]).has_to_be_right();
    assert_eq!(record.milestones[0].name, "alarm 1 at the last of 60 clients");
}

#[test]
fn durable_clients_lose_nothing_when_their_connections_break() {
    let sets =
        ["run.duration_s=7.0", "reconnects.at_s=[1.0, 4.0]", "reconnects.within_s=0.3", "events.rate=100"];
    let record = run("storm", &sets).has_to_be_right();
    assert_eq!(record.totals.reconnects, 120);
    let back = record.latency("reconnect to ready").map(|latency| latency.count);
    assert_eq!(back, Some(120), "everybody is back");
}

#[test]
fn what_is_wrong_is_seen() {
    let mut run = run("field", &["events.rate=100"]);
    let Run { plan, stage, watched: Watched { phase, .. }, .. } = &mut run;
    let before = check(&**plan, &stage.clients, phase, 1, true);
    let deliveries = &mut phase.heard.journal.deliveries;
    let lost = deliveries.pop().expect("there was one");
    let again = deliveries[0];
    deliveries.push(again);
    // Somebody for whom an event was not.
    let (_, number, at) = deliveries[1];
    let had: Vec<u32> = deliveries.iter().filter(|one| one.1 == number).map(|one| one.0).collect();
    let other = (0..60).find(|client| !had.contains(client) && (*client, number) != (lost.0, lost.1));
    deliveries.push((other.expect("not everybody has it"), number, at));
    let after = check(&**plan, &stage.clients, phase, 1, true);
    let differences = (
        after.missing - before.missing,
        after.spurious - before.spurious,
        after.duplicates - before.duplicates,
    );
    assert_eq!(differences, (1, 1, 1), "{after:?}");
    assert!(after.examples.iter().any(|example| example.contains("did not come")), "{after:?}");
}

#[test]
fn phases_follow_each_other_on_the_same_connections() {
    let mut run = run("field", &["events.rate=50"]);
    run.watched = run.stage.phase(&run.scenario, &*run.plan, |_| ()).expect("another phase");
    run.has_to_be_right();
}

#[test]
fn a_search_for_the_capacity_ends_where_it_is_told_to() {
    let scenario = small("field", &["run.duration_s=1.5"]);
    let plan = scenario.plan().expect("a plan");
    let mut stage = stage_at(started(false), &scenario, &*plan).expect("everybody is in");
    let mut search = Search { from: 10.0, most: 40.0, p99_us: 5_000_000, within: 0.5, tries: 2 };
    let found = capacity::find(&scenario, &mut stage, &search, |_| ()).expect("a search");
    assert_eq!(found.rate, Some(40.0), "{:?}", found.trials);
    // Nothing is as quick as that.
    search = Search { p99_us: 1, ..search };
    let found = capacity::find(&scenario, &mut stage, &search, |_| ()).expect("a search");
    assert_eq!(found.rate, None, "{:?}", found.trials);
}

#[test]
fn scenarios_that_come_along_say_the_same_twice_and_in_order() {
    for (name, _) in BUILT_IN {
        let scenario = small(name, &["clients.silent=10", "run.duration_s=17.0"]);
        let plan = scenario.plan().unwrap_or_else(|error| panic!("{name}: {error:#}"));
        assert!(!scenario.about.is_empty(), "{name} does not say what it is about");
        let steps = || plan.steps().take(2_000).collect::<Vec<Step>>();
        let (first, second) = (steps(), steps());
        assert!(first.is_sorted_by_key(|step| step.at), "{name}");
        assert!(first.iter().all(|step| step.at < Duration::from_secs(17)), "{name}");
        assert_eq!(format!("{first:?}"), format!("{second:?}"), "{name}");
        assert_eq!(plan.clients().len(), 60, "{name}");
    }
}

#[test]
fn a_scenario_that_cannot_be_is_refused_by_what_is_wrong_with_it() {
    let refused = |name: &str, set: &str| {
        let scenario = Scenario::load(name, &[set.to_owned()]);
        let error = scenario.and_then(|scenario| scenario.plan().map(drop)).expect_err(set);
        format!("{error:#}")
    };
    for (name, set, told) in [
        ("field", "events.rat=3", "rat"),
        ("field", "events.rate=often", "events.rate"),
        ("field", "events.rate=-1", "events.rate has to be from 0"),
        ("field", "events.rate", "has to be KEY=VALUE"),
        ("field", "run.warmup_s=99", "run.warmup_s has to be less"),
        ("field", "field.conditions=[\"severity >\"]", "field.conditions: severity >"),
        ("field", "field.conditions=[\"severity > 9\"]", "no event of this town satisfies"),
        ("field", "paper.filters=3", "one of [field], [paper], [city] and [replay]"),
        ("field", "field.middle=[9.0, 95.0]", "field.middle and field.side_m: latitude"),
        ("replay", "replay.file=nowhere.csv", "opening nowhere.csv"),
        ("city", "city.streets=nowhere.osm.pbf", "nowhere.osm.pbf"),
        ("city", "city.step_s=0", "city.step_s has to be from"),
        ("alarm", "events.alarms_s=[-1.0]", "no time of a run"),
        ("alarm", "events.alarms_s=[1e6]", "and the run ends at"),
        ("field", "clients.count=0", "clients.count has to be 1"),
        ("field", "load.checked_stride=0", "load.checked_stride has to be 1"),
        ("nothing", "seed=1", "there is no scenario nothing"),
    ] {
        let error = refused(name, set);
        assert!(error.contains(told), "{name} with {set} says: {error}");
    }
}
