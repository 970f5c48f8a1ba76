//! The broker as a child process, seen from outside.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// What `/proc/PID/stat` counts in: Linux shows every process hundredths of a second, whatever the kernel's own clock does.
const TICKS_PER_S: f64 = 100.0;

/// How long the broker may take until it is ready, which on a data directory is when all is there again.
const PATIENCE: Duration = Duration::from_secs(600);

/// A running broker; killed when dropped.
#[derive(Debug)]
pub struct Broker {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

/// Processor time that a process has used.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// In its own code.
    pub user_s: f64,
    /// In the kernel on its behalf.
    pub system_s: f64,
}

impl Broker {
    /// Starts `nearcast serve` on a free port and waits until it is ready: before that it may take connections,
    /// and refuse what they ask.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(program: &Path, arguments: &[String]) -> anyhow::Result<Self> {
        Self::launch(Command::new(program), arguments)
    }

    /// Starts a broker, as [`start`](Self::start) does, that ends when it wants more than `memory_bytes` of address space; 0: any
    /// number.
    ///
    /// # Errors
    /// When it does not start, or there is no `prlimit`.
    pub fn start_within(program: &Path, arguments: &[String], memory_bytes: u64) -> anyhow::Result<Self> {
        if memory_bytes == 0 {
            return Self::start(program, arguments);
        }
        // It becomes the program, so that its process is the broker's.
        let mut command = Command::new("prlimit");
        command.arg(format!("--as={memory_bytes}")).arg(program);
        Self::launch(command, arguments)
    }

    fn launch(mut command: Command, arguments: &[String]) -> anyhow::Result<Self> {
        // Another process could take the port in between; the broker would then say so and the run would end.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child = command
            .args(["serve", "--listen", &address.to_string()])
            .args(arguments)
            .env("BROKER__LOG__FILTER", "warn")
            .stdin(Stdio::null())
            // Where it listens is known.
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        let mut broker = Self { child, address };
        let started = Instant::now();
        while !is_ready(address) {
            if let Some(status) = broker.child.try_wait()? {
                bail!("the broker ended with {status}");
            }
            anyhow::ensure!(started.elapsed() < PATIENCE, "the broker is not ready after {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(broker)
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Processor time so far.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn cpu(&self) -> anyhow::Result<Cpu> {
        cpu(&self.pid().to_string())
    }

    /// How it ended; `None` while it runs.
    ///
    /// # Errors
    /// When the process cannot be asked for.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Resident memory now, in bytes. What the kernel holds for sockets is not in it.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn resident_bytes(&self) -> anyhow::Result<u64> {
        self.status_bytes("VmRSS:")
    }

    /// The most resident memory that there was at any time.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn most_resident_bytes(&self) -> anyhow::Result<u64> {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, name: &str) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a broker carries out requests.
fn is_ready(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
}

/// Processor time of this process so far.
///
/// # Errors
/// On a machine without `/proc`.
pub fn own_cpu() -> anyhow::Result<Cpu> {
    cpu("self")
}

fn cpu(process: &str) -> anyhow::Result<Cpu> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat without a name")?;
    let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<f64>);
    let mut next = || anyhow::Ok(ticks.next().context("/proc/PID/stat is short")?? / TICKS_PER_S);
    Ok(Cpu { user_s: next()?, system_s: next()? })
}

impl Cpu {
    /// What was used since then.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { user_s: self.user_s - earlier.user_s, system_s: self.system_s - earlier.system_s }
    }

    /// All of it.
    #[must_use]
    pub fn total_s(self) -> f64 {
        self.user_s + self.system_s
    }
}

/// How many files this process may open.
///
/// # Errors
/// On a machine without `/proc`.
pub fn open_files_max() -> anyhow::Result<u64> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    let line =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")).context("no such limit")?;
    match line.split_whitespace().next() {
        Some("unlimited") => Ok(u64::MAX),
        soft => Ok(soft.context("an empty limit")?.parse()?),
    }
}
