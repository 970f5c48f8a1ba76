//! A broker that is started for a run.

use std::fs::File;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tempfile::TempDir;

use crate::endpoint::Endpoint;
use crate::interrupt;

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where programs are that only an administrator's path leads to.
const ADMINISTRATORS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// What a program logs into its folder.
const LOG: &str = "log";

/// What nearcast writes to its standard output, and the line by which it says that requests are carried out. Until then it may take
/// connections, and refuse what they ask.
const SAID: &str = "said";
const READY: &str = "nearcast listens on ";

/// A broker as a process of its own; killed when dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// Ends it if this process is killed.
    guard: Option<Child>,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// As a peer says itself; nearcast does so when it runs.
    pub version: Option<String>,
    /// What it keeps, removed with it.
    folder: TempDir,
}

impl Program {
    /// Starts `nearcast serve` on a free port with settings of its own configuration, and waits until it takes connections: over TLS with
    /// a certificate made for it, or in the clear. The program is the one beside this one, or on the path, unless another is named.
    ///
    /// # Errors
    /// When there is no such program or it does not start: it then says why itself.
    pub fn nearcast(program: Option<&Path>, settings: &toml::Table, is_secure: bool) -> anyhow::Result<Self> {
        ensure!(
            !settings.contains_key("tls"),
            "broker.tls: --tls says that, and makes a certificate for the run"
        );
        let program = program.map_or_else(beside, Path::to_owned);
        let address = free_port()?;
        let mut command = Command::new(&program);
        command.args(["serve", "--listen", &address.to_string()]).env("BROKER__LOG__FILTER", "warn");
        let folder = folder()?;
        let endpoint = if is_secure {
            let made = rcgen::generate_simple_self_signed([address.ip().to_string()])?;
            let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
            std::fs::write(&cert, made.cert.pem())?;
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&key)?;
            file.write_all(made.signing_key.serialize_pem().as_bytes())?;
            command.arg("--tls-cert").arg(cert).arg("--tls-key").arg(key);
            Endpoint::secure(address, made.cert.der().clone())?
        } else {
            Endpoint::plain(address)
        };
        for (section, values) in settings {
            let values = values.as_table().with_context(|| format!("broker.{section} has to be a table"))?;
            for (key, value) in values {
                let mut text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                if (section.as_str(), key.as_str()) == ("store", "data") && text == "temporary" {
                    text = folder.path().join("data").display().to_string();
                }
                command.env(format!("BROKER__{}__{}", section.to_uppercase(), key.to_uppercase()), text);
            }
        }
        let said = folder.path().join(SAID);
        command.stdout(File::create(&said)?);
        let is_ready = move || std::fs::read_to_string(&said).is_ok_and(|said| said.contains(READY));
        Self::start(command, endpoint, None, folder, is_ready)
    }

    /// Starts `mosquitto` on a free port, without limits of its own that the load could meet.
    ///
    /// # Errors
    /// When it is not installed or does not start.
    pub fn mosquitto(program: Option<&Path>) -> anyhow::Result<Self> {
        let program = program.map_or_else(|| installed("mosquitto"), Path::to_owned);
        let version = version(&program, "-h").with_context(|| absent(&program, "mosquitto"))?;
        let (address, folder) = (free_port()?, folder()?);
        let settings = folder.path().join("mosquitto.conf");
        // Started by root it becomes another user unless told not to, who may not be there; otherwise `user` says nothing.
        let text = format!(
            "listener {} {}\nuser root\nallow_anonymous true\npersistence false\nmax_connections -1\n\
             max_queued_messages 0\nset_tcp_nodelay true\nlog_dest stderr\nlog_type error\n",
            address.port(),
            address.ip()
        );
        std::fs::write(&settings, text)?;
        let mut command = Command::new(&program);
        command.arg("-c").arg(settings);
        Self::start_quietly(command, address, version, folder)
    }

    /// Starts `nats-server` on a free port. It takes 65,536 connections by itself.
    ///
    /// # Errors
    /// When it is not installed or does not start.
    pub fn nats(program: Option<&Path>) -> anyhow::Result<Self> {
        let program = program.map_or_else(|| installed("nats-server"), Path::to_owned);
        let version = version(&program, "--version").with_context(|| absent(&program, "nats-server"))?;
        let (address, folder) = (free_port()?, folder()?);
        let mut command = Command::new(&program);
        command.args(["--addr", &address.ip().to_string(), "--port", &address.port().to_string()]);
        Self::start_quietly(command, address, version, folder)
    }

    /// Starts a program that says much when all is well: what it says is shown when it does not start.
    fn start_quietly(
        mut command: Command,
        address: SocketAddr,
        version: String,
        folder: TempDir,
    ) -> anyhow::Result<Self> {
        command.stderr(File::create(folder.path().join(LOG))?).stdout(Stdio::null());
        let is_ready = move || TcpStream::connect(address).is_ok();
        Self::start(command, Endpoint::plain(address), Some(version), folder, is_ready)
    }

    /// Starts any program that listens at an address, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not, with what it has logged into its folder.
    fn start(
        mut command: Command,
        endpoint: Endpoint,
        version: Option<String>,
        folder: TempDir,
        is_ready: impl Fn() -> bool,
    ) -> anyhow::Result<Self> {
        let program = PathBuf::from(command.get_program());
        let child = command
            .stdin(Stdio::null())
            // Ctrl-C at a terminal is for the load, which ends the broker when it has heard what comes.
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let log = folder.path().join(LOG);
        let mut broker = Self { child, guard: None, endpoint, version, folder };
        broker.guard = Some(guard(broker.pid(), broker.folder.path())?);
        let started = Instant::now();
        while !is_ready() {
            interrupt::check()?;
            if let Some(status) = broker.child.try_wait()? {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                bail!(
                    "{} ended with {status}{}{said}",
                    program.display(),
                    if said.is_empty() { "" } else { ":\n" }
                );
            }
            ensure!(started.elapsed() < PATIENCE, "{} is not ready", program.display());
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(broker)
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(mut guard) = self.guard.take() {
            let _ = guard.stdin.take().map(|mut word| word.write_all(b"\n"));
            let _ = guard.wait();
        }
    }
}

/// A shell that waits for a word. If its pipe ends without one, this process was killed: the shell then ends the broker and removes its folder.
fn guard(pid: u32, folder: &Path) -> anyhow::Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", "read word || { kill -9 \"$0\"; rm -rf -- \"$1\"; }", &pid.to_string()]).arg(folder);
    let outputs = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    outputs.process_group(0).spawn().context("starting a shell that ends the broker if need be")
}

/// For what a broker keeps: its owner's alone, and removed in the end.
fn folder() -> anyhow::Result<TempDir> {
    tempfile::Builder::new().prefix("nearcast-load-").tempdir().context("making a folder for the broker")
}

/// Another process could take it in between; the broker would then say so, and the run would end.
fn free_port() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// What a program says of itself in the first line of an answer, whose last word that is.
fn version(program: &Path, flag: &str) -> std::io::Result<String> {
    let output = Command::new(program).arg(flag).stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().next().and_then(|line| line.split_whitespace().last());
    Ok(last.unwrap_or_default().trim_start_matches('v').to_owned())
}

/// The broker's program: beside this one, or on the path.
fn beside() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("nearcast"));
    beside.filter(|program| program.exists()).unwrap_or_else(|| PathBuf::from("nearcast"))
}

/// A peer's program: where administrators have it, or on the path.
fn installed(name: &str) -> PathBuf {
    let found =
        ADMINISTRATORS.iter().map(|folder| Path::new(folder).join(name)).find(|program| program.exists());
    found.unwrap_or_else(|| PathBuf::from(name))
}

/// Why a peer cannot be asked for its version.
fn absent(program: &Path, package: &str) -> String {
    format!("starting {}, which `apt-get install {package}` brings", program.display())
}
