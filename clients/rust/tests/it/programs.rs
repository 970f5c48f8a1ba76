//! The samples, and what a stranger pastes from the README, against a started broker.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use futures_util::TryStreamExt;
use tokio::process::Command;

use crate::{broker::Broker, within};

/// Where cargo has put the samples: beside this very program's folder.
fn sample(name: &str) -> PathBuf {
    let here = std::env::current_exe().expect("a program has a path");
    let sample = here.parent().and_then(Path::parent).expect("a folder").join("examples").join(name);
    assert!(sample.exists(), "there is no {}: cargo test builds it, without --tests", sample.display());
    sample
}

/// What the README's table says that each sample prints; `…` stands for a word.
fn promised() -> Vec<(String, Vec<String>)> {
    let rows = read("README.md");
    let rows = rows.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows = rows.filter_map(|row| {
        row.split_once("` | ").and_then(|(name, rest)| Some((name, rest.rsplit_once(" | `")?.1)))
    });
    rows.filter(|(name, _)| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.rs")).exists()
    })
    .map(|(name, cell)| {
        let cell = cell.trim_end().trim_end_matches('|').trim_end().trim_end_matches('`');
        (name.to_owned(), cell.split("`, `").map(str::to_owned).collect())
    })
    .collect()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file")
}

async fn run(name: &str, argument: Option<&str>, url: &str) -> String {
    let running = Command::new(sample(name))
        .args(argument)
        .env("NEARCAST_URL", url)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let done = within(name, running).await.expect("it runs");
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

/// Each before and after each other one, and after itself; and they leave nothing behind.
#[tokio::test]
async fn the_samples_print_what_the_readme_promises() {
    let promised = promised();
    assert_eq!(promised.len(), 5, "{promised:?}");
    let broker = Broker::durable().await;
    let url = broker.url();
    let runs = promised.iter().map(|row| (row, Some(&*url), "http://127.0.0.1:1"));
    for ((name, lines), argument, variable) in runs.chain(promised.iter().rev().map(|row| (row, None, &*url)))
    {
        let printed = run(name, argument, variable).await;
        let same = printed.lines().count() == lines.len()
            && printed.lines().zip(lines).all(|(line, expected)| match expected.split_once('…') {
                Some((start, _)) => line.starts_with(start) && line.len() > start.len(),
                None => line == expected,
            });
        assert!(same, "{name}: {printed:?} instead of {lines:?}");
    }
    let calls = nearcast_client::Broker::builder(url).open().expect("an address");
    assert_eq!(calls.clients(10, None).await.expect("clients").clients.len(), 0);
    let left = calls.events(nearcast_client::Query::all());
    assert_eq!(left.try_collect::<Vec<_>>().await.expect("events"), []);
}

/// The README's first sample is `examples/first.rs`, letter by letter.
#[test]
fn the_readme_begins_with_a_sample() {
    let readme = read("README.md");
    let (_, rest) = readme.split_once("```rust,no_run\n").expect("a sample");
    let (pasted, _) = rest.split_once("```\n").expect("a sample");
    let program = read("examples/first.rs");
    let (_, program) = program.split_once("\n\n").expect("a title");
    assert_eq!(program, pasted);
}

/// What `main` shows to its user is a sentence.
#[tokio::test]
async fn a_sample_without_an_address_says_which_one_is_meant() {
    let done = Command::new(sample("first")).arg("localhost:7070").output().await.expect("it runs");
    let told = String::from_utf8(done.stderr).expect("text");
    assert!(told.starts_with("Error: the url of a broker begins with http://"), "{told}");
    assert!(told.ends_with("has no query: localhost:7070 (is http://localhost:7070 meant?)\n"), "{told}");
}

/// Together, for the one needs the other, which is in no registry before it is published.
#[tokio::test]
async fn it_can_be_packed_with_the_types_that_it_shares() {
    let folder = tempfile::tempdir().expect("a folder");
    let packing = Command::new(env!("CARGO"))
        .args(["package", "--package", "nearcast-wire", "--package", "nearcast-client"])
        .args(["--no-verify", "--allow-dirty", "--offline", "--target-dir"])
        .arg(folder.path())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .kill_on_drop(true)
        .output();
    let done = within("cargo package", packing).await.expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for name in ["nearcast-wire", "nearcast-client"] {
        let packed = format!("package/{name}-{}.crate", env!("CARGO_PKG_VERSION"));
        assert!(folder.path().join(&packed).exists(), "{packed}");
    }
}
