//! `nearcast clients` and `nearcast stats`: what a broker holds, once.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use nearcast_client::documents::Stats;

use crate::access::Access;
use crate::print::{Out, json_text, plain};
use crate::top::{CLIENT_COLUMNS, client_row, level, section, title};

/// Time after which a broker that does not answer is taken for one that is away.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients of a page, the most that a broker gives at once.
const PAGE: u32 = 1000;

/// Arguments of `nearcast clients`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast clients
  nearcast clients --json | jq -r 'select(.connections == 0) | .client'

Those that are furthest behind come first. A token has to have the scope admin, without a tenant.")]
pub struct ClientsArguments {
    /// How many to show at most; all of them when absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Show them as JSON, a client a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

/// Arguments of `nearcast stats`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast stats
  nearcast stats --json | jq .deliveries_dropped

A token has to have the scope admin, without a tenant. `nearcast top` shows rates, and goes on.")]
pub struct StatsArguments {
    /// Show them as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

/// Shows the clients, a page after the other, so that a million of them take no memory here.
pub(crate) async fn clients(arguments: ClientsArguments) -> anyhow::Result<ExitCode> {
    let ClientsArguments { limit, json, access } = arguments;
    let broker = access.broker_within(PATIENCE)?;
    let (mut out, mut left, mut after) = (Out::new(), limit.unwrap_or(u32::MAX), None::<String>);
    loop {
        let page = broker.clients(left.min(PAGE), after.as_deref()).await;
        let page = page.map_err(|error| access.told(&error))?;
        let mut text = String::new();
        if json {
            for client in &page.clients {
                text.push_str(&json_text(client)?);
                text.push('\n');
            }
        } else if page.clients.is_empty() && after.is_none() {
            text.push_str("no clients\n");
        } else {
            section(
                &mut text,
                &CLIENT_COLUMNS,
                page.clients.iter().map(|one| client_row(one).into()).collect(),
            );
        }
        out.write(text.trim_start()).await?;
        left = left.saturating_sub(u32::try_from(page.clients.len()).unwrap_or(u32::MAX));
        after = page.next;
        if after.is_none() || left == 0 {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Shows the figures of a broker.
pub(crate) async fn stats(arguments: StatsArguments) -> anyhow::Result<ExitCode> {
    let StatsArguments { json, access } = arguments;
    let stats = access.broker_within(PATIENCE)?.stats().await.map_err(|error| access.told(&error))?;
    let text = if json { json_text(&stats)? + "\n" } else { table(&stats) };
    Out::new().write(&text).await?;
    Ok(ExitCode::SUCCESS)
}

fn table(stats: &Stats) -> String {
    let Stats { version, engine, engine_why, world, .. } = stats;
    let mut text = format!("{}\n", plain(&format!("nearcast {version}, {engine} ({engine_why}), {world}")));
    let figures = [
        ("uptime_s", stats.uptime_s),
        ("shards", stats.shards),
        ("connections", stats.connections),
        ("websockets", stats.websockets),
        ("event_streams", stats.event_streams),
        ("clients", stats.clients),
        ("subscriptions", stats.subscriptions),
        ("filters", stats.filters),
        ("live_objects", stats.live_objects),
        ("durable_sessions", stats.durable_sessions),
        ("kept_matches", stats.kept_matches),
        ("kept_bytes", stats.kept_bytes),
        ("engine_bytes", stats.engine_bytes),
        ("readers_behind", stats.readers_behind),
        ("queued", stats.queued),
        ("events", stats.events),
        ("events_rejected", stats.events_rejected),
        ("moves", stats.moves),
        ("matches", stats.matches),
        ("deliveries", stats.deliveries),
        ("deliveries_unread", stats.deliveries_unread),
        ("deliveries_dropped", stats.deliveries_dropped),
        ("frames_sent", stats.frames_sent),
    ];
    let rows = figures.map(|(name, value)| vec![title(name), level(name, value)]);
    section(&mut text, &["", "now"], rows.into());
    text
}
