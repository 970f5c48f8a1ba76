//! The twelve rules of GAIN's application over real reports: the published stream of changes, and counts made by brute force.

use std::num::NonZeroUsize;

use checks::{Bounds, Check, Clock, Context, Document, Formula, Kind, Sets, replay};
use matcher::World;
use serde_json::Value;

use crate::documents;
use crate::reports::{self, Report};

const RULES: &str = include_str!("../data/taxis.json");

/// A time as the published stream writes it: local, eight hours ahead.
fn local(ms: i64) -> String {
    let of_day = ms / 1_000 + 8 * 3_600;
    let (hours, minutes, seconds) = (of_day / 3_600 % 24, of_day / 60 % 60, of_day % 60);
    format!("2007-10-26 {hours:02}:{minutes:02}:{seconds:02}:{:03}", ms % 1_000)
}

/// The sets of all rules, as one check that demands nothing; names in the order of the published stream.
fn patterns() -> (Check, Vec<String>) {
    let mut contexts = vec![Context::of_all("pat_000", 2.0)];
    let in_service = |name: &str, for_s| Context::of_all(name, for_s).when("status <> 0");
    contexts.extend(["pat_001", "pat_002"].map(|name| in_service(name, 20.0)));
    for pattern in 0..20 {
        let of_digit = format!("status <> 0 AND taxi_id LIKE '%{}'", pattern / 2);
        contexts.push(Context::of_all(&format!("pat_1{pattern:02}"), 48.0).when(of_digit));
    }
    let names = contexts.iter().map(|context| context.name.clone()).collect();
    let document = Document { contexts, formula: Formula::And(Vec::new()), clock: Clock::Event };
    (Check::new(World::Geodetic, &document).expect("the patterns are sound"), names)
}

/// Lines of the stream for an event that came into a set or left it; patterns that take the same are one set.
fn lines_of<'a>(
    sign: char,
    (check, names): &'a (Check, Vec<String>),
    set: usize,
    report: &'a Report,
    time_ms: i64,
) -> impl Iterator<Item = String> + 'a {
    let patterns = names.iter().filter(move |name| check.set_of(name) == Some(set));
    patterns.map(move |name| {
        let Report { seq, taxi_id, place: [lon, lat], speed_kmh, status, .. } = report;
        let time = local(time_ms);
        format!("{sign},{name},{seq},{time},{taxi_id},{lon:?},{lat:?},{speed_kmh:.1},{status}")
    })
}

#[test]
fn the_published_stream_of_changes_is_reproduced_line_by_line() {
    let Some(folder) = reports::folder() else { return };
    let reports = reports::reports(&folder, "taxi_first1500.csv.gz");
    let patterns = patterns();
    let mut sets = Sets::new(&patterns.0);
    let mut lines = Vec::new();
    let left = |sets: &mut Sets, lines: &mut Vec<String>| {
        for removal in &sets.changes().removed {
            let report = &reports[usize::try_from(removal.number).expect("small")];
            lines.extend(lines_of('-', &patterns, removal.set, report, removal.due_ms));
        }
        sets.settle();
    };
    for (number, report) in (0_u64..).zip(&reports) {
        assert!(sets.admit(&patterns.0, &report.arrival()));
        let came: Vec<_> = (0..patterns.0.sets_count())
            .filter(|&set| sets.numbers(set).next_back() == Some(number))
            .flat_map(|set| lines_of('+', &patterns, set, report, report.ts_ms))
            .collect();
        left(&mut sets, &mut lines);
        lines.extend(came);
    }
    sets.expire(&patterns.0, i64::MAX);
    left(&mut sets, &mut lines);
    let mut count = 0;
    for (line, published) in lines.iter().zip(reports::lines(&folder, "first1500_changes.csv.gz")) {
        count += 1;
        assert_eq!(*line, published, "line {count}");
    }
    assert_eq!((count, lines.len()), (6_056, 6_056));
}

/// Counts of a rule by brute force: links, and different reports in them.
fn expected(counts: &Value) -> (usize, usize) {
    let number = |value: &Value| usize::try_from(value.as_u64().expect("a count")).expect("small");
    if counts.is_number() {
        return (number(counts), number(counts));
    }
    (number(&counts["ordered_pairs"]), number(&counts["distinct_contexts"]))
}

/// Holds all rules against a file of reports, and compares with the counts.
fn check_rules(name: &str, reports: &[Report], counts: &Value, kind: Kind) {
    let counts = &counts[name];
    let mut rules = 0;
    for (rule, check) in documents::read(World::Geodetic, RULES) {
        let events = reports.iter().map(|report| (report.seq, report.arrival()));
        let report = replay(&check, kind, Bounds::default(), events).expect("few links");
        let found = (report.violations(), report.events_in_violation);
        assert_eq!(found, expected(&counts[&rule]), "{name}, {rule}, {kind:?}");
        let evaluations = if rule == "rule_00" { &counts["contexts"] } else { &counts["in_service"] };
        if &*rule < "rule_10" {
            assert_eq!(Some(report.evaluations), evaluations.as_u64(), "{rule}");
        }
        rules += 1;
    }
    assert_eq!(rules, 12);
}

fn counts(folder: &std::path::Path) -> Value {
    let text =
        std::fs::read_to_string(folder.join("expected_violations.json")).expect("it is beside the reports");
    serde_json::from_str(&text).expect("the counts are JSON")
}

#[test]
fn every_engine_finds_the_violations_of_the_first_reports() {
    let Some(folder) = reports::folder() else { return };
    let reports = reports::reports(&folder, "taxi_first1500.csv.gz");
    for kind in kinds() {
        check_rules("taxi_first1500", &reports, &counts(&folder), kind);
    }
}

/// The engines that evaluate the whole formula take a minute in a build for tests: they go through the hour in the long form.
#[test]
fn every_engine_finds_the_violations_of_the_hour() {
    let Some(folder) = reports::folder() else { return };
    let reports = reports::reports(&folder, "taxi_h11.csv.gz");
    let kinds = if crate::is_soak() { kinds() } else { vec![Kind::Incremental] };
    for kind in kinds {
        check_rules("taxi_h11", &reports, &counts(&folder), kind);
    }
}

fn kinds() -> Vec<Kind> {
    let two = NonZeroUsize::new(2).expect("two is not zero");
    vec![Kind::Sequential, Kind::Concurrent(two), Kind::Incremental]
}
