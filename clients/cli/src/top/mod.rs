//! `nearcast top`.

mod figures;
mod sample;
mod screen;
mod text;
mod view;

use std::io::{IsTerminal as _, stdout};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use nearcast_client::Broker;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::print::{Out, json_text};
use crate::values;
use sample::Sample;
use screen::Screen;
pub(crate) use text::section;
use view::View;
pub(crate) use view::{CLIENT_COLUMNS, client_row, level, title};

/// Time after which a broker that does not answer is shown as one that is away.
const PATIENCE: Duration = Duration::from_secs(5);

/// Arguments of `nearcast top`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast top
  nearcast top --once
  nearcast top --json --interval 10s | jq .rates.events.per_second

A token has to have the scope admin, without a tenant, for figures of the whole broker. Another one shows whether the broker is ready, and \
what its client has subscribed to. Where standard output is no terminal a table is printed each time.")]
pub struct TopArguments {
    /// How often it looks
    #[arg(long, value_name = "TIME", value_parser = values::interval, default_value = "2s")]
    interval: Duration,
    /// How many clients to show, those that are furthest behind first; 0 for none. Each look costs the broker one at all of its clients
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000), default_value_t = 20)]
    clients: u32,
    /// Whose subscriptions to show where the token permits no more; else those of the subject of the token
    #[arg(long, value_name = "NAME", env = "NEARCAST_CLIENT")]
    client: Option<String>,
    /// Look for one interval, print it, and end
    #[arg(long)]
    once: bool,
    /// Show it as JSON, a line each time
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

pub(crate) async fn run(arguments: TopArguments, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let client = arguments.access.client(arguments.client.clone())?;
    let watch = Watch { broker: arguments.access.broker_within(PATIENCE)?, client, arguments };
    let watched = async {
        if watch.arguments.once {
            watch.once().await
        } else if watch.arguments.json || !stdout().is_terminal() {
            watch.print().await
        } else {
            watch.show().await
        }
    };
    stop.run_until_cancelled(watched).await.unwrap_or(Ok(()))?;
    Ok(ExitCode::SUCCESS)
}

struct Watch {
    broker: Broker,
    client: Option<String>,
    arguments: TopArguments,
}

impl Watch {
    async fn sample(&self) -> Sample {
        sample::take(&self.broker, self.client.as_deref(), self.arguments.clients).await
    }

    async fn once(&self) -> anyhow::Result<()> {
        let first = self.there().await?;
        tokio::time::sleep(self.arguments.interval).await;
        let view = View::new(self.arguments.access.url(), Some(&first), &self.there().await?);
        Ok(Out::new().write(&self.render(&view)).await?)
    }

    /// A sample, where there is a broker.
    async fn there(&self) -> anyhow::Result<Sample> {
        let sample = self.sample().await;
        match sample.away() {
            Some(why) => Err(anyhow!("{}: {why}", self.arguments.access.url())),
            None => Ok(sample),
        }
    }

    /// A table or a line after the other.
    async fn print(&self) -> anyhow::Result<()> {
        let mut out = Out::new();
        let mut before = self.sample().await;
        loop {
            tokio::time::sleep(self.arguments.interval).await;
            let now = self.sample().await;
            let view = View::new(self.arguments.access.url(), Some(&before), &now);
            out.write(&self.render(&view)).await?;
            before = now;
        }
    }

    fn render(&self, view: &View) -> String {
        if !self.arguments.json {
            return text::table(view);
        }
        json_text(&view.json()).map(|line| line + "\n").unwrap_or_default()
    }

    /// A screen that lives until somebody has seen enough.
    async fn show(&self) -> anyhow::Result<()> {
        let mut screen = Screen::open()?;
        let url = self.arguments.access.url();
        let mut view = View::blank(url);
        let mut before: Option<Sample> = None;
        loop {
            let looking = async {
                if before.is_some() {
                    tokio::time::sleep(self.arguments.interval).await;
                }
                self.sample().await
            };
            let Some(now) = screen.show_until(&view, looking).await? else { return Ok(()) };
            view = View::new(url, before.as_ref(), &now);
            before = Some(now);
        }
    }
}
