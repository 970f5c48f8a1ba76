//! `nearcast pub`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use nearcast_client::{Batch, Coordinates, Feature, iter};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, PATIENCE};
use crate::event::EventFlags;
use crate::input::{Format, Source, features};
use crate::print::{Out, json_text, plain};
use crate::pump::Pump;
use crate::{or_stopped, usage, values};

/// Arguments of `nearcast pub`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast pub --at 9.19,45.464 --set type=fire --set severity=3 --ttl 10m
  nearcast pub events.geojson
  nearcast pub events.csv           (a first line such as lon,lat,time,type names the columns)
  tail -F -n 0 events.ndjson | nearcast pub -

A file has a Feature, a FeatureCollection, or Features line by line; or CSV, GPX or NMEA 0183, by its name or by how it begins. What is \
refused is told with its line, and the next one comes. \
The exit code is 1 if any was refused.")]
pub struct PubArguments {
    /// Events to publish; - is standard input
    #[arg(value_name = "FILE", conflicts_with = "at")]
    file: Option<PathBuf>,
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
    event: EventFlags,
    #[command(flatten)]
    access: Access,
}

pub(crate) async fn run(arguments: PubArguments, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let PubArguments { file, format, strict, patience, json, event, access } = arguments;
    match (event.feature().zip(event.at()), file) {
        (Some((feature, at)), _) => one(&feature, at, json, patience, &access, &stop).await,
        (None, Some(file)) => {
            let broker = access.broker()?;
            let source = Source::open(&file)?;
            or_stopped(&stop, access.reach(&broker, patience)).await?;
            let pump = Pump {
                name: source.name.clone(),
                strict,
                shows_progress: !source.is_typed,
                done: "published",
            };
            let options = Batch::default().patience(patience.unwrap_or(PATIENCE));
            let send = async |lines: Vec<String>| broker.publish_lines(iter(lines), options).await;
            let format = format.or(source.format);
            let entries = source.feed(move |reader, feed| features::read_as(format, reader, feed));
            pump.run_to_end(entries, &stop, json, send).await
        }
        (None, None) => {
            Err(usage("there is nothing to publish: name a file (- for standard input), or a place by --at"))
        }
    }
}

async fn one(
    feature: &Feature,
    at: Coordinates,
    json: bool,
    patience: Option<Duration>,
    access: &Access,
    stop: &CancellationToken,
) -> anyhow::Result<ExitCode> {
    let broker = access.broker()?;
    if patience.is_some() {
        or_stopped(stop, access.reach(&broker, patience)).await?;
    }
    let id = tokio::select! {
        published = broker.publish(feature) => published.map_err(|error| access.told(&error))?,
        () = stop.cancelled() => bail!("stopped before there was an answer; whether it was published is not known"),
    };
    let line = if json {
        json_text(&json!({"accepted": 1, "id": id}))?
    } else {
        // Said back, so that coordinates in the wrong order are seen.
        plain(&format!("published {id} at longitude {}, latitude {}", at.lon, at.lat))
    };
    Out::new().write(&format!("{line}\n")).await?;
    Ok(ExitCode::SUCCESS)
}
