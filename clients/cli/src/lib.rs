//! The verbs of `nearcast` against a running broker, at a terminal or in a pipe: publish, subscribe, move, ask, explain,
//! and watch.
//!
//! - `access`: which broker, and by which token
//! - `input`: events and positions as they come, from files and pipes, with the lines where they stand
//! - `pump`: from there to the broker, at once while they trickle, in batches while they pour
//! - `interest`, `event`, `values`: what flags mean
//! - `publish`, `subscribe`, `place`, `events`, `explain`, `top`: a verb each
//! - `list`: `clients` and `stats`
//! - `situations`: checks and rule sets, by their documents
//! - `print`: what people read
#![forbid(unsafe_code)]

mod access;
mod event;
mod events;
mod explain;
mod input;
mod interest;
mod list;
mod place;
mod print;
mod publish;
mod pump;
mod situations;
mod subscribe;
mod top;
mod values;

use std::fmt;
use std::io;
use std::process::ExitCode;

use clap::Subcommand;
use tokio_util::sync::CancellationToken;

use situations::Kind;

pub use events::{EventsArguments, PositionArguments};
pub use explain::ExplainArguments;
pub use list::{ClientsArguments, StatsArguments};
pub use place::MoveArguments;
pub use publish::PubArguments;
pub use situations::{GroupsVerb, ListArguments, NamedArguments, PutArguments, SituationVerb, WhyArguments};
pub use subscribe::SubArguments;
pub use top::TopArguments;

/// What can be done against a running broker.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Publish events: one by flags, or GeoJSON from a file or a pipe as it comes
    Pub(Box<PubArguments>),
    /// Subscribe, and show what comes
    Sub(Box<SubArguments>),
    /// Tell where clients are
    Move(Box<MoveArguments>),
    /// Show what is live now
    Events(Box<EventsArguments>),
    /// Say where a client is
    Position(Box<PositionArguments>),
    /// Say why an event comes to a client, or does not
    Explain(Box<ExplainArguments>),
    /// Watch a broker: rates, latencies, queues, and who is furthest behind
    Top(Box<TopArguments>),
    /// List the clients that a broker knows, and how far behind they are
    Clients(Box<ClientsArguments>),
    /// Show what a broker holds, and what it has done since it started
    Stats(Box<StatsArguments>),
    /// What is done with checks, beside dry runs
    #[command(skip)]
    Checks(SituationVerb),
    /// What is done with rule sets, beside dry runs
    #[command(skip)]
    Rules(SituationVerb),
    /// What is done with group definitions, beside dry runs
    #[command(skip)]
    Groups(GroupsVerb),
}

/// Does it, until it is done or told to stop. The exit code is 1 where something was refused, 2 for flags that do not go together, and 130
/// where it was stopped before its input ended.
///
/// # Errors
/// The reason why the verb ended, in words for the person who typed the command.
pub async fn run(verb: Verb, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let done = match verb {
        Verb::Pub(arguments) => publish::run(*arguments, stop).await,
        Verb::Sub(arguments) => subscribe::run(*arguments, stop).await,
        Verb::Move(arguments) => place::run(*arguments, stop).await,
        Verb::Events(arguments) => events::events(*arguments, stop).await,
        Verb::Position(arguments) => or_stopped(&stop, events::position(*arguments)).await,
        Verb::Explain(arguments) => or_stopped(&stop, explain::run(*arguments)).await,
        Verb::Top(arguments) => top::run(*arguments, stop).await,
        Verb::Clients(arguments) => or_stopped(&stop, list::clients(*arguments)).await,
        Verb::Checks(verb) => or_stopped(&stop, situations::run(Kind::Checks, verb)).await,
        Verb::Rules(verb) => or_stopped(&stop, situations::run(Kind::Rules, verb)).await,
        Verb::Groups(verb) => or_stopped(&stop, situations::run_groups(verb)).await,
        Verb::Stats(arguments) => or_stopped(&stop, list::stats(*arguments)).await,
    };
    done.or_else(|error| {
        if let Some(usage) = error.downcast_ref::<Usage>() {
            print::tell(&format!("error: {usage}\n\nFor more information, try '--help'."));
            return Ok(ExitCode::from(2));
        }
        if error.is::<Stopped>() {
            return Ok(ExitCode::from(130));
        }
        // Who reads has read enough, as `head` does.
        let enough =
            error.downcast_ref().is_some_and(|fault: &io::Error| fault.kind() == io::ErrorKind::BrokenPipe);
        // Others' words may be in it.
        if enough {
            Ok(ExitCode::SUCCESS)
        } else {
            Err(anyhow::Error::msg(print::plain(&format!("{error:#}"))))
        }
    })
}

/// Does work that comes before anything is shown. It ends with [`Stopped`] when `stop` is cancelled.
async fn or_stopped<T>(
    stop: &CancellationToken,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    stop.run_until_cancelled(work).await.unwrap_or_else(|| Err(Stopped.into()))
}

/// Somebody wanted it to end before it was done.
#[derive(Debug)]
struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped")
    }
}

impl std::error::Error for Stopped {}

/// Flags that do not go together.
#[derive(Debug)]
struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn usage(text: impl Into<String>) -> anyhow::Error {
    Usage(text.into()).into()
}
