//! The store against a model of it, on disks that break.

mod copies;
mod corruption;
mod directory;
mod faults;
mod headroom;
mod killed;
mod model;
mod power;
mod replication;
mod wiping;

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use matcher::live::Cause;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::breakable as disk;
use super::{
    Batch, BodyId, Recovered, Store, StoreError, StoredBody, StoredLive, StoredMatch, StoredPosition,
    StoredPush, StoredSession, StoredStanding,
};
use crate::config::WorldName;
use crate::model::delivery::{SubscriptionIds, Transition};
use crate::store::writer::Pace;
use disk::Disk;

/// The content that a store should have.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    subscriptions: BTreeMap<(String, String), String>,
    positions: BTreeMap<String, StoredPosition>,
    pushes: BTreeMap<String, StoredPush>,
    sessions: BTreeMap<String, StoredSession>,
    /// Kept matches, each with the text of the event.
    kept: BTreeMap<(String, u64), (StoredMatch, String)>,
    standings: BTreeMap<(String, String, String), StoredStanding>,
    live: BTreeMap<String, (StoredLive, String)>,
}

/// The broker's memory: a model, and the handles of the bodies that it refers to.
struct Memory {
    random: StdRng,
    model: Model,
    bodies: HashMap<u64, (Arc<StoredBody>, String)>,
    offset: u64,
    sequence: u64,
    /// Whether forgotten clients are to leave the disk as well.
    wipes: bool,
}

/// How many runs a test makes: a few, or with `NEARCAST_SOAK=1` as many as it should.
fn runs(few: u64, many: u64) -> u64 {
    if std::env::var("NEARCAST_SOAK").is_ok_and(|soak| soak == "1") { many } else { few }
}

/// Folds as often and in slices as thin as can be, and wipes after each deletion.
const THIN: Pace = Pace {
    bytes: 16 << 20,
    rows: 8,
    slice: Duration::from_micros(30),
    idle_slice: Duration::from_micros(30),
    wipe_after: Duration::ZERO,
};

#[track_caller]
fn comes_to(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now();
    while !is_so() {
        assert!(patience.elapsed() < Duration::from_secs(60), "not so: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn open(disk: &Disk) -> Result<(Store, Recovered), StoreError> {
    open_at(disk, THIN)
}

fn open_at(disk: &Disk, pace: Pace) -> Result<(Store, Recovered), StoreError> {
    Store::open_medium(Box::new(disk.clone()), Some(WorldName::Geodetic), None, pace, &|_| {})
}

impl Model {
    fn of(recovered: &Recovered) -> Self {
        let mut model = Self::default();
        for live in &recovered.live {
            let text = live.body.text.to_string();
            model.live.insert(live.live.object.to_string(), (live.live.clone(), text));
        }
        for client in &recovered.clients {
            let name = client.name.to_string();
            model.positions.extend(client.position.clone().map(|position| (name.clone(), position)));
            model.pushes.extend(client.push.clone().map(|push| (name.clone(), push)));
            model.sessions.extend(client.session.clone().map(|session| (name.clone(), session)));
            for one in &client.subscriptions {
                model.subscriptions.insert((name.clone(), one.id.to_string()), one.text.to_string());
                for (object, standing) in &one.standings {
                    model.standings.insert((name.clone(), one.id.to_string(), object.to_string()), *standing);
                }
            }
            for one in &client.kept {
                let text = one.body.text.to_string();
                model.kept.insert((name.clone(), one.kept.offset), (one.kept.clone(), text));
            }
        }
        model
    }

    fn bodies(&self) -> impl Iterator<Item = u64> {
        let kept = self.kept.values().map(|(kept, _)| kept.body.0);
        kept.chain(self.live.values().map(|(live, _)| live.body.0))
    }
}

impl Memory {
    fn new(seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        Self { random, model: Model::default(), bodies: HashMap::new(), offset: 0, sequence: 0, wipes: true }
    }

    /// Takes up what was recovered.
    fn take_up(&mut self, recovered: Recovered) {
        self.model = Model::of(&recovered);
        self.bodies.clear();
        let kept = recovered.clients.into_iter().flat_map(|client| client.kept).map(|kept| kept.body);
        for body in kept.chain(recovered.live.into_iter().map(|live| live.body)) {
            self.bodies.insert(body.stored.id().0, (body.stored, body.text.to_string()));
        }
    }

    fn pick(&mut self, names: &[&str]) -> String {
        names[self.random.random_range(0..names.len())].to_owned()
    }

    /// A few changes, and what they come to.
    fn batch(&mut self, store: &Store) -> Batch {
        let mut batch = Batch::default();
        for _ in 0..self.random.random_range(1..12) {
            self.change(store, &mut batch);
        }
        batch
    }

    /// The batch is on disk: bodies that nothing refers to are let go of.
    fn committed(&mut self) {
        let referred: Vec<u64> = self.model.bodies().collect();
        self.bodies.retain(|body, _| referred.contains(body));
    }

    fn change(&mut self, store: &Store, batch: &mut Batch) {
        let client = self.pick(&["a", "ab", "b", "c\u{e9}"]);
        let subscription = self.pick(&["s", "st", "t"]);
        let object = self.pick(&["id:1", "id:2", "key:x", "key:\0y"]);
        let of = |name: &String| name == &client;
        match self.random.random_range(0..100) {
            0..10 => {
                let text = "t".repeat(self.random.random_range(0..600));
                batch.put_subscription(&client, &subscription, &text);
                self.model.subscriptions.insert((client, subscription), text);
            }
            10..14 => {
                batch.remove_subscription(&client, &subscription);
                self.model.standings.retain(|(a, b, _), _| (a, b) != (&client, &subscription));
                self.model.subscriptions.remove(&(client, subscription));
            }
            14..18 => {
                let push = StoredPush {
                    endpoint: "e".repeat(self.random.random_range(0..600)).into(),
                    point: Box::new([4; 65]),
                    secret: Box::new(self.random.random::<[u8; 16]>()),
                    expires_ms: self.random.random_bool(0.5).then(|| self.random.random()),
                    since_ms: self.random.random(),
                };
                batch.put_push(&client, &push);
                self.model.pushes.insert(client, push);
            }
            18..20 => {
                batch.remove_push(&client);
                self.model.pushes.remove(&client);
            }
            20..30 => {
                let position = StoredPosition {
                    coordinates: [self.random.random(), self.random.random(), 0.0],
                    accuracy_m: self.random.random(),
                    received_ms: self.random.random(),
                };
                batch.put_position(&client, &position);
                self.model.positions.insert(client, position);
            }
            30..36 => {
                let session = StoredSession {
                    epoch: "e".into(),
                    offset: self.offset,
                    acknowledged: self.offset / 2,
                    lost: 0,
                };
                batch.put_session(&client, &session);
                self.model.sessions.insert(client, session);
            }
            36..39 => {
                batch.forget_client(&client);
                if self.wipes {
                    batch.wipe_soon();
                }
                let model = &mut self.model;
                model.subscriptions.retain(|(name, _), _| !of(name));
                model.positions.remove(&client);
                model.pushes.remove(&client);
                model.sessions.remove(&client);
                model.kept.retain(|(name, _), _| !of(name));
                model.standings.retain(|(name, _, _), _| !of(name));
            }
            39..52 => self.publish(store, batch, &object),
            52..56 => {
                let sequence = self.model.live.get(&object).map_or(0, |(live, _)| live.sequence);
                // Another one's end changes nothing.
                let sequence = sequence - u64::from(self.random.random_bool(0.3) && sequence > 0);
                batch.remove_live(&object, sequence);
                self.model.live.retain(|name, (live, _)| *name != object || live.sequence != sequence);
            }
            56..76 => self.keep(store, batch, &client),
            76..86 => {
                let from = self.random.random_range(0..=self.offset);
                let to = if self.random.random_bool(0.1) {
                    u64::MAX
                } else {
                    from + self.random.random_range(0..20)
                };
                self.forget(batch, &client, from..=to);
            }
            86..96 if self.model.subscriptions.contains_key(&(client.clone(), subscription.clone())) => {
                let waits = self.random.random_bool(0.5).then_some((self.sequence, Cause::Moved));
                let standing = StoredStanding { sequence: self.sequence, waits };
                batch.put_standing(&client, &subscription, &object, &standing);
                self.model.standings.insert((client, subscription, object), standing);
            }
            _ => {
                batch.remove_standing(&client, &subscription, &object);
                self.model.standings.remove(&(client, subscription, object));
            }
        }
    }

    fn forget(&mut self, batch: &mut Batch, client: &str, offsets: RangeInclusive<u64>) {
        batch.forget_kept(client, offsets.clone());
        // Where the session is its matches do not say any more.
        if let Some(session) = self.model.sessions.get(client) {
            batch.put_session(client, session);
        }
        self.model.kept.retain(|(name, offset), _| name != client || !offsets.contains(offset));
    }

    /// A new body, or one that is there.
    fn body(&mut self, store: &Store, batch: &mut Batch) -> (BodyId, String) {
        let there = self.model.bodies().max().filter(|_| self.random.random_bool(0.5));
        if let Some((stored, text)) = there.and_then(|body| self.bodies.get(&body)) {
            return (stored.id(), text.clone());
        }
        let stored = store.new_body();
        let id = stored.id();
        let text = format!("{{\"n\":{}}}", id.0).repeat(self.random.random_range(1..60));
        batch.put_body(&stored, &text, 7);
        let before = self.bodies.insert(id.0, (stored, text.clone()));
        assert!(before.is_none(), "number {} was given twice", id.0);
        (id, text)
    }

    fn publish(&mut self, store: &Store, batch: &mut Batch, object: &str) {
        let (body, text) = self.body(store, batch);
        self.sequence += 1;
        let live = StoredLive {
            object: object.into(),
            id: "e".into(),
            sequence: self.sequence,
            expires_ms: 9,
            is_revoked: self.sequence.is_multiple_of(3),
            body,
        };
        batch.put_live(&live);
        if let Some((older, _)) = self.model.live.insert(object.to_owned(), (live, text)) {
            batch.remove_live(object, older.sequence);
        }
    }

    fn keep(&mut self, store: &Store, batch: &mut Batch, client: &str) {
        let (body, text) = self.body(store, batch);
        self.offset += 1;
        let kept = StoredMatch {
            offset: self.offset,
            subscriptions: if self.random.random_bool(0.5) {
                SubscriptionIds::One("\"s\"".into())
            } else {
                SubscriptionIds::Many(["\"s\"".into(), "\"t\"".into()].into())
            },
            cause: Cause::Expired,
            transition: [None, Some(Transition::Enter), Some(Transition::Exit)]
                [self.random.random_range(0..3)],
            at_ms: 11,
            body,
        };
        batch.keep(client, &kept);
        // A session is where its last match is, which nobody says again.
        match self.model.sessions.get_mut(client) {
            Some(session) => session.offset = session.offset.max(self.offset),
            None => {
                let session =
                    StoredSession { epoch: "e".into(), offset: self.offset, acknowledged: 0, lost: 0 };
                batch.put_session(client, &session);
                self.model.sessions.insert(client.to_owned(), session);
            }
        }
        self.model.kept.insert((client.to_owned(), self.offset), (kept, text));
    }
}
