//! What an engine takes from the system while it is small. A process of its own looks at itself: in that of the other
//! tests there are their engines.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;

use nearcast_matcher::engine::Engine;
use nearcast_matcher::engine::cells::Cells;
use nearcast_matcher::fixtures::workload::{Config, Workload};

/// Says which part the process is to play.
const ROLE: &str = "NEARCAST_TEST_SMALL";
const PAGE_BYTES: usize = 32 << 20;

/// Mappings as large as a page of `cells` that can be written to, and threads.
fn taken() -> (usize, usize) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let size = |line: &str| {
        let (range, access) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).unwrap());
        if access.starts_with("rw") { end - start } else { 0 }
    };
    let large = maps.lines().filter(|line| size(line) >= PAGE_BYTES).count();
    (large, fs::read_dir("/proc/self/task").unwrap().count())
}

fn filled(subscriptions: u32) -> Cells {
    let workload = Workload::new(Config { subscriptions, ..Config::default() }).unwrap();
    let mut engine = Cells::new(workload.world());
    for (id, subscription) in workload.subscriptions() {
        let home = workload.position(workload.home(subscription.client));
        engine.move_client(subscription.client, Some(home));
        engine.install(id, &subscription).unwrap();
    }
    engine
}

#[test]
fn an_engine_of_a_thousand_subscriptions_maps_no_page_and_starts_no_thread() {
    if std::env::var_os(ROLE).is_some() {
        let before = taken();
        let small = filled(1_000);
        assert_eq!(taken(), before, "{:?}", small.footprint());
        let large = filled(30_000);
        assert!(taken().0 > before.0, "{:?} is where pages begin", large.footprint());
        return;
    }
    let name = std::thread::current().name().unwrap().to_owned();
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", &name, "--test-threads", "1"]).env(ROLE, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
