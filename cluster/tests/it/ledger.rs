//! One writer and its standbys, step by step, over a log in memory.

use std::time::Duration;

use bytes::Bytes;
use cluster::ledger::{
    Answer, Beat, Chain, ChainError, End, FollowError, PushError, Request, SnapshotError, Standby, State,
    Status, Timing, WAITING_BYTES_MAX, Writer,
};
use cluster::log::{Append, AppendError, Log as _, ReadError, Stored};
use cluster::memory::Memory;
use cluster::record::{Body, Chunk, Incarnation, encode};

use crate::now;

/// All rows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rows(Vec<Vec<u8>>);

impl State for Rows {
    fn apply(&mut self, number: u64, row: &[u8]) -> Result<(), String> {
        assert_eq!(number, self.0.len() as u64 + 1);
        if row == b"wrong" {
            return Err("it is wrong".to_owned());
        }
        self.0.push(row.to_owned());
        Ok(())
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn restore(&mut self, chunk: &[u8]) -> Result<(), String> {
        self.0.push(chunk.to_owned());
        Ok(())
    }
}

const START: Duration = Duration::from_secs(1_000);

fn standby(member: &str, nonce: u64) -> Standby<Rows> {
    Standby::new(member.to_owned(), nonce, Timing::default(), Rows::default())
}

/// Makes requests until there are none, at a time at which everything is due.
fn follow(standby: &mut Standby<Rows>, log: &Memory, at: Duration) {
    while let Some(request) = standby.poll(at) {
        standby.answer(at, now(request.make(log)));
    }
}

fn write(writer: &mut Writer, log: &Memory, at: Duration) {
    while let Some(request) = writer.poll(at) {
        writer.answer(at, now(request.make(log)));
    }
}

/// The first owner of a log.
fn owner(log: &Memory) -> Writer {
    let mut standby = standby("a", 1);
    follow(&mut standby, log, START);
    follow(&mut standby, log, START + Duration::from_secs(1));
    standby.into_writer().unwrap().0
}

fn push(writer: &mut Writer, log: &Memory, rows: &[&[u8]]) {
    for row in rows {
        writer.push(START, row.to_vec()).unwrap();
    }
    write(writer, log, START);
    assert_eq!(writer.end(), None);
}

/// Looks each second for as long as that, and sees nobody.
fn see_nobody(standby: &mut Standby<Rows>, log: &Memory, from: Duration, seconds: u64) -> Duration {
    for second in 0..=seconds {
        let at = from + Duration::from_secs(second);
        standby.look(at, &[]);
        follow(standby, log, at);
    }
    from + Duration::from_secs(seconds)
}

fn unavailable() -> ReadError {
    ReadError::Unavailable { why: "away".to_owned() }
}

fn bounds(log: &Memory) -> (u64, u64) {
    let bounds = now(log.bounds()).unwrap();
    (bounds.first, bounds.last)
}

#[test]
fn rows_that_wait_are_committed_together_and_followed() {
    let log = Memory::new();
    let mut writer = owner(&log);
    push(&mut writer, &log, &[b"1", b"2", b"3"]);
    assert_eq!((writer.committed(), bounds(&log)), (3, (1, 2)));
    let mut standby = standby("b", 2);
    follow(&mut standby, &log, START);
    assert_eq!((standby.applied(), standby.status()), (3, Status::Following));
    assert_eq!(standby.state().0, [b"1", b"2", b"3"]);
    assert_eq!(standby.owner().unwrap().member.as_deref(), Some("a"));
}

#[test]
fn an_owner_that_says_that_it_leaves_is_sealed_at_once() {
    let log = Memory::new();
    let mut writer = owner(&log);
    push(&mut writer, &log, &[b"1"]);
    let mut standby = standby("b", 2);
    follow(&mut standby, &log, START);
    let leaves = |nonce| Beat { nonce, count: 1, is_leaving: true };
    // Another process that leaves is not the owner.
    standby.look(START, &[Beat { nonce: 1, count: 1, is_leaving: false }, leaves(3)]);
    follow(&mut standby, &log, START);
    assert_eq!(standby.status(), Status::Following);
    standby.look(START, &[leaves(1)]);
    follow(&mut standby, &log, START + Duration::from_secs(1));
    assert_eq!((standby.status(), standby.applied()), (Status::Owner, 1));
}

#[test]
fn an_owner_that_is_there_is_left_alone_and_one_that_is_gone_is_sealed() {
    let log = Memory::new();
    let mut writer = owner(&log);
    push(&mut writer, &log, &[b"1"]);
    let mut standby = standby("b", 2);
    follow(&mut standby, &log, START);
    let mut at = START;
    for count in 0..30 {
        at += Duration::from_secs(1);
        standby.look(at, &[Beat { nonce: 1, count, is_leaving: false }]);
        follow(&mut standby, &log, at);
        assert_eq!(standby.status(), Status::Following);
    }
    // A member that does not look for long has not seen that nobody is there.
    standby.look(at + Duration::from_secs(100), &[]);
    assert_eq!(standby.status(), Status::Following);
    see_nobody(&mut standby, &log, at + Duration::from_secs(100), 8);
    assert_eq!(standby.status(), Status::Owner);
    let (mut next, state) = standby.into_writer().unwrap();
    assert_eq!((next.incarnation(), state.0), (Incarnation { term: 2, nonce: 2 }, vec![b"1".to_vec()]));
    push(&mut next, &log, &[b"2"]);

    // The one before comes back and does not know.
    writer.push(at, b"lost".to_vec()).unwrap();
    write(&mut writer, &log, at);
    assert_eq!(writer.end(), None);
    write(&mut writer, &log, at + Duration::from_millis(100));
    assert_eq!((writer.end(), writer.committed()), (Some(&End::Fenced { sequence: 3 }), 1));
    assert!(matches!(writer.push(at, b"late".to_vec()), Err(PushError::Ended(End::Fenced { .. }))));
    assert_eq!(writer.poll(at), None);
    assert_eq!(bounds(&log), (1, 4));
}

#[test]
fn of_two_that_take_over_one_does() {
    let log = Memory::new();
    push(&mut owner(&log), &log, &[b"1"]);
    let (mut b, mut c) = (standby("b", 2), standby("c", 3));
    for standby in [&mut b, &mut c] {
        follow(standby, &log, START);
    }
    for second in 0..=8 {
        let at = START + Duration::from_secs(second);
        b.look(at, &[]);
        c.look(at, &[]);
    }
    let at = START + Duration::from_secs(8);
    let (first, second) = (b.poll(at).unwrap(), c.poll(at).unwrap());
    assert!(matches!((&first, &second), (Request::Append(_), Request::Append(_))));
    b.answer(at, now(first.make(&log)));
    c.answer(at, now(second.make(&log)));
    follow(&mut b, &log, at);
    follow(&mut c, &log, at);
    assert_eq!((b.status(), c.status()), (Status::Owner, Status::Following));
    assert_eq!(c.owner().unwrap().member.as_deref(), Some("b"));
}

#[test]
fn a_record_whose_answer_is_lost_is_found() {
    for has_effect in [false, true] {
        let log = Memory::new();
        let mut writer = owner(&log);
        writer.push(START, b"1".to_vec()).unwrap();
        let Some(Request::Append(append)) = writer.poll(START) else { panic!("an append") };
        if has_effect {
            now(log.append(append)).unwrap();
        }
        writer.answer(START, Answer::Append(Err(AppendError::NoAnswer)));
        assert_eq!(writer.poll(START), None);
        write(&mut writer, &log, START + Duration::from_millis(100));
        assert_eq!((writer.committed(), bounds(&log), writer.end()), (1, (1, 2), None));
    }
}

#[test]
fn rows_that_wait_too_long_are_told_and_new_ones_refused() {
    let log = Memory::new();
    let mut writer = owner(&log);
    writer.push(START, b"1".to_vec()).unwrap();
    assert!(writer.poll(START).is_some());
    writer.push(START + Duration::from_millis(500), b"2".to_vec()).unwrap();
    let busy = writer.push(START + Duration::from_millis(1_001), b"3".to_vec());
    assert!(matches!(busy, Err(PushError::Busy { waiting_bytes: 1.. })), "{busy:?}");
    assert_eq!(writer.poll(START + Duration::from_secs(60)), None);
    assert_eq!(writer.end(), Some(&End::GaveUp));
}

#[test]
fn a_log_that_went_back_is_noticed_by_its_writer_and_by_who_follows() {
    let log = Memory::new();
    let mut writer = owner(&log);
    let mut standby = standby("b", 2);
    push(&mut writer, &log, &[b"1"]);
    follow(&mut standby, &log, START);

    // A log that ends before takes its place.
    let shorter = Memory::new();
    owner(&shorter);
    let mut at = START + Duration::from_secs(1);
    let request = standby.poll(at);
    assert!(matches!(request, Some(Request::Read { from: 3, .. })), "{request:?}");
    standby.answer(at, Answer::Read(Err(unavailable())));
    writer.push(at, b"2".to_vec()).unwrap();
    assert!(matches!(writer.poll(at), Some(Request::Append(_))));
    writer.answer(at, Answer::Append(Err(AppendError::NoAnswer)));
    for _ in 0..16 {
        at += Duration::from_secs(1);
        assert_eq!((standby.status(), writer.end()), (Status::Following, None));
        let request = standby.poll(at);
        assert!(matches!(request, Some(Request::Read { from: 2, .. })), "{request:?}");
        standby.answer(at, now(request.unwrap().make(&shorter)));
        let request = writer.poll(at).unwrap();
        writer.answer(at, now(request.make(&shorter)));
    }
    assert!(matches!(writer.end(), Some(End::WentBack { known }) if known.sequence == 2));
    assert!(matches!(standby.status(), Status::Failed(FollowError::Chain(ChainError::WentBack { .. }))));
}

/// It compares what a process before it knew, and appends nothing before it has.
#[test]
fn a_log_that_went_back_while_a_member_did_not_run_is_noticed() {
    let log = Memory::new();
    let mut writer = owner(&log);
    push(&mut writer, &log, &[b"1"]);
    let known = writer.last();
    let start = |known| standby("a", 2).expecting(Some(known));

    // It is there.
    let mut same = start(known);
    for second in 0..3 {
        follow(&mut same, &log, START + Duration::from_secs(second));
    }
    assert_eq!(same.status(), Status::Owner);
    // A log that ends before takes its place, or an empty one.
    let (empty, shorter) = (Memory::new(), Memory::new());
    owner(&shorter);
    for shorter in [empty, shorter] {
        let mut short = start(known);
        let before = bounds(&shorter);
        for second in 0..15 {
            follow(&mut short, &shorter, START + Duration::from_secs(second));
            assert_eq!(short.status(), Status::Following);
        }
        follow(&mut short, &shorter, START + Duration::from_secs(16));
        let gone = FollowError::Chain(ChainError::WentBack { known });
        assert_eq!((short.status(), bounds(&shorter)), (Status::Failed(&gone), before));
    }
    // Another one is in its place.
    let other = Memory::new();
    let mut writer = owner(&other);
    push(&mut writer, &other, &[b"another"]);
    let mut found = start(known);
    follow(&mut found, &other, START);
    assert!(matches!(found.status(), Status::Failed(FollowError::Chain(ChainError::WentBack { .. }))));
}

#[test]
fn a_chain_refuses_another_record_in_place_of_the_next() {
    let (log, other) = (Memory::new(), Memory::new());
    push(&mut owner(&log), &log, &[b"1"]);
    let mut writer = owner(&other);
    push(&mut writer, &other, &[b"other"]);
    push(&mut writer, &other, &[b"2"]);
    let [ours, others] = [&log, &other].map(|log| now(log.read(1, usize::MAX)).unwrap());
    let mut chain = Chain::default();
    for stored in &ours {
        chain.admit(stored).unwrap();
    }
    assert!(matches!(chain.admit(&ours[1]), Ok(None)));
    assert!(matches!(chain.admit(&others[1]), Err(ChainError::WentBack { .. })));
    assert!(matches!(chain.admit(&others[2]), Err(ChainError::WentBack { .. })));
    assert!(matches!(chain.admit(&ours[0]), Err(ChainError::LeftOut { last: 2, found: 1 })));
    let known = chain.last().unwrap();
    let foreign = |incarnation, number| {
        let record = encode(incarnation, number, known.crc, &Body::Rows(vec![b"x"])).unwrap();
        let stored = Stored { sequence: 3, time_us: 3, record };
        chain.clone().admit(&stored).map(|_| ()).unwrap_err().to_string()
    };
    let owner = chain.owner().unwrap().incarnation;
    let stranger = Incarnation { nonce: 9, ..owner };
    assert!(foreign(stranger, 2).contains("the owner is 1-0000000000000001"), "{}", foreign(stranger, 2));
    assert!(foreign(owner, 5).contains("row 5 after row 1"), "{}", foreign(owner, 5));
    // Where a log begins, any row and any term may come first, but for those behind which none comes.
    for (term, number) in [(1, u64::MAX), (u64::MAX, 1)] {
        let record = encode(Incarnation { term, nonce: 1 }, number, 0, &Body::Rows(vec![b"x"])).unwrap();
        let error = Chain::default().admit(&Stored { sequence: 3, time_us: 3, record }).unwrap_err();
        assert!(error.to_string().ends_with("cannot be counted"), "{error}");
    }
    let broken = Stored { sequence: 3, time_us: 3, record: Bytes::from_static(b"no record") };
    assert!(matches!(chain.admit(&broken), Err(ChainError::Unreadable { sequence: 3, .. })));
}

#[test]
fn a_log_is_truncated_up_to_the_last_snapshot_but_one_and_read_from_there() {
    let log = Memory::new();
    let mut writer = owner(&log);
    let chunks = |rows: &[&[u8]]| rows.iter().map(|row| Ok(row.to_vec())).collect::<Vec<_>>().into_iter();
    push(&mut writer, &log, &[b"1", b"2"]);
    let error = writer.snapshot(1, chunks(&[b"1"])).unwrap_err();
    assert_eq!(error, SnapshotError::OtherRow { row: 1, committed: 2 });
    writer.snapshot(2, chunks(&[b"1", b"2"])).unwrap();
    push(&mut writer, &log, &[b"3"]);
    assert_eq!(bounds(&log), (1, 5));
    writer.snapshot(3, chunks(&[b"1", b"2", b"3"])).unwrap();
    assert!(writer.is_writing_snapshot());
    push(&mut writer, &log, &[b"4"]);
    assert!(!writer.is_writing_snapshot());
    // From the record behind row 2 on.
    assert_eq!(bounds(&log), (3, 9));

    let mut standby = standby("b", 2);
    follow(&mut standby, &log, START);
    follow(&mut standby, &log, START + Duration::from_secs(1));
    assert!(standby.is_whole());
    assert_eq!(standby.state().0, [b"1", b"2", b"3", b"4"]);
    assert_eq!(standby.owner().unwrap().member.as_deref(), Some("a"));
    see_nobody(&mut standby, &log, START, 9);
    let (mut next, _) = standby.into_writer().unwrap();
    push(&mut next, &log, &[b"5"]);
    next.snapshot(5, chunks(&[b"1", b"2", b"3", b"4", b"5"])).unwrap();
    write(&mut next, &log, START);
    // From the record behind row 3 on, as the owner before would have done.
    assert_eq!(bounds(&log).0, 6);
}

#[test]
fn a_snapshot_that_cannot_be_read_to_its_end_is_given_up() {
    let log = Memory::new();
    let mut writer = owner(&log);
    push(&mut writer, &log, &[b"1"]);
    let parts = [Ok(b"x".to_vec()), Ok(b"y".to_vec()), Err("the disk is gone".to_owned())];
    writer.snapshot(1, parts.into_iter()).unwrap();
    push(&mut writer, &log, &[b"2"]);
    assert!(!writer.is_writing_snapshot() && writer.is_idle());
    assert_eq!(writer.take_snapshot_fault().as_deref(), Some("the disk is gone"));
    // What there is of it counts for nothing, and the next one does not truncate as if it did.
    writer.snapshot(2, std::iter::once(Ok(b"12".to_vec()))).unwrap();
    write(&mut writer, &log, START);
    assert_eq!(bounds(&log).0, 1);
    let mut standby = standby("b", 2);
    follow(&mut standby, &log, START);
    assert_eq!(standby.state().0, [b"1", b"2"]);
}

#[test]
fn a_snapshot_that_its_owner_did_not_end_is_passed_over() {
    let log = Memory::new();
    let mut writer = owner(&log);
    push(&mut writer, &log, &[b"1"]);
    writer.snapshot(1, [Ok(b"x".to_vec()), Ok(b"y".to_vec())].into_iter()).unwrap();
    let request = writer.poll(START).unwrap();
    writer.answer(START, now(request.make(&log)));
    let mut standby = standby("b", 2);
    follow(&mut standby, &log, START);
    see_nobody(&mut standby, &log, START, 8);
    let (mut writer, state) = standby.into_writer().unwrap();
    assert_eq!(state.0, [b"1"]);
    for snapshot in 0..2_u8 {
        writer.snapshot(1, std::iter::once(Ok(b"1".to_vec()))).unwrap();
        push(&mut writer, &log, &[]);
        assert_eq!(bounds(&log).0, if snapshot == 0 { 1 } else { 5 });
    }
    let mut standby = self::standby("c", 3);
    follow(&mut standby, &log, START);
    follow(&mut standby, &log, START + Duration::from_secs(1));
    assert_eq!(standby.state().0, [b"1"]);
}

#[test]
fn a_log_that_went_back_behind_its_snapshots_is_told() {
    // The log has nothing left, or rows without a snapshot of what is before them.
    for is_empty in [true, false] {
        let log = Memory::new();
        let mut writer = owner(&log);
        push(&mut writer, &log, &[b"1"]);
        push(&mut writer, &log, &[b"2"]);
        now(log.truncate(if is_empty { 4 } else { 3 })).unwrap();
        let mut standby = standby("b", 2);
        follow(&mut standby, &log, START);
        assert_eq!(standby.status(), Status::Following);
        see_nobody(&mut standby, &log, START, 20);
        let Status::Failed(error) = standby.status() else { panic!("{:?}", standby.status()) };
        assert_eq!(*error, FollowError::NoSnapshot { first: if is_empty { 4 } else { 3 } });
    }
}

/// A log whose snapshot is behind its first records: a standby that has not read so far has not seen that there is none.
#[test]
fn a_snapshot_that_is_not_read_yet_is_not_taken_for_missing() {
    let log = Memory::new();
    let mut writer = owner(&log);
    push(&mut writer, &log, &[b"1"]);
    writer.snapshot(1, [Ok(b"1".to_vec()), Ok(b"2".to_vec())].into_iter()).unwrap();
    write(&mut writer, &log, START);
    now(log.truncate(2)).unwrap();
    let mut standby = standby("b", 2);
    let read = |standby: &mut Standby<Rows>, outcome| {
        assert!(matches!(standby.poll(START + Duration::from_secs(1)), Some(Request::Read { .. })));
        standby.answer(START, Answer::Read(outcome));
    };
    // It seems to have come to the end once, and then more comes.
    let records = now(log.read(2, usize::MAX)).unwrap();
    read(&mut standby, Err(ReadError::TooOld { first: 2 }));
    read(&mut standby, Ok(records[..1].to_vec()));
    read(&mut standby, Ok(Vec::new()));
    read(&mut standby, Ok(records[1..2].to_vec()));
    for second in 0..=8 {
        standby.look(START + Duration::from_secs(second), &[]);
    }
    assert_eq!(standby.status(), Status::Following);
    see_nobody(&mut standby, &log, START + Duration::from_secs(9), 2);
    assert_eq!(
        (standby.status(), &standby.state().0[..]),
        (Status::Owner, &[b"1".to_vec(), b"2".to_vec()][..])
    );
}

#[test]
fn nothing_is_appended_beside_a_truncation_nor_after_one_that_failed_without_a_look() {
    let log = Memory::new();
    let mut writer = owner(&log);
    push(&mut writer, &log, &[b"1"]);
    for _ in 0..2 {
        assert!(!matches!(writer.poll(START), Some(Request::Truncate { .. })));
        writer.snapshot(1, std::iter::once(Ok(b"1".to_vec()))).unwrap();
        let request = writer.poll(START).unwrap();
        writer.answer(START, now(request.make(&log)));
    }
    writer.push(START, b"2".to_vec()).unwrap();
    assert!(matches!(writer.poll(START), Some(Request::Truncate { .. })));
    assert_eq!(writer.poll(START), None);
    writer.answer(START, Answer::Truncate(Err(unavailable())));
    let request = writer.poll(START);
    assert!(matches!(request, Some(Request::Read { .. })), "{request:?}");
    writer.answer(START, now(request.unwrap().make(&log)));
    write(&mut writer, &log, START);
    assert_eq!((writer.committed(), writer.end()), (2, None));
}

/// Looks that found nothing, between which the log was not available for long, say nothing of the time between them.
#[test]
fn a_log_that_is_away_has_not_gone_back() {
    let log = Memory::new();
    let mut writer = owner(&log);
    let mut standby = standby("b", 2);
    push(&mut writer, &log, &[b"1"]);
    follow(&mut standby, &log, START);
    writer.push(START, b"2".to_vec()).unwrap();
    assert!(matches!(writer.poll(START), Some(Request::Append(_))));
    writer.answer(START, Answer::Append(Err(AppendError::NoAnswer)));
    assert!(matches!(standby.poll(START + Duration::from_secs(1)), Some(Request::Read { .. })));
    standby.answer(START, Answer::Read(Err(unavailable())));
    for (second, outcome) in [(1, Ok(Vec::new())), (10, Err(unavailable())), (20, Ok(Vec::new()))] {
        let at = START + Duration::from_secs(second);
        assert!(matches!(writer.poll(at), Some(Request::Read { .. })));
        writer.answer(at, Answer::Read(outcome.clone()));
        assert!(matches!(standby.poll(at), Some(Request::Read { .. })));
        standby.answer(at, Answer::Read(outcome));
    }
    assert_eq!((writer.end(), standby.status()), (None, Status::Following));
}

/// Where the log refuses for the sake of another record, the last one is looked at before anything is tried again, and not at once.
#[test]
fn a_refused_append_or_seal_leads_to_a_look_back() {
    let log = Memory::new();
    let mut writer = owner(&log);
    push(&mut writer, &log, &[b"1"]);
    let mut standby = standby("b", 2);
    follow(&mut standby, &log, START);
    for second in 0..=8 {
        standby.look(START + Duration::from_secs(second), &[]);
    }
    let (at, refused) = (START + Duration::from_secs(8), AppendError::WrongLast { last: None });
    assert!(matches!(standby.poll(at), Some(Request::Append(_))));
    standby.answer(at, Answer::Append(Err(refused.clone())));
    assert!(matches!(standby.poll(at), Some(Request::Read { from: 2, .. })));

    writer.push(START, b"2".to_vec()).unwrap();
    assert!(matches!(writer.poll(START), Some(Request::Append(_))));
    writer.answer(START, Answer::Append(Err(refused)));
    assert_eq!(writer.poll(START), None);
    assert!(matches!(writer.poll(START + Timing::default().retry), Some(Request::Read { from: 2, .. })));
}

#[test]
fn a_part_of_a_snapshot_that_cannot_be_where_it_is_is_refused() {
    for (row, start, why) in [
        (2, 3, "the snapshot after row 2: the ledger has rows up to 1 there"),
        (1, 4, "the snapshot after row 1: it begins with record 3 and has the rows before record 4"),
    ] {
        let log = Memory::new();
        let mut writer = owner(&log);
        push(&mut writer, &log, &[b"1"]);
        let chunk = Chunk { member: "a", row, start, index: 0, is_last: true, bytes: b"1" };
        let record = encode(writer.incarnation(), 2, writer.last().crc, &Body::Chunk(chunk)).unwrap();
        now(log.append(Append { expected: Some(2), id: "part".to_owned(), record })).unwrap();
        let mut standby = standby("b", 2);
        follow(&mut standby, &log, START);
        let Status::Failed(error) = standby.status() else { panic!("{:?}", standby.status()) };
        assert_eq!(error.to_string(), why);
    }
}

#[test]
fn rows_without_bytes_fill_what_may_wait() {
    let log = Memory::new();
    let mut writer = owner(&log);
    let taken = (0..WAITING_BYTES_MAX).take_while(|_| writer.push(START, Vec::new()).is_ok()).count() as u64;
    assert!(taken < WAITING_BYTES_MAX as u64 / 8, "{taken}");
    write(&mut writer, &log, START);
    assert_eq!((writer.committed(), writer.is_idle()), (taken, true));
    assert!(writer.push(START, Vec::new()).is_ok());
}

#[test]
fn a_row_that_the_state_refuses_stops_a_standby() {
    let log = Memory::new();
    push(&mut owner(&log), &log, &[b"1", b"wrong"]);
    let mut standby = standby("b", 2);
    follow(&mut standby, &log, START);
    let Status::Failed(error) = standby.status() else { panic!("{:?}", standby.status()) };
    assert_eq!(error.to_string(), "row 2: it is wrong");
    assert_eq!(standby.poll(START), None);
}

#[test]
fn a_log_in_memory_knows_duplicates_and_refuses_what_expects_another() {
    let log = Memory::new();
    let append = |expected, id: &str| {
        let (id, record) = (id.to_owned(), Bytes::from_static(b"x"));
        now(log.append(Append { expected, id, record }))
    };
    assert_eq!(append(Some(0), "a").map(|appended| appended.sequence), Ok(1));
    let again = append(Some(0), "a").unwrap();
    assert_eq!((again.sequence, again.is_duplicate), (1, true));
    assert_eq!(append(Some(0), "b"), Err(AppendError::WrongLast { last: Some(1) }));
    assert_eq!(append(None, "c").map(|appended| appended.sequence), Ok(2));
    now(log.truncate(2)).unwrap();
    assert_eq!(now(log.read(1, 1)), Err(ReadError::TooOld { first: 2 }));
    assert_eq!(now(log.read(3, 1)), Ok(Vec::new()));
}
