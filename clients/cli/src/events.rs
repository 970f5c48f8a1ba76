//! `nearcast events` and `nearcast position`.

use std::process::ExitCode;

use clap::Args;
use futures_util::StreamExt as _;
use nearcast_client::Query;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::print::{self, Lines, Out, Palette, degrees};
use crate::values::{self, Circle};
use crate::{or_stopped, usage};

/// How many events are shown, unless it is said.
const SHOWN: u64 = 100;
/// The most that one request may ask for.
const PAGE_MAX: u64 = 1_000;

/// Arguments of `nearcast events`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast events --near 9.19,45.464,500 --where \"severity >= 2\"
  nearcast events --bbox 9.0,45.0,9.5,45.6 --all --json
  nearcast events --client ann

With --near the nearest come first. The exit code is 1 if the broker refuses it.")]
pub struct EventsArguments {
    /// In this rectangle; a west beyond east crosses the antimeridian
    #[arg(long, value_name = "W,S,E,N", value_parser = rectangle, allow_hyphen_values = true, conflicts_with = "near")]
    bbox: Option<Rectangle>,
    /// Within so far of a place
    #[arg(long, value_name = "LON,LAT,METRES", value_parser = values::circle, allow_hyphen_values = true)]
    near: Option<Circle>,
    /// Only where this CQL2 condition is true, such as "severity >= 3"
    #[arg(long = "where", value_name = "CQL2")]
    condition: Option<String>,
    /// Only what a subscription of this client takes where it is now
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// How many are shown at most [default: 100]
    #[arg(long, value_name = "N", conflicts_with = "all")]
    limit: Option<u64>,
    /// Show all that there are
    #[arg(long)]
    all: bool,
    /// Coordinates are metres: the broker's world is planar
    #[arg(long)]
    planar: bool,
    /// One Feature per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

/// Arguments of `nearcast position`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast position ann
  nearcast position car-7 --json

The exit code is 1 where the client has told no position, or it is not shown.")]
pub struct PositionArguments {
    /// The client
    #[arg(value_name = "CLIENT")]
    client: String,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

#[derive(Clone, Copy, Debug)]
struct Rectangle([f64; 4]);

/// `W,S,E,N`.
fn rectangle(text: &str) -> Result<Rectangle, String> {
    let numbers = values::numbers(text).and_then(|numbers| numbers.try_into().ok());
    numbers.map(Rectangle).ok_or_else(|| "a rectangle is W,S,E,N, such as 9.0,45.0,9.5,45.6".to_owned())
}

pub(crate) async fn events(arguments: EventsArguments, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let EventsArguments { bbox, near, condition, client, limit, all, planar, json, access } = arguments;
    let limit = if all { u64::MAX } else { limit.unwrap_or(SHOWN) };
    if limit == 0 {
        return Err(usage("--limit 0 shows nothing"));
    }
    let mut query = match (bbox, near) {
        (Some(Rectangle([west, south, east, north])), _) => Query::bbox(west, south, east, north),
        (None, Some(Circle { center, radius_m })) => Query::near(center, radius_m),
        (None, None) => Query::all(),
    };
    if let Some(condition) = condition {
        query = query.when(condition);
    }
    if let Some(client) = client {
        query = query.client(client);
    }
    // One more tells whether there are more.
    let page = u32::try_from(limit.saturating_add(1).min(PAGE_MAX)).expect("a page is small");
    let broker = access.broker()?;
    let mut events = broker.events(query.page(page));
    let from = near.map(|circle| circle.center);
    let lines = Lines { palette: Palette::of_stdout(), subscription: None, planar };
    let mut out = Out::new();
    let mut shown = 0;
    while let Some(feature) = or_stopped(&stop, async { Ok(events.next().await) }).await? {
        let feature = feature.map_err(|error| access.told(&error))?;
        if shown == limit {
            print::tell(&format!("nearcast: there are more than {limit}; --all shows them"));
            break;
        }
        shown += 1;
        let line = if json { print::json_text(&feature)? + "\n" } else { lines.feature(&feature, from) };
        out.write(&line).await?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn position(arguments: PositionArguments) -> anyhow::Result<ExitCode> {
    let PositionArguments { client, json, access } = arguments;
    let told = access.broker()?.position(&client).await.map_err(|error| access.told(&error))?;
    let text = if json {
        print::json_text(&told)?
    } else {
        let coordinates =
            told.coordinates.iter().map(|number| degrees(*number)).collect::<Vec<_>>().join(",");
        let accuracy = told.accuracy_m.map(|metres| format!(" within {}", print::distance(metres)));
        let time = told.time.map(|time| format!(" at {}", print::time_of_day(&time)));
        [Some(coordinates), accuracy, time].into_iter().flatten().collect()
    };
    Out::new().write(&(text + "\n")).await?;
    Ok(ExitCode::SUCCESS)
}
