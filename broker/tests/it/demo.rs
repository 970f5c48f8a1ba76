//! The demo, as one starts it: real vehicles, and a check of its own that decides how it exits.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::harness::run_to_end;

/// The number of deliveries, where the summary says that all were right.
#[track_caller]
fn deliveries_if_exact(output: &str) -> u64 {
    let line = output.lines().last().expect("there is a summary");
    let count =
        line.strip_prefix("deliveries ").and_then(|rest| rest.strip_suffix(", missing 0, spurious 0"));
    let count = count.and_then(|count| count.parse().ok());
    assert!(output.contains("gaps 0, duplicates 0"), "{output}");
    count.unwrap_or_else(|| panic!("not exact: {output}"))
}

/// Asks a broker, as far as a demo needs it: over a connection that ends with the answer.
#[track_caller]
fn ask(address: &str, call: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the demo listens");
    write!(
        stream,
        "{call} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/geo+json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn a_finite_replay_ends_by_itself_and_every_delivery_was_right() {
    let folder = TempDir::new().expect("an empty folder, since the data is in the program");
    // As it is by default, and so fast that many reports are under way at once.
    for speed in ["30", "3000"] {
        let output = run_to_end(&["demo", "--for", "2s", "--speed", speed], &[], folder.path());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{}\n{text}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(deliveries_if_exact(&text) > 0, "{text}");
    }
}

#[test]
fn an_interrupt_ends_the_replay_with_a_summary() {
    // Should the interrupt do nothing, the replay ends all the same, and the summary shows how long it took.
    // It has more sockets than most shells let a program have at the start.
    let mut demo = Command::new("sh")
        .args(["-c", "ulimit -S -n 1024 && exec \"$0\" demo --for 60s", env!("CARGO_BIN_EXE_nearcast")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(demo.stdout.take().expect("stdout is a pipe")).lines();
    let console = lines.by_ref().map_while(Result::ok).find(|line| line.contains("console    http://"));
    let console = console.expect("it says where the console is");
    let address =
        console.split(['/', ' ']).find(|word| word.contains(':') && word.ends_with(char::is_numeric));
    let address = address.expect("an address");
    let settings = ask(address, "GET /pages.json", "");
    assert!(
        settings.contains(r#""base_map":true"#) && settings.contains(r#""object":"taxi_id""#),
        "{settings}"
    );
    // The recording has its faults, and the check tells them.
    let live = lines
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line.contains(" moves/s") && line.contains(" jumps"));
    assert!(live.is_some(), "there was no live line with a jump");
    let findings = ask(address, "GET /v1/checks/jump/findings", "");
    assert!(findings.contains(r#""bindings":{"a":"report-"#), "{findings}");
    // Somebody tries the console: what others publish is delivered, and no fault of the broker's.
    let event = r#"{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [114.06, 22.54]}}"#;
    let accepted = ask(address, "POST /v1/events", event);
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    let killed = Command::new("kill").args(["-INT", &demo.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()), "kill -INT failed");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let output = rest.join("\n");
    assert!(demo.wait().expect("the child can be waited for").success(), "{output}");
    assert!(deliveries_if_exact(&output) > 0, "{output}");
    assert!(output.contains("deliveries of events that others published"), "{output}");
    let found = output.lines().find_map(|line| line.strip_prefix("the check jump has found "));
    let found = found.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(found.is_some_and(|found| found > 0), "{output}");
    assert!(!output.contains("replayed 60.0 s"), "it did not stop when told to: {output}");
}

#[test]
fn it_listens_where_it_is_told_to_and_on_loopback_alone() {
    let folder = TempDir::new().expect("a folder");
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let address = format!("localhost:{port}");
    let output =
        run_to_end(&["demo", "--for", "1s", "--speed", "300", "--listen", &address], &[], folder.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(&format!(":{port}; ")), "{text}");
    for (address, told) in [("0.0.0.0:0", "loopback alone"), ("nonsense", "cannot listen on nonsense")] {
        let output = run_to_end(&["demo", "--listen", address], &[], folder.path());
        let told_there = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told_there.contains(told), "{told_there}");
    }
}
