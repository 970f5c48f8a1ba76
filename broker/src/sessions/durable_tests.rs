//! Tests of durable sessions: the matches they keep, the moment they tell them, and how readers come back, with a disk that
//! fails when it is told to.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tempfile::TempDir;
use tokio::sync::oneshot;

use super::tests::{Bench, waiting};
use super::*;
use crate::model::completion::Completion;
use crate::model::delivery::Entry;
use crate::model::record::StoredBody;
use crate::outbox::Bounds;
use crate::store::{Batch, Recovered, Store, StoreError};

/// A disk that is told whether it fails, and counts.
#[derive(Clone)]
struct FaultyDisk {
    store: Store,
    fails: Arc<AtomicBool>,
    commits: Arc<AtomicU64>,
    folder: Arc<TempDir>,
}

impl FaultyDisk {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let (store, _) = Store::open(&settings(&folder), config::WorldName::Planar, |_| {}).unwrap();
        Self { store, fails: Arc::default(), commits: Arc::default(), folder: Arc::new(folder) }
    }

    /// The data that the next start finds.
    fn recovered(self) -> Recovered {
        let Self { store, folder, .. } = self;
        drop(store);
        Store::open(&settings(&folder), config::WorldName::Planar, |_| {}).unwrap().1
    }
}

impl Disk for FaultyDisk {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        assert!(!batch.is_empty(), "nothing has to be written");
        if self.fails.load(Ordering::Relaxed) {
            return Err(StoreError::Closed);
        }
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.store.commit(batch)
    }

    fn new_body(&self) -> Arc<StoredBody> {
        self.store.new_body()
    }
}

fn settings(folder: &TempDir) -> config::Store {
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    config::Store { data, ..config::Config::default().store }
}

const DURABLE: &str = r#"{"filters":[{"area":{"radius_m":5}}],"durable":true}"#;

fn with_disk() -> (Bench, FaultyDisk) {
    let disk = FaultyDisk::new();
    let bench = Bench::with(Some(Box::new(disk.clone())), |config| {
        config.store.ack_delay_ms = 0;
        config.limits.readers_per_client = 2;
    });
    (bench, disk)
}

/// A client with a durable subscription, where events happen.
fn subscribed(bench: &mut Bench) {
    bench.install_document("a", "s1", DURABLE, None).unwrap();
    bench.move_to("a", 0.0);
    bench.sessions.commit_and_release();
}

fn publish(bench: &mut Bench, count: usize) {
    (0..count).for_each(|_| bench.publish());
    bench.sessions.commit_and_release();
}

fn epoch(bench: &Bench) -> String {
    bench.sessions.clients.get(0).unwrap().epoch.to_string()
}

#[tokio::test]
async fn what_comes_while_nobody_reads_is_there_until_it_is_acknowledged() {
    for mut bench in [with_disk().0, Bench::with(None, |_| {})] {
        subscribed(&mut bench);
        publish(&mut bench, 3);
        let outbox = bench.attach("a", 1, Resume::Ready);
        assert_eq!(waiting(&outbox).await, ["{\"op\":\"ready\"", "1 \"s1\"", "2 \"s1\"", "3 \"s1\""]);
        publish(&mut bench, 1);
        assert_eq!(waiting(&outbox).await, ["4 \"s1\""]);
        bench.sessions.acknowledge("a", 2).unwrap();
        assert!(matches!(bench.sessions.acknowledge("a", 5), Err(ApiError::Invalid(_))));
        bench.sessions.detach("a", 1);
        let outbox = bench.attach("a", 2, Resume::Fresh);
        assert_eq!(waiting(&outbox).await, ["3 \"s1\"", "4 \"s1\""]);
        bench.sessions.detach("a", 2);
        let epoch = epoch(&bench);
        for (resume, told) in [
            (
                Resume::After { epoch: "other".to_owned(), offset: 3 },
                vec!["gap 3-2 epoch", "3 \"s1\"", "4 \"s1\""],
            ),
            (
                Resume::After { epoch: epoch.clone(), offset: 5 },
                vec!["gap 3-2 epoch", "3 \"s1\"", "4 \"s1\""],
            ),
            (
                Resume::After { epoch: epoch.clone(), offset: 1 },
                vec!["gap 2-2 acknowledged", "3 \"s1\"", "4 \"s1\""],
            ),
            (Resume::ReadyAfter { epoch: epoch.clone(), offset: 3 }, vec!["{\"op\":\"ready\"", "4 \"s1\""]),
            // This one does not acknowledge, an event stream does.
            (Resume::Fresh, vec!["3 \"s1\"", "4 \"s1\""]),
            (Resume::After { epoch: epoch.clone(), offset: 3 }, vec!["4 \"s1\""]),
            (Resume::Fresh, vec!["4 \"s1\""]),
        ] {
            let outbox = bench.attach("a", 3, resume);
            assert_eq!(waiting(&outbox).await, told);
            bench.sessions.detach("a", 3);
        }
        assert_eq!(bench.sessions.metrics.unread.get(), 0);
        assert_eq!(bench.sessions.kept_total.matches(), 1);
    }
}

#[tokio::test]
async fn nothing_is_seen_before_it_is_on_disk_and_others_do_not_wait() {
    let (mut bench, disk) = with_disk();
    subscribed(&mut bench);
    bench.install("b", "s1", Some(9)).unwrap();
    bench.move_to("b", 0.0);
    bench.sessions.commit_and_release();
    let durable = bench.attach("a", 1, Resume::Fresh);
    let passing = bench.attach("b", 2, Resume::Fresh);
    let commits = disk.commits.load(Ordering::Relaxed);
    bench.publish();
    assert_eq!(waiting(&passing).await, ["1 \"s1\""]);
    assert_eq!(waiting(&durable).await, Vec::<String>::new());
    // Who comes now does not see it either.
    let late = bench.attach("a", 3, Resume::Ready);
    assert_eq!(waiting(&late).await, ["{\"op\":\"ready\""]);
    bench.sessions.commit_and_release();
    assert_eq!(disk.commits.load(Ordering::Relaxed), commits + 1);
    assert_eq!(
        (waiting(&durable).await, waiting(&late).await),
        (vec!["1 \"s1\"".to_owned()], vec!["1 \"s1\"".to_owned()])
    );
    // A step that nothing has to survive of is not written.
    bench.sessions.forget("a");
    bench.sessions.commit_and_release();
    bench.sessions.begin();
    bench.publish();
    bench.sessions.commit_and_release();
    assert_eq!(disk.commits.load(Ordering::Relaxed), commits + 2);
}

#[tokio::test]
async fn a_slow_reader_loses_nothing_that_is_kept() {
    let (mut bench, _disk) = with_disk();
    bench.bounds = Bounds::of(4, 1_000_000);
    subscribed(&mut bench);
    let slow = bench.attach("a", 1, Resume::Fresh);
    let mut batch = Vec::new();
    for round in 0..30 {
        publish(&mut bench, 1);
        if round % 7 == 0 {
            slow.next_batch(&mut batch, 1).await;
        }
    }
    let behind = |bench: &Bench| bench.sessions.metrics.readers_behind.get();
    assert_eq!((batch.len(), slow.behind(), behind(&bench)), (5, 25, 1));
    while slow.behind() > 0 {
        assert_eq!(behind(&bench), u64::from(slow.behind() > 4));
        slow.next_batch(&mut batch, 1).await;
    }
    let offsets = batch.iter().map(|entry| match entry {
        Entry::Delivery(delivery) => delivery.offset,
        Entry::Answer(_) | Entry::Gap(_) => panic!("{entry:?}"),
    });
    assert!(offsets.eq(1..=30));
    publish(&mut bench, 1);
    assert_eq!(waiting(&slow).await, ["31 \"s1\""]);
}

const ALARM: &str = r#","priority":"alarm""#;

#[tokio::test]
async fn an_alarm_comes_before_its_turn_and_its_turn_is_told() {
    for (mut bench, disk) in [(with_disk().0, true), (Bench::with(None, |_| {}), false)] {
        bench.bounds = Bounds::of(8, 1_000_000);
        subscribed(&mut bench);
        let slow = bench.attach("a", 1, Resume::Fresh);
        // Nothing comes first: it is in its turn.
        bench.publish_with(ALARM);
        bench.sessions.commit_and_release();
        assert_eq!(waiting(&slow).await, ["1 \"s1\""], "disk: {disk}");
        publish(&mut bench, 10);
        bench.publish_with(ALARM);
        bench.sessions.commit_and_release();
        // At most one of eight may wait so.
        bench.publish_with(ALARM);
        publish(&mut bench, 1);
        let in_turn =
            |offsets: std::ops::RangeInclusive<u64>| offsets.map(|offset| format!("{offset} \"s1\""));
        let mut expected: Vec<_> = std::iter::once("1 ahead".to_owned()).chain(in_turn(2..=11)).collect();
        expected.extend(["gap 12-12 ahead".to_owned()]);
        expected.extend(in_turn(13..=14));
        assert_eq!(waiting(&slow).await, expected);
        // It is not acknowledged with what comes before it.
        bench.sessions.acknowledge("a", 9).unwrap();
        bench.sessions.detach("a", 1);
        // Who comes back gets it first again, if it was not acknowledged.
        for resume in [Resume::Ready, Resume::ReadyAfter { epoch: epoch(&bench), offset: 9 }] {
            let back = bench.attach("a", 2, resume);
            let told = waiting(&back).await;
            assert_eq!(told[1..4], ["9 ahead", "10 \"s1\"", "11 \"s1\""]);
            assert_eq!(told[4..], ["gap 12-12 ahead", "13 \"s1\"", "14 \"s1\""]);
            bench.sessions.detach("a", 2);
        }
        bench.sessions.acknowledge("a", 12).unwrap();
        assert_eq!(waiting(&bench.attach("a", 3, Resume::Fresh)).await, ["13 \"s1\"", "14 \"s1\""]);
    }
}

#[tokio::test]
async fn alarms_are_kept_longest() {
    let (mut bench, _disk) = with_disk();
    bench.sessions.kept_bounds.frames = 3;
    subscribed(&mut bench);
    bench.publish_with(ALARM);
    publish(&mut bench, 5);
    let told = waiting(&bench.attach("a", 1, Resume::Fresh)).await;
    assert_eq!(told, ["1 \"s1\"", "gap 2-4 overflow", "5 \"s1\"", "6 \"s1\""]);
}

#[tokio::test]
async fn at_the_bound_readers_that_are_behind_are_told_or_cut_off() {
    let disconnect = r#"{"filters":[{"area":{"radius_m":5}}],"durable":true,"overflow":"disconnect"}"#;
    for (document, is_cut_off) in [(DURABLE, false), (disconnect, true)] {
        let (mut bench, _disk) = with_disk();
        bench.bounds = Bounds::of(2, 1_000_000);
        bench.sessions.kept_bounds.frames = 3;
        subscribed(&mut bench);
        bench.install_document("a", "s1", document, None).unwrap();
        let (slow, quick) = (bench.attach("a", 1, Resume::Fresh), bench.attach("a", 2, Resume::Fresh));
        for offset in 1..=9 {
            publish(&mut bench, 1);
            assert_eq!(waiting(&quick).await, [format!("{offset} \"s1\"")]);
        }
        assert_eq!(slow.is_closing(), is_cut_off);
        if !is_cut_off {
            let told = waiting(&slow).await;
            assert_eq!(told, ["gap 1-6 overflow", "7 \"s1\"", "8 \"s1\"", "9 \"s1\""]);
        }
    }
}

#[tokio::test]
async fn who_asks_for_it_is_cut_off_when_it_stops_reading_and_not_while_it_catches_up() {
    let disconnect = r#"{"filters":[{"area":{"radius_m":5}}],"durable":true,"overflow":"disconnect"}"#;
    let (mut bench, _disk) = with_disk();
    bench.bounds = Bounds::of(2, 1_000_000);
    bench.sessions.kept_bounds.frames = 6;
    bench.install_document("a", "s1", disconnect, None).unwrap();
    bench.move_to("a", 0.0);
    publish(&mut bench, 5);
    let reader = bench.attach("a", 1, Resume::Fresh);
    publish(&mut bench, 1);
    assert!(!reader.is_closing());
    assert_eq!(waiting(&reader).await.len(), 6);
    bench.sessions.acknowledge("a", 6).unwrap();
    // It has everything. From here on it does not read.
    publish(&mut bench, 2);
    assert!(!reader.is_closing());
    publish(&mut bench, 1);
    assert!(reader.is_closing());
    bench.sessions.detach("a", 1);
    let again = bench.attach("a", 2, Resume::Ready);
    // At the bound of what is kept who still catches up is cut off as well.
    publish(&mut bench, 3);
    assert!(!again.is_closing());
    publish(&mut bench, 1);
    assert!(again.is_closing());
    assert_eq!(bench.sessions.metrics.overflowed.get(), 2);
}

#[tokio::test]
async fn where_all_room_is_taken_who_has_most_gives_way() {
    let disk = FaultyDisk::new();
    let mut bench = Bench::with(Some(Box::new(disk.clone())), |config| {
        config.sessions.kept_bytes = 2_000;
        config.sessions.kept_total_bytes = 2_000;
    });
    for (client, x) in [("away", 0.0), ("seldom", 1_000.0), ("here", 2_000.0)] {
        bench.install_document(client, "s1", DURABLE, None).unwrap();
        bench.move_to(client, x);
    }
    let here = bench.attach("here", 1, Resume::Fresh);
    let publish_at = |bench: &mut Bench, x: f64, count: usize| {
        (0..count).for_each(|_| bench.publish_at(x));
        bench.sessions.commit_and_release();
    };
    publish_at(&mut bench, 0.0, 100);
    let total = Arc::clone(&bench.sessions.kept_total);
    let full = total.matches();
    assert!((5..30).contains(&full), "{full}");
    publish_at(&mut bench, 1_000.0, 2);
    publish_at(&mut bench, 2_000.0, 2);
    assert_eq!(total.matches(), full);
    assert_eq!(waiting(&here).await, ["1 \"s1\"", "2 \"s1\""]);
    let seldom = bench.attach("seldom", 2, Resume::Fresh);
    assert_eq!(waiting(&seldom).await, ["1 \"s1\"", "2 \"s1\""]);
    let away = bench.attach("away", 3, Resume::Fresh);
    let told = waiting(&away).await;
    assert_eq!(told[0], format!("gap 1-{} overflow", 104 - full));
    assert_eq!(told.len() as u64, full - 3);
    // It is so on disk as well.
    drop(bench);
    let recovered = disk.recovered();
    let mut kept: Vec<_> =
        recovered.clients.iter().map(|client| (&*client.name, client.kept.len() as u64)).collect();
    kept.sort_unstable();
    assert_eq!(kept, [("away", full - 4), ("here", 2), ("seldom", 2)]);
}

#[tokio::test]
async fn what_finds_no_room_is_for_those_who_are_there_and_costs_nothing_else() {
    let (mut bench, _disk) = with_disk();
    subscribed(&mut bench);
    let here = bench.attach("a", 1, Resume::Fresh);
    publish(&mut bench, 1);
    bench.sessions.kept_bounds.bytes = 1;
    publish(&mut bench, 1);
    assert_eq!(waiting(&here).await, ["1 \"s1\"", "2 \"s1\""]);
    let late = bench.attach("a", 2, Resume::Fresh);
    assert_eq!(waiting(&late).await, ["1 \"s1\"", "gap 2-2 overflow"]);
}

#[tokio::test]
async fn what_is_not_durable_is_for_those_who_are_there() {
    let (mut bench, _disk) = with_disk();
    subscribed(&mut bench);
    bench
        .install_document("a", "s2", r#"{"filters":[{"area":{"center":[50,0],"radius_m":1}}]}"#, None)
        .unwrap();
    let outbox = bench.attach("a", 1, Resume::Fresh);
    publish(&mut bench, 1);
    bench.publish_at(50.0);
    publish(&mut bench, 1);
    assert_eq!(waiting(&outbox).await, ["1 \"s1\"", "2 \"s2\"", "3 \"s1\""]);
    let late = bench.attach("a", 2, Resume::Fresh);
    assert_eq!(waiting(&late).await, ["1 \"s1\"", "gap 2-2 not-durable", "3 \"s1\""]);
}

#[tokio::test]
async fn a_session_is_durable_as_long_as_there_is_a_reason() {
    let (mut bench, _disk) = with_disk();
    let durable = |bench: &Bench| bench.sessions.metrics.durable_sessions.get();
    bench.install_document("a", "s1", DURABLE, Some(1)).unwrap();
    bench.move_to("a", 0.0);
    publish(&mut bench, 2);
    // Its connection does not take it along.
    bench.sessions.detach("a", 1);
    assert!(bench.sessions.document("a", "s1").is_some());
    assert!(bench.sessions.remove("a", "s1"));
    bench.sessions.commit_and_release();
    assert_eq!(durable(&bench), 1);
    let outbox = bench.attach("a", 2, Resume::Fresh);
    assert_eq!(waiting(&outbox).await.len(), 2);
    bench.sessions.acknowledge("a", 2).unwrap();
    assert_eq!(durable(&bench), 1);
    bench.sessions.detach("a", 2);
    assert_eq!((durable(&bench), bench.sessions.metrics.clients.get()), (0, 1));
    bench.install_document("a", "s1", DURABLE, None).unwrap();
    publish(&mut bench, 1);
    assert_eq!(durable(&bench), 1);
    assert!(bench.sessions.forget("a"));
    bench.sessions.commit_and_release();
    assert_eq!((durable(&bench), bench.sessions.kept_total.matches()), (0, 0));
    assert_eq!(bench.sessions.metrics.clients.get(), 0);
}

/// The session's later entries have offsets that nobody writes: after a crash it is another session.
#[tokio::test]
async fn a_session_that_an_acknowledgement_ends_is_over_on_disk_at_once() {
    let disk = FaultyDisk::new();
    let mut bench = Bench::with(Some(Box::new(disk.clone())), |config| config.store.ack_delay_ms = 60_000);
    subscribed(&mut bench);
    bench.install_document("a", "s2", &DURABLE.replace("true", "false"), None).unwrap();
    publish(&mut bench, 1);
    let outbox = bench.attach("a", 1, Resume::Fresh);
    assert_eq!(waiting(&outbox).await.len(), 1);
    bench.sessions.detach("a", 1);
    assert!(bench.sessions.remove("a", "s1"));
    bench.sessions.commit_and_release();
    bench.sessions.acknowledge("a", 1).unwrap();
    assert_eq!(bench.sessions.metrics.durable_sessions.get(), 0);
    let outbox = bench.attach("a", 2, Resume::Ready);
    waiting(&outbox).await;
    bench.publish();
    assert_eq!(waiting(&outbox).await, [""; 0], "it is told before the end is on disk");
    bench.sessions.commit_and_release();
    assert_eq!(waiting(&outbox).await, ["2 \"s2\""]);
    drop(bench);
    let recovered = disk.recovered();
    assert!(recovered.clients.iter().all(|client| client.kept.is_empty()));
}

#[tokio::test]
async fn while_the_disk_fails_nothing_changes_and_then_it_goes_on() {
    let (mut bench, disk) = with_disk();
    subscribed(&mut bench);
    let outbox = bench.attach("a", 1, Resume::Fresh);
    disk.fails.store(true, Ordering::Relaxed);
    let receipt = Completion::new();
    bench.sessions.begin();
    bench.publish();
    bench.sessions.answer(Answer::CompletionGuard(receipt.ticket()));
    let (reply, mut answer) = oneshot::channel();
    bench.sessions.begin();
    bench.move_to("a", 1.0);
    bench.sessions.answer(Answer::Changed(reply));
    assert!(answer.try_recv().is_err());
    bench.sessions.commit_and_release();
    assert_eq!(
        (receipt.settled().await, answer.try_recv()),
        (Err(ApiError::Storage), Ok(Err(ApiError::Storage)))
    );
    assert!(bench.sessions.refuses_changes() && bench.sessions.ledger.health().failure().is_some());
    // A look for idle clients that falls due is put off: the thread waits for the disk asleep.
    bench.sessions.idle = super::idle::Idle::new(80);
    bench.sessions.forget_idle(crate::model::clock::now());
    assert!(bench.sessions.idle.next_look(1).is_some_and(|due| due > crate::model::clock::now()));
    assert_eq!(waiting(&outbox).await, Vec::<String>::new());
    // It is tried again later, and not at once.
    disk.fails.store(false, Ordering::Relaxed);
    bench.sessions.commit_and_release();
    assert!(bench.sessions.refuses_changes());
    bench.sessions.commit_rest();
    assert!(!bench.sessions.refuses_changes() && bench.sessions.ledger.health().failure().is_none());
    assert_eq!(waiting(&outbox).await, ["1 \"s1\""]);
    assert_eq!(bench.sessions.metrics.store_failures.get(), 1);
}

#[tokio::test]
async fn an_acknowledgement_while_the_disk_fails_counts_until_a_crash() {
    for goes_on in [true, false] {
        let (mut bench, disk) = with_disk();
        subscribed(&mut bench);
        let outbox = bench.attach("a", 1, Resume::Fresh);
        publish(&mut bench, 3);
        assert_eq!(waiting(&outbox).await.len(), 3);
        disk.fails.store(true, Ordering::Relaxed);
        bench.sessions.acknowledge("a", 2).unwrap();
        bench.sessions.commit_and_release();
        assert!(bench.sessions.ledger.health().failure().is_some());
        let late = bench.attach("a", 2, Resume::Fresh);
        assert_eq!(waiting(&late).await, ["3 \"s1\""]);
        disk.fails.store(!goes_on, Ordering::Relaxed);
        bench.sessions.commit_rest();
        drop(bench);
        let recovered = disk.recovered();
        let [client] = &recovered.clients[..] else { panic!("one client") };
        let kept: Vec<_> = client.kept.iter().map(|one| one.kept.offset).collect();
        let acknowledged = client.session.as_ref().map(|session| session.acknowledged);
        // Nothing is lost that was not acknowledged, and what was comes once more where the disk never took that.
        let expected = if goes_on { (vec![3], Some(2)) } else { (vec![1, 2, 3], Some(0)) };
        assert_eq!((kept, acknowledged), expected, "goes on: {goes_on}");
    }
}

#[tokio::test]
async fn an_answer_stands_before_what_it_brings() {
    let (mut bench, _disk) = with_disk();
    bench.move_to("a", 0.0);
    bench.publish_with(r#","ttl_s":60"#);
    bench.sessions.commit_and_release();
    let outbox = bench.attach("a", 1, Resume::Fresh);
    for document in [DURABLE, r#"{"filters":[{"area":{"radius_m":5}}]}"#] {
        bench.sessions.begin();
        bench.sessions.remove("a", "s1");
        let installed = bench.install_document("a", "s1", document, None).unwrap();
        let (reply, _answer) = oneshot::channel();
        let owner = Some((Arc::clone(&outbox), "ok".into()));
        bench.sessions.answer(Answer::Installed { owner, reply, installed: Box::new(installed) });
        bench.sessions.tell_changes();
        assert_eq!(waiting(&outbox).await, Vec::<String>::new());
        bench.sessions.commit_and_release();
        let told = waiting(&outbox).await;
        assert_eq!((told.len(), &*told[0]), (2, "ok"), "{told:?}");
    }
}

#[tokio::test]
async fn what_is_kept_for_too_long_goes() {
    let (mut bench, _disk) = with_disk();
    bench.sessions.kept_bounds.age_ms = 30;
    subscribed(&mut bench);
    publish(&mut bench, 2);
    assert!(bench.sessions.next_deadline().is_some());
    while bench.sessions.kept_total.matches() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        bench.sessions.advance();
    }
    let outbox = bench.attach("a", 1, Resume::Ready);
    assert_eq!(waiting(&outbox).await, ["{\"op\":\"ready\"", "gap 1-2 age"]);
}
