//! Tests of what a log retains for durable sessions: losses and gaps, by hand and by chance.

use super::queue::Queue;
use super::tests::DROP;
use super::*;
use crate::budget::Held;
use crate::ingest::feature::object_of;
use crate::metrics::Metrics;
use crate::model::delivery::{GapReason, SubscriptionIds};
use crate::model::event::Body;
use matcher::live::Cause;

const BOUNDS: KeptBounds =
    KeptBounds { frames: 4, bytes: 100_000, age_ms: 1_000, overflow: OverflowName::DropOldest };

/// The log of a durable session, and the offsets that were told as gone.
struct Bench {
    log: Arc<DeliveryLog>,
    total: Arc<KeptTotal>,
    bounds: KeptBounds,
    last: u64,
    gone: Vec<u64>,
}

impl Bench {
    fn new(bounds: KeptBounds, total: u64) -> Self {
        Self::within(bounds, &KeptTotal::new(total))
    }

    fn within(bounds: KeptBounds, total: &Arc<KeptTotal>) -> Self {
        let metrics = Arc::new(Metrics::new(1));
        let log = DeliveryLog::new(DROP, 0, Held::default(), Arc::clone(total), metrics);
        log.lock().make_durable(0, Held::default());
        // What was given nobody has to read here.
        log.lock().note_given(u64::MAX);
        Self { log, total: Arc::clone(total), bounds, last: 0, gone: Vec::new() }
    }

    fn push(&mut self, object: &str, overflow: Option<OverflowName>) -> bool {
        self.push_at(object, overflow, self.last)
    }

    /// Appends a delivery that is to be retained; says whether it is.
    fn push_at(&mut self, object: &str, overflow: Option<OverflowName>, at_ms: u64) -> bool {
        self.last += 1;
        let text = format!(r#"{{"type":"Feature","id":{},"key":"{object}"}}"#, self.last);
        let delivery = Delivery {
            offset: self.last,
            subscriptions: SubscriptionIds::One("\"s\"".into()),
            cause: Cause::Published,
            transition: None,
            body: Arc::new(Body::new(text.as_str().into(), Instant::now(), object_of(None, &text).unwrap())),
            overflow,
            is_late: false,
            is_ahead: false,
        };
        let mut log = self.log.lock();
        let keep = Keep { bounds: &self.bounds, at_ms };
        let appended = log.append(delivery, Some(keep), &mut self.gone);
        log.release(self.last, |_| {});
        appended.is_kept
    }

    fn skip(&mut self, reason: GapReason) {
        self.last += 1;
        let mut log = self.log.lock();
        log.skip(self.last, reason);
        log.release(self.last, |_| {});
    }

    /// An offset of a subscription that is not durable, which nobody reads.
    fn pass(&mut self) {
        self.last += 1;
        self.log.lock().release(self.last, |_| {});
    }

    /// The entries that a connection gets that comes back after an offset: every offset once, in order.
    #[track_caller]
    fn after(&self, offset: u64) -> Vec<String> {
        let outbox = Outbox::new(7, DROP);
        outbox.read_from(&self.log, offset, self.last);
        let (mut at, mut told) = (offset, Vec::new());
        while let Some(next) = self.log.lock().read(7, u64::MAX, usize::MAX) {
            let (from, to, text) = match next {
                Entry::Delivery(delivery) => (delivery.offset, delivery.offset, delivery.offset.to_string()),
                Entry::Gap(Gap { from, to, reason }) => (from, to, format!("{from}-{to} {}", reason.text())),
                Entry::Answer(_) => panic!("an answer"),
            };
            assert_eq!(from, at + 1, "{text} after {at}");
            at = to;
            told.push(text);
        }
        assert_eq!(at, self.last.max(offset));
        outbox.abandon(TOO_SLOW);
        told
    }
}

#[test]
fn what_is_not_acknowledged_is_there_in_order_with_its_holes() {
    let mut bench = Bench::new(BOUNDS, 100_000);
    bench.push("a", None);
    bench.pass();
    bench.pass();
    bench.skip(GapReason::Members);
    bench.push("b", None);
    bench.push("a", None);
    assert_eq!(bench.after(0), ["1", "2-3 not-durable", "4-4 members", "5", "6"]);
    assert_eq!(bench.after(2), ["3-3 not-durable", "4-4 members", "5", "6"]);
    assert_eq!(bench.after(6), Vec::<String>::new());
    assert!(bench.log.lock().acknowledge(3));
    assert_eq!(bench.after(3), ["4-4 members", "5", "6"]);
    assert_eq!(bench.after(1), ["2-3 acknowledged", "4-4 members", "5", "6"]);
    let mut log = bench.log.lock();
    assert_eq!((log.floor(bench.last), log.acknowledged()), (4, 3));
    assert!(!log.acknowledge(2) && log.acknowledge(6));
    assert_eq!((log.kept_count(), log.floor(bench.last)), (0, 6));
    assert_eq!((bench.total.matches(), bench.total.bytes()), (0, 0));
    drop(log);
    assert!(bench.after(6).is_empty());
}

#[test]
fn at_the_bound_the_oldest_go_and_are_told() {
    let mut bench = Bench::new(BOUNDS, 100_000);
    for _ in 0..7 {
        assert!(bench.push("a", None));
    }
    assert_eq!(bench.after(0), ["1-3 overflow", "4", "5", "6", "7"]);
    assert_eq!((bench.gone.as_slice(), bench.log.lock().last_loss()), (&[1, 2, 3][..], 3));
    bench.pass();
    bench.push("a", None);
    bench.push("a", None);
    assert_eq!(bench.after(0), ["1-5 overflow", "6", "7", "8-8 not-durable", "9", "10"]);
    bench.bounds.bytes = 1;
    // For what finds no room even so nothing goes.
    assert!(!bench.push("a", None));
    assert_eq!(bench.after(5), ["6", "7", "8-8 not-durable", "9", "10", "11-11 overflow"]);
    bench.log.lock().acknowledge(11);
    assert_eq!((bench.log.lock().kept_count(), bench.total.bytes()), (0, 0));
}

#[test]
fn what_was_lost_before_a_session_was_durable_is_no_loss_of_its() {
    let mut bench = Bench::new(BOUNDS, 100_000);
    bench.log.lock().end_durable();
    bench.last = 1;
    bench.log.lock().skip(1, GapReason::Overflow);
    bench.log.lock().make_durable(1, Held::default());
    assert_eq!(bench.log.lock().last_loss(), 0);
    for _ in 0..5 {
        bench.push("a", None);
    }
    assert_eq!(bench.log.lock().last_loss(), 2);
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
}

#[test]
fn what_is_too_old_goes_and_is_told_otherwise() {
    let mut bench = Bench::new(BOUNDS, 100_000);
    for at_ms in [10, 20, 30] {
        bench.push_at("a", None, at_ms);
    }
    bench.log.lock().expire(20, &mut bench.gone);
    assert_eq!(bench.after(0), ["1-1 age", "2", "3"]);
    bench.log.lock().expire(31, &mut bench.gone);
    assert_eq!((bench.after(0), bench.log.lock().oldest_ms()), (vec!["1-3 age".to_owned()], None));
}

#[test]
fn the_room_of_all_is_shared() {
    let total = KeptTotal::new(600);
    let [mut first, mut second] = [0; 2].map(|_| Bench::within(BOUNDS, &total));
    for _ in 0..3 {
        first.push("a", None);
    }
    assert_eq!((total.matches(), first.after(0).len()), (3, 3));
    // What others have is not taken away: the newcomer's is lost, and then its own oldest.
    assert!(!second.push("a", None));
    first.log.lock().acknowledge(1);
    assert!(second.push("a", None) && second.push("a", None));
    assert_eq!(second.after(0), ["1-2 overflow", "3"]);
    drop((first, second));
    assert_eq!((total.matches(), total.bytes()), (0, 0));
}

#[test]
fn what_another_connection_acknowledges_a_slow_one_still_gets() {
    let mut bench = Bench::new(BOUNDS, 100_000);
    let slow = Outbox::new(1, DROP);
    slow.read_from(&bench.log, 0, 0);
    for _ in 0..4 {
        bench.push("a", None);
    }
    bench.log.lock().acknowledge(4);
    assert_eq!((bench.log.lock().kept_count(), bench.total.bytes()), (0, 0));
    bench.push("a", None);
    let mut told = Vec::new();
    while let Some(entry) = bench.log.lock().read(1, u64::MAX, usize::MAX) {
        told.push(match entry {
            Entry::Gap(gap) => format!("{}-{} {}", gap.from, gap.to, gap.reason.text()),
            Entry::Delivery(delivery) => delivery.offset.to_string(),
            Entry::Answer(_) => panic!("an answer"),
        });
    }
    // As many as may wait for a connection.
    assert_eq!(told, ["1-1 acknowledged", "2", "3", "4", "5"]);
}

#[test]
fn holes_beside_each_other_do_not_pile_up() {
    let mut bench = Bench::new(BOUNDS, 100_000);
    for round in 0..4_000 {
        bench.skip(if round % 2 == 0 { GapReason::Overflow } else { GapReason::Members });
        if round % 512 == 0 {
            bench.push("a", None);
        }
        assert!(bench.log.lock().holes_count() <= 1_024 + 2 * BOUNDS.frames);
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
                0 => bench.pass(),
                1 => {
                    let offset = random.random_range(0..=bench.last);
                    bench.log.lock().acknowledge(offset);
                }
                2 => bench.log.lock().expire(random.random_range(0..=bench.last), &mut bench.gone),
                other => {
                    let object = ["a", "b", "c"][random.random_range(0..3)];
                    let overflow = [None, Some(OverflowName::KeepLatest), Some(OverflowName::Disconnect)];
                    bench.push(object, overflow[other % 3]);
                }
            }
            bench.after(random.random_range(0..=bench.last));
            let log = bench.log.lock();
            assert!(log.kept_count() <= BOUNDS.frames, "seed {seed}");
            assert_eq!(log.kept_bytes() as u64, bench.total.bytes(), "seed {seed}");
        }
    }
}

#[test]
fn a_delivery_that_is_put_back_is_in_its_place() {
    let mut queue = Queue::new(10);
    for offset in [3, 5, 6] {
        queue.push(super::tests::delivery(offset), 0, OverflowName::DropOldest);
    }
    let one = queue.size_after(5).bytes;
    queue.put_back(super::tests::delivery(4));
    queue.put_back(super::tests::delivery(2));
    let offsets: Vec<_> = (1..7).filter(|offset| queue.contains(*offset)).collect();
    assert_eq!(offsets, [2, 3, 4, 5, 6]);
    let after = [0, 2, 3, 4, 5, 6].map(|offset| queue.size_after(offset).bytes / one);
    assert_eq!(after, [5, 4, 3, 2, 1, 0]);
}
