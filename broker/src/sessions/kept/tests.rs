//! Tests of kept matches, losses and gaps, by hand and by chance.

use std::time::Instant;

use matcher::live::Cause;

use super::*;
use crate::ingest::feature::object_of;
use crate::model::delivery::Names;
use crate::model::event::Body;

const BOUNDS: KeptBounds =
    KeptBounds { frames: 4, bytes: 100_000, age_ms: 1_000, overflow: OverflowName::DropOldest };

/// The kept matches of a session, and the offsets that were told as gone.
struct Bench {
    kept: Kept,
    bounds: KeptBounds,
    last: u64,
    gone: Vec<u64>,
}

impl Bench {
    fn new(bounds: KeptBounds, total: u64) -> Self {
        Self {
            kept: Kept::after(0, KeptTotal::new(total), Held::default()),
            bounds,
            last: 0,
            gone: Vec::new(),
        }
    }

    fn push(&mut self, object: &str, overflow: Option<OverflowName>) -> Keeping {
        self.push_at(object, overflow, self.last)
    }

    fn push_at(&mut self, object: &str, overflow: Option<OverflowName>, at_ms: u64) -> Keeping {
        self.last += 1;
        let text = format!(r#"{{"type":"Feature","id":{},"key":"{object}"}}"#, self.last);
        let delivery = Delivery {
            offset: self.last,
            subscriptions: Names::One("\"s\"".into()),
            cause: Cause::Published,
            transition: None,
            body: Arc::new(Body::new(text.as_str().into(), Instant::now(), object_of(&text).unwrap())),
            overflow,
            is_late: false,
            is_ahead: false,
        };
        self.kept.push(KeptMatch { delivery, at_ms }, &self.bounds, &mut self.gone)
    }

    fn skip(&mut self, reason: Reason) {
        self.last += 1;
        self.kept.skip(self.last, reason);
    }

    /// The entries that a reader gets that comes back after an offset: every offset once, in order.
    #[track_caller]
    fn after(&self, offset: u64) -> Vec<String> {
        let (mut at, mut told) = (offset, Vec::new());
        while let Some(next) = self.kept.next(at, self.last) {
            let (from, to, text) = match next {
                Next::Match(delivery) => (delivery.offset, delivery.offset, delivery.offset.to_string()),
                Next::Gap(Gap { from, to, reason }) => (from, to, format!("{from}-{to} {}", reason.text())),
            };
            assert_eq!(from, at + 1, "{text} after {at}");
            at = to;
            told.push(text);
        }
        assert_eq!(at, self.last.max(offset));
        told
    }
}

#[test]
fn what_is_not_acknowledged_is_there_in_order_with_its_holes() {
    let mut bench = Bench::new(BOUNDS, 100_000);
    bench.push("a", None);
    bench.skip(Reason::NotDurable);
    bench.skip(Reason::NotDurable);
    bench.skip(Reason::Members);
    bench.push("b", None);
    bench.push("a", None);
    assert_eq!(bench.after(0), ["1", "2-3 not-durable", "4-4 members", "5", "6"]);
    assert_eq!(bench.after(2), ["3-3 not-durable", "4-4 members", "5", "6"]);
    assert_eq!(bench.after(6), Vec::<String>::new());
    bench.kept.acknowledge(3);
    assert_eq!(bench.after(3), ["4-4 members", "5", "6"]);
    assert_eq!(bench.after(1), ["2-3 acknowledged", "4-4 members", "5", "6"]);
    assert_eq!((bench.kept.floor(bench.last), bench.kept.acknowledged()), (4, 3));
    bench.kept.acknowledge(2);
    bench.kept.acknowledge(6);
    assert!(bench.kept.is_empty() && bench.after(6).is_empty());
    assert_eq!((bench.kept.total.matches(), bench.kept.total.bytes()), (0, 0));
    assert_eq!(bench.kept.floor(bench.last), 6);
}

#[test]
fn at_the_bound_the_oldest_go_and_are_told() {
    let mut bench = Bench::new(BOUNDS, 100_000);
    for _ in 0..7 {
        assert!(bench.push("a", None).is_kept);
    }
    assert_eq!(bench.after(0), ["1-3 overflow", "4", "5", "6", "7"]);
    assert_eq!((bench.gone.as_slice(), bench.kept.last_loss()), (&[1, 2, 3][..], 3));
    bench.skip(Reason::NotDurable);
    bench.push("a", None);
    bench.push("a", None);
    assert_eq!(bench.after(0), ["1-5 overflow", "6", "7", "8-8 not-durable", "9", "10"]);
    bench.bounds.bytes = 1;
    let keeping = bench.push("a", None);
    // For what finds no room even so nothing goes.
    assert!(!keeping.is_kept);
    assert_eq!(bench.after(5), ["6", "7", "8-8 not-durable", "9", "10", "11-11 overflow"]);
    bench.kept.acknowledge(11);
    assert!(bench.kept.is_empty() && bench.kept.total.bytes() == 0);
}

#[test]
fn of_one_object_the_latest_is_kept() {
    let latest = Some(OverflowName::KeepLatest);
    let mut bench = Bench::new(BOUNDS, 100_000);
    for object in ["a", "b", "b", "c", "b", "c", "d"] {
        bench.push(object, latest);
    }
    // b's 2 and 3 and c's 4 had a newer one behind them.
    assert_eq!(bench.after(0), ["1", "2-4 overflow", "5", "6", "7"]);
    bench.push("b", latest);
    assert_eq!(bench.after(0), ["1", "2-5 overflow", "6", "7", "8"]);
    // Now nothing is there twice.
    bench.push("d", Some(OverflowName::DropOldest));
    assert_eq!(bench.after(4), ["5-5 overflow", "6", "7", "8", "9"]);
    assert_eq!(bench.after(0).len(), 5);
    bench.kept.acknowledge(9);
    assert!(bench.kept.latest.is_none());
}

#[test]
fn who_would_rather_be_cut_off_says_so() {
    let mut bench = Bench::new(BOUNDS, 100_000);
    for _ in 0..4 {
        assert!(!bench.push("a", Some(OverflowName::Disconnect)).cuts_off);
    }
    assert!(bench.push("a", None).cuts_off);
    assert_eq!(bench.after(0), ["1-1 overflow", "2", "3", "4", "5"]);
}

#[test]
fn what_is_too_old_goes_and_is_told_otherwise() {
    let mut bench = Bench::new(BOUNDS, 100_000);
    for at_ms in [10, 20, 30] {
        bench.push_at("a", None, at_ms);
    }
    bench.kept.expire(20, &mut bench.gone);
    assert_eq!(bench.after(0), ["1-1 age", "2", "3"]);
    bench.kept.expire(31, &mut bench.gone);
    assert_eq!((bench.after(0), bench.kept.oldest_ms()), (vec!["1-3 age".to_owned()], None));
}

#[test]
fn the_room_of_all_is_shared() {
    let total = KeptTotal::new(600);
    let mut first = Bench::new(BOUNDS, 0);
    let mut second = Bench::new(BOUNDS, 0);
    (first.kept.total, second.kept.total) = (Arc::clone(&total), Arc::clone(&total));
    for _ in 0..3 {
        first.push("a", None);
    }
    assert_eq!((total.matches(), first.after(0).len()), (3, 3));
    // What others have is not taken away: the newcomer's is lost, and then its own oldest.
    assert!(!second.push("a", None).is_kept);
    first.kept.acknowledge(1);
    assert!(second.push("a", None).is_kept && second.push("a", None).is_kept);
    assert_eq!(second.after(0), ["1-2 overflow", "3"]);
    drop(first);
    drop(second);
    assert_eq!((total.matches(), total.bytes()), (0, 0));
}

#[test]
fn holes_beside_each_other_do_not_pile_up() {
    let mut bench = Bench::new(BOUNDS, 100_000);
    for round in 0..3 * HOLES_SPARE {
        bench.skip(if round % 2 == 0 { Reason::NotDurable } else { Reason::Members });
        if round % 512 == 0 {
            bench.push("a", None);
        }
        assert!(bench.kept.holes.len() <= HOLES_SPARE + 2 * BOUNDS.frames);
    }
    // Every offset is told still.
    bench.after(0);
}

#[test]
fn chance_never_loses_an_offset() {
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut bench = Bench::new(BOUNDS, 1_000);
        for _ in 0..200 {
            match random.random_range(0..10) {
                0 => bench.skip(Reason::NotDurable),
                1 => {
                    let offset = random.random_range(0..=bench.last);
                    bench.kept.acknowledge(offset);
                }
                2 => bench.kept.expire(random.random_range(0..=bench.last), &mut bench.gone),
                other => {
                    let object = ["a", "b", "c"][random.random_range(0..3)];
                    let overflow = [None, Some(OverflowName::KeepLatest), Some(OverflowName::Disconnect)];
                    bench.push(object, overflow[other % 3]);
                }
            }
            let offset = random.random_range(0..=bench.last);
            bench.after(offset);
            assert!(bench.kept.matches.len() <= BOUNDS.frames, "seed {seed}");
            let bytes: usize = bench.kept.matches.iter().map(KeptMatch::bytes).sum();
            assert_eq!((bytes, bytes as u64), (bench.kept.bytes(), bench.kept.total.bytes()), "seed {seed}");
        }
    }
}
