//! `nearcast top`.

use std::io::{Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::{Typed, line, typed, typed_with};
use crate::authorisation::{ISSUER, guarded};
use crate::harness::{Door, Serve, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_shows_rates_queues_latencies_and_clients() {
    let program = Serve::new().start().await;
    let listening = Typed::start(&program, &["sub", "--client", "ann", "--everywhere"]);
    listening.tells("listening").await;
    let looking = Typed::start(&program, &["top", "--json", "--interval", "500ms"]);
    let views = || -> Vec<Value> {
        let lines = looking.out.lock().expect("no panic");
        lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    eventually("a look", async || views().pop()).await;
    typed(&program, &["pub", "-"], &line("a", 1).repeat(30)).await.with(0);
    let all = async || views().into_iter().find(|view| view["rates"]["deliveries"]["total"] == 30);
    let view = eventually("a look at all of them", all).await;
    assert_eq!((&view["ready"], &view["broker"]["engine"]), (&json!(true), &json!("cells")));
    for name in ["events", "matches", "deliveries"] {
        assert_eq!(view["rates"][name]["total"], 30, "{view}");
        // They came between two looks, or among three.
        let rates = views().into_iter().filter_map(|view| view["rates"][name]["per_second"].as_f64());
        let (rates, most) = (rates.clone().filter(|rate| *rate > 0.0).count(), rates.fold(0.0, f64::max));
        assert!((1..=2).contains(&rates) && most > 1.0 && most <= 61.0, "{rates} {most} {view}");
    }
    assert_eq!((&view["levels"]["websockets"], &view["levels"]["subscriptions"]), (&json!(1), &json!(1)));
    // A delivery is counted before it is written.
    let written = async || {
        let mut spreads = views().into_iter().map(|view| view["latencies"]["publish_to_write"].clone());
        spreads.find(|spread| !spread.is_null())
    };
    let written = eventually("a look at what was written", written).await;
    let [p50_s, p99_s] = ["p50_s", "p99_s"].map(|name| written[name].as_f64());
    assert!(p50_s <= p99_s && p50_s > Some(0.0), "{written:?}");
    assert_eq!(
        (&view["clients"][0]["client"], &view["clients"][0]["connections"]),
        (&json!("ann"), &json!(1))
    );
    looking.signal("INT");
    looking.end().await.with(0);
    // For people, and without clients, which cost the broker a look at each.
    let table =
        typed(&program, &["top", "--once", "--interval", "1s", "--clients", "0"], "").await.with(0).out;
    assert!(table.lines().any(|line| line.split_whitespace().eq(["events", "0", "30"])), "{table}");
    assert!(!table.contains("ann"), "{table}");
    let door = *program;
    program.finish().await;
    let ended = typed(&door, &["top", "--once"], "").await.with(1);
    assert!(ended.err.contains("cannot be reached: Connection refused"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_scope_there_is_less_and_it_says_so() {
    let (serve, _) = guarded(&ISSUER, "");
    let program = serve.start().await;
    let ann = ISSUER.token("ann", "subscribe publish");
    let env = [("NEARCAST_TOKEN", ann.as_str())];
    let listening = Typed::start_with(&program, &["sub", "--id", "mine", "--where", "severity > 1"], &env);
    listening.tells("listening").await;
    typed_with(&program, &["pub", "-"], &env, &[line("a", 1), line("b", 2)].concat()).await.with(0);
    let look = ["top", "--once", "--interval", "100ms"];
    let table = typed_with(&program, &look, &env, "").await.with(0).out;
    assert!(table.contains("take a token with the scope admin"), "{table}");
    let row = table.lines().find(|line| line.starts_with("mine")).expect("her subscription");
    assert_eq!(row.split_whitespace().skip(1).take(3).collect::<Vec<_>>(), ["2", "1", "1"], "{table}");
    let nobody: Value = typed(&program, &[&look[..], &["--json"]].concat(), "").await.with(0).json();
    assert_eq!((&nobody["ready"], &nobody["subscriptions"]), (&json!(true), &json!([])));
    assert!(nobody["note"].as_str().is_some_and(|note| note.contains("a token is needed")), "{nobody}");
    let root = ISSUER.token("root", "admin");
    let all = typed_with(&program, &[&look[..], &["--json"]].concat(), &[("NEARCAST_TOKEN", &root)], "")
        .await
        .with(0)
        .json();
    assert_eq!(all["rates"]["events"]["total"], 2, "{all}");
    program.finish().await;
}

/// A pseudo terminal, and what is to be seen on it.
struct Terminal {
    child: Child,
    parser: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Runs the program on a screen of 120 by 40, and then says how it has ended and how the terminal is.
    fn start(door: &Door, args: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_nearcast");
        let typed = format!(
            "stty cols 120 rows 40; {program} {args}; echo \"ended with $?\"; stty -a | grep -ow -e -echo -e echo"
        );
        let mut child = Command::new("script")
            .args(["--quiet", "--flush", "--command", &typed, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .env("NEARCAST_URL", format!("http://{}", door.address()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is script");
        let parser = Arc::new(Mutex::new(vt100::Parser::new(40, 120, 0)));
        let raw = Arc::default();
        let mut pipe = child.stdout.take().expect("a pipe");
        let (seen, kept): (_, Arc<Mutex<Vec<u8>>>) = (Arc::clone(&parser), Arc::clone(&raw));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut bytes) {
                seen.lock().expect("no panic").process(&bytes[..count]);
                kept.lock().expect("no panic").extend(&bytes[..count]);
            }
        });
        Self { child, parser, raw, reader: Some(reader) }
    }

    fn screen(&self) -> String {
        self.parser.lock().expect("no panic").screen().contents()
    }

    async fn shows(&self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let found = async || Some(self.screen()).filter(|screen| is_it(screen));
        eventually(
            &format!("{what} in {:?}", self.parser.lock().expect("no panic").screen().contents()),
            found,
        )
        .await
    }

    fn press(&mut self, keys: &str) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        input.write_all(keys.as_bytes()).and_then(|()| input.flush()).expect("it reads");
    }

    async fn end(mut self) -> String {
        eventually("it ends", async || self.child.try_wait().expect("it can be asked")).await;
        self.reader.take().expect("it reads").join().expect("no panic");
        let raw = self.raw.lock().expect("no panic").clone();
        String::from_utf8_lossy(&raw).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_screen_lives_and_comes_back_with_the_broker() {
    let program = Serve::new().start().await;
    let address = program.address().to_string();
    let listening = Typed::start(&program, &["sub", "--client", "ann", "--everywhere"]);
    listening.tells("listening").await;
    let mut terminal = Terminal::start(&program, "top --interval 200ms");
    let screen = terminal.shows("the first look", |screen| screen.contains("ann")).await;
    for part in [
        "nearcast 0.1.0 at http://",
        "rates",
        "total",
        "latencies",
        "p99",
        "clients, furthest behind first",
        "q ends",
    ] {
        assert!(screen.contains(part), "{part} is not in\n{screen}");
    }
    typed(&program, &["pub", "-"], &line("a", 1).repeat(1234)).await.with(0);
    terminal.shows("what was published", |screen| screen.contains("1,234")).await;
    program.kill();
    terminal
        .shows("that it is gone", |screen| screen.contains("cannot be reached: Connection refused"))
        .await;
    let program = Serve::new().listen(&address).start().await;
    let back = terminal
        .shows("that it is back", |screen| screen.contains("ready") && screen.contains("rates"))
        .await;
    assert!(!back.contains("1,234"), "{back}");
    // What it was before it is again, whatever ends it.
    terminal.press("q");
    let left = terminal.end().await;
    assert!(left.contains("\u{1b}[?1049h") && left.contains("\u{1b}[?1049l"), "{left:?}");
    assert!(left.trim_end().ends_with("ended with 0\r\necho"), "{left:?}");
    let mut terminal = Terminal::start(&program, "top --interval 10s");
    terminal.shows("the first look", |screen| screen.contains("q ends")).await;
    terminal.press("\u{3}");
    let left = terminal.end().await;
    assert!(left.trim_end().ends_with("ended with 0\r\necho"), "{left:?}");
    program.finish().await;
}
