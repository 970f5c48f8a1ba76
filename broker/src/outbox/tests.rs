//! Tests of outboxes: the entries that wait, the lost ones, and the gaps that tell of them.

use super::*;
use crate::budget::Budget;
use crate::config::Config;
use crate::ingest::feature::object_of;
use crate::model::delivery::{Names, Reason};
use crate::model::event::Body;
use matcher::live::Cause;

const DROP: Bounds =
    Bounds { frames: 3, bytes: 10_000, answers: 2, answer_bytes: 10_000, overflow: OverflowName::DropOldest };

fn delivery(offset: u64) -> Delivery {
    delivery_of(offset, "any")
}

/// A delivery of an event of some object.
fn delivery_of(offset: u64, object: &str) -> Delivery {
    let feature = format!(r#"{{"id":"{object}"}}"#);
    let object = object_of(&feature).unwrap();
    let body = Arc::new(Body::new("{}".into(), Instant::now(), object));
    Delivery {
        offset,
        subscriptions: Names::One("\"s\"".into()),
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

/// The entries that wait, in short: offsets, with `!` for alarms, `from-to` for gaps and `a` for answers.
async fn drain(outbox: &Outbox) -> Vec<String> {
    let mut shown = Vec::new();
    let mut batch = Vec::new();
    while !outbox.state().is_empty() {
        assert_eq!(outbox.next_batch(&mut batch, 1).await, None);
        for entry in batch.drain(..) {
            shown.push(match entry {
                Entry::Answer(_) => "a".to_owned(),
                Entry::Delivery(delivery) if delivery.body.is_alarm => format!("{}!", delivery.offset),
                Entry::Delivery(delivery) => delivery.offset.to_string(),
                Entry::Gap(gap) => format!("{}-{}", gap.from, gap.to),
            });
        }
    }
    let state = outbox.state();
    assert_eq!((state.bytes, state.deliveries_count, state.answers_count), (0, 0, 0));
    shown
}

#[tokio::test]
async fn the_oldest_are_lost_and_one_gap_tells_of_them() {
    let outbox = Outbox::new(1, DROP);
    for offset in 1..=7 {
        outbox.push_delivery(delivery(offset));
    }
    assert_eq!(drain(&outbox).await, ["1-4", "5", "6", "7"]);
    // A new loss is a new gap.
    for offset in 8..=12 {
        outbox.push_delivery(delivery(offset));
    }
    assert_eq!(drain(&outbox).await, ["8-9", "10", "11", "12"]);
}

#[tokio::test]
async fn a_gap_stands_where_the_loss_is_and_answers_are_never_lost() {
    let outbox = Outbox::new(1, DROP);
    outbox.push_answer("{}");
    outbox.push_delivery(delivery(1));
    outbox.push_answer("{}");
    for offset in 2..=5 {
        outbox.push_delivery(delivery(offset));
    }
    assert_eq!(drain(&outbox).await, ["a", "1-2", "a", "3", "4", "5"]);
}

#[tokio::test]
async fn a_gap_that_is_written_already_is_not_extended() {
    let outbox = Outbox::new(1, DROP);
    for offset in 1..=5 {
        outbox.push_delivery(delivery(offset));
    }
    let mut batch = Vec::new();
    outbox.next_batch(&mut batch, 1).await;
    assert!(matches!(batch[..], [Entry::Gap(Gap { from: 1, to: 2, .. })]));
    outbox.push_delivery(delivery(6));
    assert_eq!(drain(&outbox).await, ["3-3", "4", "5", "6"]);
}

#[tokio::test]
async fn bytes_are_bounded_and_one_delivery_always_fits() {
    let outbox = Outbox::new(1, Bounds { bytes: 250, ..DROP });
    for offset in 1..=3 {
        outbox.push_delivery(delivery(offset));
    }
    assert_eq!(drain(&outbox).await, ["1-2", "3"]);
    let outbox = Outbox::new(1, Bounds { bytes: 1, ..DROP });
    assert_eq!(outbox.push_delivery(delivery(1)), Pushed::default());
    assert_eq!(drain(&outbox).await, ["1"]);
}

#[tokio::test]
async fn who_would_rather_be_cut_off_is_cut_off() {
    let outbox = Outbox::new(1, DROP);
    outbox.push_delivery(Delivery { overflow: Some(OverflowName::Disconnect), ..delivery(1) });
    for offset in 2..=5 {
        outbox.push_delivery(delivery(offset));
    }
    let mut batch = Vec::new();
    let close = outbox.next_batch(&mut batch, 1).await.unwrap();
    assert_eq!((close.code, batch.len()), (1013, 0));
    assert!(outbox.push_delivery(delivery(6)).dropped == 0);
    // Who would not, stays although that is the broker's default.
    let outbox = Outbox::new(1, Bounds { overflow: OverflowName::Disconnect, ..DROP });
    for offset in 1..=4 {
        outbox.push_delivery(Delivery { overflow: Some(OverflowName::DropOldest), ..delivery(offset) });
    }
    assert_eq!(drain(&outbox).await, ["1-1", "2", "3", "4"]);
}

#[tokio::test]
async fn what_waits_is_written_before_the_end() {
    let outbox = Outbox::new(1, DROP);
    outbox.push_delivery(delivery(1));
    outbox.close(1001, "first");
    outbox.close(1000, "second");
    outbox.push_delivery(delivery(2));
    assert_eq!(drain(&outbox).await, ["1"]);
    let close = outbox.next_batch(&mut Vec::new(), 1).await.unwrap();
    assert_eq!(close, Close { code: 1001, reason: "first" });
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
    let outbox = Arc::new(Outbox::new(1, DROP));
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
    assert!(outbox.push_delivery(delivery(1)).sleeps);
    assert!(!outbox.push_delivery(delivery(2)).sleeps);
    outbox.wake();
    assert_eq!(writer.await.unwrap(), 2);
}

#[tokio::test]
async fn what_the_writer_takes_is_noted_and_what_is_lost_is_not() {
    let outbox = Outbox::new(1, DROP);
    let recipient = Recipient::new("car".into());
    outbox.note_for(Arc::clone(&recipient));
    let shown = |offsets: [u64; 7]| {
        offsets.map(|offset| match (outbox.waits(offset), recipient.written().contains(offset)) {
            (true, false) => 'w',
            (false, true) => 't',
            (false, false) => '-',
            (true, true) => '?',
        })
    };
    for offset in 1..=5 {
        outbox.push_delivery(delivery(offset));
    }
    outbox.push_answer("{}");
    assert_eq!(shown([1, 2, 3, 4, 5, 6, 7]), ['-', '-', 'w', 'w', 'w', '-', '-']);
    let mut batch = Vec::new();
    // The gap, and the first of them.
    outbox.next_batch(&mut batch, 1).await;
    outbox.next_batch(&mut batch, 1).await;
    assert_eq!(shown([1, 2, 3, 4, 5, 6, 7]), ['-', '-', 't', 'w', 'w', '-', '-']);
    for offset in 6..=7 {
        outbox.push_delivery(delivery(offset));
    }
    outbox.next_batch(&mut batch, 10_000).await;
    assert_eq!(shown([1, 2, 3, 4, 5, 6, 7]), ['-', '-', 't', '-', 't', 't', 't']);
}

const LATEST: Bounds = Bounds { overflow: OverflowName::KeepLatest, ..DROP };

/// Puts a delivery in for each letter, the object that it is of, and says what then waits.
async fn shown_after(bounds: Bounds, objects: &str) -> Vec<String> {
    let outbox = Outbox::new(1, bounds);
    for (offset, object) in (1..).zip(objects.chars()) {
        outbox.push_delivery(delivery_of(offset, &object.to_string()));
    }
    drain(&outbox).await
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
    // Answers stay where they are, and gaps grow over them.
    let outbox = Outbox::new(1, LATEST);
    for (offset, object) in [(1, "a"), (2, "b"), (3, "c"), (4, "b"), (5, "c"), (6, "a")] {
        outbox.push_delivery(delivery_of(offset, object));
        outbox.push_answer("{}");
    }
    assert_eq!(drain(&outbox).await, ["1-3", "a", "a", "a", "4", "a", "5", "a", "6", "a"]);
}

#[tokio::test]
async fn what_did_not_enter_is_told_and_counts_among_what_is_lost() {
    let outbox = Outbox::new(1, DROP);
    for offset in 1..=40 {
        if offset % 2 == 0 {
            outbox.push_gap(Gap { from: offset, to: offset, reason: Reason::Members });
        } else {
            outbox.push_delivery(delivery(offset));
        }
    }
    assert_eq!(drain(&outbox).await, ["1-34", "35", "36-36", "37", "38-38", "39", "40-40"]);
}

#[tokio::test]
async fn whatever_does_not_enter_one_after_the_other_is_one_gap() {
    let outbox = Outbox::new(1, DROP);
    outbox.push_delivery(delivery(1));
    for offset in 2..=1_000 {
        outbox.push_gap(Gap { from: offset, to: offset, reason: Reason::Members });
        if offset == 500 {
            outbox.push_answer("{}");
        }
    }
    assert_eq!(outbox.state().entries_count(), 3);
    outbox.push_gap(Gap { from: 1_002, to: 1_002, reason: Reason::Members });
    assert_eq!(drain(&outbox).await, ["1", "2-1000", "a", "1002-1002"]);
}

#[tokio::test]
async fn a_newer_one_for_other_subscriptions_is_another() {
    let of =
        |offset, name: &str| Delivery { subscriptions: Names::One(name.into()), ..delivery_of(offset, "a") };
    let outbox = Outbox::new(1, LATEST);
    for one in [delivery_of(1, "b"), of(2, "\"t\""), of(3, "\"u\""), of(4, "\"u\"")] {
        outbox.push_delivery(one);
    }
    assert_eq!(drain(&outbox).await, ["1", "2", "3-3", "4"]);
}

#[tokio::test]
async fn only_who_wants_it_keeps_the_latest() {
    let with = |offset, overflow| Delivery { overflow, ..delivery_of(offset, "a") };
    // Of the same object, but of subscriptions that want each as long as may be.
    let outbox = Outbox::new(1, LATEST);
    outbox.push_delivery(delivery_of(1, "b"));
    for offset in 2..=4 {
        outbox.push_delivery(with(offset, Some(OverflowName::DropOldest)));
    }
    assert_eq!(drain(&outbox).await, ["1-1", "2", "3", "4"]);
    // One that would rather be cut off is, when nothing is left that gives way.
    let outbox = Outbox::new(1, DROP);
    outbox.push_delivery(with(1, Some(OverflowName::Disconnect)));
    for offset in 2..=4 {
        assert!(!outbox.push_delivery(with(offset, Some(OverflowName::KeepLatest))).cut_off);
    }
    assert!(!outbox.push_delivery(with(5, Some(OverflowName::KeepLatest))).cut_off);
    outbox.push_delivery(with(6, None));
    assert!(outbox.push_delivery(with(7, None)).cut_off);
}

#[tokio::test]
async fn what_was_taken_gives_way_to_nothing() {
    let outbox = Outbox::new(1, LATEST);
    for (offset, object) in [(1, "a"), (2, "b"), (3, "b")] {
        outbox.push_delivery(delivery_of(offset, object));
    }
    let mut batch = Vec::new();
    outbox.next_batch(&mut batch, 1).await;
    outbox.push_delivery(delivery_of(4, "a"));
    assert!([2, 3, 4].iter().all(|offset| outbox.waits(*offset)));
    outbox.push_delivery(delivery_of(5, "a"));
    assert_eq!([1, 2, 3, 4, 5].map(|offset| outbox.waits(offset)), [false, false, true, true, true]);
    outbox.push_delivery(delivery_of(6, "b"));
    assert_eq!([3, 4, 5, 6].map(|offset| outbox.waits(offset)), [false, true, true, true]);
    assert_eq!(drain(&outbox).await, ["2-3", "4", "5", "6"]);
    let state = outbox.state();
    assert!(state.is_empty());
}

/// Any order of deliveries, answers and reads: what is told is each offset once, in order, and there are no more entries
/// than deliveries, gaps between them, and answers.
#[tokio::test]
async fn every_offset_is_told_once_and_the_bound_holds() {
    use rand::{Rng as _, SeedableRng as _};
    let mut random = rand::rngs::StdRng::seed_from_u64(11);
    for round in 0..300 {
        let frames = random.random_range(1..9);
        let bytes = if round % 3 == 0 { 450 } else { 100_000 };
        let outbox = Outbox::new(1, Bounds { frames, bytes, ..LATEST });
        let (mut offset, mut told) = (0, 0);
        let mut latest = std::collections::HashMap::new();
        for _ in 0..400 {
            match random.random_range(0..12) {
                0 => outbox.push_answer("{}"),
                1 => {
                    let mut batch = Vec::new();
                    outbox.push_answer("{}");
                    outbox.next_batch(&mut batch, random.random_range(1..600)).await;
                    for entry in &batch {
                        let (from, to) = match entry {
                            Entry::Answer(_) => continue,
                            Entry::Delivery(delivery) => (delivery.offset, delivery.offset),
                            Entry::Gap(gap) => (gap.from, gap.to),
                        };
                        assert_eq!(from, told + 1, "round {round}");
                        told = to;
                    }
                }
                _ => {
                    offset += 1;
                    let object = random.random_range(0..5);
                    let overflow =
                        [None, Some(OverflowName::DropOldest)][usize::from(random.random_range(0..4) == 0)];
                    let one = delivery_of(offset, &object.to_string());
                    outbox.push_delivery(Delivery { overflow, ..one });
                    latest.insert(object, offset);
                }
            }
            let state = outbox.state();
            assert!(state.deliveries_count <= frames, "round {round}");
            assert!(state.entries_count() <= 2 * state.deliveries_count + 1 + state.answers_count);
        }
        drain(&outbox).await;
    }
}

#[tokio::test]
async fn what_is_offered_is_never_lost_and_asked_for_again() {
    let outbox = Outbox::new(1, DROP);
    let taken = |outbox: &Outbox, offset| {
        matches!(outbox.offer(Entry::Delivery(delivery(offset))), Offered::Taken { .. })
    };
    assert!((1..=3).all(|offset| taken(&outbox, offset)) && !taken(&outbox, 4));
    assert!(!outbox.wants_more());
    outbox.next_batch(&mut Vec::new(), 1).await;
    assert!(!outbox.wants_more());
    outbox.next_batch(&mut Vec::new(), 1).await;
    assert!(outbox.wants_more() && !outbox.wants_more());
    assert!(taken(&outbox, 4));
    assert_eq!(drain(&outbox).await, ["3", "4"]);
    assert!(!outbox.wants_more());
    assert!(outbox.cut_off() && !outbox.cut_off());
    assert!(!taken(&outbox, 5));
    assert_eq!(outbox.next_batch(&mut Vec::new(), 1).await, Some(TOO_SLOW));
}

#[tokio::test]
async fn alarms_overtake_and_offsets_are_told_in_the_order_of_writing() {
    let outbox = Outbox::new(1, Bounds { frames: 100, ..DROP });
    outbox.push_answer("{}");
    for offset in 5..=7 {
        outbox.push_delivery(delivery(offset));
    }
    outbox.push_delivery(alarm(8));
    outbox.push_delivery(delivery(9));
    outbox.push_delivery(alarm(10));
    assert!((5..=10).all(|offset| outbox.waits(offset)) && !outbox.waits(11) && !outbox.waits(4));
    let mut batch = Vec::new();
    outbox.next_batch(&mut batch, 2 * ENTRY_BYTES + 40).await;
    assert!(
        matches!(&batch[..], [Entry::Answer(_), Entry::Delivery(Delivery { offset: 5, .. })]),
        "{batch:?}"
    );
    assert!(!outbox.waits(8) && outbox.waits(5), "it is the alarm that was taken");
    // Answers are overtaken by nobody, and neither is what stands before them.
    outbox.push_answer("{}");
    outbox.push_delivery(delivery(11));
    outbox.push_delivery(alarm(12));
    assert_eq!(drain(&outbox).await, ["6!", "7", "8", "9", "10", "a", "11!", "12"]);
    outbox.push_delivery(delivery(13));
    outbox.push_delivery(alarm(14));
    assert_eq!(drain(&outbox).await, ["13!", "14"]);
}

#[tokio::test]
async fn alarms_are_lost_last() {
    let outbox = Outbox::new(1, DROP);
    for offset in 1..=3 {
        outbox.push_delivery(delivery(offset));
    }
    // Those that it overtakes are lost for it, and told behind it.
    assert_eq!(outbox.push_delivery(alarm(4)).dropped, 1);
    assert_eq!(outbox.push_delivery(alarm(5)).dropped, 1);
    assert_eq!(outbox.push_delivery(delivery(6)).dropped, 1);
    assert_eq!(drain(&outbox).await, ["1!", "2!", "3-5", "6"]);
    for offset in 7..=11 {
        outbox.push_delivery(alarm(offset));
    }
    assert_eq!(drain(&outbox).await, ["7-8", "9!", "10!", "11!"]);
}

/// Whatever comes and is lost, the offsets that are told have no holes, and what was not lost is told.
#[tokio::test]
async fn offsets_that_are_told_have_no_holes() {
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};
    for seed in 0..300 {
        let mut random = StdRng::seed_from_u64(seed);
        let outbox = Outbox::new(1, Bounds { frames: random.random_range(1..12), ..DROP });
        let (mut offset, mut told, mut lost, mut told_lost, mut alarms, mut told_alarms) = (0, 0, 0, 0, 0, 0);
        let mut batch = Vec::new();
        for _ in 0..200 {
            match random.random_range(0..10) {
                0 => outbox.push_answer("{}"),
                1 => {
                    offset += 1;
                    outbox.push_gap(Gap { from: offset, to: offset, reason: Reason::Members });
                    lost += 1;
                }
                2 | 3 => {
                    let count = random.random_range(1..400);
                    if !outbox.state().is_empty() {
                        outbox.next_batch(&mut batch, count).await;
                    }
                }
                _ => {
                    offset += 1;
                    let overflow = random.random_bool(0.3).then_some(OverflowName::KeepLatest);
                    let is_alarm = random.random_bool(0.2);
                    let delivery = if is_alarm {
                        alarm(offset)
                    } else {
                        delivery_of(offset, ["a", "b", "c"][random.random_range(0..3)])
                    };
                    lost += outbox.push_delivery(Delivery { overflow, ..delivery }).dropped;
                    alarms += u64::from(is_alarm);
                }
            }
            if random.random_bool(0.02) && !outbox.state().is_empty() {
                outbox.next_batch(&mut batch, usize::MAX).await;
            }
            for entry in batch.drain(..) {
                let (from, to) = match entry {
                    Entry::Answer(_) => continue,
                    Entry::Delivery(delivery) => {
                        told_alarms += u64::from(delivery.body.is_alarm);
                        (delivery.offset, delivery.offset)
                    }
                    Entry::Gap(gap) => {
                        told_lost += gap.count();
                        (gap.from, gap.to)
                    }
                };
                assert_eq!(from, told + 1, "seed {seed}");
                told = to;
            }
        }
        if !outbox.state().is_empty() {
            outbox.next_batch(&mut batch, usize::MAX).await;
        }
        for entry in batch {
            match entry {
                Entry::Answer(_) => {}
                Entry::Delivery(delivery) => {
                    assert_eq!(delivery.offset, told + 1, "seed {seed}");
                    told_alarms += u64::from(delivery.body.is_alarm);
                    told += 1;
                }
                Entry::Gap(gap) => {
                    assert_eq!(gap.from, told + 1, "seed {seed}");
                    told_lost += gap.count();
                    told = gap.to;
                }
            }
        }
        assert_eq!((told, told_lost), (offset, lost), "seed {seed}");
        assert!(told_alarms <= alarms);
    }
}

#[tokio::test]
async fn what_waits_counts_with_what_is_held_for_the_client() {
    let budget = Budget::new(&Config::default());
    let client = budget.client("car");
    let outbox = Outbox::new(1, Bounds::of(10_000, 1 << 20));
    outbox.charge_to(&budget.connection(&client));
    let held = || (client.bytes(Kind::Answers), client.bytes(Kind::Outbox));
    // What is little is not counted.
    outbox.push_answer("{}");
    assert_eq!(held(), (0, 0));
    for offset in 1..=1_000 {
        outbox.push_answer("x".repeat(100));
        outbox.push_delivery(delivery(offset));
    }
    let bytes = outbox.waiting().1 as u64;
    let (answers, others) = held();
    assert!(answers.abs_diff(1_001 * 196) < 8_192 && (answers + others).abs_diff(bytes) < 8_192);
    let mut batch = Vec::new();
    outbox.next_batch(&mut batch, usize::MAX).await;
    assert_eq!(held(), (0, 0));
    for offset in 1_001..=2_000 {
        outbox.push_delivery(delivery(offset));
    }
    assert!(held().1 > 90_000);
    outbox.cut_off();
    assert_eq!(held(), (0, 0), "what is cut off gives back what it held");
}
