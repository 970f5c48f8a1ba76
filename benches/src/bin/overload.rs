//! What a broker does with more than it can do: the highest rate that it takes from one that sends batches, which are held back, and
//! then multiples of it from publishers that wait for nothing, with alarms among them.
//!
//! Load and broker share the machine. Each accepted event's receivers are compared with what looking at every pair says.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::sync::Arc;

use benches::fanout::load::{Load, median};
use benches::fanout::process::Broker;
use benches::fanout::publisher::Manner;
use benches::fanout::scenario::Scenario;
use benches::fanout::subscribers::{self, Kept};
use benches::overload::{self, Figures, Offer};
use clap::Parser;

const SEED: u64 = 20_121_206;
const FAN_OUT: f64 = 10.1;

/// What a broker does with more than it can do.
#[derive(Debug, Parser)]
struct Arguments {
    /// Subscribers, each with a WebSocket.
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// What is offered, in multiples of what the broker takes in batches.
    #[arg(long, value_delimiter = ',', default_values_t = [0.5, 1.0, 3.0])]
    times: Vec<f64>,
    /// How often each is measured.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Connections that publish.
    #[arg(long, default_value_t = 4)]
    publishers: usize,
    /// Every so manyth event is an alarm.
    #[arg(long, default_value_t = 200)]
    alarm_every: u64,
    /// The broker's `admission.delay_ms`.
    #[arg(long, default_value_t = 250)]
    delay_ms: u64,
    /// The broker's engine.
    #[arg(long, default_value = "cells")]
    engine: String,
    /// Filters besides those of the subscribers, which match nothing: `scan` looks at all of them.
    #[arg(long, default_value_t = 0)]
    filters: usize,
    /// The broker's program; the one beside this program when absent.
    #[arg(long)]
    broker: Option<PathBuf>,
    /// Small and short, to see that it works.
    #[arg(long)]
    quick: bool,
}

fn main() -> anyhow::Result<()> {
    let mut arguments = Arguments::parse();
    if arguments.quick {
        arguments.subscribers = arguments.subscribers.min(100);
        arguments.seconds = arguments.seconds.min(0.5);
        arguments.runs = 1;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let program = match &arguments.broker {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("nearcast"),
    };
    let settings = tempfile::NamedTempFile::new()?;
    std::fs::write(settings.path(), format!("[admission]\ndelay_ms = {}\n", arguments.delay_ms))?;
    let flags = ["--config", &settings.path().display().to_string(), "--engine", &arguments.engine];
    let broker = Broker::start(&program, &flags.map(str::to_owned))?;
    let address = broker.address;
    let scenario = Arc::new(Scenario::new(arguments.subscribers, FAN_OUT, SEED));
    install_filters(address, arguments.filters).await?;

    // What it takes: batches are held back, where single events are refused.
    let mut sockets = subscribers::connect(address, arguments.subscribers).await?;
    subscribers::subscribe(&mut sockets, &scenario.subscribers, scenario.radius_m, Kept::No).await?;
    let mut load = Load::new(broker, Arc::clone(&scenario), sockets, Kept::No)?;
    let phases = load.saturate(Manner::Batches { size: 500 }, arguments.seconds, arguments.runs).await?;
    let capacity = median(&phases, benches::fanout::load::Phase::events_per_s);
    let broker = load.into_broker();

    println!(
        "{} subscribers, {:.1} deliveries an event, engine {}, {} other filters, {} cores, admission.delay_ms = {}, {} publishers; \
         {capacity:.0} events/s in batches\n",
        arguments.subscribers,
        scenario.deliveries(0..4_096) as f64 / 4_096.0,
        arguments.engine,
        arguments.filters,
        std::thread::available_parallelism()?,
        arguments.delay_ms,
        arguments.publishers,
    );
    println!(
        "| offered | events/s | accepted/s | refused/s | p50 ms | p99 ms | max ms | read to written in time | alarms | refused | p50 ms | p99 ms | max ms | broker CPU s |"
    );
    println!("|{}", " --- |".repeat(14));
    let mut sockets = subscribers::connect(address, arguments.subscribers).await?;
    subscribers::subscribe(&mut sockets, &scenario.subscribers, scenario.radius_m, Kept::No).await?;
    for &times in &arguments.times {
        for _ in 0..arguments.runs {
            let offer = Offer {
                rate: capacity * times,
                seconds: arguments.seconds,
                publishers: arguments.publishers,
                alarm_every: arguments.alarm_every,
            };
            let (cpu, written) = (broker.cpu()?, Written::of(address).await?);
            let figures = overload::measure(address, &scenario, &mut sockets, offer).await?;
            let cpu_s = broker.cpu()?.since(cpu).total_s();
            let in_time = Written::of(address).await?.since(&written).within(arguments.delay_ms as f64 / 1e3);
            println!("{}", row(times, &figures, in_time, cpu_s));
        }
    }
    Ok(())
}

/// Filters that nothing fits.
async fn install_filters(broker: std::net::SocketAddr, count: usize) -> anyhow::Result<()> {
    let client = reqwest::Client::new();
    for number in 0..count.div_ceil(50) {
        let filters: Vec<_> = (0..50)
            .map(
                |idx| serde_json::json!({"where": format!("type = 'accident' AND severity = {}", 100 + idx)}),
            )
            .collect();
        let url = format!("http://{broker}/v1/clients/other-{number}/subscriptions/s");
        client.put(url).json(&serde_json::json!({"filters": filters})).send().await?.error_for_status()?;
    }
    Ok(())
}

/// What the broker says of how long events took from being read to being written: of each write the oldest.
#[derive(Debug)]
struct Written(Vec<(f64, f64)>);

impl Written {
    async fn of(broker: std::net::SocketAddr) -> anyhow::Result<Self> {
        let text = reqwest::get(format!("http://{broker}/metrics")).await?.error_for_status()?.text().await?;
        let buckets = text.lines().filter_map(|line| {
            let rest = line.strip_prefix("nearcast_publish_to_write_seconds_bucket{le=\"")?;
            let (end, count) = rest.split_once("\"} ")?;
            let end = if end == "+Inf" { f64::INFINITY } else { end.parse().ok()? };
            Some((end, count.parse().ok()?))
        });
        Ok(Self(buckets.collect()))
    }

    fn since(&self, before: &Self) -> Self {
        let of = |end: f64| before.0.iter().find(|(other, _)| *other == end).map_or(0.0, |(_, count)| *count);
        Self(self.0.iter().map(|(end, count)| (*end, count - of(*end))).collect())
    }

    /// The share of the writes that were surely in time: those of whole buckets.
    fn within(&self, seconds: f64) -> f64 {
        let of = |most: f64| {
            self.0.iter().filter(|(end, _)| *end <= most).map(|(_, count)| *count).fold(0.0, f64::max)
        };
        of(seconds) / of(f64::INFINITY)
    }
}

fn row(times: f64, figures: &Figures, in_time: f64, cpu_s: f64) -> String {
    let [ordinary, alarms] = &figures.kinds;
    let ms = |latency: &overload::Latency, quantile| {
        latency.deliveries_us.value_at_quantile(quantile) as f64 / 1e3
    };
    let per_s = |count: u64| count as f64 / figures.seconds;
    format!(
        "| {times} x | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} | {:.1} | {:.2} % | {} | {} | {:.1} | {:.1} | {:.1} | {cpu_s:.1} of {:.1} |",
        figures.offer.rate,
        per_s(ordinary.accepted + alarms.accepted),
        per_s(ordinary.refused + alarms.refused),
        ms(ordinary, 0.5),
        ms(ordinary, 0.99),
        ordinary.deliveries_us.max() as f64 / 1e3,
        1e2 * in_time,
        alarms.accepted,
        alarms.refused,
        ms(alarms, 0.5),
        ms(alarms, 0.99),
        alarms.deliveries_us.max() as f64 / 1e3,
        figures.seconds,
    )
}
