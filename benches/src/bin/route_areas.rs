//! What clients with areas along routes cost a broker, of whom some leave theirs each second. See `benches/README.md`.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use benches::engines::process::{machine, profile};
use benches::fanout::process::Broker;
use clap::Parser;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use matcher::area::Corridor;
use matcher::geo::{Position, Radius, World};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use reqwest::Client;
use routes::{Cost, Graph, dijkstra, durations_ms};
use serde_json::{Value, json};
use streets::Network;

/// Clients with areas along routes: some leave theirs each second, all others go on along it.
#[derive(Debug, Parser)]
struct Args {
    /// A hundredth of the clients, for two seconds.
    #[arg(long)]
    quick: bool,
    /// Clients, each with one area.
    #[arg(long, default_value_t = 100_000)]
    clients: usize,
    /// Share of them that leave theirs each second.
    #[arg(long, default_value_t = 0.01)]
    leave: f64,
    /// Seconds of a phase.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Streets.
    #[arg(long, value_name = "STREETS", default_value = "../shared/data/streets-coquimbo")]
    data: PathBuf,
    /// The broker's program; the one beside this program when absent.
    #[arg(long)]
    broker: Option<PathBuf>,
    /// Seed of the trips.
    #[arg(long, default_value_t = 2011)]
    seed: u64,
}

/// Metres around a route.
const RADIUS_M: f64 = 100.0;
/// Metres from where a client begins, or goes when it leaves its way, to where it was or is going.
const TRIP_M: [f64; 2] = [1_000.0, 3_000.0];
const DETOUR_M: [f64; 2] = [200.0, 600.0];
/// Requests under way at once while clients are made.
const AT_ONCE: usize = 32;
/// Requests of a second.
const REQUESTS: u32 = 10;
/// Trips that differ: further clients set out on these again, since each takes a search of its own here.
const TRIPS: usize = 10_000;
/// Clients whose areas are compared with Dijkstra's algorithm.
const CHECKED: usize = 200;

struct Town {
    network: Network,
    graph: Graph,
    costs: Vec<Cost>,
    random: StdRng,
}

/// A client, as it has to be.
#[derive(Clone)]
struct Traveller {
    at: u32,
    to: u32,
    line: Vec<Position>,
}

impl Town {
    fn read(data: &Path, seed: u64) -> anyhow::Result<Self> {
        let network = streets::load(data)?;
        let (graph, costs) = (Graph::of(&network), durations_ms(&network));
        Ok(Self { network, graph, costs, random: StdRng::seed_from_u64(seed) })
    }

    fn place(&self, node: u32) -> anyhow::Result<Position> {
        Ok(World::Geodetic.position(&self.network.node_at(node))?)
    }

    /// A node about so far from another, from which a way leads to a third.
    fn node_near(&mut self, from: u32, metres: [f64; 2]) -> anyhow::Result<u32> {
        let (from, nodes) = (self.place(from)?, u32::try_from(self.network.nodes_count())?);
        loop {
            let node = self.random.random_range(0..nodes);
            let distance_m = World::Geodetic.distance_m(&from, &self.place(node)?);
            if (metres[0]..metres[1]).contains(&distance_m) {
                return Ok(node);
            }
        }
    }

    /// The best way; `None` where there is none.
    fn line(&self, from: u32, to: u32) -> anyhow::Result<Option<Vec<Position>>> {
        let Some(route) = dijkstra(&self.graph, &self.costs, from, to) else { return Ok(None) };
        let mut line = vec![self.place(from)?; 2];
        for arc in &route.arcs {
            for place in self.network.shape(*arc) {
                line.push(World::Geodetic.position(place)?);
            }
        }
        Ok(Some(line))
    }

    fn traveller(&mut self) -> anyhow::Result<Traveller> {
        let nodes = u32::try_from(self.network.nodes_count())?;
        loop {
            let at = self.random.random_range(0..nodes);
            let to = self.node_near(at, TRIP_M)?;
            if let Some(line) = self.line(at, to)? {
                return Ok(Traveller { at, to, line });
            }
        }
    }

    /// Has a client go somewhere else than along its way.
    fn leave(&mut self, traveller: &mut Traveller) -> anyhow::Result<()> {
        let radius = Radius::new(World::Geodetic, RADIUS_M)?;
        let corridor = Corridor::new(World::Geodetic, &traveller.line, radius)?;
        for _ in 0..100 {
            let at = self.node_near(traveller.at, DETOUR_M)?;
            if corridor.holds(World::Geodetic, &self.place(at)?) {
                continue;
            }
            if let Some(line) = self.line(at, traveller.to)? {
                (traveller.at, traveller.line) = (at, line);
                return Ok(());
            }
        }
        // Somewhere without other streets it stays.
        Ok(())
    }
}

/// A phase of the run.
struct Phase {
    moves_per_s: f64,
    found_per_s: f64,
    cores: f64,
}

struct Run {
    broker: Broker,
    http: Client,
}

impl Run {
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.broker.address)
    }

    async fn make(&self, index: usize, traveller: &Traveller, town: &Town) -> anyhow::Result<()> {
        let position = json!({"coordinates": town.network.node_at(traveller.at)});
        let path = format!("/v1/clients/c{index}/position");
        self.http.put(self.url(&path)).json(&position).send().await?.error_for_status()?;
        let route = json!({"to": town.network.node_at(traveller.to)});
        let document = json!({"filters": [{"area": {"route": route, "radius_m": RADIUS_M}}]});
        let path = format!("/v1/clients/c{index}/subscriptions/way");
        self.http.put(self.url(&path)).json(&document).send().await?.error_for_status()?;
        Ok(())
    }

    /// How often areas were found again so far.
    async fn found(&self) -> anyhow::Result<f64> {
        let text = self.http.get(self.url("/metrics")).send().await?.text().await?;
        let line = text.lines().find_map(|line| line.strip_prefix("nearcast_route_areas_moved_total "));
        Ok(line.context("there is no such figure")?.parse()?)
    }

    /// Sends the moves of each second in some requests, at their times.
    async fn phase(&self, seconds: &[Vec<Value>]) -> anyhow::Result<Phase> {
        let (found, cpu, began) = (self.found().await?, self.broker.cpu()?, Instant::now());
        let mut moves_count = 0;
        for (second, moves) in (0..).zip(seconds) {
            for (part, moves) in (0..).zip(moves.chunks(moves.len().div_ceil(REQUESTS as usize).max(1))) {
                let due = began + Duration::from_secs(second) + Duration::from_secs(1) * part / REQUESTS;
                tokio::time::sleep_until(due.into()).await;
                let sent = self.http.post(self.url("/v1/positions")).json(&moves).send().await?;
                let answer: Value = sent.error_for_status()?.json().await?;
                ensure!(answer["moved"] == moves.len(), "not all have moved: {answer}");
                moves_count += moves.len();
            }
        }
        let took_s = began.elapsed().as_secs_f64();
        let cpu_s = self.broker.cpu()?.since(cpu).total_s();
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52")]
        let moves_per_s = moves_count as f64 / took_s;
        Ok(Phase { moves_per_s, found_per_s: (self.found().await? - found) / took_s, cores: cpu_s / took_s })
    }

    /// Compares areas with what Dijkstra's algorithm says, by how far places are from them.
    async fn check(&self, town: &mut Town, travellers: &[Traveller]) -> anyhow::Result<()> {
        let radius = Radius::new(World::Geodetic, RADIUS_M)?;
        let step = travellers.len().div_ceil(CHECKED);
        for (index, traveller) in travellers.iter().enumerate().step_by(step) {
            let corridor = Corridor::new(World::Geodetic, &traveller.line, radius)?;
            let node = town.node_near(traveller.at, TRIP_M)?;
            let geometry = json!({"type": "Point", "coordinates": town.network.node_at(node)});
            let event = json!({"type": "Feature", "geometry": geometry, "properties": {}});
            let question = json!({"client": format!("c{index}"), "subscription": "way", "event": event});
            let answer = self.http.post(self.url("/v1/explain")).json(&question).send().await?;
            let why: Value = answer.error_for_status()?.json().await?;
            let told_m = why["filters"][0]["area"]["distance_m"].as_f64();
            let right_m = corridor.distance_m(World::Geodetic, &town.place(node)?);
            ensure!(
                told_m.is_some_and(|told_m| (told_m - right_m).abs() < 1e-3),
                "c{index}: {told_m:?} m from its area, and {right_m} m by Dijkstra's algorithm"
            );
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let (clients, seconds) = if args.quick { (args.clients / 100, 2) } else { (args.clients, args.seconds) };
    let mut town = Town::read(&args.data, args.seed)?;
    let program = match args.broker {
        Some(program) => program,
        None => std::env::current_exe()?.with_file_name("nearcast"),
    };
    let settings = tempfile::NamedTempFile::with_suffix(".toml")?;
    let streets = args.data.canonicalize()?;
    std::fs::write(
        settings.path(),
        format!("[routes]\nstreets = {:?}\ntenant_bytes = 0\n", streets.display().to_string()),
    )?;
    let arguments = ["--config".to_owned(), settings.path().display().to_string()];
    let run = Run { broker: Broker::start(&program, &arguments)?, http: Client::new() };
    let mut travellers: Vec<Traveller> = Vec::new();
    for index in 0..clients {
        travellers.push(if index < TRIPS {
            town.traveller()?
        } else {
            Traveller::clone(&travellers[index % TRIPS])
        });
    }
    let empty = run.broker.resident_bytes()?;
    let began = Instant::now();
    let made = stream::iter(travellers.iter().enumerate()).map(|(index, one)| run.make(index, one, &town));
    made.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    let made_s = began.elapsed().as_secs_f64();
    let bytes = run.broker.resident_bytes()?.saturating_sub(empty);
    run.check(&mut town, &travellers).await?;

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few"
    )]
    let leaving = (clients as f64 * args.leave) as usize;
    let mut next = 0;
    println!("{}, {}; {clients} clients, {} points of a line", machine(), profile(), points(&travellers));
    println!("made in {made_s:.0} s, {} bytes each\n", bytes / clients as u64);
    println!(
        "| each second | moves/s | areas found again/s | cores of the broker |\n| --- | --- | --- | --- |"
    );
    for all_move in [false, true] {
        let mut of_seconds = Vec::new();
        for _ in 0..seconds {
            let mut moves = Vec::new();
            if all_move {
                for (index, traveller) in travellers.iter().enumerate() {
                    let at = traveller.line[town.random.random_range(0..traveller.line.len())];
                    moves.push(json!({"client": format!("c{index}"), "coordinates": [at.x(), at.y()]}));
                }
            }
            for _ in 0..leaving {
                let index = next % clients;
                next += 1;
                town.leave(&mut travellers[index])?;
                let coordinates = town.network.node_at(travellers[index].at);
                let gone = json!({"client": format!("c{index}"), "coordinates": coordinates});
                if all_move { moves[index] = gone } else { moves.push(gone) }
            }
            of_seconds.push(moves);
        }
        let Phase { moves_per_s, found_per_s, cores } = run.phase(&of_seconds).await?;
        let what = if all_move { "all move, and of them some leave" } else { "some leave" };
        println!("| {what} | {moves_per_s:.0} | {found_per_s:.0} | {cores:.2} |");
        run.check(&mut town, &travellers).await?;
    }
    Ok(())
}

/// Points of a line, on average.
fn points(travellers: &[Traveller]) -> usize {
    travellers.iter().map(|one| one.line.len()).sum::<usize>() / travellers.len().max(1)
}
