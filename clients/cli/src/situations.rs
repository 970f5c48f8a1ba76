//! `nearcast checks`, `nearcast rules` and `nearcast groups`: what is done with the situations of a running broker.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::value::RawValue;

use crate::access::Access;
use crate::print::{Out, json_text};

/// Time after which a broker that does not answer is taken for one that is away.
const PATIENCE: Duration = Duration::from_secs(5);

/// What there is that finds something in events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Checks,
    Rules,
    Groups,
}

/// What is done with the checks, the rule sets, or the group definitions of a running broker. A token has to have the scope admin.
#[derive(Clone, Debug, Subcommand)]
pub enum SituationVerb {
    /// Put one in force, in the place of one of the same name
    Put(PutArguments),
    /// Show one, and what it does
    Get(NamedArguments),
    /// Show all, one a line
    List(ListArguments),
    /// Show what one found last, an event a line, the newest first
    Findings(NamedArguments),
    /// Stop one until it is resumed; its inputs wait
    Pause(NamedArguments),
    /// Let one that is paused go on
    Resume(NamedArguments),
    /// End one
    Delete(NamedArguments),
}

/// What is done with the group definitions of a running broker. A token has to have the scope admin.
#[derive(Clone, Debug, Subcommand)]
pub enum GroupsVerb {
    /// What is done with all kinds.
    #[command(flatten)]
    Each(SituationVerb),
    /// Say why a live object is in groups or in none
    Why(WhyArguments),
}

/// Arguments of `why`.
#[derive(Clone, Debug, Args)]
pub struct WhyArguments {
    /// The name of the group definition
    name: String,
    /// The key of the object, or the id of its event if that has none
    object: String,
    #[command(flatten)]
    access: Access,
}

/// Arguments of `put`.
#[derive(Clone, Debug, Args)]
pub struct PutArguments {
    /// Its name
    name: String,
    /// Its document, JSON; `-` is standard input
    #[arg(value_name = "FILE")]
    document: PathBuf,
    #[command(flatten)]
    access: Access,
}

/// Arguments of what is done with one.
#[derive(Clone, Debug, Args)]
pub struct NamedArguments {
    /// Its name
    name: String,
    #[command(flatten)]
    access: Access,
}

/// Arguments of `list`.
#[derive(Clone, Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    access: Access,
}

pub(crate) async fn run(kind: Kind, verb: SituationVerb) -> anyhow::Result<ExitCode> {
    use Kind::{Checks, Groups, Rules};

    let to = |access: &Access| access.broker_within(PATIENCE);
    let (access, lines) = match verb {
        SituationVerb::Put(PutArguments { name, document, access }) => {
            let (broker, document) = (to(&access)?, read(&document)?);
            let put = match kind {
                Checks => broker.put_check(&name, &document).await.map(|put| vec![json_text(&put)]),
                Rules => broker.put_rule_set(&name, &document).await.map(|put| vec![json_text(&put)]),
                Groups => {
                    broker.put_group_definition(&name, &document).await.map(|put| vec![json_text(&put)])
                }
            };
            (access, put)
        }
        SituationVerb::Get(NamedArguments { name, access }) => {
            let broker = to(&access)?;
            let found = match kind {
                Checks => broker.check(&name).await.map(|found| vec![json_text(&found)]),
                Rules => broker.rule_set(&name).await.map(|found| vec![json_text(&found)]),
                Groups => broker.group_definition(&name).await.map(|found| vec![json_text(&found)]),
            };
            (access, found)
        }
        SituationVerb::List(ListArguments { access }) => {
            let broker = to(&access)?;
            let found = match kind {
                Checks => broker.checks().await.map(|found| found.iter().map(json_text).collect()),
                Rules => broker.rule_sets().await.map(|found| found.iter().map(json_text).collect()),
                Groups => broker.group_definitions().await.map(|found| found.iter().map(json_text).collect()),
            };
            (access, found)
        }
        SituationVerb::Findings(NamedArguments { name, access }) => {
            let broker = to(&access)?;
            let found = match kind {
                Checks => broker.check_findings(&name).await,
                Rules => broker.rule_set_findings(&name).await,
                Groups => broker.group_definition_findings(&name).await,
            };
            (access, found.map(|found| found.iter().map(json_text).collect()))
        }
        SituationVerb::Pause(NamedArguments { name, access }) => {
            let broker = to(&access)?;
            let paused = match kind {
                Checks => broker.pause_check(&name).await,
                Rules => broker.pause_rule_set(&name).await,
                Groups => broker.pause_group_definition(&name).await,
            };
            (access, paused.map(|()| Vec::new()))
        }
        SituationVerb::Resume(NamedArguments { name, access }) => {
            let broker = to(&access)?;
            let resumed = match kind {
                Checks => broker.resume_check(&name).await,
                Rules => broker.resume_rule_set(&name).await,
                Groups => broker.resume_group_definition(&name).await,
            };
            (access, resumed.map(|()| Vec::new()))
        }
        SituationVerb::Delete(NamedArguments { name, access }) => {
            let broker = to(&access)?;
            let deleted = match kind {
                Checks => broker.delete_check(&name).await,
                Rules => broker.delete_rule_set(&name).await,
                Groups => broker.delete_group_definition(&name).await,
            };
            (access, deleted.map(|()| Vec::new()))
        }
    };
    show(lines.map_err(|error| access.told(&error))?).await
}

pub(crate) async fn run_groups(verb: GroupsVerb) -> anyhow::Result<ExitCode> {
    match verb {
        GroupsVerb::Each(verb) => run(Kind::Groups, verb).await,
        GroupsVerb::Why(WhyArguments { name, object, access }) => {
            let explained = access.broker_within(PATIENCE)?.explain_object(&name, &object).await;
            show(vec![json_text(&explained.map_err(|error| access.told(&error))?)]).await
        }
    }
}

/// Prints each on a line.
async fn show(lines: Vec<serde_json::Result<String>>) -> anyhow::Result<ExitCode> {
    let mut out = Out::new();
    for line in lines {
        out.write(&format!("{}\n", line?)).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A document, as it is.
fn read(path: &Path) -> anyhow::Result<Box<RawValue>> {
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?
    } else {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?
    };
    RawValue::from_string(text).with_context(|| format!("{} is not JSON", path.display()))
}
