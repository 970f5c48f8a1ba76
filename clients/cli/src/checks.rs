//! `nearcast checks`: what is done with the checks of a running broker.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::value::RawValue;

use crate::access::Access;
use crate::print::{Out, json_text};

/// Time after which a broker that does not answer is taken for one that is away.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is done with the checks of a running broker. A token has to have the scope admin.
#[derive(Clone, Debug, Subcommand)]
pub enum CheckVerb {
    /// Put a check in force, in the place of one of the same name
    Put(PutArguments),
    /// Show a check, and what it does
    Get(NamedArguments),
    /// Show all checks, one a line
    List(ListArguments),
    /// Show what a check found last, an event a line, the newest first
    Findings(NamedArguments),
    /// Stop a check until it is resumed; its inputs wait
    Pause(NamedArguments),
    /// Let a paused check go on
    Resume(NamedArguments),
    /// End a check
    Delete(NamedArguments),
}

/// Arguments of `nearcast checks put`.
#[derive(Clone, Debug, Args)]
pub struct PutArguments {
    /// Name of the check
    name: String,
    /// Its document, JSON; `-` is standard input
    #[arg(value_name = "FILE")]
    document: PathBuf,
    #[command(flatten)]
    access: Access,
}

/// Arguments of what is done with one check.
#[derive(Clone, Debug, Args)]
pub struct NamedArguments {
    /// Name of the check
    name: String,
    #[command(flatten)]
    access: Access,
}

/// Arguments of `nearcast checks list`.
#[derive(Clone, Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    access: Access,
}

pub(crate) async fn run(verb: CheckVerb) -> anyhow::Result<ExitCode> {
    let mut out = Out::new();
    match verb {
        CheckVerb::Put(PutArguments { name, document, access }) => {
            let text = if document.as_os_str() == "-" {
                std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?
            } else {
                std::fs::read_to_string(&document)
                    .with_context(|| format!("cannot read {}", document.display()))?
            };
            let raw =
                RawValue::from_string(text).with_context(|| format!("{} is not JSON", document.display()))?;
            let put = access.broker_within(PATIENCE)?.put_check(&name, &raw).await;
            let put = put.map_err(|error| access.told(&error))?;
            out.write(&format!("{}\n", json_text(&put)?)).await?;
        }
        CheckVerb::Get(NamedArguments { name, access }) => {
            let found = access.broker_within(PATIENCE)?.check(&name).await;
            let found = found.map_err(|error| access.told(&error))?;
            out.write(&format!("{}\n", json_text(&found)?)).await?;
        }
        CheckVerb::List(ListArguments { access }) => {
            let found =
                access.broker_within(PATIENCE)?.checks().await.map_err(|error| access.told(&error))?;
            for check in found {
                out.write(&format!("{}\n", json_text(&check)?)).await?;
            }
        }
        CheckVerb::Findings(NamedArguments { name, access }) => {
            let found = access.broker_within(PATIENCE)?.check_findings(&name).await;
            for event in found.map_err(|error| access.told(&error))? {
                out.write(&format!("{}\n", json_text(&event)?)).await?;
            }
        }
        CheckVerb::Pause(NamedArguments { name, access }) => {
            let paused = access.broker_within(PATIENCE)?.pause_check(&name).await;
            paused.map_err(|error| access.told(&error))?;
        }
        CheckVerb::Resume(NamedArguments { name, access }) => {
            let resumed = access.broker_within(PATIENCE)?.resume_check(&name).await;
            resumed.map_err(|error| access.told(&error))?;
        }
        CheckVerb::Delete(NamedArguments { name, access }) => {
            let deleted = access.broker_within(PATIENCE)?.delete_check(&name).await;
            deleted.map_err(|error| access.told(&error))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
