//! A broker that is started for a run.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A broker as a process of its own; killed when dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// What it keeps, removed with it.
    _folder: Option<Folder>,
}

/// A folder that is removed in the end.
#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Program {
    /// Starts `nearcast serve` on a free port with settings of its own configuration, and waits until it takes connections.
    ///
    /// # Errors
    /// When there is no such program or it does not start: it then says why itself.
    pub fn nearcast(program: &Path, settings: &toml::Table) -> anyhow::Result<Self> {
        let address = free_port()?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", &address.to_string()]).env("BROKER__LOG__FILTER", "warn");
        let mut folder = None;
        for (section, values) in settings {
            let values = values.as_table().with_context(|| format!("broker.{section} has to be a table"))?;
            for (key, value) in values {
                let mut text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                if (section.as_str(), key.as_str()) == ("store", "data") && text == "temporary" {
                    let path = std::env::temp_dir().join(format!("nearcast-load-{}", std::process::id()));
                    text = path.display().to_string();
                    folder = Some(Folder(path));
                }
                command.env(format!("BROKER__{}__{}", section.to_uppercase(), key.to_uppercase()), text);
            }
        }
        Self::start(command, program, address, folder)
    }

    /// Starts any program that listens at an address, and waits until it does.
    ///
    /// # Errors
    /// When it does not.
    fn start(
        mut command: Command,
        program: &Path,
        address: SocketAddr,
        folder: Option<Folder>,
    ) -> anyhow::Result<Self> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let mut broker = Self { child, address, _folder: folder };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = broker.child.try_wait()? {
                bail!("{} ended with {status}", program.display());
            }
            ensure!(started.elapsed() < PATIENCE, "{} takes no connections", program.display());
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(broker)
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
    }
}

/// Another process could take it in between; the broker would then say so, and the run would end.
fn free_port() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// The broker's program: beside this one, or on the path.
#[must_use]
pub fn beside() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("nearcast"));
    beside.filter(|program| program.exists()).unwrap_or_else(|| PathBuf::from("nearcast"))
}
