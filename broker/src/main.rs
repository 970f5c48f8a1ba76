//! The program `nearcast`.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::Context as _;
use broker::cli::{Checks, Cli, Command, Groups, Routes, Rules, Settings, TokenArguments};
use broker::config::{self, LogFormat, Sources};
use broker::demo::{self, DemoArguments};
use broker::{Config, Grant, Issued, Resources, Stage, SteppedDown, dry_run, maintenance, open_files};
use clap::{CommandFactory as _, Parser as _};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Events are made by one thread and freed by another, which glibc's allocator is slow at (docs/results/speed.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(settings) => serve(&settings).map(|()| ExitCode::SUCCESS),
        Command::Demo(arguments) => demo(arguments),
        Command::PrintConfig(settings) => print_config(&settings).map(|()| ExitCode::SUCCESS),
        Command::Backup(arguments) => maintenance::backup(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Wipe { data } => maintenance::wipe(&data).map(|()| ExitCode::SUCCESS),
        Command::Verify { data } => Ok(maintenance::verify(&data)),
        Command::Checks(Checks::Replay(arguments)) => dry_run::replay(&arguments).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "client")]
        Command::Checks(Checks::Client(verb)) => client(nearcast_cli::Verb::Checks(verb)),
        Command::Rules(Rules::Run(arguments)) => dry_run::rules::run(&arguments).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "client")]
        Command::Rules(Rules::Client(verb)) => client(nearcast_cli::Verb::Rules(verb)),
        Command::Rules(Rules::Translate(arguments)) => {
            dry_run::rules::translate(&arguments).map(|()| ExitCode::SUCCESS)
        }
        Command::Routes(Routes::Find(arguments)) => {
            dry_run::routes::find(&arguments).map(|()| ExitCode::SUCCESS)
        }
        Command::Groups(Groups::Solve(arguments)) => {
            dry_run::groups::solve(&arguments).map(|()| ExitCode::SUCCESS)
        }
        #[cfg(feature = "client")]
        Command::Groups(Groups::Client(verb)) => client(nearcast_cli::Verb::Groups(verb)),
        Command::Token(arguments) => token(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "nearcast", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        #[cfg(feature = "client")]
        Command::Client(verb) => client(verb),
    };
    done.unwrap_or_else(|error| {
        eprintln!("nearcast: {error:#}");
        ExitCode::FAILURE
    })
}

fn sources(settings: &Settings) -> Sources {
    // A variable that is not UTF-8 is none of ours.
    let variable =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let environment = std::env::vars_os().filter_map(variable).collect();
    Sources { file: settings.config.clone(), environment, flags: settings.flags() }
}

/// Says how far a start is. Programs wait for the line that says where it listens, which comes when requests are carried out.
fn announce(url: &str, stage: Stage<'_>) {
    let text = match stage {
        Stage::Recovering { data } => {
            format!(
                "nearcast reads {data} back; until that is done, {url} answers 503, and at /readyz how far it is"
            )
        }
        Stage::Standby { name } => {
            format!("nearcast follows cluster {name} as a standby; until it takes over, {url} answers 503")
        }
        Stage::Ready if nearcast_web::built() => {
            // Of all addresses, the one that a browser on this machine can open.
            let reached = url.replace("://0.0.0.0:", "://localhost:").replace("://[::]:", "://localhost:");
            format!("nearcast listens on {url}\nconsole: {reached}/")
        }
        Stage::Ready => format!("nearcast listens on {url}"),
    };
    // A closed output is no reason to stop.
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn print_config(settings: &Settings) -> anyhow::Result<()> {
    print!("{}", config::explain(&sources(settings))?);
    Ok(())
}

fn serve(settings: &Settings) -> anyhow::Result<()> {
    let config = Config::load(&sources(settings))?;
    log(&config)?;
    // Before anything listens, for what cannot be had ends the program.
    let found = Resources::of(&config)?;
    open_files::raise_for(config.limits.connections);
    let runtime = tokio::runtime::Runtime::new()?;
    let served = runtime.block_on(async {
        let address = config.address();
        let listener = TcpListener::bind(address).await.map_err(|error| cannot_listen(address, error))?;
        let scheme = if found.tls.is_some() { "https" } else { "http" };
        // Who is told that it listens may stop it at once.
        let shutdown = CancellationToken::new();
        tokio::spawn(stop_on_signal(Signals::listen(), shutdown.clone()));
        let url = format!("{scheme}://{}", listener.local_addr()?);
        broker::run_with(listener, config, found, shutdown, move |stage| announce(&url, stage)).await
    });
    // A stop does not wait until data is read that nobody will ask for any more.
    runtime.shutdown_background();
    match served {
        Err(error) if error.is::<SteppedDown>() => begin_anew(error),
        served => served,
    }
}

/// Begins anew as a standby, in the place of this process: nothing of what it knew can get into what comes then.
#[cfg(unix)]
fn begin_anew(why: anyhow::Error) -> anyhow::Result<()> {
    use std::os::unix::process::CommandExt as _;
    let program = std::env::current_exe()?;
    tracing::warn!(why = format!("{why:#}"), "begins anew as a standby");
    let error = std::process::Command::new(program).args(std::env::args_os().skip(1)).exec();
    Err(why.context(format!("the program cannot begin anew: {error}")))
}

/// Where a process cannot be replaced, its supervisor starts it again.
#[cfg(not(unix))]
fn begin_anew(why: anyhow::Error) -> anyhow::Result<()> {
    Err(why)
}

/// Says why nothing listens there, and what else to try where somebody else does.
fn cannot_listen(address: SocketAddr, error: std::io::Error) -> anyhow::Error {
    let is_taken = error.kind() == std::io::ErrorKind::AddrInUse;
    let hint = if is_taken { "; --listen 127.0.0.1:0 takes a free port" } else { "" };
    anyhow::anyhow!("cannot listen on {address}: {error}{hint}")
}

/// Prints a token and nothing else, so that it can go into a variable or a file.
fn token(arguments: &TokenArguments) -> anyhow::Result<()> {
    let TokenArguments { client, scope, tenant, ttl, keys, .. } = arguments;
    let Some(client) = client else {
        println!("{}", broker::public_half(keys)?);
        return Ok(());
    };
    let grant = Grant { client, scopes: scope, tenant: tenant.as_deref(), ttl: *ttl };
    let Issued { token, has_made_keys } = broker::issue(keys, grant)?;
    if has_made_keys {
        // The whole path: another folder may have a file of that name, which the broker uses.
        let path = std::path::absolute(keys)?;
        eprintln!(
            "nearcast: made {0} with a new secret, for you alone to read; start the broker with --auth jwt --jwks {0}",
            path.display()
        );
    }
    println!("{token}");
    Ok(())
}

/// The demo has a display of its own; of the log only what went wrong belongs beside it.
fn demo(arguments: DemoArguments) -> anyhow::Result<ExitCode> {
    let mut config = Config::default();
    "warn".clone_into(&mut config.log.filter);
    log(&config)?;
    // Both ends of every connection are its own: some 1,500 sockets.
    open_files::raise().context("how many files may be open cannot be raised")?;
    tokio::runtime::Runtime::new()?.block_on(demo::run(arguments))
}

/// A first signal lets what is under way end, a second one ends at once.
#[cfg(feature = "client")]
fn client(verb: nearcast_cli::Verb) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(async {
        let stop = CancellationToken::new();
        tokio::spawn(stop_on_signal(Signals::listen(), stop.clone()));
        nearcast_cli::run(verb, stop).await
    });
    // What is being written may wait for somebody who does not read.
    runtime.shutdown_background();
    done
}

fn log(config: &Config) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&config.log.filter).context("log.filter")?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match config.log.format {
        LogFormat::Text => subscriber.init(),
        LogFormat::Json => subscriber.json().init(),
    }
    Ok(())
}

/// The first signal stops in an orderly way, the second at once.
async fn stop_on_signal(mut signals: Signals, shutdown: CancellationToken) {
    signals.next().await;
    shutdown.cancel();
    signals.next().await;
    std::process::exit(130);
}

/// Signals that ask the program to end.
#[cfg(unix)]
struct Signals(Option<[tokio::signal::unix::Signal; 2]>);

#[cfg(unix)]
impl Signals {
    /// From now on they do not end the program by themselves. Where they cannot be had they do, which is what they ask for.
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let both = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
        let [Ok(terminate), Ok(interrupt)] = both else { return Self(None) };
        Self(Some([terminate, interrupt]))
    }

    async fn next(&mut self) {
        let Some([terminate, interrupt]) = &mut self.0 else { return std::future::pending().await };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

/// Signals that ask the program to end.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
