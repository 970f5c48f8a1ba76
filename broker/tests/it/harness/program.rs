//! The built program as a child process, so that signals, exit codes, panics and memory are the real ones.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::Value;
use tempfile::TempDir;

use super::{Door, Http, Pair, eventually};

/// How to start `nearcast serve`; every test says only what it needs.
pub(crate) struct Serve {
    listen: String,
    args: Vec<String>,
    config: String,
    env: Vec<(String, String)>,
    files: Option<String>,
    tls: Option<Arc<Pair>>,
    /// What has to be there for as long as it runs.
    kept: Vec<TempDir>,
}

impl Serve {
    /// A broker with default settings on a free loopback port.
    pub(crate) fn new() -> Self {
        Self {
            listen: "127.0.0.1:0".to_owned(),
            args: Vec::new(),
            config: String::new(),
            env: Vec::new(),
            files: None,
            tls: None,
            kept: Vec::new(),
        }
    }

    /// Listens elsewhere.
    pub(crate) fn listen(mut self, address: &str) -> Self {
        address.clone_into(&mut self.listen);
        self
    }

    /// Adds flags.
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Sets the text of the configuration file.
    pub(crate) fn config(mut self, toml: &str) -> Self {
        toml.clone_into(&mut self.config);
        self
    }

    /// Adds an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Keeps a folder, with what it was told to read there.
    pub(crate) fn keeping(mut self, folder: TempDir) -> Self {
        self.kept.push(folder);
        self
    }

    /// Limits its open files as `ulimit` does with these arguments.
    pub(crate) fn files(mut self, limits: &str) -> Self {
        self.files = Some(limits.to_owned());
        self
    }

    /// Has it speak TLS, with what is in `cert.pem` and `key.pem` of a folder.
    pub(crate) fn tls(mut self, folder: &Path, pair: &Arc<Pair>) -> Self {
        pair.write(folder);
        let file = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
        self.args.extend([
            "--tls-cert".to_owned(),
            file("cert.pem"),
            "--tls-key".to_owned(),
            file("key.pem"),
        ]);
        self.tls = Some(Arc::clone(pair));
        self
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(self) -> Program {
        self.try_start()
            .await
            .unwrap_or_else(|(status, log)| panic!("the program ended at once: {status}\n{log}"))
    }

    /// Starts it and waits until it is ready, or returns how it ended instead and what it said.
    pub(crate) async fn try_start(self) -> Result<Program, (ExitStatus, String)> {
        let tls = self.tls.clone();
        let mut program = self.launch();
        let ready = eventually("the broker is ready", async || {
            if let Some(status) = program.child.try_wait().expect("the child can be asked") {
                return Some(Err(status));
            }
            if program.door.0.port() == 0 {
                program.door.0 = program.address_told()?;
            }
            let http = match &tls {
                None => program.http(),
                Some(pair) => Http::trusting(program.address(), pair),
            };
            let answer = http.attempt("GET", "/readyz", None, String::new()).await?;
            (answer.status == 200).then_some(Ok(()))
        })
        .await;
        match ready {
            Ok(()) => Ok(program),
            Err(status) => {
                program.collect_rest();
                Err((status, program.log()))
            }
        }
    }

    /// Starts it and waits until it listens, ready or not.
    pub(crate) async fn listening(self) -> Program {
        let mut program = self.launch();
        program.door.0 = eventually("the broker listens", async || program.address_told()).await;
        program
    }

    fn launch(mut self) -> Program {
        let folder = TempDir::new().expect("a folder for the configuration");
        let file = folder.path().join("nearcast.toml");
        std::fs::write(&file, &self.config).expect("the configuration is written");
        let mut command = match &self.files {
            None => command(folder.path()),
            Some(limits) => {
                let mut shell = within_folder(Command::new("sh"), folder.path());
                shell.args(["-c", &format!("ulimit {limits} && exec \"$0\" \"$@\"")]).arg(executable());
                shell
            }
        };
        command.args(["serve", "--listen", &self.listen, "--config"]).arg(&file).args(&self.args);
        if !self.config.contains("[admission]") {
            // Others use the machine while tests run, so that anything may be late: what is about that says so.
            command.env("BROKER__ADMISSION__DELAY_MS", "60000");
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().expect("the program starts");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let collectors = vec![
            collect(child.stdout.take().expect("stdout is a pipe"), &lines),
            collect(child.stderr.take().expect("stderr is a pipe"), &lines),
        ];
        let door = Door(([127, 0, 0, 1], 0).into());
        self.kept.push(folder);
        Program { child, lines, collectors, door, _folders: self.kept }
    }
}

/// A started broker. It is killed when dropped, and ended properly by [`Program::finish`].
pub(crate) struct Program {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    /// Read what it prints, until it ends.
    collectors: Vec<JoinHandle<()>>,
    door: Door,
    _folders: Vec<TempDir>,
}

impl Program {
    /// All that it has printed.
    pub(crate) fn log(&self) -> String {
        self.lines.lock().expect("no reader panicked").join("\n")
    }

    /// Waits until it has printed this. What a request or a figure shows may be shown before.
    pub(crate) async fn says(&self, part: &str) {
        eventually(&format!("the log says {part:?}"), async || self.log().contains(part).then_some(())).await;
    }

    /// Where it says that it listens.
    fn address_told(&self) -> Option<SocketAddr> {
        self.lines
            .lock()
            .expect("no reader panicked")
            .iter()
            // Of what it announces. A log may have other addresses.
            .filter(|line| line.starts_with("nearcast "))
            .find_map(|line| address_in(line))
    }

    /// Its resident memory, from the kernel.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("the child is alive");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("the kernel tells VmRSS");
        let kib = line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
        kib.expect("a number of KiB") * 1024
    }

    /// How many files it may have open, from the kernel: the soft limit and the hard one.
    pub(crate) fn files_max(&self) -> [u64; 2] {
        let path = format!("/proc/{}/limits", self.child.id());
        let limits = std::fs::read_to_string(path).expect("the child is alive");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let mut numbers = line.expect("the kernel tells of open files").split_whitespace();
        [(); 2].map(|()| numbers.next().and_then(|text| text.parse().ok()).expect("a number"))
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name} failed");
    }

    /// Waits for its end, and for all that it has printed.
    pub(crate) async fn exit_status(&mut self) -> ExitStatus {
        let status =
            eventually("the program ends", async || self.child.try_wait().expect("the child can be asked"))
                .await;
        self.collect_rest();
        status
    }

    /// Once it has ended.
    fn collect_rest(&mut self) {
        self.collectors.drain(..).for_each(|collector| collector.join().expect("no panic"));
    }

    /// Fails if anything in it has panicked, or if it is gone.
    #[track_caller]
    pub(crate) fn assert_healthy(&mut self) {
        let exited = self.child.try_wait().expect("the child can be asked");
        assert!(exited.is_none(), "the broker is gone: {exited:?}\n{}", self.log());
        let log = self.log();
        assert!(!log.contains("panicked"), "the broker panicked:\n{log}");
    }

    /// Ends it as a crash would, with not an instruction of its own more, and checks that it was well until then.
    pub(crate) fn kill(mut self) {
        self.assert_healthy();
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// Asks it to end, and checks that it does so cleanly.
    pub(crate) async fn finish(mut self) {
        self.assert_healthy();
        self.signal("TERM");
        let status = self.exit_status().await;
        let log = self.log();
        assert!(status.success(), "exit {status}\n{log}");
        assert!(!log.contains("panicked"), "the broker panicked:\n{log}");
    }
}

impl Deref for Program {
    type Target = Door;

    fn deref(&self) -> &Door {
        &self.door
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Already gone is fine; a child must never outlive its test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program with the given arguments in an empty folder until it ends by itself.
pub(crate) fn run_to_end(args: &[&str], env: &[(&str, &str)], folder: &Path) -> Output {
    let mut command = command(folder);
    command.args(args).envs(env.iter().copied());
    command.output().expect("the program starts")
}

/// Runs a dry run in a folder: the document that it prints, with null for its `seconds`, or its errors.
pub(crate) fn dry_run(args: &[&str], folder: &Path) -> Result<Value, String> {
    let output = run_to_end(args, &[], folder);
    if !output.status.success() {
        assert_eq!(output.status.code(), Some(1));
        return Err(String::from_utf8(output.stderr).expect("UTF-8"));
    }
    let mut document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(document["seconds"].take().as_f64().is_some_and(|seconds| seconds >= 0.0));
    Ok(document)
}

/// The program, to be started in a folder.
pub(crate) fn command(folder: &Path) -> Command {
    within_folder(Command::new(executable()), folder)
}

fn executable() -> OsString {
    // Another one where the tests were carried to another machine, or to test another build of it.
    std::env::var_os("NEARCAST_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_nearcast").into())
}

/// With a clean environment: nothing that a developer has set may change what the tests see.
fn within_folder(mut command: Command, folder: &Path) -> Command {
    command.current_dir(folder).env_clear();
    for name in ["PATH", "HOME", "LLVM_PROFILE_FILE", "LD_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.env("RUST_BACKTRACE", "1").env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn collect(pipe: impl Read + Send + 'static, lines: &Arc<Mutex<Vec<String>>>) -> JoinHandle<()> {
    let lines = Arc::clone(lines);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            lines.lock().expect("no reader panicked").push(line);
        }
    })
}

/// The first address with a port in a line of the log, as a client on this machine reaches it.
fn address_in(line: &str) -> Option<SocketAddr> {
    let words = line.split(|c: char| !(c.is_ascii_hexdigit() || ".:[]".contains(c)));
    let mut addresses = words.filter_map(|word| word.trim_end_matches(['.', ':']).parse::<SocketAddr>().ok());
    let mut address = addresses.find(|address| address.port() != 0)?;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    Some(address)
}
