//! `nearcast pub`, `sub`, `move`, `explain`, `top` and the others, as one types them and as scripts do.

mod advice;
mod events;
mod explain;
mod formats;
mod list;
mod place;
mod publish;
mod situations;
mod subscribe;
mod token;
mod top;

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Output};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tempfile::TempDir;

use crate::harness::{Door, command, eventually};

/// The program that somebody has started, with pipes at its ends.
pub(crate) struct Typed {
    child: Child,
    input: Option<ChildStdin>,
    out: Arc<Mutex<Vec<String>>>,
    err: Arc<Mutex<Vec<String>>>,
    readers: Vec<JoinHandle<()>>,
    _folder: Option<TempDir>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Typed {
    /// Starts it in an empty folder, against this broker.
    pub(crate) fn start(door: &Door, args: &[&str]) -> Self {
        Self::start_with(door, args, &[])
    }

    /// The same with variables of the environment.
    pub(crate) fn start_with(door: &Door, args: &[&str], env: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut command = command(folder.path());
        command
            .args(args)
            .env("NEARCAST_URL", format!("http://{}", door.address()))
            .envs(env.iter().copied());
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let (out, err) = (Arc::default(), Arc::default());
        let readers = vec![
            gather(child.stdout.take().expect("a pipe"), &out),
            gather(child.stderr.take().expect("a pipe"), &err),
        ];
        let input = child.stdin.take();
        Self { child, input, out, err, readers, _folder: Some(folder) }
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes into its standard input.
    pub(crate) fn say(&mut self, text: &str) {
        let input = self.input.as_mut().expect("it is not closed");
        input.write_all(text.as_bytes()).and_then(|()| input.flush()).expect("it reads");
    }

    /// Ends its standard input.
    pub(crate) fn hush(&mut self) {
        self.input = None;
    }

    /// Waits for a line on standard output.
    pub(crate) async fn shows(&self, part: &str) -> String {
        self.wait(&self.out, part).await
    }

    /// Waits for a line on standard error.
    pub(crate) async fn tells(&self, part: &str) -> String {
        self.wait(&self.err, part).await
    }

    async fn wait(&self, lines: &Mutex<Vec<String>>, part: &str) -> String {
        let found = || lines.lock().expect("no panic").iter().find(|line| line.contains(part)).cloned();
        let what = format!("a line with {part:?}, of {:?} and {:?}", self.out, self.err);
        eventually(&what, async || found()).await
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let status =
            std::process::Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name} failed");
    }

    /// Ends its input, and waits for its end.
    pub(crate) async fn end(mut self) -> Ended {
        self.hush();
        self.end_by_itself().await
    }

    /// Waits for its end, which its input is not the reason for.
    pub(crate) async fn end_by_itself(mut self) -> Ended {
        let status = eventually("it ends", async || self.child.try_wait().expect("it can be asked")).await;
        self.readers.drain(..).for_each(|reader| reader.join().expect("no panic"));
        let text = |lines: &Mutex<Vec<String>>| lines.lock().expect("no panic").join("\n");
        let ended = Ended { code: status.code(), out: text(&self.out), err: text(&self.err) };
        assert!(!ended.err.contains("panicked"), "{ended:?}");
        ended
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        // Already gone is fine; a child must never outlive its test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Demands an exit code.
    #[track_caller]
    pub(crate) fn with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// What it printed, as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|fault| panic!("{fault}: {self:?}"))
    }
}

/// Runs it to its end, with this as standard input.
pub(crate) async fn typed(door: &Door, args: &[&str], input: &str) -> Ended {
    typed_with(door, args, &[], input).await
}

/// The same with variables of the environment.
pub(crate) async fn typed_with(door: &Door, args: &[&str], env: &[(&str, &str)], input: &str) -> Ended {
    let mut typed = Typed::start_with(door, args, env);
    // It may have ended without reading it.
    let _ = typed.input.as_mut().expect("it is not closed").write_all(input.as_bytes());
    typed.end().await
}

/// Runs it to its end without a broker.
pub(crate) fn output(args: &[&str]) -> (Option<i32>, String) {
    let folder = TempDir::new().expect("a folder");
    let Output { status, stderr, .. } = crate::harness::run_to_end(args, &[], folder.path());
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

/// A Feature on a line.
pub(crate) fn line(id: &str, severity: u32) -> String {
    let feature = crate::harness::feature(
        id,
        [9.19, 45.464],
        serde_json::json!({"type": "fire", "severity": severity}),
    );
    format!("{feature}\n")
}

fn gather(pipe: impl Read + Send + 'static, lines: &Arc<Mutex<Vec<String>>>) -> JoinHandle<()> {
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            lines.lock().expect("no panic").push(line);
        }
    })
}
