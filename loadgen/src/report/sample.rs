//! Records to test with.

use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::latency::{ACCEPTED, DELIVERY, LATENESS, Latency, MOVE_IN_FORCE};
use super::record::*;
use super::text::float;

/// A minute of a load that went well.
pub(super) fn record() -> Record {
    let mut random = StdRng::seed_from_u64(7);
    let mut histogram = |median_us: f64, count: u64| {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000, 3).unwrap();
        for _ in 0..count {
            let spread: f64 = (0..4).map(|_| random.random_range(-0.5..0.5)).sum();
            histogram.record(whole(median_us * (1.7 * spread).exp()).max(1)).unwrap();
        }
        histogram
    };
    let names = [
        (DELIVERY, 900.0, 24_000),
        (ACCEPTED, 400.0, 6_000),
        (MOVE_IN_FORCE, 350.0, 6_000),
        (LATENESS, 20.0, 6_000),
    ];
    let latencies =
        names.map(|(name, median_us, count)| Latency::new(name, &histogram(median_us, count))).to_vec();
    let mut record = Record {
        schema: SCHEMA,
        scenario: Scenario {
            name: "rush hour".to_owned(),
            toml: "[scenario]\nname = \"rush hour\"\nclients = 2000\nrate = 1000 # events a second\n"
                .to_owned(),
            seed: 7,
            remarks: Vec::new(),
            parameters: [("clients".to_owned(), 2_000.0), ("rate".to_owned(), 1_000.0)].into(),
        },
        target: Target {
            name: "nearcast".to_owned(),
            version: "0.1.0".to_owned(),
            address: "127.0.0.1:7070".to_owned(),
            shortfalls: Vec::new(),
        },
        machine: Machine {
            cores: 4,
            processor: "A Processor @ 2.0 GHz".to_owned(),
            memory_bytes: 8_000_000_000,
            kernel: "Linux 6.1.0".to_owned(),
        },
        begun: "2026-01-02T03:04:05.678Z".parse().unwrap(),
        warm_up_s: 10.0,
        measured_s: 60.0,
        load_threads: 1,
        totals: Totals {
            events: requests(60_000),
            moves: requests(120_000),
            deliveries: 720_000,
            bytes_in: 180_000_000,
            bytes_out: 30_000_000,
            ..Totals::default()
        },
        latencies,
        check: Some(Check {
            clients_checked: 500,
            clients_count: 2_000,
            required: 240_000,
            came: 240_000,
            ambiguous: 12,
            truth: Some(Truth { wanted: 241_000, told: 233_500, beside: 6_500 }),
            ..Check::default()
        }),
        timeline: (1..=70).map(|at_s| second(at_s, &mut random)).collect(),
        slopes: Slopes::default(),
        milestones: vec![Milestone { name: "alarm at the last client".to_owned(), seconds: 0.123 }],
        trials: Vec::new(),
    };
    record.slopes = Slopes::over(&record.timeline, &record.measured_part());
    record
}

/// One that went wrong, with names that would break out of any text.
pub(super) fn bad() -> Record {
    let mut record = record();
    record.scenario.name = "<script>alert('x')</script>".to_owned();
    record.scenario.toml = "name = \"</details></body>\u{7}\"".to_owned();
    record.target.name = "a & b \u{1b}[31m".to_owned();
    record.target.shortfalls = vec!["no areas: the load filters <b>itself</b>".to_owned()];
    record.totals.errors = [("reset".to_owned(), 3), ("<i>time-out</i>".to_owned(), 12)].into();
    record.totals.events.refused = [("admission".to_owned(), 1_500)].into();
    (record.totals.gaps, record.totals.gap_deliveries, record.totals.out_of_order) = (2, 1_234, 5);
    let check = record.check.as_mut().unwrap();
    (check.missing, check.came, check.spurious) = (3, 239_997, 1);
    check.examples = vec!["client <u>c7</u> did not get event 99".to_owned()];
    record.trials =
        [(1_000.0, 900, true), (2_000.0, 1_900, true), (4_000.0, 60_000, false), (3_000.0, 9_000, true)]
            .map(|(rate, p99_us, was_kept)| Trial {
                rate,
                p50_us: p99_us / 3,
                p99_us,
                was_kept,
                why: if was_kept { "below 10 ms" } else { "<p99> above 10 ms" }.to_owned(),
            })
            .to_vec();
    let scraped = &mut record.timeline[30].scraped;
    scraped.insert("sum(<g>odd</g>)".to_owned(), 5.0);
    record
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of these tests")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

fn requests(count: u64) -> Requests {
    Requests { intended: count, sent: count, accepted: count, ..Requests::default() }
}

fn second(at_s: u32, random: &mut StdRng) -> Second {
    let mut around = |middle: f64| whole(middle * random.random_range(0.9..1.1));
    let is_peak = (35..40).contains(&at_s);
    let factor = if is_peak { 20.0 } else { 1.0 };
    let percentiles = |p50_us: u64| Percentiles {
        p50_us,
        p90_us: p50_us * 2,
        p99_us: p50_us * 4,
        p999_us: p50_us * 7,
        max_us: p50_us * 9,
    };
    let scraped = [
        ("sum(nearcast_queue_depth)", 12.0 * factor),
        ("sum(nearcast_kept_matches)", 0.0),
        ("sum(nearcast_live_objects)", 400.0),
        ("rate(nearcast_matches_total)", 13_000.0),
        ("rate(nearcast_frames_sent_total)", 14_000.0),
        ("rate(nearcast_drops_total)", 0.0),
        ("mean(nearcast_batch_events)", 2.0 * factor),
        ("mean(nearcast_queue_seconds)", 1e-4 * factor),
        ("mean(nearcast_match_seconds)", 3e-5),
    ];
    Second {
        at_s: f64::from(at_s),
        span_s: 1.0,
        events_intended: 1_000,
        events_sent: 1_000,
        deliveries: around(12_000.0),
        moves: 2_000,
        delivery: Some(percentiles(around(900.0 * factor))),
        move_in_force: Some(percentiles(around(350.0 * factor))),
        broker: Some(Usage {
            cpu_cores: float(around(900.0)) / 1e3,
            busiest_thread_cores: 0.4,
            resident_bytes: 40_000_000 + u64::from(at_s) * 10_000,
        }),
        load: Some(Usage {
            cpu_cores: float(around(250.0)) / 1e3,
            busiest_thread_cores: 0.25,
            resident_bytes: 60_000_000,
        }),
        scraped: scraped.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Second::default()
    }
}
