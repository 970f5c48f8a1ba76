//! What the client costs: events that one process publishes and receives in a second, with the processor time that each takes it.
//!
//! ```sh
//! cargo run --release --example cost                      # starts $NEARCAST, or ../../target/release/nearcast
//! NEARCAST_URL=http://127.0.0.1:7070 cargo run --release --example cost
//! ```
//!
//! The broker runs on the same machine; where that has few cores it is the broker that is measured. The share of a core that this process
//! takes says which. Each figure is the median of five runs, with the least and the most.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Instant,
};

use futures_util::future::join_all;
use nearcast_client::{Batch, Feature, Message, Subscription, attr, connect, event, iter};
use serde::{Deserialize, Serialize};

type Failure = Box<dyn std::error::Error>;

const RUNS: usize = 5;
const EVENTS: u32 = 100_000;
/// Publishes over the socket that wait for their answers at a time.
const UNDER_WAY: u32 = 500;

#[derive(Serialize, Deserialize)]
struct Incident {
    r#type: String,
    severity: u8,
    road: Road,
    number: u32,
}

#[derive(Serialize, Deserialize)]
struct Road {
    name: String,
}

fn incident(number: u32) -> Feature<Incident> {
    let road = Road { name: "A4".to_owned() };
    event([9.19, 45.46], Incident { r#type: "accident".to_owned(), severity: 3, road, number })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    if let Some(url) = std::env::args().nth(1) {
        return Ok(over_http(&url).await.map(drop)?);
    }
    let (url, _broker) = broker()?;
    let mut figures = [const { Vec::new() }; 4];
    for _ in 0..RUNS {
        figures[0].push(measured(over_socket(&url)).await?);
        figures[1].push(measured(over_http(&url)).await?);
        figures[2].push(received(&url, false).await?);
        figures[3].push(received(&url, true).await?);
    }
    let names = ["publish, 500 under way", "publish_many, 500 a request", "receive", "receive, durable"];
    for (name, figures) in names.into_iter().zip(&mut figures) {
        figures.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let [least, median, most] = [0, RUNS / 2, RUNS - 1].map(|place| &figures[place]);
        println!(
            "{name}: {:.0} events/s ({:.0} to {:.0}), {:.1} µs of processor each, {:.0} % of a core",
            median.rate,
            least.rate,
            most.rate,
            median.cpu_s / f64::from(EVENTS) * 1e6,
            median.cpu_s * median.rate / f64::from(EVENTS) * 100.0,
        );
    }
    Ok(())
}

struct Figure {
    rate: f64,
    cpu_s: f64,
}

async fn measured(work: impl Future<Output = Result<(), nearcast_client::Error>>) -> Result<Figure, Failure> {
    let (began, cpu_s) = (Instant::now(), cpu_s()?);
    work.await?;
    Ok(Figure { rate: f64::from(EVENTS) / began.elapsed().as_secs_f64(), cpu_s: self::cpu_s()? - cpu_s })
}

async fn over_socket(url: &str) -> Result<(), nearcast_client::Error> {
    let (session, _) = connect(url, "publisher").await?;
    let session = &session;
    let publishers = (0..UNDER_WAY).map(|first| async move {
        for number in (first..EVENTS).step_by(500) {
            session.publish(&incident(number)).await?;
        }
        Ok(())
    });
    join_all(publishers).await.into_iter().collect::<Result<(), _>>()?;
    session.close().await;
    Ok(())
}

async fn over_http(url: &str) -> Result<(), nearcast_client::Error> {
    let (session, _) = connect(url, "publisher").await?;
    session.publish_many(iter((0..EVENTS).map(incident)), Batch::default()).await?;
    session.close().await;
    Ok(())
}

/// How fast deliveries are taken, from the first to the last: another process publishes as fast as it can.
async fn received(url: &str, durable: bool) -> Result<Figure, Failure> {
    let (session, messages) = connect(url, "reader").await?;
    let mut messages = messages.typed::<Incident>();
    let all = Subscription::from(attr("type").eq("accident"));
    session.subscribe("all", if durable { all.durable() } else { all }).await?;
    let mut publisher = Command::new(std::env::current_exe()?).arg(url).spawn()?;
    let (mut began, mut before_s, mut lost, mut count) = (Instant::now(), cpu_s()?, 0, 0);
    while count + lost < u64::from(EVENTS) {
        match messages.next().await.ok_or("the session was closed")?? {
            Message::Event(_) => count += 1,
            Message::Gap(gap) => lost += gap.count,
            Message::Unreadable(_) | _ => {}
        }
        if count == 1 {
            (began, before_s) = (Instant::now(), cpu_s()?);
        }
    }
    let (wall_s, cpu_s) = (began.elapsed().as_secs_f64(), cpu_s()? - before_s);
    publisher.wait()?;
    session.forget().await?;
    if lost > 0 {
        println!("{lost} were lost on the way, and told by gaps");
    }
    Ok(Figure { rate: count as f64 / wall_s, cpu_s })
}

/// Processor time of this process so far, in seconds, as Linux tells it in hundredths.
fn cpu_s() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc/self/stat is of another form")?;
    let mut ticks = 0.0;
    for field in fields.split_whitespace().skip(11).take(2) {
        ticks += field.parse::<f64>()?;
    }
    Ok(ticks / 100.0)
}

/// Ends the broker that was started here.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn broker() -> Result<(String, Option<Started>), Failure> {
    if let Ok(url) = std::env::var("NEARCAST_URL") {
        return Ok((url, None));
    }
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/release/nearcast");
    let program = std::env::var("NEARCAST").unwrap_or_else(|_| built.to_owned());
    let mut child = Command::new(program)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let started = Started(child);
    for line in lines {
        if let Some((_, url)) = line?.split_once("nearcast listens on ") {
            return Ok((url.trim().to_owned(), Some(started)));
        }
    }
    Err("the broker has not started".into())
}
