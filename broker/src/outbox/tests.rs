//! Tests of logs and their connections: the entries that wait, the lost ones, and the gaps that tell of them.

use std::cell::Cell;
use std::ops::RangeInclusive;

use super::*;
use crate::budget::{Budget, Held};
use crate::config::Config;
use crate::ingest::feature::object_of;
use crate::metrics::Metrics;
use crate::model::delivery::{ENTRY_BYTES, GapReason, SubscriptionIds, Transition};
use crate::model::event::Body;
use matcher::live::Cause;

pub(super) const DROP: Bounds = Bounds {
    frames: 3,
    bytes: 10_000,
    answers: 2,
    answer_bytes: 10_000,
    overflow: OverflowName::DropOldest,
    has_alarms_ahead: true,
    has_deadlines: true,
};

pub(super) fn delivery(offset: u64) -> Delivery {
    delivery_of(offset, "any")
}

/// A delivery of an event of some object.
pub(super) fn delivery_of(offset: u64, object: &str) -> Delivery {
    let feature = format!(r#"{{"id":"{object}"}}"#);
    let object = object_of(None, &feature).unwrap();
    let body = Arc::new(Body::new("{}".into(), Instant::now(), object));
    Delivery {
        offset,
        subscriptions: SubscriptionIds::One("\"s\"".into()),
        cause: Cause::Published,
        transition: None,
        body,
        overflow: None,
        is_late: false,
        is_ahead: false,
    }
}

/// A delivery of an alarm.
fn alarm(offset: u64) -> Delivery {
    let delivery = delivery(offset);
    let body = Body { is_alarm: true, ..Body::new("{}".into(), Instant::now(), delivery.body.object) };
    Delivery { body: Arc::new(body), ..delivery }
}

/// A session that is not durable, and its connections.
struct Bench {
    log: Arc<DeliveryLog>,
    metrics: Arc<Metrics>,
    bounds: Bounds,
    connections: Vec<Outbox>,
    /// How often a sleeping writer was to be woken.
    wakes: Cell<u32>,
}

impl Bench {
    fn new(bounds: Bounds) -> Self {
        Self::charged(bounds, Held::default())
    }

    fn charged(bounds: Bounds, held: Held) -> Self {
        let metrics = Arc::new(Metrics::new(1));
        let log = DeliveryLog::new(bounds, 0, held, KeptTotal::new(100_000), Arc::clone(&metrics));
        let mut bench = Self { log, metrics, bounds, connections: Vec::new(), wakes: Cell::new(0) };
        bench.connect();
        bench
    }

    /// Adds a connection that begins where the log is.
    fn connect(&mut self) {
        let outbox = Outbox::new(self.connections.len() as u64, self.bounds);
        let released = self.log.lock().released();
        outbox.read_from(&self.log, released, released);
        self.connections.push(outbox);
    }

    fn outbox(&self) -> &Outbox {
        &self.connections[0]
    }

    /// Appends a delivery and releases it.
    fn push(&self, delivery: Delivery) {
        let (offset, alarm) = (delivery.offset, Some(delivery.clone()).filter(|one| one.body.is_alarm));
        let mut log = self.log.lock();
        let appended = log.append(delivery, None, &mut Vec::new());
        log.release(offset, |_| self.wakes.set(self.wakes.get() + 1));
        drop(log);
        for connection in appended.cut {
            assert!(self.connections[usize::try_from(connection).unwrap()].cut_off());
        }
        if let Some(alarm) = alarm {
            self.connections.iter().for_each(|outbox| outbox.push_ahead(&alarm));
        }
    }

    fn push_all(&self, offsets: RangeInclusive<u64>) {
        offsets.for_each(|offset| self.push(delivery(offset)));
    }

    fn skip(&self, offset: u64) {
        let mut log = self.log.lock();
        log.skip(offset, GapReason::Members);
        log.release(offset, |_| {});
    }

    fn dropped(&self) -> u64 {
        self.metrics.dropped.get()
    }

    async fn drain(&self) -> Vec<String> {
        drain(self.outbox()).await
    }
}

/// An entry in short: offsets, with `!` for alarms and `ahead`, `from-to` for gaps and `a` for answers.
fn shown(entry: &Entry) -> String {
    match entry {
        Entry::Answer(_) => "a".to_owned(),
        Entry::Delivery(delivery) if delivery.is_ahead => format!("{} ahead", delivery.offset),
        Entry::Delivery(delivery) if delivery.body.is_alarm => format!("{}!", delivery.offset),
        Entry::Delivery(delivery) => delivery.offset.to_string(),
        Entry::Gap(gap) if gap.reason == GapReason::Ahead => format!("{} was ahead", gap.from),
        Entry::Gap(gap) => format!("{}-{}", gap.from, gap.to),
    }
}

/// The entries that wait, one by one.
async fn drain(outbox: &Outbox) -> Vec<String> {
    let mut all = Vec::new();
    let mut batch = Vec::new();
    while outbox.has_something() {
        assert_eq!(outbox.next_batch(&mut batch, 1).await, None);
        all.extend(batch.drain(..).map(|entry| shown(&entry)));
    }
    assert_eq!(outbox.waiting(), (0, 0));
    all
}

#[tokio::test]
async fn the_oldest_are_lost_and_one_gap_tells_of_them() {
    let bench = Bench::new(DROP);
    bench.push_all(1..=7);
    assert_eq!(
        (bench.drain().await, bench.dropped()),
        (["1-4", "5", "6", "7"].map(str::to_owned).to_vec(), 4)
    );
    // A new loss is a new gap.
    bench.push_all(8..=12);
    assert_eq!(bench.drain().await, ["8-9", "10", "11", "12"]);
}

#[tokio::test]
async fn every_connection_reads_the_same_and_a_slow_one_loses_alone() {
    let mut bench = Bench::new(DROP);
    bench.connect();
    let mut quick = Vec::new();
    for offset in 1..=7 {
        bench.push(delivery(offset));
        quick.extend(drain(&bench.connections[1]).await);
    }
    assert_eq!(quick, ["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(
        (bench.drain().await, bench.dropped()),
        (["1-4", "5", "6", "7"].map(str::to_owned).to_vec(), 4)
    );
    // What all have read is gone.
    assert_eq!(bench.log.lock().count(), 0);
}

#[tokio::test]
async fn a_gap_stands_where_the_loss_is_and_answers_are_never_lost() {
    let bench = Bench::new(DROP);
    bench.outbox().push_answer("{}");
    bench.push(delivery(1));
    bench.outbox().push_answer("{}");
    bench.push_all(2..=5);
    assert_eq!(bench.drain().await, ["a", "1-2", "a", "3", "4", "5"]);
}

#[tokio::test]
async fn an_answer_comes_behind_what_waits_and_not_behind_a_long_backlog() {
    let bench = Bench::new(Bounds { frames: 4, ..DROP });
    bench.log.lock().make_durable(0, Held::default());
    let kept = KeptBounds { frames: 100, bytes: 100_000, age_ms: 1_000, overflow: OverflowName::DropOldest };
    for offset in 1..=10 {
        let mut log = bench.log.lock();
        log.append(delivery(offset), Some(Keep { bounds: &kept, at_ms: 0 }), &mut Vec::new());
        log.release(offset, |_| {});
    }
    bench.outbox().push_answer("{}");
    assert_eq!(bench.drain().await, ["1", "2", "3", "4", "a", "5", "6", "7", "8", "9", "10"]);
}

#[tokio::test]
async fn bytes_are_bounded_and_one_delivery_always_fits() {
    let bench = Bench::new(Bounds { bytes: 250, ..DROP });
    bench.push_all(1..=3);
    assert_eq!(bench.drain().await, ["1-1", "2", "3"]);
    let bench = Bench::new(Bounds { bytes: 1, ..DROP });
    bench.push(delivery(1));
    assert_eq!((bench.drain().await, bench.dropped()), (vec!["1".to_owned()], 0));
}

#[tokio::test]
async fn a_connection_that_wants_it_is_cut_off() {
    let mut bench = Bench::new(DROP);
    bench.connect();
    bench.push(Delivery { overflow: Some(OverflowName::Disconnect), ..delivery(1) });
    assert_eq!(drain(&bench.connections[1]).await, ["1"]);
    bench.push_all(2..=5);
    let mut batch = Vec::new();
    let close = bench.outbox().next_batch(&mut batch, 1).await.unwrap();
    assert_eq!((close.code, batch.len(), bench.dropped()), (1013, 0, 5));
    // The other has read what is lost first. Then it is the slowest, and loses the oldest.
    bench.push(delivery(6));
    assert_eq!(drain(&bench.connections[1]).await, ["2-3", "4", "5", "6"]);
    // Who would not, stays although that is the broker's default.
    let bench = Bench::new(Bounds { overflow: OverflowName::Disconnect, ..DROP });
    for offset in 1..=4 {
        bench.push(Delivery { overflow: Some(OverflowName::DropOldest), ..delivery(offset) });
    }
    assert_eq!(bench.drain().await, ["1-1", "2", "3", "4"]);
}

#[tokio::test]
async fn what_waits_is_written_before_the_end() {
    let bench = Bench::new(DROP);
    bench.push(delivery(1));
    bench.outbox().close(1001, "first");
    bench.outbox().close(1000, "second");
    bench.push(delivery(2));
    assert_eq!(bench.drain().await, ["1"]);
    let close = bench.outbox().next_batch(&mut Vec::new(), 1).await.unwrap();
    assert_eq!(close, Close::new(1001, "first"));
    assert_eq!(bench.log.lock().count(), 0, "nobody is going to read it");
}

#[tokio::test]
async fn who_does_not_read_large_answers_waits() {
    let outbox = Outbox::new(1, Bounds { answers: 1_000, ..DROP });
    let mut count = 0;
    while outbox.has_room_for_answer(Coming::default()) {
        outbox.push_answer("x".repeat(1_000));
        count += 1;
    }
    assert_eq!(count, 10);
    let mut batch = Vec::new();
    outbox.next_batch(&mut batch, 1).await;
    assert!(outbox.has_room_for_answer(Coming::default()));
    assert!(!outbox.has_room_for_answer(Coming { count: 1, bytes: 1_000 }), "it is on its way");
}

#[tokio::test]
async fn who_does_not_read_answers_waits() {
    let outbox = Arc::new(Outbox::new(1, DROP));
    outbox.push_answer("{}");
    outbox.room_for_answer(Coming::default()).await;
    // With one more on its way there is no room either.
    assert!(
        futures_util::FutureExt::now_or_never(outbox.room_for_answer(Coming { count: 1, bytes: 2 }))
            .is_none()
    );
    outbox.push_answer("{}");
    let asker = tokio::spawn({
        let outbox = Arc::clone(&outbox);
        async move { outbox.room_for_answer(Coming::default()).await }
    });
    tokio::task::yield_now().await;
    assert!(!asker.is_finished());
    outbox.next_batch(&mut Vec::new(), 1).await;
    asker.await.unwrap();
}

#[tokio::test]
async fn a_sleeping_writer_is_woken_once() {
    let mut bench = Bench::new(DROP);
    let outbox = Arc::new(bench.connections.remove(0));
    let writer = tokio::spawn({
        let outbox = Arc::clone(&outbox);
        async move {
            let mut batch = Vec::new();
            outbox.next_batch(&mut batch, 10_000).await;
            batch.len()
        }
    });
    while !outbox.state().sleeps {
        tokio::task::yield_now().await;
    }
    bench.push_all(1..=2);
    assert_eq!(bench.wakes.get(), 1);
    outbox.wake();
    assert_eq!(writer.await.unwrap(), 2);
}

#[tokio::test]
async fn what_the_writer_takes_is_noted_and_what_is_lost_is_not() {
    let bench = Bench::new(DROP);
    let outbox = bench.outbox();
    let recipient = SentOffsets::new("car".into());
    outbox.note_for(Arc::clone(&recipient));
    let shown = |offsets: [u64; 7]| {
        offsets.map(|offset| match (outbox.waits(offset), recipient.written().contains(offset)) {
            (true, false) => 'w',
            (false, true) => 't',
            (false, false) => '-',
            (true, true) => '?',
        })
    };
    bench.push_all(1..=5);
    outbox.push_answer("{}");
    assert_eq!(shown([1, 2, 3, 4, 5, 6, 7]), ['-', '-', 'w', 'w', 'w', '-', '-']);
    let mut batch = Vec::new();
    // The gap, and the first of them.
    outbox.next_batch(&mut batch, 1).await;
    outbox.next_batch(&mut batch, 1).await;
    assert_eq!(shown([1, 2, 3, 4, 5, 6, 7]), ['-', '-', 't', 'w', 'w', '-', '-']);
    bench.push_all(6..=7);
    outbox.next_batch(&mut batch, 10_000).await;
    assert_eq!(shown([1, 2, 3, 4, 5, 6, 7]), ['-', '-', 't', '-', 't', 't', 't']);
}

const LATEST: Bounds = Bounds { overflow: OverflowName::KeepLatest, ..DROP };

/// Puts a delivery in for each letter, the object that it is of, and says what then waits.
async fn shown_after(bounds: Bounds, objects: &str) -> Vec<String> {
    let bench = Bench::new(bounds);
    for (offset, object) in (1..).zip(objects.chars()) {
        bench.push(delivery_of(offset, &object.to_string()));
    }
    bench.drain().await
}

#[tokio::test]
async fn what_a_newer_one_follows_is_lost_before_the_oldest() {
    assert_eq!(shown_after(LATEST, "abca").await, ["1-1", "2", "3", "4"]);
    assert_eq!(shown_after(LATEST, "abcb").await, ["1", "2-2", "3", "4"]);
    // It was followed before the bound was reached.
    assert_eq!(shown_after(LATEST, "abbc").await, ["1", "2-2", "3", "4"]);
    // Where every one is the latest of its object, the oldest goes.
    assert_eq!(shown_after(LATEST, "abcd").await, ["1-1", "2", "3", "4"]);
    assert_eq!(shown_after(DROP, "abcb").await, ["1-1", "2", "3", "4"]);
}

#[tokio::test]
async fn neighbouring_gaps_become_one() {
    assert_eq!(shown_after(LATEST, "abcbc").await, ["1", "2-3", "4", "5"]);
    // The later one first, then the one before it.
    assert_eq!(shown_after(LATEST, "abccb").await, ["1", "2-3", "4", "5"]);
    assert_eq!(shown_after(LATEST, "abcbca").await, ["1-3", "4", "5", "6"]);
    assert_eq!(shown_after(LATEST, "axaxaxaxaxb").await, ["1-8", "9", "10", "11"]);
}

#[tokio::test]
async fn what_did_not_enter_is_told_among_what_is_lost() {
    let bench = Bench::new(DROP);
    bench.push(delivery(1));
    (2..=1_000).for_each(|offset| bench.skip(offset));
    bench.push(delivery(1_001));
    bench.skip(1_002);
    assert_eq!(bench.drain().await, ["1", "2-1000", "1001", "1002-1002"]);
    for offset in 1_003..6_003 {
        if offset % 2 == 0 { bench.skip(offset) } else { bench.push(delivery(offset)) }
    }
    let told = bench.drain().await;
    assert!(told.len() < 2_000, "{} gaps", told.len());
    assert_eq!(told[told.len() - 5..], ["5998-5998", "5999", "6000-6000", "6001", "6002-6002"]);
}

#[tokio::test]
async fn a_newer_one_for_other_subscriptions_is_another() {
    let of = |offset, name: &str| Delivery {
        subscriptions: SubscriptionIds::One(name.into()),
        ..delivery_of(offset, "a")
    };
    let bench = Bench::new(LATEST);
    for one in [delivery_of(1, "b"), of(2, "\"t\""), of(3, "\"u\""), of(4, "\"u\"")] {
        bench.push(one);
    }
    assert_eq!(bench.drain().await, ["1", "2", "3-3", "4"]);
}

#[tokio::test]
async fn only_who_wants_it_keeps_the_latest() {
    let with = |offset, overflow| Delivery { overflow, ..delivery_of(offset, "a") };
    // Of the same object, but of subscriptions that want each as long as may be.
    let bench = Bench::new(LATEST);
    bench.push(delivery_of(1, "b"));
    for offset in 2..=4 {
        bench.push(with(offset, Some(OverflowName::DropOldest)));
    }
    assert_eq!(bench.drain().await, ["1-1", "2", "3", "4"]);
    // One that would rather be cut off is, when nothing is left that gives way.
    let bench = Bench::new(DROP);
    bench.push(with(1, Some(OverflowName::Disconnect)));
    for offset in 2..=5 {
        bench.push(with(offset, Some(OverflowName::KeepLatest)));
        assert!(!bench.outbox().is_closing());
    }
    bench.push(with(6, None));
    bench.push(with(7, None));
    assert!(bench.outbox().is_closing());
}

#[tokio::test]
async fn what_was_taken_gives_way_to_nothing() {
    let bench = Bench::new(LATEST);
    let outbox = bench.outbox();
    for (offset, object) in [(1, "a"), (2, "b"), (3, "b")] {
        bench.push(delivery_of(offset, object));
    }
    let mut batch = Vec::new();
    outbox.next_batch(&mut batch, 1).await;
    bench.push(delivery_of(4, "a"));
    assert!([2, 3, 4].iter().all(|offset| outbox.waits(*offset)));
    bench.push(delivery_of(5, "a"));
    assert_eq!([1, 2, 3, 4, 5].map(|offset| outbox.waits(offset)), [false, false, true, true, true]);
    bench.push(delivery_of(6, "b"));
    assert_eq!([3, 4, 5, 6].map(|offset| outbox.waits(offset)), [false, true, true, true]);
    assert_eq!(bench.drain().await, ["2-3", "4", "5", "6"]);
}

/// Reads a batch, and checks that each offset is told once and in order. Returns how many were lost.
async fn read(outbox: &Outbox, bytes: usize, told: &mut u64) -> u64 {
    let mut batch = Vec::new();
    let mut lost = 0;
    if outbox.has_something() {
        outbox.next_batch(&mut batch, bytes).await;
    }
    for entry in batch {
        let (from, to) = match entry {
            Entry::Answer(_) => continue,
            Entry::Delivery(Delivery { is_ahead: true, offset, .. }) => {
                assert_eq!(offset, *told, "an alarm comes with the offset that the connection has come to");
                continue;
            }
            Entry::Delivery(delivery) => (delivery.offset, delivery.offset),
            Entry::Gap(gap) => {
                lost += if gap.reason == GapReason::Ahead { 0 } else { gap.count() };
                (gap.from, gap.to)
            }
        };
        assert_eq!(from, *told + 1);
        *told = to;
    }
    lost
}

/// Whatever comes and is lost, each of several connections is told every offset once and in order, and the bounds hold.
#[tokio::test]
async fn every_offset_is_told_once_and_the_bound_holds() {
    use rand::{Rng as _, SeedableRng as _};
    for seed in 0..300 {
        let mut random = rand::rngs::StdRng::seed_from_u64(seed);
        let frames = random.random_range(1..12);
        let bytes = if seed % 3 == 0 { 450 } else { 100_000 };
        let mut bench = Bench::new(Bounds { frames, bytes, ..LATEST });
        bench.connect();
        let mut offset = 0;
        let mut told = [0; 2];
        for _ in 0..300 {
            let connection = random.random_range(0..2);
            match random.random_range(0..12) {
                0 => bench.connections[connection].push_answer("{}"),
                1 => {
                    offset += 1;
                    bench.skip(offset);
                }
                2..4 => {
                    let bytes = random.random_range(1..600);
                    read(&bench.connections[connection], bytes, &mut told[connection]).await;
                }
                _ => {
                    offset += 1;
                    let overflow =
                        [None, Some(OverflowName::DropOldest)][usize::from(random.random_range(0..4) == 0)];
                    let one = match random.random_range(0..6) {
                        0 => alarm(offset),
                        object => delivery_of(offset, &object.to_string()),
                    };
                    bench.push(Delivery { overflow, ..one });
                }
            }
            assert!(bench.log.lock().count() <= frames, "seed {seed}");
        }
        for (connection, told) in told.iter_mut().enumerate() {
            while bench.connections[connection].has_something() {
                read(&bench.connections[connection], usize::MAX, told).await;
            }
            assert_eq!(*told, offset, "seed {seed}");
        }
        assert_eq!(bench.log.lock().count(), 0);
    }
}

#[tokio::test]
async fn an_alarm_comes_ahead_of_what_waits_and_offsets_stay() {
    let mut bench = Bench::new(Bounds { frames: 100, ..DROP });
    bench.connect();
    bench.outbox().push_answer("{}");
    bench.push_all(1..=3);
    assert_eq!(drain(&bench.connections[1]).await, ["1", "2", "3"]);
    bench.push(alarm(4));
    bench.push(delivery(5));
    bench.push(alarm(6));
    assert!((1..=6).all(|offset| bench.outbox().waits(offset)) && !bench.outbox().waits(7));
    let mut batch = Vec::new();
    bench.outbox().next_batch(&mut batch, 2 * ENTRY_BYTES + 40).await;
    assert_eq!(batch.iter().map(shown).collect::<Vec<_>>(), ["a", "0 ahead"]);
    assert!(!bench.outbox().waits(4) && bench.outbox().waits(6));
    // An alarm overtakes no answer, and nothing that comes before the answer.
    bench.outbox().push_answer("{}");
    bench.push(delivery(7));
    bench.push(alarm(8));
    let told = bench.drain().await;
    let (ahead, turn) = ("0 ahead", ["1", "2", "3", "4 was ahead", "5", "6 was ahead"]);
    assert_eq!((&*told[0], &told[1..7]), (ahead, &turn.map(str::to_owned)[..]));
    assert_eq!(told[7..], ["a", "6 ahead", "7", "8 was ahead"]);
    // The connection for which nothing waited got the first in its turn, under the same offset.
    let told = drain(&bench.connections[1]).await;
    assert_eq!(told, ["3 ahead", "3 ahead", "4!", "5", "6 was ahead", "7", "8 was ahead"]);
}

#[tokio::test]
async fn alarms_are_lost_last() {
    let bench = Bench::new(DROP);
    bench.push_all(1..=3);
    for (offset, dropped) in [(4, 1), (5, 2)] {
        bench.push(alarm(offset));
        assert_eq!(bench.dropped(), dropped);
    }
    bench.push(delivery(6));
    assert_eq!(bench.drain().await, ["0 ahead", "1-3", "4 was ahead", "5!", "6"]);
    for offset in 7..=11 {
        bench.push(alarm(offset));
    }
    assert_eq!(bench.drain().await, ["6 ahead", "7-8", "9!", "10!", "11!"]);
}

#[tokio::test]
async fn what_waits_counts_with_what_is_held_for_the_client() {
    let budget = Budget::new(&Config::default());
    let client = budget.client("car");
    let bounds = Bounds::of(10_000, 1 << 20);
    let bench = Bench::charged(bounds, client.hold_anyway(Kind::Outbox, 0));
    let outbox = bench.outbox();
    outbox.charge_to(&budget.connection(&client));
    let held = || (client.bytes(Kind::Answers), client.bytes(Kind::Outbox));
    // What is little is not counted.
    outbox.push_answer("{}");
    assert_eq!(held(), (0, 0));
    for offset in 1..=1_000 {
        outbox.push_answer("x".repeat(100));
        bench.push(delivery(offset));
    }
    let bytes = outbox.waiting().1 as u64;
    let (answers, others) = held();
    assert!(answers.abs_diff(1_001 * 196) < 8_192 && (answers + others).abs_diff(bytes) < 8_192);
    let mut batch = Vec::new();
    outbox.next_batch(&mut batch, usize::MAX).await;
    assert_eq!(held(), (0, 0));
    bench.push_all(1_001..=2_000);
    assert!(held().1 > 90_000);
    outbox.cut_off();
    assert_eq!(held(), (0, 0), "what is cut off gives back what it held");
}

/// A delivery whose event's deadline is over, or is far away.
fn with_deadline(delivery: Delivery, is_over: bool) -> Delivery {
    let after = if is_over { Duration::ZERO } else { Duration::from_secs(3_600) };
    let body = &delivery.body;
    let deadline = Some(body.received + after);
    let body =
        Body { is_alarm: body.is_alarm, deadline, ..Body::new("{}".into(), body.received, body.object) };
    Delivery { body: Arc::new(body), ..delivery }
}

#[tokio::test]
async fn what_is_too_late_is_one_gap() {
    let bench = Bench::new(Bounds { frames: 100, ..DROP });
    for (offset, is_over) in [(1, true), (2, true), (3, false), (4, true)] {
        bench.push(with_deadline(delivery(offset), is_over));
    }
    bench.push(delivery(5));
    let exit = Delivery { transition: Some(Transition::Exit), ..with_deadline(delivery(6), true) };
    bench.push(exit);
    assert_eq!(bench.drain().await, ["1-2", "3", "4-4", "5", "6"]);
    assert_eq!(bench.metrics.gaps.of(GapReason::Late).get(), 3);
    // Who has to know all that happened gets them.
    let bench = Bench::new(Bounds { frames: 100, ..DROP }.in_order());
    bench.push(with_deadline(delivery(1), true));
    assert_eq!(bench.drain().await, ["1"]);
}

#[tokio::test]
async fn an_alarm_that_is_too_late_ahead_of_its_turn_is_a_gap_in_its_turn() {
    let bench = Bench::new(Bounds { frames: 100, ..DROP });
    bench.push_all(1..=2);
    bench.push(with_deadline(alarm(3), true));
    bench.push(with_deadline(alarm(4), false));
    assert_eq!(bench.drain().await, ["0 ahead", "1", "2", "3-3", "4 was ahead"]);
    assert_eq!(bench.metrics.gaps.of(GapReason::Late).get(), 1);
}
