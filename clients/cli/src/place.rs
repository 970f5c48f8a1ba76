//! `nearcast move`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use nearcast_client::documents::{NamedPosition, Position};
use nearcast_client::{Batch, Coordinates, iter};
use tokio_util::sync::CancellationToken;

use crate::access::{Access, PATIENCE, refusal};
use crate::input::positions::{self, Placed};
use crate::input::{Format, Source};
use crate::print::Out;
use crate::pump::Pump;
use crate::{or_stopped, usage, values};

/// Arguments of `nearcast move`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast move --client ann --at 9.19,45.464 --accuracy 12
  gps | nearcast move --client ann -
  nearcast move --client ann track.gpx
  nearcast move fleet.ndjson        ({\"client\": \"car-7\", \"coordinates\": [9.19, 45.464]} a line)

A line is lon,lat; or JSON with coordinates or a track, and with accuracy_m, time and client where it knows them; or a Feature with a \
point. Or the file is CSV, GPX or NMEA 0183, by its name or by how it begins. The exit code is 1 if any was refused.")]
pub struct MoveArguments {
    /// Positions, a line each; - is standard input
    #[arg(value_name = "FILE", conflicts_with = "at")]
    file: Option<PathBuf>,
    /// The client that is there, where a line does not name one; else the subject of the token
    #[arg(long, value_name = "NAME", env = "NEARCAST_CLIENT")]
    client: Option<String>,
    /// Where the client is
    #[arg(long, value_name = "LON,LAT", value_parser = values::place, allow_hyphen_values = true)]
    at: Option<Coordinates>,
    /// How far off that may be
    #[arg(long, value_name = "METRES", value_parser = values::metres, allow_negative_numbers = true, requires = "at")]
    accuracy: Option<f64>,
    /// The format of the file, where its name and beginning do not say it
    #[arg(long, value_name = "FORMAT", conflicts_with = "at")]
    format: Option<Format>,
    /// End at the first that is refused
    #[arg(long)]
    strict: bool,
    /// How long to wait for a broker that cannot be reached; else it has to be there at the start, and may be away for a minute later
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    patience: Option<Duration>,
    /// Say what was done as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

pub(crate) async fn run(arguments: MoveArguments, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let MoveArguments { file, format, client, at, accuracy, strict, patience, json, access } = arguments;
    let client = access.client(client)?;
    let broker = access.broker()?;
    if let Some(at) = at {
        let client = client.ok_or_else(|| usage("who is there? --client"))?;
        let coordinates = [Some(at.lon), Some(at.lat), at.altitude_m].into_iter().flatten().collect();
        let position = Position { coordinates, track: Vec::new(), accuracy_m: accuracy, time: None };
        if patience.is_some() {
            or_stopped(&stop, access.reach(&broker, patience)).await?;
        }
        let options = Batch::default().patience(Duration::ZERO);
        let moved =
            stop.run_until_cancelled(broker.move_many(iter([NamedPosition { client, position }]), options));
        let Some(moved) = moved.await else { bail!("stopped before there was an answer") };
        if let Some(rejected) = moved.map_err(|error| access.told(&error))?.rejected.first() {
            bail!("{}", refusal(&rejected.problem));
        }
        Out::new().write(if json { "{\"accepted\":1}\n" } else { "1 moved\n" }).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let file = file.ok_or_else(|| usage("where? Name a file (- for standard input), or a place by --at"))?;
    if !file.exists() && file.to_str().is_some_and(|text| values::place(text).is_ok()) {
        return Err(usage(format!("a place goes with --at: --at {}", file.display())));
    }
    let source = Source::open(&file)?;
    or_stopped(&stop, access.reach(&broker, patience)).await?;
    let pump = Pump { name: source.name.clone(), strict, shows_progress: !source.is_typed, done: "moved" };
    let named = move |Placed { client: own, position }| {
        let client = own
            .or_else(|| client.clone())
            .ok_or("it does not say whose position it is, and there is no --client")?;
        Ok(NamedPosition { client, position })
    };
    let format = format.or(source.format);
    let entries = source.feed(move |reader, feed| positions::read_as(format, reader, feed, named));
    let options = Batch::default().patience(patience.unwrap_or(PATIENCE));
    let send = async |positions: Vec<NamedPosition>| broker.move_many(iter(positions), options).await;
    pump.run_to_end(entries, &stop, json, send).await
}
