//! The command line.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use loadgen::endpoint::Endpoint;
use loadgen::interrupt;
use loadgen::report::record::Record;
use loadgen::report::verdict::Answer;
use loadgen::report::{Progress, compare, page, summary, tardiness};
use loadgen::run::capacity::{self, Search};
use loadgen::run::{self, Peer, Place, Setup, Stage, Target};
use loadgen::scenario::{self, BUILT_IN, OverName, Scenario, Versus};
use loadgen::traffic;
use loadgen::traffic::country::{self, Measurement, Streets};
use streets::{Country, Network};

/// City-scale load for nearcast: what a broker carries on this machine, how late it is, and whether it was right.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a scenario, and says what came of it. Ends with 1 where something was wrong, with 2 where it could not be run
    Run(RunArguments),
    /// Searches for the highest rate of events that keeps a latency bound, and runs half of that in the end
    FindCapacity(CapacityArguments),
    /// Runs a scenario once for each of several values, and puts the runs beside each other
    Sweep(SweepArguments),
    /// Puts runs that were written as JSON beside each other
    Compare(CompareArguments),
    /// Lists the scenarios that come along, or shows one as a file to start from
    Scenarios {
        /// The one to show.
        name: Option<String>,
    },
    /// Drives on streets without a broker, and says how many times faster than the clock
    Traffic(TrafficArguments),
}

/// A scenario, what of it is to be otherwise, and against what.
#[derive(Clone, Debug, Args)]
struct ScenarioArguments {
    /// A scenario that comes along (see `scenarios`), or a file.
    scenario: String,
    /// Sets a value of it: --set events.rate=2000. May be repeated; later ones win.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Clients with a connection: clients.count.
    #[arg(long)]
    clients: Option<u32>,
    /// Events a second: events.rate.
    #[arg(long)]
    rate: Option<f64>,
    /// Seconds, warm-up included: run.duration_s.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
    /// Where all chance comes from: seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Before all names, so that several loads can share a broker: load.prefix.
    #[arg(long)]
    prefix: Option<String>,
    /// How events are published: load.over.
    #[arg(long)]
    over: Option<OverName>,
    /// Another broker instead, as far as it can do the same; the record says what it does not.
    #[arg(long)]
    peer: Option<Peer>,
    /// A broker that runs already, at HOST:PORT, or https://HOST:PORT. Without it one is started for the run, and ends with it.
    #[arg(long, value_name = "HOST:PORT")]
    target: Option<String>,
    /// Certificates in PEM that a broker at https:// is trusted for, besides those that this machine trusts.
    #[arg(long, value_name = "FILE", requires = "target")]
    ca: Option<PathBuf>,
    /// Starts the broker with a certificate that is made for the run, and speaks to it over TLS.
    #[arg(long, conflicts_with_all = ["target", "ca", "peer"])]
    tls: bool,
    /// The program that is started; when absent the `nearcast` beside this program, or what is installed.
    #[arg(long, conflicts_with = "target")]
    program: Option<PathBuf>,
    /// A token with the scopes for all that is done.
    #[arg(long, env = "NEARCAST_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

#[derive(Debug, Args)]
struct RunArguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    #[command(flatten)]
    out: Out,
    /// Seconds as comma-separated values, of a scenario that sets `broker.admission.delay_ms`: tardiness, admitted events, misses.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Where what came of it is written.
#[derive(Clone, Debug, Args)]
struct Out {
    /// Everything, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A page with plots that needs nothing beside it.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct CapacityArguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    #[command(flatten)]
    out: Out,
    /// The 99th percentile that is to be kept, of publish to delivery and of publish to accepted, in milliseconds.
    #[arg(long, default_value_t = 10.0, value_name = "MS")]
    p99_ms: f64,
    /// The first rate that is tried, in events a second.
    #[arg(long, default_value_t = 100.0)]
    from: f64,
    /// Never more than this.
    #[arg(long, default_value_t = 1e6)]
    most: f64,
    /// How near the rate that is kept and the one that is not are to be in the end.
    #[arg(long, default_value_t = 0.1)]
    within: f64,
    /// How often a rate is tried before it counts as not kept.
    #[arg(long, default_value_t = 2)]
    tries: u32,
}

#[derive(Debug, Args)]
struct SweepArguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// What differs, and its values: --values clients.silent=10000,100000,1000000.
    #[arg(long = "values", value_name = "KEY=VALUE,...")]
    values: String,
    /// A folder for the runs and what they are beside each other.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct CompareArguments {
    /// Runs, as --json wrote them.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// A page with plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct TrafficArguments {
    /// Streets: a file, a folder, or `liechtenstein`.
    #[arg(default_value = "liechtenstein")]
    streets: String,
    /// How many vehicles.
    #[arg(long, default_value_t = 10_000)]
    vehicles: u32,
    /// A country that is made up in place of streets, with as many nodes: 24000000 is a large one.
    #[arg(long, conflicts_with = "streets", value_parser = clap::value_parser!(u32).range(64..=1 << 30))]
    nodes: Option<u32>,
    /// `city` has incidents, parking places and signals as scenarios do; `cpu` and `gpu` drive whole countries, with the same results on both.
    #[arg(long, value_enum, default_value_t = EngineName::City)]
    engine: EngineName,
    /// How many vehicles have destinations and look for their ways every five seconds; the others go by chance.
    #[arg(long, default_value_t = 0)]
    routed: u32,
    /// Drives the same on the other of `cpu` and `gpu`, too, and fails where the states differ.
    #[arg(long)]
    check: bool,
    /// Seconds of the city.
    #[arg(long = "for", visible_alias = "seconds", default_value_t = 60.0, value_name = "SECONDS", value_parser = seconds)]
    seconds: f64,
    /// Seconds of a step.
    #[arg(long, default_value_t = 0.5, value_name = "SECONDS")]
    step: f32,
    /// How many threads; 0 for one for each core.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Where all chance comes from.
    #[arg(long, default_value_t = 2012)]
    seed: u64,
}

/// The engine that drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum EngineName {
    City,
    Cpu,
    Gpu,
}

/// Reads `15` and `15s`.
fn seconds(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>();
    number.map_err(|_| format!("{text} is not a number of seconds, as 15 or 15s"))
}

/// Does what the arguments say.
pub(crate) fn carry_out() -> anyhow::Result<ExitCode> {
    interrupt::listen().context("listening for signals")?;
    match Arguments::parse().command {
        Command::Run(arguments) => {
            if let Some(versus) = arguments.scenario.load(&[])?.versus {
                // Their JSON goes into a file for each value.
                Out { json: None, ..arguments.out.clone() }.check()?;
                return run_versus(&arguments, &versus);
            }
            arguments.out.check()?;
            let record = run_once(&arguments.scenario, &[])?;
            let csv = write_csv(&arguments, std::slice::from_ref(&record));
            tell(&record, &arguments.out).and_then(|code| csv.map(|()| code))
        }
        Command::FindCapacity(arguments) => find_capacity(&arguments),
        Command::Sweep(arguments) => sweep(&arguments),
        Command::Compare(arguments) => {
            let records = arguments.runs.iter().map(|path| read(path)).collect::<anyhow::Result<Vec<_>>>()?;
            beside_each_other(&records, arguments.html.as_deref())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Scenarios { name: None } => {
            let lines = BUILT_IN.iter().map(|(name, text)| format!("{name:10} {}\n", toml_about(text)));
            show(&lines.collect::<String>())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Scenarios { name: Some(name) } => {
            show(&Scenario::load(&name, &[])?.to_toml()?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Traffic(arguments) => drive(&arguments),
    }
}

/// The line that says what a scenario is about.
fn toml_about(text: &str) -> String {
    let table = text.parse::<toml::Table>().ok();
    table.and_then(|table| Some(table.get("about")?.as_str()?.to_owned())).unwrap_or_default()
}

impl ScenarioArguments {
    fn load(&self, more: &[String]) -> anyhow::Result<Scenario> {
        let mut sets = self.set.clone();
        let mut set = |key: &str, value: Option<String>| {
            sets.extend(value.map(|value| format!("{key}={value}")));
        };
        set("clients.count", self.clients.map(|clients| clients.to_string()));
        set("events.rate", self.rate.map(|rate| format!("{rate:?}")));
        set("run.duration_s", self.duration.map(|seconds| format!("{seconds:?}")));
        set("seed", self.seed.map(|seed| seed.to_string()));
        set("load.prefix", self.prefix.as_ref().map(|prefix| format!("\"{prefix}\"")));
        set("load.over", self.over.map(|over| format!("{over:?}").to_lowercase()));
        sets.extend(more.iter().cloned());
        Scenario::load(&self.scenario, &sets)
    }

    fn target(&self) -> anyhow::Result<Target> {
        let place = match &self.target {
            Some(text) => {
                let endpoint = Endpoint::parse(text, self.ca.as_deref())?;
                ensure!(
                    self.peer.is_none() || !endpoint.is_secure(),
                    "{text}: other brokers than nearcast are spoken to in the clear"
                );
                Place::Running(endpoint)
            }
            None => Place::Started { program: self.program.clone(), is_secure: self.tls },
        };
        Ok(Target { peer: self.peer, place })
    }

    fn stage(&self, scenario: &Scenario, plan: &dyn loadgen::plan::Plan) -> anyhow::Result<Stage> {
        let target = self.target()?;
        let bar = Arc::new(setup_bar());
        let shown = Arc::clone(&bar);
        let stage = Stage::set(scenario, plan, &target, self.token.as_deref(), move |setup| {
            let (what, done, of) = match setup {
                Setup::Silent(done, of) => ("subscriptions of clients without a connection", done, of),
                Setup::Clients(done, of) => ("connections", done, of),
            };
            shown.set_length(of);
            shown.set_message(what);
            shown.set_position(done);
        });
        bar.finish_and_clear();
        stage
    }
}

fn setup_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} {msg}, {eta} left");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn run_once(arguments: &ScenarioArguments, more: &[String]) -> anyhow::Result<Record> {
    let scenario = arguments.load(more)?;
    let plan = scenario.plan()?;
    let mut stage = arguments.stage(&scenario, &*plan)?;
    let mut progress = Some(Progress::new(scenario.duration()));
    let end_s = scenario.run.duration_s;
    let watched = stage.phase(&scenario, &*plan, move |second| {
        if let Some(shown) = &mut progress {
            shown.tell(second);
        }
        if second.at_s >= end_s
            && let Some(shown) = progress.take()
        {
            shown.finish();
        }
    })?;
    run::record(&scenario, &*plan, &stage, watched)
}

/// Runs a scenario once for each value that it compares, and puts the runs beside each other. Refusals are what may be compared, so
/// that wrong answers alone are a failure.
fn run_versus(arguments: &RunArguments, versus: &Versus) -> anyhow::Result<ExitCode> {
    let mut records = Vec::new();
    for value in &versus.values {
        eprintln!("{} = {value}", versus.key);
        let mut record = run_once(&arguments.scenario, &[format!("{}={value}", versus.key)])?;
        ensure!(!interrupt::is_asked(), "interrupted");
        record.target.name = format!("{} {value}", record.target.name);
        show(&format!("{}\n", summary(&record)))?;
        if let Some(path) = &arguments.out.json {
            write(&path.with_extension(format!("{value}.json")), &record.to_json()?)?;
        }
        records.push(record);
    }
    beside_each_other(&records, arguments.out.html.as_deref())?;
    write_csv(arguments, &records)?;
    let is_wrong = records.iter().any(|record| record.verdict().answer == Answer::Wrong);
    Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn write_csv(arguments: &RunArguments, records: &[Record]) -> anyhow::Result<()> {
    arguments.csv.as_ref().map_or(Ok(()), |path| write(path, &tardiness::csv(records)))
}

/// Says what came of a run, and writes it.
fn tell(record: &Record, out: &Out) -> anyhow::Result<ExitCode> {
    let json = out.json.as_ref().map_or(Ok(()), |path| write(path, &record.to_json()?));
    let html = out.html.as_ref().map_or(Ok(()), |path| write(path, &page(record)?));
    show(&summary(record))?;
    json.and(html)?;
    let is_wrong = !record.verdict().faults.is_empty();
    Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Out {
    /// Whether what comes of a run can be written: better said before an hour than after it.
    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.json.is_none() || self.json != self.html, "--json and --html name the same file");
        for path in [&self.json, &self.html].into_iter().flatten() {
            let file = std::fs::File::options().create(true).append(true).open(path);
            file.with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }
}

/// Writes to where the terminal or a pipe is. A reader that has seen enough is no error.
fn show(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("writing to the output"),
        _ => Ok(()),
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn read(path: &Path) -> anyhow::Result<Record> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    Record::from_json(&text).with_context(|| path.display().to_string())
}

fn beside_each_other(records: &[Record], html: Option<&Path>) -> anyhow::Result<()> {
    let comparison = compare(records)?;
    show(&comparison.markdown)?;
    html.map_or(Ok(()), |path| write(path, &comparison.html))
}

fn find_capacity(arguments: &CapacityArguments) -> anyhow::Result<ExitCode> {
    for (flag, value) in [("from", arguments.from), ("most", arguments.most), ("p99-ms", arguments.p99_ms)] {
        ensure!((1e-3..=1e9).contains(&value), "--{flag} has to be from 0.001 to 1,000,000,000, not {value}");
    }
    ensure!(arguments.tries > 0, "--tries has to be 1 at least");
    arguments.out.check()?;
    ensure!((0.01..=10.0).contains(&arguments.within), "--within has to be from 0.01 to 10");
    let scenario = arguments.scenario.load(&[])?;
    ensure!(
        scenario.replay.is_none(),
        "a recording has the rate that it has: replay.speed and replay.copies are what it can be varied by"
    );
    let plan = scenario.plan()?;
    let mut stage = arguments.scenario.stage(&scenario, &*plan)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float that was seen to be within some millions of milliseconds"
    )]
    let p99_us = (arguments.p99_ms * 1e3).round() as u64;
    let search = Search {
        from: arguments.from.min(arguments.most),
        most: arguments.most,
        p99_us,
        within: arguments.within,
        tries: arguments.tries,
    };
    let found = capacity::find(&scenario, &mut stage, &search, |trial| {
        let kept = if trial.was_kept { "kept" } else { "not kept" };
        eprintln!(
            "{:>12.1} events/s: {kept}, {}; p50 {} us, p99 {} us",
            trial.rate, trial.why, trial.p50_us, trial.p99_us
        );
    })?;
    let Some(rate) = found.rate else {
        show(&format!("no rate keeps a 99th percentile of {} ms\n", arguments.p99_ms))?;
        return Ok(ExitCode::FAILURE);
    };
    let least = if rate >= arguments.most { "at least " } else { "" };
    show(&format!(
        "capacity: {least}{rate:.0} events/s with a 99th percentile of {} ms at most\n\n",
        arguments.p99_ms
    ))?;
    let mut half = capacity::attempt(&scenario, &mut stage, rate / 2.0)?;
    half.trials = found.trials;
    half.scenario.remarks.push(format!(
        "at half of the capacity that was found: {least}{rate:.0} events/s with a 99th percentile of {} ms at most",
        arguments.p99_ms
    ));
    show("at half of it:\n\n")?;
    tell(&half, &arguments.out)
}

fn sweep(arguments: &SweepArguments) -> anyhow::Result<ExitCode> {
    let (key, values) = arguments.values.split_once('=').context("--values has to be KEY=VALUE,VALUE,...")?;
    std::fs::create_dir_all(&arguments.out).with_context(|| format!("making {}", arguments.out.display()))?;
    for value in values.split(',') {
        arguments.scenario.load(&[format!("{key}={value}")])?.plan()?;
    }
    let mut records = Vec::new();
    let mut is_wrong = false;
    for value in values.split(',') {
        eprintln!("{key} = {value}");
        let record = run_once(&arguments.scenario, &[format!("{key}={value}")])?;
        ensure!(!interrupt::is_asked(), "interrupted");
        is_wrong |= !record.verdict().faults.is_empty();
        let name = format!("{}-{value}.json", record.scenario.name);
        write(&arguments.out.join(name), &record.to_json()?)?;
        records.push(record);
    }
    beside_each_other(&records, Some(&arguments.out.join("index.html")))?;
    Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn drive(arguments: &TrafficArguments) -> anyhow::Result<ExitCode> {
    let network = || match arguments.nodes {
        Some(nodes) => Ok(Network::country(&Country::new(nodes, arguments.seed))),
        None => scenario::city::network(&arguments.streets, Path::new("")),
    };
    let place = match arguments.engine {
        EngineName::City => return drive_city(arguments, Arc::new(network()?)),
        EngineName::Cpu => country::Place::Processor,
        EngineName::Gpu => country::Place::Device,
    };
    let TrafficArguments { vehicles, routed, seed, step, .. } = *arguments;
    ensure!(f64::from(step) == traffic_gpu::STEP_S, "--step {step}: a step of `cpu` and `gpu` is 0.5 s");
    ensure!((0.5..=1e7).contains(&arguments.seconds), "--for {}: not within 0.5 to 1e7", arguments.seconds);
    let measurement = Measurement {
        streets: match arguments.nodes {
            Some(nodes) => Streets::Made(nodes),
            None => Streets::Network(Arc::new(network()?)),
        },
        settings: traffic_gpu::Settings { vehicles, routed, seed },
        place,
        is_checked: arguments.check,
        before_s: 30.0,
        seconds: arguments.seconds,
        threads: arguments.threads,
    };
    show(&measurement.run()?)?;
    Ok(ExitCode::SUCCESS)
}

fn drive_city(arguments: &TrafficArguments, network: Arc<Network>) -> anyhow::Result<ExitCode> {
    ensure!(arguments.routed == 0 && !arguments.check, "--routed and --check are for --engine cpu or gpu");
    let settings = traffic::Settings { vehicles: arguments.vehicles, ..traffic::Settings::default() };
    let bar = ProgressBar::new_spinner().with_message("driving");
    bar.enable_steady_tick(Duration::from_millis(200));
    let TrafficArguments { seed, threads, seconds, step, .. } = *arguments;
    let measured = traffic::measure(&network, &settings, seed, threads, seconds, step)?;
    bar.finish_and_clear();
    show(&format!(
        "{} vehicles on {} threads: {:.1} times faster than the clock ({:.1} s in {:.2} s); {:.1} vehicles/km of lane, {:.1} km/h, {:.0} % stand, {} incidents\n",
        measured.vehicles,
        measured.threads,
        measured.speedup(),
        measured.simulated_s,
        measured.took_s,
        measured.per_lane_km,
        measured.speed_kmh,
        100.0 * measured.standing,
        measured.incidents,
    ))?;
    Ok(ExitCode::SUCCESS)
}
