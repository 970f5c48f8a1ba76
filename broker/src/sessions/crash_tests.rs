//! The knowledge of two shards after a crash that came when one of them had its step on disk, and the other had not.

use matcher::engine::scan::Scan;
use matcher::geo::World;
use tempfile::TempDir;

use super::*;
use crate::config::{AuthMode, Config};
use crate::ingest::feature::FeatureReader;
use crate::ingest::subscription::{PAUSED, SITUATION, SubscriptionReader, quoted};
use crate::ingest::{Behalf, Zones};
use crate::model::delivery::{Delivery, Entry};
use crate::model::event::{Origin, Placed};
use crate::store::Store;

/// A broker of two shards over a folder. Client `a` is of the first, which writes the live events, and `b` of the second.
struct Broker {
    folder: TempDir,
    running: Running,
}

struct Running {
    shards: [Sessions; 2],
    features: FeatureReader,
    subscriptions: SubscriptionReader,
}

const EVENTS: &str = r#"{"filters":[{"area":{"radius_m":5}}],"durable":true}"#;
const TRANSITIONS: &str = r#"{"filters":[{"area":{"radius_m":5}}],"durable":true,"on":["enter","exit"]}"#;
/// Where there are tokens, everything is of some tenant.
const EVERYBODY: Behalf<'_> = Behalf { tenant: Some(""), confinement: None };
/// The client of a situation, and its version.
const OWN: &str = "~rules/r";
const VERSION: &str = "v";
const FIRST: usize = 0;
const SECOND: usize = 1;

impl Broker {
    fn new(subscriptions: &[&str]) -> Self {
        Self::confined_to(subscriptions, None)
    }

    /// Makes an instance whose clients are confined by a claim.
    fn confined_to(subscriptions: &[&str], claim: Option<&str>) -> Self {
        let confinement = claim.map(|claim| Confinement::read_again(claim, &Zones::default()).unwrap());
        let confinement = confinement.map(Arc::new);
        let behalf = Behalf { confinement: confinement.as_ref(), ..EVERYBODY };
        let folder = TempDir::new().unwrap();
        let mut running = Running::start(&folder, |_| {});
        for (shard, client) in running.shards.iter_mut().zip(["a", "b"]) {
            for (id, subscription) in ["s", "t"].into_iter().zip(subscriptions) {
                let prepared = running.subscriptions.parse(id, subscription).unwrap();
                let prepared = prepared.on_behalf(behalf).unwrap();
                shard.install(&client.into(), prepared, None).unwrap();
            }
            let position = World::Planar.position(&[0.0, 0.0]).unwrap();
            let fix = Fix { position, accuracy_m: 0.0 };
            shard.move_client(&client.into(), Mover::Named(None), fix, None).unwrap();
            shard.commit_and_release();
        }
        Self { folder, running }
    }

    /// Both shards take an event in; those of `committed` have it on disk.
    fn publish(&mut self, x: f64, members: &str, committed: &[usize]) {
        let text =
            format!(r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[{x},0]}}{members}}}"#);
        let published = Arc::new(self.running.features.parse(EVERYBODY, &text).unwrap());
        for shard in &mut self.running.shards {
            shard.match_batch(&[&published.event]).unwrap();
            shard.deliver(0, &published);
        }
        self.commit(committed);
    }

    /// Makes the client of a situation, which is of the second shard.
    fn begin_situation(&mut self) {
        let text = format!(
            r#"{{"filters":[{{"where":"FALSE"}}],"durable":true,"overflow":"drop-oldest",{}:{{}},{}:false}}"#,
            quoted(SITUATION),
            quoted(PAUSED)
        );
        let prepared = self.running.subscriptions.parse_own(VERSION, &text).unwrap();
        let shard = &mut self.running.shards[SECOND];
        shard.install(&OWN.into(), prepared.on_behalf(EVERYBODY).unwrap(), None).unwrap();
        shard.commit_and_release();
    }

    /// Both shards take the finding of a number in; those of `committed` have it on disk.
    fn find(&mut self, number: u64, members: &str, committed: &[usize]) {
        let text = format!(
            r#"{{"type":"Feature","id":"f{number}","geometry":{{"type":"Point","coordinates":[1,0]}}{members}}}"#
        );
        let origin = Origin { client: OWN.into(), version: VERSION.into(), number };
        let published = Arc::new(self.running.features.parse(EVERYBODY, &text).unwrap().derived(origin));
        for shard in &mut self.running.shards {
            shard.match_batch(&[&published.event]).unwrap();
            shard.deliver(0, &published);
        }
        self.commit(committed);
    }

    /// The stream of events brings the finding of a number to both shards, as far as they have not read it there.
    fn bring(&mut self, sequence: u64, version: &str, number: u64, committed: &[usize]) {
        let text = format!(
            r#"{{"type":"Feature","id":"{version}{number}","geometry":{{"type":"Point","coordinates":[1,0]}}}}"#
        );
        let origin = Origin { client: OWN.into(), version: version.into(), number };
        let event = self.running.features.parse(EVERYBODY, &text).unwrap().derived(origin);
        let event = Arc::new(event.placed(Placed::new(sequence, 0, 0, 1)));
        for shard in self.running.shards.iter_mut().filter(|shard| !shard.has_had(event.place)) {
            shard.match_batch(&[&event.event]).unwrap();
            shard.deliver(0, &event);
            shard.came_to(event.place);
        }
        self.commit(committed);
    }

    fn revoke(&mut self, id: &str, committed: &[usize]) {
        self.running.shards.iter_mut().for_each(|shard| assert!(shard.revoke(id, None, None)));
        self.commit(committed);
    }

    fn commit(&mut self, committed: &[usize]) {
        committed.iter().for_each(|shard| self.running.shards[*shard].commit_and_release());
    }

    /// Crashes: everything that was not committed is gone. Then all clients move a little, and come to what is new.
    fn crash(self) -> Self {
        self.crash_into(|_| {})
    }

    /// Crashes, and starts again with other settings.
    fn crash_into(self, set: impl Fn(&mut Config)) -> Self {
        let Self { folder, running } = self;
        drop(running);
        let mut running = Running::start(&folder, set);
        for (shard, client) in running.shards.iter_mut().zip(["a", "b"]) {
            shard.advance();
            let position = World::Planar.position(&[0.5, 0.0]).unwrap();
            let fix = Fix { position, accuracy_m: 0.0 };
            shard.move_client(&client.into(), Mover::Named(None), fix, None).unwrap();
            shard.commit_and_release();
        }
        Self { folder, running }
    }

    /// Client `b` has no subscription `s` any more; nobody has that on disk.
    fn unsubscribe(&mut self) {
        assert!(self.running.shards[SECOND].remove("b", "s"));
    }

    /// The entries that are kept for a client: the changes of events, and their causes; and the gaps.
    async fn kept(&mut self, shard: usize) -> Vec<String> {
        let client = ["a", "b"][shard].into();
        let outbox = Arc::new(Outbox::new(7, crate::outbox::Bounds::new(&Config::default().outbox)));
        let client_id = self.running.shards[shard].ids[&client];
        let confinement = self.running.shards[shard].clients.get(client_id).unwrap().confinement.clone();
        let sessions = &mut self.running.shards[shard];
        sessions.attach(&client, Arc::clone(&outbox), Resume::Fresh, confinement).unwrap();
        outbox.push_answer("end");
        let mut batch = Vec::new();
        outbox.next_batch(&mut batch, usize::MAX).await;
        self.running.shards[shard].detach(&client, 7);
        let shown = batch.into_iter().filter_map(|entry| match entry {
            Entry::Delivery(Delivery { cause, transition, body, .. }) => {
                let feature: serde_json::Value = serde_json::from_str(&body.text).unwrap();
                let transition = transition.map(|it| format!("{it:?} ")).unwrap_or_default();
                Some(format!("{transition}{} {cause:?}", feature["id"].as_str().unwrap()).to_lowercase())
            }
            Entry::Gap(gap) => Some(format!("gap {}-{} {}", gap.from, gap.to, gap.reason.text())),
            Entry::Answer(_) => None,
        });
        shown.collect()
    }

    fn live_count(&self, shard: usize) -> usize {
        self.running.shards[shard].tracker.live_count()
    }
}

impl Running {
    fn start(folder: &TempDir, set: impl Fn(&mut Config)) -> Self {
        let mut config = Config::default();
        set(&mut config);
        config.server.world = config::WorldName::Planar;
        // Only tokens confine clients.
        config.auth.mode = AuthMode::Jwt;
        config.store.data = folder.path().join("data").to_str().unwrap().to_owned();
        let (store, recovered) = Store::open(&config.store, config::WorldName::Planar, |_| {}).unwrap();
        let shared = Shared::new(&config, 2);
        let features = FeatureReader::new(World::Planar, &config.limits, 1);
        let restored = Restored::read(recovered, &config, &features, None).unwrap();
        let mut shards = [0, 1].map(|index| {
            let disk: Box<dyn Disk> = Box::new(store.clone());
            Sessions::new(Box::new(Scan::new(World::Planar)), &config, &shared, Some(disk), index, 1)
        });
        for (index, shard) in shards.iter_mut().enumerate() {
            let next = restored.frontier_of(index).map(|read| read.next);
            shard.begin_at(next, restored.findings_of(index));
        }
        let (first, second) = restored.clients.into_iter().partition(|client| &*client.name == "a");
        let times = (restored.timeline, restored.seen_ms);
        shards[FIRST].restore(first, &restored.live, &restored.findings, times);
        shards[SECOND].restore(second, &restored.live, &restored.findings, times);
        let subscriptions =
            SubscriptionReader::new(World::Planar, config.limits.clone(), config.outbox.overflow)
                .with_store(true);
        Self { shards, features, subscriptions }
    }
}

#[tokio::test]
async fn a_finding_that_is_appended_again_comes_once_to_each_shard() {
    let mut broker = Broker::new(&[EVENTS]);
    broker.bring(1, "v", 1, &[FIRST, SECOND]);
    broker.bring(2, "v", 2, &[SECOND]);
    let mut broker = broker.crash();
    // The first shard reads it once more.
    broker.bring(2, "v", 2, &[FIRST, SECOND]);
    // The situation's broker did not hear of it, and its successor appends all anew.
    broker.bring(3, "v", 1, &[FIRST, SECOND]);
    let mut broker = broker.crash();
    broker.bring(4, "v", 2, &[FIRST, SECOND]);
    broker.bring(5, "v", 3, &[FIRST, SECOND]);
    // Another document of the same name begins with its own numbers.
    broker.bring(6, "w", 1, &[FIRST, SECOND]);
    // What a broker that was cut off had found by the document before arrives late.
    broker.bring(7, "v", 4, &[FIRST, SECOND]);
    for shard in [FIRST, SECOND] {
        let kept = broker.kept(shard).await;
        assert_eq!(kept, ["v1 published", "v2 published", "v3 published", "w1 published"], "shard {shard}");
        assert_eq!(broker.running.shards[shard].finding_read(OWN, "w"), 1);
    }
}

#[tokio::test]
async fn an_event_that_a_newer_one_overtook_does_not_come_again() {
    let mut broker = Broker::new(&[EVENTS]);
    broker.publish(1.0, r#","id":"e1","key":"k""#, &[FIRST, SECOND]);
    // Elsewhere by now: the second shard knows the older one no more, and has that on disk.
    broker.publish(99.0, r#","id":"e2","key":"k""#, &[SECOND]);
    let mut broker = broker.crash();
    for shard in [FIRST, SECOND] {
        assert_eq!(broker.kept(shard).await, ["e1 published"], "shard {shard}");
    }
}

#[tokio::test]
async fn whoever_was_inside_of_what_moved_on_is_told_in_either_shard() {
    let mut broker = Broker::new(&[TRANSITIONS]);
    broker.publish(1.0, r#","id":"e1","key":"k""#, &[FIRST, SECOND]);
    broker.publish(99.0, r#","id":"e2","key":"k""#, &[SECOND]);
    let mut broker = broker.crash();
    assert_eq!(broker.kept(SECOND).await, ["enter e1 published", "exit e1 published"]);
    assert_eq!(broker.kept(FIRST).await, ["enter e1 published", "exit e1 changed"]);
}

#[tokio::test]
async fn an_exit_tells_nothing_that_its_client_is_confined_from() {
    /// The later fate of the newer event, which one shard alone has on disk.
    type Later = fn(&mut Broker, usize);
    let later: [(Later, &str); 4] = [
        (|_, _| {}, "changed"),
        (|broker, knowing| broker.revoke("e2", &[knowing]), "revoked"),
        // A third one is out of the confinement as well.
        (|broker, knowing| broker.publish(1.0, &of_kind("secret", "e3", 60.0), &[knowing]), "changed"),
        (|_, _| clock::paused::pass(Duration::from_secs(61)), "expired"),
    ];
    clock::paused::pause(1_780_000_000_000);
    for (index, (happens, cause)) in later.into_iter().enumerate() {
        for (knowing, other) in [(FIRST, SECOND), (SECOND, FIRST)] {
            for crashes in 1..=2 {
                let mut broker = Broker::confined_to(&[TRANSITIONS], Some(r#"{"where":"kind = 'public'"}"#));
                broker.publish(1.0, &of_kind("public", "e1", 60.0), &[FIRST, SECOND]);
                broker.publish(1.0, &of_kind("secret", "e2", 60.0), &[knowing]);
                happens(&mut broker, knowing);
                for _ in 1..crashes {
                    // Once more before anybody has told anything.
                    let Broker { folder, running } = broker;
                    drop(running);
                    let running = Running::start(&folder, |_| {});
                    broker = Broker { folder, running };
                    broker.running.shards[knowing].advance();
                    broker.commit(&[knowing, knowing]);
                }
                let mut broker = broker.crash();
                let place = format!("case {index}, {other} after {crashes} crashes");
                let told = broker.kept(other).await;
                assert_eq!(told, ["enter e1 published".to_owned(), format!("exit e1 {cause}")], "{place}");
                let told = broker.kept(knowing).await;
                assert_eq!(told, ["enter e1 published", "exit e1 published"], "{place}");
            }
        }
    }
}

/// Members of a live event of the object `k`.
fn of_kind(kind: &str, id: &str, ttl_s: f64) -> String {
    format!(r#","id":"{id}","key":"k","ttl_s":{ttl_s},"properties":{{"kind":"{kind}"}}"#)
}

#[tokio::test]
async fn what_waits_to_enter_does_not_by_what_its_client_is_confined_from() {
    clock::paused::pause(1_780_000_000_000);
    let dwelling = TRANSITIONS.replace("\"on\"", "\"dwell_s\":1,\"on\"");
    let mut broker = Broker::confined_to(&[&dwelling], Some(r#"{"where":"kind = 'public'"}"#));
    broker.publish(1.0, &of_kind("public", "e1", 60.0), &[FIRST, SECOND]);
    broker.publish(1.0, &of_kind("secret", "e2", 60.0), &[FIRST]);
    clock::paused::pass(Duration::from_secs(2));
    let mut broker = broker.crash();
    for shard in [FIRST, SECOND] {
        assert_eq!(broker.kept(shard).await, [""; 0], "shard {shard}");
    }
}

#[tokio::test]
async fn what_a_shard_had_let_go_of_is_there_for_what_it_had_on_disk() {
    clock::paused::pause(1_780_000_000_000);
    for ttl_s in [60.0, 1.0] {
        let mut broker = Broker::confined_to(&[TRANSITIONS], Some(r#"{"where":"kind = 'public'"}"#));
        broker.publish(1.0, &of_kind("public", "e1", 60.0), &[FIRST, SECOND]);
        broker.unsubscribe();
        // Nobody in the second shard is told that the first event is over.
        broker.publish(1.0, &of_kind("secret", "e2", ttl_s), &[FIRST]);
        broker.commit(&[FIRST, FIRST]);
        clock::paused::pass(Duration::from_secs(2));
        let mut broker = broker.crash();
        let cause = if ttl_s < 60.0 { "expired" } else { "changed" };
        assert_eq!(broker.kept(SECOND).await, ["enter e1 published".to_owned(), format!("exit e1 {cause}")]);
    }
}

#[tokio::test]
async fn what_was_replaced_is_on_disk_no_longer_than_anybody_needs_it() {
    let mut broker = Broker::new(&[TRANSITIONS]);
    for number in 1..=5 {
        broker.publish(1.0, &of_kind("public", &format!("e{number}"), 60.0), &[FIRST, SECOND]);
    }
    broker.commit(&[FIRST]);
    let Broker { folder, mut running } = broker;
    running.shards[FIRST].commit_rest();
    drop(running);
    let mut config = Config::default();
    config.store.data = folder.path().join("data").to_str().unwrap().to_owned();
    let (_store, recovered) = Store::open(&config.store, config::WorldName::Planar, |_| {}).unwrap();
    assert_eq!((recovered.live.len(), recovered.overtaken.len()), (1, 0));
}

#[tokio::test]
async fn what_is_told_late_is_told_in_its_order() {
    let of_kind = |kind: u32| {
        format!(r#"{{"filters":[{{"area":{{"radius_m":5}},"where":"kind = {kind}"}}],"durable":true}}"#)
    };
    let mut broker = Broker::new(&[&of_kind(2), &of_kind(1)]);
    for kind in [1, 2] {
        let members = format!(r#","id":"e{kind}","ttl_s":60,"properties":{{"kind":{kind}}}"#);
        broker.publish(1.0, &members, &[FIRST]);
    }
    let mut broker = broker.crash();
    assert_eq!(broker.kept(FIRST).await, ["e1 published", "e2 published"]);
    assert_eq!(broker.kept(SECOND).await, ["e1 changed", "e2 changed"]);
}

#[tokio::test]
async fn what_one_shard_told_as_revoked_is_revoked_for_all() {
    for (subscription, told) in
        [(EVENTS, &["e1 published"][..]), (TRANSITIONS, &["enter e1 published", "exit e1 revoked"])]
    {
        for committed in [FIRST, SECOND] {
            let mut broker = Broker::new(&[subscription]);
            broker.publish(1.0, r#","id":"e1","key":"k""#, &[FIRST, SECOND]);
            broker.revoke("e1", &[committed]);
            // Twice: the second time nothing of it is left.
            for _ in 0..2 {
                broker = broker.crash();
                for shard in [FIRST, SECOND] {
                    assert_eq!(broker.kept(shard).await, told, "shard {shard}, {committed} on disk");
                    assert_eq!(broker.live_count(shard), 0);
                }
            }
        }
    }
}

#[tokio::test]
async fn what_was_live_in_the_second_shard_alone_ends_on_disk_as_well() {
    let mut broker = Broker::new(&[EVENTS]);
    broker.publish(1.0, r#","id":"e1","ttl_s":60"#, &[SECOND]);
    broker = broker.crash();
    assert_eq!(broker.kept(SECOND).await, ["e1 published"]);
    assert_eq!(broker.kept(FIRST).await, ["e1 changed"]);
    broker.revoke("e1", &[FIRST, SECOND]);
    broker = broker.crash();
    assert_eq!((broker.live_count(FIRST), broker.live_count(SECOND)), (0, 0));
}

#[tokio::test]
async fn bounds_that_were_lowered_hold_from_the_start() {
    let lowered: [fn(&mut Config, usize); 3] = [
        |config, _| config.sessions.kept_frames = 2,
        |config, of_one| config.sessions.kept_bytes = 3 * of_one - 1,
        // Each client's share of the room of both is two.
        |config, of_one| config.sessions.kept_total_bytes = 4 * of_one,
    ];
    for (index, lower) in lowered.into_iter().enumerate() {
        let mut broker = Broker::new(&[EVENTS]);
        for number in 1..=5 {
            broker.publish(1.0, &format!(r#","id":"e{number}""#), &[FIRST, SECOND]);
        }
        let total = &broker.running.shards[FIRST].kept_total;
        assert_eq!(total.matches(), 10);
        let of_one = usize::try_from(total.bytes() / 10).unwrap();
        broker = broker.crash_into(|config| lower(config, of_one));
        assert_eq!(broker.running.shards[FIRST].kept_total.matches(), 4, "bound {index}");
        // It is so on disk as well: the old bounds bring nothing back.
        for _ in 0..2 {
            for shard in [FIRST, SECOND] {
                let told = ["gap 1-3 overflow", "e4 published", "e5 published"];
                assert_eq!(broker.kept(shard).await, told, "bound {index}, shard {shard}");
            }
            broker = broker.crash();
        }
    }
}

const NOW_MS: u64 = 1_780_000_000_000;
const DAY_MS: u64 = 24 * 3_600_000;

/// A broker that was killed with a live event of a minute, one of an hour, and their deliveries kept, and that starts when the
/// clock says this.
fn started_at(unix_ms: u64) -> Broker {
    clock::paused::pause(NOW_MS);
    let mut broker = Broker::new(&[EVENTS]);
    for (id, ttl_s) in [("minute", 60), ("hour", 3_600)] {
        broker.publish(1.0, &format!(r#","id":"{id}","ttl_s":{ttl_s}"#), &[FIRST, SECOND]);
    }
    clock::paused::set(unix_ms);
    broker.crash()
}

impl Broker {
    fn pass(&mut self, seconds: u64) {
        clock::paused::pass(Duration::from_secs(seconds));
        self.running.shards.iter_mut().for_each(Sessions::advance);
        self.commit(&[FIRST, SECOND]);
    }

    fn live_counts(&self) -> [usize; 2] {
        [FIRST, SECOND].map(|shard| self.live_count(shard))
    }

    fn are_in_doubt(&self) -> [bool; 2] {
        [FIRST, SECOND].map(|shard| self.running.shards[shard].timeline.doubt().is_some())
    }

    fn kept_count(&self) -> u64 {
        self.running.shards[FIRST].kept_total.matches()
    }
}

#[test]
fn a_start_with_a_clock_that_is_behind_makes_no_life_longer() {
    for unix_ms in [0, NOW_MS - DAY_MS, NOW_MS - 1] {
        let mut broker = started_at(unix_ms);
        assert_eq!((broker.live_counts(), broker.kept_count()), ([2, 2], 4), "{unix_ms}");
        broker.pass(59);
        assert_eq!(broker.live_counts(), [2, 2], "{unix_ms}");
        broker.pass(2);
        assert_eq!(broker.live_counts(), [1, 1], "{unix_ms}");
        // The clock is put right: what is left is what it was.
        clock::paused::set(NOW_MS + 62_000);
        broker.pass(3_500);
        assert_eq!((broker.live_counts(), broker.kept_count()), ([1, 1], 4), "{unix_ms}");
        broker.pass(100);
        assert_eq!(broker.live_counts(), [0, 0], "{unix_ms}");
    }
}

#[test]
fn a_start_with_a_clock_that_is_far_ahead_ends_nothing_before_that_is_certain() {
    // What has to end soon ends soon.
    let mut broker = started_at(NOW_MS + 8 * DAY_MS);
    assert_eq!((broker.live_counts(), broker.kept_count()), ([2, 2], 4));
    broker.pass(61);
    // Its record goes with a later commit.
    broker.pass(2);
    broker.pass(2);
    assert_eq!((broker.live_counts(), broker.kept_count()), ([1, 1], 4));
    // Once more does not make it certain.
    broker = broker.crash();
    broker.pass(clock::DOUBT.as_secs() - 62);
    assert_eq!((broker.live_counts(), broker.kept_count()), ([1, 1], 4));
    broker.pass(62);
    assert_eq!((broker.live_counts(), broker.kept_count()), ([0, 0], 0));
}

#[test]
fn a_clock_that_was_far_ahead_and_is_put_right_has_ended_nothing() {
    let mut broker = started_at(NOW_MS + 8 * DAY_MS);
    broker.pass(61);
    broker.pass(2);
    clock::paused::set(NOW_MS + 64_000);
    broker.pass(clock::DOUBT.as_secs());
    broker.pass(60);
    assert_eq!((broker.live_counts(), broker.kept_count()), ([1, 1], 4));
    for _ in 0..2 {
        broker = broker.crash();
        broker.pass(clock::DOUBT.as_secs());
        assert_eq!((broker.live_counts(), broker.kept_count()), ([1, 1], 4));
    }
    broker.pass(3_600);
    assert_eq!((broker.live_counts(), broker.kept_count()), ([0, 0], 4));
}

/// Makes a broker that was killed with a live event of `ttl_s` seconds, and whose clock is `ahead_ms` ahead at the start.
fn started_ahead(ttl_s: u64, ahead_ms: u64) -> Broker {
    clock::paused::pause(NOW_MS);
    let mut broker = Broker::new(&[EVENTS]);
    broker.publish(1.0, &format!(r#","id":"e","ttl_s":{ttl_s}"#), &[FIRST, SECOND]);
    clock::paused::set(NOW_MS + ahead_ms);
    broker.crash()
}

#[test]
fn a_clock_that_is_ahead_at_a_start_and_is_put_right_makes_no_life_shorter() {
    let mut broker = started_ahead(1_840, 1_825_000);
    broker.pass(20);
    assert_eq!(broker.live_counts(), [1, 1]);
    clock::paused::set(NOW_MS + 20_000);
    broker.pass(clock::DOUBT.as_secs());
    broker.pass(1_200);
    assert_eq!(broker.live_counts(), [1, 1]);
    broker.pass(20);
    assert_eq!(broker.live_counts(), [0, 0]);
}

#[test]
fn a_clock_that_is_ahead_at_a_start_and_stays_so_counts_after_the_doubt() {
    let mut broker = started_ahead(1_840, 1_825_000);
    broker.pass(clock::DOUBT.as_secs());
    assert_eq!(broker.live_counts(), [0, 0]);
    // What has something left even so has that, and no more.
    let mut broker = started_ahead(7_200, 3_600_000);
    broker.pass(clock::DOUBT.as_secs());
    broker.pass(2_990);
    assert_eq!(broker.live_counts(), [1, 1]);
    broker.pass(10);
    assert_eq!(broker.live_counts(), [0, 0]);
}

#[test]
fn a_restart_after_a_quiet_time_is_no_jump_of_the_clock() {
    let mut broker = started_ahead(7_200, 0);
    for _ in 0..3 {
        let due = broker.running.shards[FIRST].next_stamp().unwrap();
        assert!(due <= clock::now() + clock::JUMP / 2);
        broker.pass(clock::JUMP.as_secs() / 2);
    }
    clock::paused::pass(Duration::from_secs(60));
    assert_eq!(broker.crash().are_in_doubt(), [false; 2]);
    // Where nothing ages nobody wakes the disk, and a stop says the time all the same.
    let mut broker = Broker::new(&[EVENTS]);
    broker.pass(8 * 3_600);
    assert_eq!(broker.running.shards[FIRST].next_stamp(), None);
    broker.running.shards.iter_mut().for_each(Sessions::commit_rest);
    let mut broker = broker.crash();
    assert_eq!(broker.are_in_doubt(), [false; 2]);
    // A long stop cannot be told from a clock that was set.
    broker.running.shards.iter_mut().for_each(Sessions::commit_rest);
    clock::paused::pass(clock::JUMP + Duration::from_secs(61));
    assert_eq!(broker.crash().are_in_doubt(), [true; 2]);
}

#[test]
fn a_clock_that_was_ahead_while_the_broker_ran_is_followed_back_by_the_next_start() {
    clock::paused::pause(NOW_MS + 8 * DAY_MS);
    let mut broker = Broker::new(&[EVENTS]);
    broker.commit(&[FIRST, SECOND]);
    clock::paused::set(NOW_MS);
    broker.pass(60);
    broker.running.shards.iter_mut().for_each(Sessions::commit_rest);
    broker = broker.crash();
    assert_eq!(broker.running.shards[FIRST].timeline.unix_ms(), clock::unix_ms());
}

#[test]
fn a_clock_that_jumps_while_the_broker_runs_ends_nothing_before_that_is_certain() {
    for stays in [false, true] {
        let mut broker = started_at(NOW_MS);
        clock::paused::set(NOW_MS + 8 * DAY_MS);
        broker.pass(120);
        assert_eq!((broker.live_counts(), broker.kept_count()), ([1, 1], 4));
        if !stays {
            clock::paused::set(NOW_MS + 120_000);
        }
        broker.pass(clock::DOUBT.as_secs());
        // Lives are not reckoned by it; ages are.
        assert_eq!((broker.live_counts(), broker.kept_count()), ([1, 1], if stays { 0 } else { 4 }));
    }
}

#[tokio::test]
async fn a_finding_comes_once_whichever_shard_had_dealt_it_out() {
    let lives = ["", r#","ttl_s":60"#, r#","key":"k","ttl_s":60"#];
    for (life, committed) in lives.iter().flat_map(|life| [(life, FIRST), (life, SECOND)]) {
        let mut broker = Broker::new(&[EVENTS]);
        broker.begin_situation();
        broker.find(1, life, &[FIRST, SECOND]);
        for number in [2, 3] {
            broker.find(number, life, &[committed]);
        }
        let mut broker = broker.crash();
        // The situation goes on behind what both had dealt out.
        for number in 2..=5 {
            broker.find(number, life, &[FIRST, SECOND]);
        }
        for shard in [FIRST, SECOND] {
            let mut kept = broker.kept(shard).await;
            kept.iter_mut().for_each(|one| one.truncate(2));
            kept.sort_unstable();
            assert_eq!(kept, ["f1", "f2", "f3", "f4", "f5"], "{life:?} in {committed}, shard {shard}");
        }
    }
}
