//! The command line.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use figment::value::Value;

use crate::config::{EngineName, Fsync, WorldName};
use crate::demo::{self, DemoArguments};
use crate::dry_run::ReplayArguments;
use crate::dry_run::groups::SolveArguments;
use crate::dry_run::routes::FindArguments;
use crate::dry_run::rules::{RunArguments, TranslateArguments};
use crate::maintenance::BackupArguments;

/// A location-aware, content-based publish/subscribe broker.
#[derive(Debug, Parser)]
#[command(name = "nearcast", version, about)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the broker until SIGTERM or ctrl-C.
    Serve(Settings),
    /// Replay real vehicles against a broker on loopback and check every delivery.
    Demo(DemoArguments),
    /// Show the settings that are in force, with an explanation of each.
    PrintConfig(Settings),
    /// Copy a data directory into a new one, also while a broker runs on it.
    Backup(BackupArguments),
    /// Write a data directory anew without what was replaced or deleted in it, also while a broker runs on it. This takes as
    /// much room again.
    Wipe {
        /// The data directory
        #[arg(value_name = "DIR")]
        data: PathBuf,
    },
    /// Verify a data directory that no broker runs on, without changing it: exits with 1 if it is damaged, with 2 if it
    /// cannot be read.
    Verify {
        /// The data directory
        #[arg(value_name = "DIR")]
        data: PathBuf,
    },
    /// Checks: hold recorded events against them, or put them in force at a running broker.
    #[command(subcommand)]
    Checks(Checks),
    /// Rules: apply them to a goal, print them as CUDA C, or put them in force at a running broker.
    #[command(subcommand)]
    Rules(Rules),
    /// Groups: put definitions of what fits together in force at a running broker, or make a network of constraints arc consistent.
    #[command(subcommand)]
    Groups(Groups),
    /// Routes: find the best ways through streets of a file.
    #[command(subcommand)]
    Routes(Routes),
    /// Print a token for a client of a broker with `--auth jwt`, and make the file of keys where there is none.
    Token(TokenArguments),
    /// Print what a shell has to know to complete what is typed: `source <(nearcast completions bash)`.
    Completions {
        /// The shell
        shell: Shell,
    },
    /// What is done against a running broker.
    #[cfg(feature = "client")]
    #[command(flatten)]
    Client(nearcast_cli::Verb),
}

/// What is done with checks.
#[derive(Clone, Debug, Subcommand)]
pub enum Checks {
    /// Hold recorded events against checks, and print what each would have told.
    Replay(ReplayArguments),
    /// What is done against a running broker.
    #[cfg(feature = "client")]
    #[command(flatten)]
    Client(nearcast_cli::SituationVerb),
}

/// What is done with rules.
#[derive(Clone, Debug, Subcommand)]
pub enum Rules {
    /// Apply the rules of a program until none applies, and print what is left.
    Run(RunArguments),
    /// What is done against a running broker.
    #[cfg(feature = "client")]
    #[command(flatten)]
    Client(nearcast_cli::SituationVerb),
    /// Print the CUDA C that a program becomes.
    Translate(TranslateArguments),
}

/// What is done with groups.
#[derive(Clone, Debug, Subcommand)]
pub enum Groups {
    /// Remove the values that no constraint of an instance allows, and print how many were removed.
    Solve(SolveArguments),
    /// What is done against a running broker.
    #[cfg(feature = "client")]
    #[command(flatten)]
    Client(nearcast_cli::GroupsVerb),
}

/// What is done with routes.
#[derive(Clone, Debug, Subcommand)]
pub enum Routes {
    /// Find the routes of a table of pairs, and print how long each is.
    Find(FindArguments),
}

/// Arguments of `nearcast token`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  nearcast token ann > ann.token
  nearcast token root --scope admin --ttl 5m
  nearcast token --keys private.pem --public > keys.json
  curl -H \"Authorization: Bearer $(nearcast token ann)\" localhost:7070/v1/clients/ann/subscriptions")]
pub struct TokenArguments {
    /// The client that the token is of
    #[arg(value_name = "CLIENT", required_unless_present = "public")]
    pub client: Option<String>,
    /// What it may do, with spaces or commas between: subscribe, publish, alarm, admin
    #[arg(long, value_name = "SCOPES", default_value = "subscribe publish")]
    pub scope: String,
    /// The client's tenant
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// How long it counts
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_ttl)]
    pub ttl: Duration,
    /// File of keys, the one that the broker has as `--jwks`; or a private key in PEM, of P-256 or Ed25519
    #[arg(long, value_name = "FILE", default_value = "keys.json")]
    pub keys: PathBuf,
    /// Print the public half of a private key, as a file of keys for the broker, and no token
    #[arg(long, conflicts_with = "client")]
    pub public: bool,
}

fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = demo::parse_time(text)?;
    if ttl.as_secs() == 0 { Err("it has to be above 0, in seconds".to_owned()) } else { Ok(ttl) }
}

fn no_port(port: &str) -> Result<Infallible, String> {
    Err(format!("address and port go together: --listen 127.0.0.1:{port}"))
}

/// Flags that are settings, too.
#[derive(Clone, Debug, Default, Args)]
pub struct Settings {
    /// Settings file (TOML).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address and port to listen on [server.listen]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// What other programs call it.
    #[arg(long, hide = true, value_parser = no_port)]
    pub port: Option<Infallible>,
    /// What coordinates mean [server.world]
    #[arg(long)]
    pub world: Option<WorldName>,
    /// What matches [server.engine]
    #[arg(long)]
    pub engine: Option<EngineName>,
    /// Engine threads, 0 for one for two cores or a single one for all GPUs [server.shards]
    #[arg(long, value_name = "N")]
    pub shards: Option<u64>,
    /// Folder for what outlives the broker [store.data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    /// NATS servers over which brokers stand in for each other, with commas between [cluster.nats]
    #[arg(long, value_name = "URLS")]
    pub cluster: Option<String>,
    /// The partition of clients that it serves, and how many there are: 2/3 [cluster.partition, cluster.partitions]
    #[arg(long, value_name = "N/M", value_parser = partition)]
    pub cluster_partition: Option<(u32, u32)>,
    /// When it is forced to disk [store.fsync]
    #[arg(long)]
    pub fsync: Option<Fsync>,
    /// Who may do what: "none", "jwt", or "oidc" with the URL of the tokens' issuer [auth.mode, auth.issuer]
    #[arg(long, value_names = ["MODE", "ISSUER"], num_args = 1..=2)]
    pub auth: Vec<String>,
    /// Keys that tokens are checked with: a file or an https URL [auth.jwks]
    #[arg(long, value_name = "KEYS")]
    pub jwks: Option<String>,
    /// Audience that tokens must have [auth.audience]
    #[arg(long, value_name = "NAME")]
    pub audience: Option<String>,
    /// Streets that routes lead through: a file of OpenStreetMap, or a folder of tables [routes.streets]
    #[arg(long, value_name = "STREETS")]
    pub streets: Option<String>,
    /// Certificate chain, PEM [tls.cert]
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<String>,
    /// Private key, PEM [tls.key]
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,
    /// Listen beyond loopback although nobody has to say who they are [server.insecure]
    #[arg(long)]
    pub insecure: bool,
}

impl Settings {
    /// The flags that were given, as `section.key` and value.
    #[must_use]
    pub fn flags(&self) -> Vec<(&'static str, Value)> {
        fn name<T: clap::ValueEnum>(choice: T) -> Option<Value> {
            choice.to_possible_value().map(|value| Value::from(value.get_name()))
        }
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let flags = [
            ("server.listen", text(&self.listen)),
            ("server.world", self.world.and_then(name)),
            ("server.engine", self.engine.and_then(name)),
            ("server.shards", self.shards.map(Value::from)),
            ("store.data", text(&self.data)),
            ("cluster.nats", text(&self.cluster)),
            ("cluster.partition", self.cluster_partition.map(|(partition, _)| Value::from(partition))),
            ("cluster.partitions", self.cluster_partition.map(|(_, partitions)| Value::from(partitions))),
            ("store.fsync", self.fsync.and_then(name)),
            ("auth.mode", text(&self.auth.first().cloned())),
            ("auth.issuer", text(&self.auth.get(1).cloned())),
            ("auth.jwks", text(&self.jwks)),
            ("auth.audience", text(&self.audience)),
            ("routes.streets", text(&self.streets)),
            ("tls.cert", text(&self.tls_cert)),
            ("tls.key", text(&self.tls_key)),
            ("server.insecure", self.insecure.then(|| Value::from(true))),
        ];
        flags.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

fn partition(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('/').and_then(|(n, m)| Some((n.parse().ok()?, m.parse().ok()?)));
    parts.ok_or_else(|| "write the partition and how many there are, such as 2/3".to_owned())
}
