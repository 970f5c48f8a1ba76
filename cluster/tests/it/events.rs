//! Streams of events, step by step: what is appended, what is read, and which commands wait.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use cluster::events::{
    Action, Attach, Claim, ClaimError, Decision, Done, EVENT_BYTES_MAX, Fault, Frontier, GROUP_BYTES,
    Outcome, Publisher, PushError, Reader, Stream, Tailer, Taken, Timing, WAITING_BYTES_MAX, Writer,
};
use cluster::log::{Append, AppendError, Appended, Identity, Sent, Stored};
use cluster::record::{Body, Incarnation, ROWS_MAX, Record, encode};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

const INCARNATION: Incarnation = Incarnation { term: 1, nonce: 7 };
const START: Duration = Duration::from_secs(1_000);
const A: Stream = Stream(0);
const B: Stream = Stream(1);

fn after(ms: u64) -> Duration {
    START + Duration::from_millis(ms)
}

fn writer() -> Writer {
    Writer::new(INCARNATION, Timing::default())
}

fn push(writer: &mut Writer, publish: u64, bytes: usize) {
    writer.push(START, publish, Bytes::from(vec![7; bytes])).unwrap();
}

/// The number of a record and the sizes of its events.
fn sizes(append: &Append) -> (u64, Vec<usize>) {
    let record = Record::decode(&append.record).unwrap();
    let Body::Events(events) = record.body().unwrap() else { panic!("{record:?}") };
    (record.header.number, events.iter().map(|event| event.len()).collect())
}

fn is_marker(append: &Append) -> bool {
    Record::decode(&append.record).unwrap().body() == Ok(Body::Marker)
}

fn at(sequence: u64) -> Result<Appended, AppendError> {
    Ok(Appended { sequence, is_duplicate: false })
}

fn done(publishes: &[u64], outcome: Outcome) -> Option<Done> {
    Some(Done::Events { publishes: publishes.to_vec(), outcome })
}

#[test]
fn what_comes_while_an_append_is_under_way_goes_into_the_next() {
    let mut writer = writer();
    assert_eq!(writer.poll(START), None);
    push(&mut writer, 1, 10);
    let first = writer.poll(START).unwrap();
    assert_eq!((sizes(&first), first.expected), ((1, vec![10]), None));
    push(&mut writer, 2, 20);
    push(&mut writer, 2, 30);
    assert_eq!((writer.poll(START), writer.take_done()), (None, None));
    writer.answer(START, at(5));
    assert_eq!(writer.take_done(), done(&[1], Outcome::Acknowledged));
    assert_eq!(sizes(&writer.poll(START).unwrap()), (2, vec![20, 30]));
    writer.answer(START, at(9));
    assert_eq!(writer.take_done(), done(&[2, 2], Outcome::Acknowledged));
    assert!(writer.is_idle());
}

#[test]
fn a_record_has_256_kib_or_4096_events_or_one_that_is_larger() {
    let mut writer = writer();
    push(&mut writer, 1, GROUP_BYTES - 1);
    push(&mut writer, 2, 1);
    push(&mut writer, 3, 1);
    push(&mut writer, 4, EVENT_BYTES_MAX);
    (0..ROWS_MAX as u64 + 1).for_each(|publish| push(&mut writer, publish, 0));
    let mut next = || {
        let append = writer.poll(START).unwrap();
        writer.answer(START, at(1));
        sizes(&append).1
    };
    assert_eq!(next(), [GROUP_BYTES - 1, 1]);
    assert_eq!(next(), [1]);
    assert_eq!(next(), [EVENT_BYTES_MAX]);
    assert_eq!(next(), [0; ROWS_MAX]);
    assert_eq!(next(), [0]);
}

#[test]
fn no_more_is_taken_than_waits_at_most_nor_while_the_log_is_slow() {
    let mut writer = writer();
    let too_large = writer.push(START, 1, Bytes::from(vec![0; EVENT_BYTES_MAX + 1]));
    assert_eq!(too_large, Err(PushError::TooLarge { bytes: EVENT_BYTES_MAX + 1 }));
    let event = Bytes::from(vec![0; EVENT_BYTES_MAX]);
    let fits = WAITING_BYTES_MAX / (EVENT_BYTES_MAX + 100);
    (0..fits as u64).for_each(|publish| writer.push(START, publish, event.clone()).unwrap());
    let busy = writer.push(START, 99, event.clone());
    assert!(matches!(busy, Err(PushError::Busy { waiting_bytes }) if waiting_bytes > EVENT_BYTES_MAX * fits));
    writer.poll(START).unwrap();
    assert_eq!(writer.push(after(1_000), 99, event.clone()), Ok(()), "one is under way");
    let busy = writer.push(after(1_001), 100, Bytes::new());
    assert!(matches!(busy, Err(PushError::Busy { .. })), "{busy:?}");
    writer.answer(after(1_002), at(1));
    assert_eq!(writer.push(after(1_002), 100, Bytes::new()), Ok(()));
}

#[test]
fn a_record_without_an_answer_is_appended_again_and_given_up_after_a_minute() {
    let mut writer = writer();
    push(&mut writer, 1, 10);
    let first = writer.poll(START).unwrap();
    push(&mut writer, 2, 10);
    let failures = [
        AppendError::NoAnswer,
        AppendError::Unavailable { why: "away".to_owned() },
        AppendError::WrongLast { last: None },
    ];
    let mut now = 0;
    for failure in failures.into_iter().cycle() {
        writer.answer(after(now), Err(failure));
        assert_eq!(writer.poll(after(now + 99)), None);
        now += 1_000;
        match writer.poll(after(now)) {
            Some(again) if now < 60_000 => assert_eq!(again, first),
            outcome => {
                assert_eq!((outcome, now), (None, 60_000));
                break;
            }
        }
    }
    assert_eq!(writer.take_done(), done(&[1], Outcome::Unknown));
    assert_eq!(writer.take_done(), done(&[2], Outcome::Refused));
    assert!(writer.is_idle());
    writer.push(after(now), 3, Bytes::new()).unwrap();
    let next = writer.poll(after(now)).unwrap();
    assert_eq!(sizes(&next), (2, vec![0]));
    writer.answer(after(now), Err(AppendError::TooLarge { bytes: 1, bytes_max: 0 }));
    assert_eq!(writer.take_done(), done(&[3], Outcome::Refused));
}

/// A record is not given up before its append is answered, so that the answer is not taken for the next record's.
#[test]
fn an_answer_that_is_late_is_that_of_its_record() {
    let mut writer = writer();
    push(&mut writer, 1, 10);
    writer.poll(START).unwrap();
    assert_eq!((writer.poll(after(61_000)), writer.take_done()), (None, None));
    writer.answer(after(61_000), at(1));
    assert_eq!(writer.take_done(), done(&[1], Outcome::Acknowledged));
    writer.answer(after(61_000), at(2));
    assert_eq!(writer.take_done(), None, "nothing was asked");
}

#[test]
fn a_marker_goes_ahead_and_is_begun_after_it_was_asked_for() {
    let mut writer = writer();
    push(&mut writer, 1, 10);
    writer.mark();
    writer.mark();
    let marker = writer.poll(START).unwrap();
    assert!(is_marker(&marker));
    writer.mark();
    writer.answer(START, at(3));
    let crc = crc32fast::hash(&marker.record);
    let identity = Identity { sequence: 3, time_us: None, crc };
    assert_eq!(writer.take_done(), Some(Done::Marker(Some(identity))));
    let next = writer.poll(START).unwrap();
    assert!(
        is_marker(&next) && next.id != marker.id,
        "the one under way may be in the log before it was asked for"
    );
    writer.answer(START, Err(AppendError::NoAnswer));
    assert_eq!(writer.poll(after(60_000)), None);
    assert_eq!(writer.take_done(), Some(Done::Marker(None)));
}

#[test]
fn a_publish_is_answered_when_all_its_streams_have_it() {
    let mut publisher = Publisher::new(INCARNATION, Timing::default());
    let events =
        |streams: &[Stream]| streams.iter().map(|stream| (*stream, Bytes::new())).collect::<Vec<_>>();
    let first = publisher.publish(START, events(&[A, B, A])).unwrap();
    let (to_a, append) = publisher.poll(START).unwrap();
    assert_eq!((to_a, sizes(&append).1.len()), (A, 2));
    let second = publisher.publish(START, events(&[A, B])).unwrap();
    let nothing = publisher.publish(START, Vec::new()).unwrap();
    publisher.answer(START, A, at(1));
    assert_eq!(publisher.take_outcome(), Some((nothing, Outcome::Acknowledged)));
    assert_eq!(publisher.take_outcome(), None);
    let mut asked = Vec::new();
    while let Some((stream, append)) = publisher.poll(START) {
        asked.push((stream, sizes(&append).1.len()));
    }
    assert_eq!(asked, [(A, 1), (B, 2)]);
    publisher.answer(START, B, at(1));
    assert_eq!(publisher.take_outcome(), Some((first, Outcome::Acknowledged)));
    // What is in one stream, and perhaps not in the other, is unknown.
    publisher.answer(START, A, Err(AppendError::TooLarge { bytes: 1, bytes_max: 0 }));
    assert_eq!(publisher.take_outcome(), Some((second, Outcome::Unknown)));
    assert_eq!(publisher.take_outcome(), None);
}

#[test]
fn a_publish_is_taken_as_a_whole_or_not() {
    let mut publisher = Publisher::new(INCARNATION, Timing::default());
    publisher.publish(START, vec![(B, Bytes::new())]).unwrap();
    publisher.poll(START).unwrap();
    let refused = publisher.publish(after(1_001), vec![(A, Bytes::new()), (B, Bytes::new())]);
    assert!(matches!(refused, Err(PushError::Busy { .. })), "{refused:?}");
    assert_eq!(publisher.poll(after(1_001)), None, "nothing of it is in the other stream");
    let half = Bytes::from(vec![0; EVENT_BYTES_MAX]);
    let many = vec![(A, half); WAITING_BYTES_MAX / EVENT_BYTES_MAX + 1];
    assert!(matches!(publisher.publish(START, many), Err(PushError::Busy { waiting_bytes: 0 })));
    publisher.mark(A);
    let (stream, append) = publisher.poll(START).unwrap();
    assert!(stream == A && is_marker(&append));
    publisher.answer(START, A, at(4));
    let marker = publisher.take_marker().unwrap();
    assert_eq!((marker.0, marker.1.unwrap().sequence), (A, 4));
}

proptest! {
    /// Whatever the log answers: what is acknowledged is in it once, in the order of the pushes, and no record is larger than it may be.
    #[test]
    fn events_are_in_the_log_once_and_in_order(steps in vec((any::<u8>(), 0..100_000_usize), 1..200)) {
        let mut writer = writer();
        let (mut now, mut pushed, mut log, mut answered) = (0, 0, Vec::<Append>::new(), Vec::new());
        let mut asked = None;
        for (step, bytes) in steps {
            now += u64::from(step) * 4;
            match step % 4 {
                0 | 1 => pushed += u64::from(writer.push(after(now), pushed, Bytes::from(vec![7; bytes])).is_ok()),
                _ => asked = asked.or_else(|| writer.poll(after(now))),
            }
            let Some(append) = asked.take_if(|_| step % 3 == 0) else { continue };
            let is_lost = bytes % 5 == 0;
            let place = log.iter().position(|known| known.id == append.id);
            if !is_lost && place.is_none() {
                log.push(append);
            }
            let has_answer = !is_lost && bytes % 3 > 0;
            let sequence = place.unwrap_or(log.len()) as u64;
            writer.answer(after(now), if has_answer { at(sequence) } else { Err(AppendError::NoAnswer) });
            while let Some(Done::Events { publishes, outcome }) = writer.take_done() {
                prop_assert_eq!(outcome, Outcome::Acknowledged);
                answered.extend(publishes);
            }
        }
        prop_assert_eq!(&answered, &(0..answered.len() as u64).collect::<Vec<_>>());
        let records: Vec<_> = log.iter().map(sizes).collect();
        prop_assert!(records.iter().map(|(number, _)| *number).eq(1..=records.len() as u64));
        let is_small = |sizes: &Vec<usize>| sizes.len() == 1 || sizes.iter().sum::<usize>() <= GROUP_BYTES;
        prop_assert!(records.iter().all(|(_, sizes)| is_small(sizes)));
        let in_log = records.iter().map(|(_, sizes)| sizes.len()).sum::<usize>();
        prop_assert!((answered.len()..=usize::try_from(pushed).unwrap()).contains(&in_log));
    }
}

/// The record at a sequence, in one version of a log.
fn stored(sequence: u64, version: u8) -> Stored {
    let event = [version];
    let record = encode(INCARNATION, sequence, 0, &Body::Events(vec![&event])).unwrap();
    Stored { sequence, time_us: 0, record }
}

fn sent(nth: u64, pending: u64, stored: Stored) -> Sent {
    Sent::Record { nth, pending, stored }
}

/// A tailer that has read up to the record 10, and its attachment.
fn tailer() -> (Tailer, u64) {
    let mut tailer = Tailer::new(10, START, Timing::default());
    let mut attachments = 0;
    assert_eq!(tailer.poll(START, &mut attachments), Some(Attach { attachment: 1, from: 10 }));
    assert_eq!(tailer.poll(START, &mut attachments), None);
    let first = sent(1, 0, stored(10, 0));
    assert_eq!(sequence(tailer.take(START, 1, &first)), Some(10));
    (tailer, attachments)
}

#[track_caller]
fn sequence(taken: Result<Taken<'_>, Fault>) -> Option<u64> {
    match taken.unwrap() {
        Taken::Nothing => None,
        Taken::Record { sequence, dropped, .. } => {
            assert_eq!(dropped, None);
            Some(sequence)
        }
    }
}

#[test]
fn records_are_read_in_order_and_those_that_come_again_are_passed_over() {
    let (mut tailer, _) = tailer();
    for (nth, at, wanted) in [(2, 11, Some(11)), (2, 11, None), (1, 10, None), (3, 12, Some(12))] {
        assert_eq!(sequence(tailer.take(START, 1, &sent(nth, 0, stored(at, 0)))), wanted);
    }
    assert_eq!(sequence(tailer.take(START, 2, &sent(4, 0, stored(13, 0)))), None, "no attachment of ours");
    assert_eq!(tailer.last(), 12);
}

#[test]
fn what_the_log_dropped_is_told_and_what_is_lost_on_the_way_is_asked_for_again() {
    let (mut tailer, mut attachments) = tailer();
    // The attachment has sent one more.
    assert_eq!(sequence(tailer.take(START, 1, &sent(3, 0, stored(12, 0)))), None);
    assert_eq!(sequence(tailer.take(START, 1, &sent(4, 0, stored(13, 0)))), None, "it is over");
    let attach = tailer.poll(START, &mut attachments);
    assert_eq!(attach, Some(Attach { attachment: 2, from: 10 }));
    assert_eq!(sequence(tailer.take(START, 2, &sent(1, 1, stored(10, 0)))), None);
    // It has sent all, and records are missing.
    let dropped = sent(2, 0, stored(15, 0));
    let Ok(Taken::Record { sequence: 15, dropped: Some(dropped), .. }) = tailer.take(START, 2, &dropped)
    else {
        panic!("{tailer:?}")
    };
    assert_eq!(dropped, 11..15);
    assert_eq!(sequence(tailer.take(START, 2, &Sent::Idle { nth: 3, last: 16 })), None);
    assert!(tailer.poll(START, &mut attachments).is_some(), "the last record is missing");
}

#[test]
fn another_record_at_the_last_place_means_that_the_log_went_back() {
    let (mut tailer, mut attachments) = tailer();
    tailer.failed(START, 1);
    assert_eq!(tailer.poll(after(99), &mut attachments), None);
    assert_eq!(tailer.poll(after(100), &mut attachments), Some(Attach { attachment: 2, from: 10 }));
    tailer.failed(after(100), 1);
    assert_eq!(tailer.poll(after(1_000), &mut attachments), None, "it was another attachment that failed");
    let fault = tailer.take(after(100), 2, &sent(1, 0, stored(10, 1))).unwrap_err();
    assert_eq!(fault, Fault::WentBack { sequence: 10 });
    assert_eq!(fault.to_string(), "the log went back: record 10 is another one or gone");
}

#[test]
fn a_last_record_before_ours_means_after_a_while_that_the_log_went_back() {
    let (mut tailer, _) = tailer();
    let idle = |last| Sent::Idle { nth: 1, last };
    assert_eq!(sequence(tailer.take(after(0), 1, &idle(9))), None);
    assert_eq!(sequence(tailer.take(after(14_000), 1, &idle(9))), None);
    // It was a replica that is behind.
    assert_eq!(sequence(tailer.take(after(14_500), 1, &idle(10))), None);
    assert_eq!(tailer.current_at(), Some(after(14_500)));
    assert_eq!(sequence(tailer.take(after(15_000), 1, &idle(9))), None);
    assert_eq!(sequence(tailer.take(after(29_999), 1, &idle(9))), None);
    assert_eq!(tailer.current_at(), Some(after(14_500)), "what it says is old");
    let fault = tailer.take(after(30_000), 1, &idle(9)).unwrap_err();
    assert_eq!(fault, Fault::WentBack { sequence: 10 });
}

#[test]
fn an_attachment_that_is_silent_is_made_anew() {
    let (mut tailer, mut attachments) = tailer();
    assert_eq!(sequence(tailer.take(after(3_000), 1, &Sent::Idle { nth: 1, last: 10 })), None);
    assert_eq!(tailer.poll(after(7_999), &mut attachments), None);
    assert_eq!(tailer.poll(after(8_000), &mut attachments), Some(Attach { attachment: 2, from: 10 }));
    assert_eq!(sequence(tailer.take(after(8_000), 1, &sent(2, 0, stored(11, 0)))), None);
    assert_eq!(tailer.poll(after(12_999), &mut attachments), None);
    assert_eq!(tailer.poll(after(13_000), &mut attachments), Some(Attach { attachment: 3, from: 10 }));
}

#[test]
fn a_record_that_cannot_be_read_is_a_fault() {
    let check = |record: Bytes, why: &str| {
        let (mut tailer, _) = tailer();
        let message = sent(2, 0, Stored { record, ..stored(11, 0) });
        let fault = tailer.take(START, 1, &message).unwrap_err();
        assert!(fault.to_string().contains(why), "{fault}");
    };
    let mut damaged = stored(11, 0).record.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    check(damaged.into(), "record 11: a record's CRC is");
    let rows = encode(INCARNATION, 1, 0, &Body::Rows(vec![b"row"])).unwrap();
    check(rows, "record 11: byte 1 of a record's header is 1");
}

proptest! {
    /// Whatever an attachment does: each record is read once, in order, and the reader reports what the log has dropped, and nothing else, as lost.
    #[test]
    fn each_record_is_read_once_or_told_to_be_dropped(steps in vec(any::<u8>(), 1..300)) {
        let mut tailer = Tailer::new(1, START, Timing::default());
        let (mut attachments, mut now, mut last, mut first) = (0, 0, 0_u64, 1_u64);
        let (mut next, mut nth, mut seen, mut is_silent) = (0, 0, Vec::new(), true);
        let end = vec![0; 400];
        for (at, step) in steps.iter().chain(&end).enumerate() {
            let is_faulty = at < steps.len();
            now += 50;
            if let Some(attach) = tailer.poll(after(now), &mut attachments) {
                (next, nth, is_silent) = (attach.from, 0, false);
            }
            match step % 8 {
                1..4 if is_faulty => last += 1,
                4 => first = (first + u64::from(*step) / 60).min(last + 1),
                5 => is_silent = true,
                _ => {}
            }
            next = next.max(first);
            if is_silent || next > last {
                let idle = Sent::Idle { nth, last };
                if !is_silent && now % 1_000 == 0 {
                    prop_assert!(matches!(tailer.take(after(now), attachments, &idle), Ok(Taken::Nothing)));
                }
                continue;
            }
            (next, nth) = (next + 1, nth + 1);
            let message = sent(nth, last + 1 - next, stored(next - 1, 0));
            for _ in 0..[1, 1, 1, 2, 1, 1, 0, 1][usize::from(step % 8)] {
                let taken = tailer.take(after(now), attachments, &message).unwrap();
                let Taken::Record { sequence, dropped, .. } = taken else { continue };
                if let Some(dropped) = dropped {
                    prop_assert!(dropped.end <= first);
                    seen.extend(dropped);
                }
                seen.push(sequence);
            }
        }
        // What was dropped at the end has nothing behind it that would show it.
        prop_assert!(seen.iter().copied().eq(1..=seen.len() as u64));
        prop_assert!(seen.len() as u64 == last || first > last, "{} of {last}", seen.len());
    }
}

fn claim(command: u64, client: u64, cover: &[Stream]) -> Claim {
    Claim { command, client, cover: cover.iter().copied().collect(), ahead: BTreeSet::new() }
}

fn marker(sequence: u64) -> Option<Identity> {
    let record = encode(INCARNATION, sequence, 0, &Body::Marker).unwrap();
    Some(Identity { sequence, time_us: None, crc: crc32fast::hash(&record) })
}

fn reader() -> Reader {
    Reader::new(Timing::default())
}

fn attach(reader: &mut Reader, now: Duration) -> (Stream, Attach) {
    match reader.poll(now) {
        Some(Action::Attach(stream, attach)) => (stream, attach),
        action => panic!("{action:?}"),
    }
}

/// A reader that reads a stream for a client, behind the marker 5, and the number of its attachment.
fn reader_of(stream: Stream) -> (Reader, u64) {
    let mut reader = reader();
    reader.claim(START, claim(1, 1, &[stream])).unwrap();
    assert_eq!(reader.poll(START), Some(Action::Mark(stream)));
    assert!(!reader.marked(START, stream, marker(5)));
    assert_eq!(reader.decide(START), Some(Decision::Carry(1)));
    let attachment = attach(&mut reader, START).1.attachment;
    (reader, attachment)
}

#[test]
fn a_command_waits_for_the_markers_of_streams_that_are_not_read() {
    let mut reader = reader();
    reader.claim(START, claim(1, 1, &[A, B])).unwrap();
    assert_eq!(reader.decide(START), None);
    assert_eq!(reader.poll(START), Some(Action::Mark(A)));
    assert_eq!(reader.poll(START), Some(Action::Mark(B)));
    assert_eq!(reader.poll(START), None);
    assert!(!reader.marked(START, A, marker(5)));
    assert_eq!(reader.decide(START), None);
    assert_eq!(attach(&mut reader, START), (A, Attach { attachment: 1, from: 5 }));
    // A marker whose fate is unknown is no place to begin with.
    assert!(!reader.marked(START, B, None));
    assert_eq!((reader.decide(START), reader.poll(START)), (None, Some(Action::Mark(B))));
    assert!(!reader.marked(START, B, marker(9)));
    assert_eq!(reader.decide(START), Some(Decision::Carry(1)));
    assert_eq!(reader.frontier(), Frontier::from([(A, 5), (B, 9)]));
    // Another client needs nothing more.
    reader.claim(START, claim(2, 2, &[B])).unwrap();
    assert_eq!(reader.decide(START), Some(Decision::Carry(2)));
    assert_eq!(reader.decide(START), None);
}

#[test]
fn commands_of_a_client_keep_their_order_and_others_overtake_them() {
    let (mut reader, _) = reader_of(A);
    reader.claim(START, claim(2, 2, &[B])).unwrap();
    reader.claim(START, claim(3, 2, &[A])).unwrap();
    reader.claim(START, claim(4, 3, &[A])).unwrap();
    assert_eq!(reader.decide(START), Some(Decision::Carry(4)));
    assert_eq!(reader.decide(START), None);
    assert_eq!(reader.poll(START), Some(Action::Mark(B)));
    assert!(!reader.marked(START, B, marker(1)));
    assert_eq!(reader.decide(START), Some(Decision::Carry(2)));
    assert_eq!(reader.decide(START), Some(Decision::Carry(3)));
}

#[test]
fn a_stream_is_read_for_a_while_longer_than_it_is_needed() {
    let (mut reader, attachment) = reader_of(A);
    reader.claim(after(1_000), claim(2, 1, &[])).unwrap();
    assert_eq!(reader.decide(after(1_000)), Some(Decision::Carry(2)));
    let idle = Sent::Idle { nth: 0, last: 5 };
    for second in 2..61 {
        reader.take(after(second * 1_000), A, attachment, &idle).unwrap();
        assert_eq!(reader.poll(after(second * 1_000)), None);
    }
    reader.claim(after(60_500), claim(3, 1, &[A])).unwrap();
    assert_eq!(reader.decide(after(60_500)), Some(Decision::Carry(3)), "it is still read");
    reader.claim(after(61_000), claim(4, 1, &[])).unwrap();
    assert_eq!(reader.decide(after(61_000)), Some(Decision::Carry(4)));
    reader.take(after(61_000), A, attachment, &idle).unwrap();
    assert_eq!(reader.poll(after(65_999)), None);
    assert_eq!(reader.poll(after(121_000)), Some(Action::Detach(A)));
    assert_eq!((reader.poll(after(121_000)), reader.frontier()), (None, Frontier::new()));
    // To be read again it needs a marker again.
    reader.claim(after(122_000), claim(5, 1, &[A])).unwrap();
    assert_eq!(reader.poll(after(122_000)), Some(Action::Mark(A)));
}

#[test]
fn what_is_read_ahead_is_not_waited_for() {
    let (mut reader, attachment) = reader_of(A);
    reader.claim(START, Claim { ahead: BTreeSet::from([B]), ..claim(2, 1, &[A]) }).unwrap();
    assert_eq!((reader.decide(START), reader.poll(START)), (Some(Decision::Carry(2)), Some(Action::Mark(B))));
    assert!(!reader.marked(START, B, marker(3)));
    reader.claim(START, claim(3, 1, &[B])).unwrap();
    assert_eq!(reader.decide(START), Some(Decision::Carry(3)));
    assert_eq!(attach(&mut reader, START).0, B);
    // It is needed by the client's area, and no stream is needed twice.
    assert!(matches!(
        reader.take(after(100), A, attachment, &Sent::Idle { nth: 0, last: 5 }),
        Ok(Taken::Nothing)
    ));
    let let_go = (1..=61).filter_map(|second| match reader.poll(after(second * 1_000)) {
        Some(Action::Detach(stream)) => Some(stream),
        Some(Action::Mark(_) | Action::Attach(..)) | None => None,
    });
    assert_eq!(let_go.collect::<Vec<_>>(), [A]);
}

/// A broker that is behind would match what was acknowledged long ago with what its clients have asked for since.
#[test]
fn a_command_is_held_while_a_stream_of_its_client_is_behind_and_refused_after_a_while() {
    let (mut reader, attachment) = reader_of(A);
    reader.claim(after(2_001), claim(2, 1, &[])).unwrap();
    assert_eq!(reader.decide(after(2_001)), None, "the area before it has to be read to the end as well");
    reader.claim(after(2_001), claim(3, 2, &[A])).unwrap();
    let first = sent(1, 1, stored(6, 0));
    assert_eq!(sequence(reader.take(after(3_000), A, attachment, &first)), Some(6));
    assert_eq!(reader.decide(after(3_000)), None, "one more is to come");
    reader.take(after(3_000), A, attachment, &sent(2, 0, stored(7, 0))).unwrap();
    assert_eq!(reader.decide(after(3_000)), Some(Decision::Carry(2)));
    assert_eq!(reader.decide(after(3_000)), Some(Decision::Carry(3)));
    reader.claim(after(6_000), claim(4, 2, &[])).unwrap();
    assert_eq!(reader.decide(after(15_999)), None);
    assert_eq!(reader.decide(after(16_000)), Some(Decision::Refuse(4)));
    assert_eq!(reader.decide(after(16_000)), None);
}

#[test]
fn reading_begins_anew_behind_a_marker_where_the_log_went_back_and_the_loss_is_told() {
    let (mut reader, attachment) = reader_of(A);
    let fault = reader.take(START, A, attachment, &sent(1, 0, stored(5, 0))).unwrap_err();
    assert_eq!(fault, Fault::WentBack { sequence: 5 });
    reader.claim(START, claim(2, 1, &[])).unwrap();
    assert_eq!(reader.decide(START), None, "its client has to be told first");
    assert_eq!(reader.poll(START), Some(Action::Mark(A)));
    assert!(matches!(reader.take(START, A, attachment, &sent(2, 0, stored(6, 0))), Ok(Taken::Nothing)));
    assert!(reader.marked(START, A, marker(4)));
    assert_eq!(attach(&mut reader, START), (A, Attach { attachment: attachment + 1, from: 4 }));
    assert_eq!(reader.decide(START), Some(Decision::Carry(2)));
}

#[test]
fn no_more_commands_wait_than_may() {
    let mut reader = reader();
    let refused = (1..).find_map(|command| reader.claim(START, claim(command, command, &[A])).err());
    assert_eq!(refused, Some(ClaimError));
    assert_eq!(ClaimError.to_string(), "4096 commands wait for streams");
    reader.poll(START);
    assert!(!reader.marked(START, A, marker(1)));
    let carried = std::iter::from_fn(|| reader.decide(START));
    assert!(carried.eq((1..=4_096).map(Decision::Carry)));
}
