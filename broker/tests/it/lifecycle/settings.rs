//! Where settings come from, and what is refused before anything starts.

use std::path::Path;

use tempfile::TempDir;

use crate::harness::{Serve, run_to_end};

fn folder() -> TempDir {
    TempDir::new().expect("a folder")
}

/// Runs what must fail, and returns what it says.
#[track_caller]
fn refusal(args: &[&str], env: &[(&str, &str)], folder: &Path) -> String {
    let output = run_to_end(args, env, folder);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{args:?} {env:?} succeeded");
    assert!(!told.contains("panicked") && !told.trim().is_empty(), "{args:?} {env:?}: {told}");
    told
}

/// `print-config` with these arguments.
#[track_caller]
fn printed(args: &[&str], env: &[(&str, &str)], folder: &Path) -> String {
    let mut all = vec!["print-config"];
    all.extend(args);
    let output = run_to_end(&all, env, folder);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn later_sources_win() {
    let folder = folder();
    let file = folder.path().join("n.toml");
    std::fs::write(&file, "[server]\nshards = 2\nworld = \"planar\"\n[limits]\ndepth = 7\n")
        .expect("written");
    let file = file.to_str().expect("a plain path");
    let has =
        |text: &str, line: &str| assert!(text.lines().any(|l| l.trim() == line), "no {line:?} in\n{text}");
    has(&printed(&[], &[], folder.path()), "shards = 0");
    let from_file = printed(&["--config", file], &[], folder.path());
    has(&from_file, "shards = 2");
    has(&from_file, "depth = 7");
    let env = [("BROKER__SERVER__SHARDS", "3")];
    let from_env = printed(&["--config", file], &env, folder.path());
    has(&from_env, "shards = 3");
    has(&from_env, "world = \"planar\"");
    let from_flag = printed(&["--config", file, "--shards", "4", "--world", "geodetic"], &env, folder.path());
    has(&from_flag, "shards = 4");
    has(&from_flag, "world = \"geodetic\"");
}

#[test]
fn what_print_config_prints_reads_back() {
    let folder = folder();
    let first =
        printed(&["--shards", "3", "--world", "planar"], &[("BROKER__LIMITS__DEPTH", "9")], folder.path());
    let file = folder.path().join("printed.toml");
    std::fs::write(&file, &first).expect("written");
    let second = printed(&["--config", file.to_str().expect("a plain path")], &[], folder.path());
    assert_eq!(first, second);
    assert!(first.contains('#'), "each setting is explained:\n{first}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_in_force_are_those_that_were_given() {
    let program = Serve::new()
        .config("[server]\nshards = 2\nworld = \"geodetic\"\n")
        .env("BROKER__SERVER__WORLD", "planar")
        .args(&["--shards", "3", "--engine", "scan"])
        .start()
        .await;
    let stats = program.http().get("/v1/stats").await.expect(200).json();
    assert_eq!(stats["shards"], 3, "{stats}");
    assert_eq!(stats["world"], "planar", "{stats}");
    assert_eq!(stats["engine"], "scan", "{stats}");
    program.finish().await;
}

#[test]
fn unknown_settings_are_errors_and_all_are_told() {
    let folder = folder();
    let file = folder.path().join("n.toml");
    std::fs::write(
        &file,
        "[server]\nlissten = \"127.0.0.1:0\"\n[limitz]\ndepth = 7\n[queue]\nbatch = \"many\"\n",
    )
    .expect("written");
    let args = ["serve", "--listen", "127.0.0.1:0", "--config", file.to_str().expect("a plain path")];
    let told = refusal(&args, &[("BROKER__SERVER__SHARDZ", "3")], folder.path());
    for name in ["lissten", "limitz", "batch", "shardz"] {
        assert!(told.to_lowercase().contains(name), "{name} is not in: {told}");
    }
}

/// Flags, environment, and a word that the refusal must have.
type Row = (&'static [&'static str], &'static [(&'static str, &'static str)], &'static str);

#[test]
fn settings_that_cannot_be_used_are_refused() {
    let folder = folder();
    let listen = ["serve", "--listen", "127.0.0.1:0"];
    let rows: [Row; 10] = [
        (&["--config", "missing.toml"], &[], "missing.toml"),
        (&["--world", "flat"], &[], "flat"),
        (&["--engine", "steam"], &[], "steam"),
        (&["--shards", "-1"], &[], "-1"),
        (&["--shards", "many"], &[], "many"),
        (&["--shardz", "2"], &[], "--shardz"),
        (&[], &[("BROKER__SERVER__WORLD", "flat")], "world"),
        (&[], &[("BROKER__SERVER__SHARDS", "many")], "shards"),
        (&[], &[("BROKER__LIMITS__FRAME_BYTES", "0")], "frame_bytes"),
        (&["--shards", "1000000"], &[], "shards"),
    ];
    for (args, env, word) in rows {
        let told = refusal(&[&listen, args].concat(), env, folder.path());
        assert!(told.to_lowercase().contains(word), "{args:?} {env:?}: {told}");
    }
    for address in ["nowhere", "127.0.0.1", "127.0.0.1:99999"] {
        let told = refusal(&["serve", "--listen", address], &[], folder.path());
        assert!(told.contains(address), "{told}");
    }
    std::fs::write(folder.path().join("broken.toml"), "[server\nlisten = ").expect("written");
    refusal(&[&listen[..], &["--config", "broken.toml"]].concat(), &[], folder.path());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_loopback_it_wants_to_be_told_so() {
    let folder = folder();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7070"] {
        let told = refusal(&["serve", "--listen", address], &[], folder.path());
        assert!(told.contains("--insecure"), "{address}: {told}");
    }
    let program = Serve::new().listen("0.0.0.0:0").args(&["--insecure"]).start().await;
    program.http().get("/healthz").await.expect(200);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_is_taken_is_told() {
    let folder = folder();
    let program = Serve::new().start().await;
    let address = program.address().to_string();
    let told = refusal(&["serve", "--listen", &address], &[], folder.path());
    assert!(told.contains(&address), "{told}");
    program.finish().await;
}
