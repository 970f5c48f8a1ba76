//! The samples, and what a stranger pastes from the README, against a started broker.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use crate::{broker::Broker, within};

/// Where cargo has put the samples: beside this very program's folder.
fn sample(name: &str) -> PathBuf {
    let here = std::env::current_exe().expect("a program has a path");
    let sample = here.parent().and_then(Path::parent).expect("a folder").join("examples").join(name);
    assert!(sample.exists(), "there is no {}: cargo test builds it, without --tests", sample.display());
    sample
}

async fn run(name: &str, broker: &Broker) -> String {
    let running = Command::new(sample(name))
        .env("NEARCAST_URL", broker.url())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let done = within(name, running).await.expect("it runs");
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

#[tokio::test]
async fn publish() {
    let printed = run("publish", &Broker::start().await).await;
    assert!(printed.starts_with("published "), "{printed}");
    assert!(printed.ends_with("\naccepted 2000 rejected 0\n"), "{printed}");
}

#[tokio::test]
async fn moving_area() {
    let printed = run("moving_area", &Broker::start().await).await;
    assert_eq!(printed, "accident of severity 3 ahead, because we moved\n");
}

#[tokio::test]
async fn resume() {
    assert_eq!(run("resume", &Broker::durable().await).await, "before 1\nafter 2\n");
}

#[tokio::test]
async fn transitions() {
    assert_eq!(run("transitions", &Broker::start().await).await, "enter bus-7 9.198\nexit bus-7 9.199\n");
}

/// The README's first sample is `examples/first.rs`, letter by letter but for the broker's address, which runs.
#[tokio::test]
async fn the_readme_begins_with_a_sample_that_runs() {
    let read =
        |path| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file");
    let readme = read("README.md");
    let (_, rest) = readme.split_once("```rust,no_run\n").expect("a sample");
    let (pasted, _) = rest.split_once("```\n").expect("a sample");
    let program = read("examples/first.rs");
    let (_, program) = program.split_once("\n\n").expect("a title");
    let url = "std::env::var(\"NEARCAST_URL\").expect(\"an address\")";
    assert_eq!(program.replace(url, "\"http://localhost:7070\""), pasted);
    assert_eq!(run("first", &Broker::start().await).await, "{\"severity\":3,\"type\":\"accident\"}\n");
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
