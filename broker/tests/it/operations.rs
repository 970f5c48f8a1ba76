//! What is delivered for those who run a broker fits the broker: the names of its figures, and the text about its alerts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Serve, run_to_end};

fn delivered(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

/// All names of figures in a text, without what Prometheus appends to histograms.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let names = words.filter(|word| word.starts_with("nearcast_"));
    let stem = |name: &str| {
        let suffix = ["_bucket", "_sum", "_count"].into_iter().find(|suffix| name.ends_with(suffix));
        name.strip_suffix(suffix.unwrap_or_default()).unwrap_or(name).to_owned()
    };
    names.map(stem).collect()
}

/// The names that a broker has.
async fn figures() -> BTreeSet<String> {
    let program = Serve::new().start().await;
    let text = program.http().get("/metrics").await.expect(200).text();
    program.finish().await;
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dashboard_and_alerts_speak_of_figures_that_there_are() {
    let figures = figures().await;
    assert!(figures.contains("nearcast_publish_to_write_seconds"), "{figures:?}");
    for path in ["ops/grafana/nearcast.json", "ops/prometheus/alerts.yaml", "docs/operations.md"] {
        let named = names(&delivered(path));
        let unknown: Vec<_> = named.difference(&figures).collect();
        assert!(!named.is_empty() && unknown.is_empty(), "{path}: {unknown:?}");
    }
    let shown = names(&delivered("ops/grafana/nearcast.json"));
    let missing: Vec<_> = figures.difference(&shown).collect();
    assert!(missing.is_empty(), "not on the dashboard: {missing:?}");
}

#[test]
fn the_dashboard_can_be_read() {
    let dashboard: Value = serde_json::from_str(&delivered("ops/grafana/nearcast.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64()), "an id twice: {panel}");
        let place = &panel["gridPos"];
        let right = place["x"].as_u64().zip(place["w"].as_u64()).map(|(x, w)| x + w);
        assert!(right.is_some_and(|right| right <= 24), "beyond the edge: {panel}");
    }
}

#[test]
fn each_alert_is_explained() {
    let alerts = delivered("ops/prometheus/alerts.yaml");
    let named = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let named: BTreeSet<_> = named.map(str::to_owned).collect();
    let explained = delivered("docs/operations.md");
    let explained = explained.lines().filter_map(|line| line.strip_prefix("### Nearcast"));
    let explained: BTreeSet<_> = explained.map(|rest| format!("Nearcast{rest}")).collect();
    assert!(!named.is_empty());
    assert_eq!(named, explained);
}

/// The arguments that unit and container start the program with are arguments that it has.
#[test]
fn unit_and_container_start_the_program_as_it_can_be_started() {
    let unit = delivered("ops/systemd/nearcast.service");
    let started = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/nearcast serve "));
    let mut commands = vec![started.expect("an ExecStart").to_owned()];
    let container = delivered("ops/container/Containerfile");
    let command = container.lines().find_map(|line| line.strip_prefix("CMD ")).expect("a CMD");
    let command: Vec<String> = serde_json::from_str(command).expect("a list");
    assert_eq!(command[0], "serve");
    commands.push(command[1..].join(" "));
    let folder = TempDir::new().expect("a folder");
    let settings = folder.path().join("nearcast.toml");
    fs::write(&settings, "").expect("written");
    for command in commands {
        let command = command.replace("/etc/nearcast/nearcast.toml", settings.to_str().expect("UTF-8"));
        let mut args = vec!["print-config"];
        args.extend(command.split(' '));
        // What it would be refused for is that nobody said who may do what, which is checked behind the arguments.
        let output = run_to_end(&args, &[], folder.path());
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
