//! What the documents say one can type, typed: every block of `sh` runs in one shell per document, and every block of `text` behind one
//! has to come out of it.
//!
//! A word behind `sh` says more: `background` goes on while what follows is done (a broker that is started so takes the place of the one before),
//! `unrun` is only shown. In expected lines `…` stands for anything. Blocks of `json` whose kind is said (`json event`) are sent to a broker.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::Serve;

/// How long a block may take, and what it should print may let itself be waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the shell prints when a block is done, and when a command fails.
const DONE: &str = "-- done --";
const FAILED: &str = "-- failed --";

#[test]
fn the_readme() {
    follow("README.md");
}

#[test]
fn the_guide() {
    follow("docs/guide.md");
}

#[test]
fn how_tos() {
    let folder = root().join("docs/how-to");
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| name != "README.md"); // a list of the others
    names.sort();
    assert!(names.len() >= 6, "{names:?}");
    names.iter().for_each(|name| follow(&format!("docs/how-to/{}", name.to_str().unwrap())));
}

/// The examples of the protocol reference, with a broker that is there already: each page can be typed from its beginning.
#[test]
fn the_protocol_pages() {
    let pages = protocol_pages();
    assert!(pages.len() >= 8, "{pages:?}");
    pages.iter().for_each(|page| follow_with(page, Some("nearcast serve\n")));
}

/// The documents of the protocol reference that a client would send: a broker takes each, and shows the normal form as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_protocol_reference() {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut kinds = Vec::new();
    for page in protocol_pages() {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        for block in blocks(&text) {
            let Some(kind) = block.kind.strip_prefix("json ") else { continue };
            let document: Value = serde_json::from_str(&block.text).expect(&block.text);
            let answer = match kind {
                "position" => http.put("/v1/clients/ann/position", &document).await,
                "event" => http.post("/v1/events", "application/geo+json", block.text).await,
                "subscription" | "normal-form" => {
                    let answer = http.put("/v1/clients/ann/subscriptions/s1", &document).await;
                    if kind == "normal-form" {
                        let mut shown = answer.json();
                        shown.as_object_mut().expect("a subscription").remove("activity");
                        assert_eq!(shown, document);
                    }
                    answer
                }
                kind => panic!("{page}: nothing is known of the kind {kind}"),
            };
            assert!((200..300).contains(&answer.status), "{page}: {kind}: {}", answer.text());
            kinds.push(format!("{page}: {kind}"));
        }
    }
    let expected = [
        "positions.md: position",
        "publish.md: event",
        "subscribe.md: subscription",
        "subscribe.md: normal-form",
    ];
    assert_eq!(kinds, expected.map(|kind| format!("{PROTOCOL}/{kind}")));
    program.finish().await;
}

/// Where the pages of the protocol reference are.
const PROTOCOL: &str = "docs/protocol";

/// The pages of the protocol reference, from the root, by name.
fn protocol_pages() -> Vec<String> {
    let folder = std::fs::read_dir(root().join(PROTOCOL)).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<_> = names.map(|name| format!("{PROTOCOL}/{name}")).collect();
    pages.sort();
    pages
}

/// A block of a document.
struct Block {
    /// `sh`, `sh background` and so on.
    kind: String,
    text: String,
}

/// A shell, and what it was started for.
struct Shell {
    child: Child,
    input: ChildStdin,
    /// That is free here.
    port: u16,
    /// Where it writes, and what goes on beside it, each to a file of its own, with the bytes that were looked at.
    outputs: Vec<(PathBuf, usize)>,
    /// Lines that nothing has been held against, before those that were not looked at.
    spare: Vec<String>,
    folder: TempDir,
}

/// Does what a document says.
fn follow(document: &str) {
    follow_with(document, None);
}

/// The same, where something goes on from the beginning that the document does not say.
fn follow_with(document: &str, background: Option<&str>) {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let mut shell = Shell::start();
    background.into_iter().for_each(|block| shell.begin(block));
    let mut was_run = false;
    let mut runs = 0;
    for block in blocks(&text) {
        match block.kind.as_str() {
            "sh" => shell.run(&block.text),
            "sh background" => shell.begin(&block.text),
            "text" if was_run => block.text.lines().for_each(|line| shell.expect(line, document)),
            kind => {
                assert!(!kind.starts_with("sh") || kind == "sh unrun", "{document}: {kind}");
                was_run = false;
                continue;
            }
        }
        was_run = true;
        runs += 1;
    }
    assert!(runs > 0, "{document} has nothing to type");
}

/// The fenced blocks, in their order.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            if !is_inside {
                blocks.push(Block { kind: kind.to_owned(), text: String::new() });
            }
            is_inside = !is_inside;
        } else if is_inside {
            let block = blocks.last_mut().expect("it has begun");
            block.text.push_str(line);
            block.text.push('\n');
        }
    }
    blocks
}

impl Shell {
    fn start() -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_nearcast"));
        let folder = TempDir::new().unwrap();
        let path = [program.parent().unwrap().to_str().unwrap(), &std::env::var("PATH").unwrap()].join(":");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new("bash")
            .args(["--noprofile", "--norc"])
            .current_dir(&folder)
            .env("PATH", path)
            .env("HOME", folder.path())
            .env("BROKER__SERVER__LISTEN", format!("127.0.0.1:{port}"))
            .env("NEARCAST_URL", format!("http://127.0.0.1:{port}"))
            .env("BROKER__ADMISSION__DELAY_MS", "60000")
            .process_group(0)
            .stdin(Stdio::piped())
            .spawn()
            .expect("there is bash");
        let input = child.stdin.take().expect("it is piped");
        let mut shell = Self { child, input, port, outputs: Vec::new(), spare: Vec::new(), folder };
        let output = shell.output();
        shell.say(&format!(
            "exec > {output} 2> errors; set -o pipefail -o errtrace; trap 'echo \"{FAILED} $BASH_COMMAND\"' ERR\n"
        ));
        shell
    }

    /// Hands the shell something, with another port and the program that was built.
    fn say(&mut self, text: &str) {
        let text = text.replace("7070", &self.port.to_string());
        let text = text.replace("cargo run --release -p broker --bin nearcast --", "nearcast");
        self.input.write_all(text.as_bytes()).expect("the shell lives");
    }

    /// Runs a block to its end.
    fn run(&mut self, block: &str) {
        // What a block prints last may have no line end.
        self.say(&format!("{{ {block}\n}} < /dev/null\necho; echo '{DONE}'\n"));
        self.wait_for(block, |line| line == DONE);
    }

    /// Begins a block that goes on, and waits for the first that it says.
    fn begin(&mut self, block: &str) {
        let is_broker = block.lines().any(|line| line.contains("nearcast") && line.contains(" serve"));
        if is_broker {
            self.say("[ -z \"$BROKER\" ] || { kill $BROKER; wait $BROKER; } 2> /dev/null || :\n");
        }
        let output = self.output();
        // So that the broker is what is ended, and not a shell around it.
        let exec = if is_broker { "exec " } else { "" };
        // Which says there that it listens.
        let errors = if block.contains("nearcast sub ") { "2>&1" } else { "" };
        self.say(&format!("{{ trap - ERR; {exec}{block}\n}} < /dev/null > {output} {errors} &\n"));
        if is_broker {
            self.say("BROKER=$!\n");
            self.wait_for(block, |line| line.starts_with("nearcast listens on "));
        } else {
            // A stream's first comment, or `nearcast sub`.
            self.wait_for(block, |line| {
                line.starts_with(": nearcast ") || line.starts_with("nearcast: listening")
            });
        }
    }

    /// Waits for a line; those before it are kept.
    fn wait_for(&mut self, what: &str, is_it: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while let Some(line) = self.next_line() {
                assert!(!line.starts_with(FAILED), "{line}\nin\n{what}\n{}", self.printed());
                if is_it(&line) {
                    return;
                }
                self.spare.push(line);
            }
            assert!(Instant::now() < deadline, "not done:\n{what}\n{}", self.printed());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a line that a document shows.
    fn expect(&mut self, expected: &str, document: &str) {
        if let Some(index) = self.spare.iter().position(|line| fits(line, expected)) {
            self.spare.remove(index);
        } else if !expected.is_empty() {
            self.wait_for(&format!("{document}: {expected}"), |line| fits(line, expected));
        }
    }

    /// What nothing was held against, for whoever wants to know what went wrong.
    fn printed(&self) -> String {
        let errors = std::fs::read_to_string(self.folder.path().join("errors")).unwrap_or_default();
        format!("after\n{}\nerrors:\n{errors}", self.spare.join("\n"))
    }

    /// Names another file for something to write to.
    fn output(&mut self) -> String {
        let name = format!("output-{}", self.outputs.len());
        self.outputs.push((self.folder.path().join(&name), 0));
        name
    }

    /// The next whole line of any output.
    fn next_line(&mut self) -> Option<String> {
        for (path, seen) in &mut self.outputs {
            let text = std::fs::read(path).unwrap_or_default();
            if let Some(end) = text[*seen..].iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&text[*seen..*seen + end]).into_owned();
                *seen += end + 1;
                return Some(line);
            }
        }
        None
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // With all that it has started.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}

/// Whether a line is what a document shows, where `…` is anything.
fn fits(line: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    last.map_or(rest.is_empty(), |last| rest.is_empty() || last.is_empty() || line.ends_with(last))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace").to_owned()
}
