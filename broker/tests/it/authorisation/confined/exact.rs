//! Random events, moves and ends by clients that are confined differently, each frame held against what it should be.

use std::collections::BTreeSet;
use std::path::Path;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::{Draft, Event, Holder, Told, World, corner, holders, subscriptions, zones};
use super::{Caller, ask_for, token};
use crate::authorisation::guarded;
use crate::authorisation::tokens::ISSUER;
use crate::exactness::geometry::Place;
use crate::harness::{Door, Serve, Ws, soak};

const SEED: u64 = 17;

/// The number of random steps.
fn steps_count() -> usize {
    if soak() { 5_000 } else { 250 }
}

struct Run {
    rng: StdRng,
    world: World,
    holders: Vec<Holder>,
    sockets: Vec<Ws>,
    /// Of the last frame that each has had.
    offsets: Vec<u64>,
}

impl Run {
    async fn begin(door: &Door, durable: bool) -> Self {
        let holders = holders();
        let mut sockets = Vec::new();
        for holder in &holders {
            let mut socket = open(door, holder, "").await;
            for (id, document) in subscriptions(durable) {
                socket.subscribe(id, document).await;
            }
            sockets.push(socket);
        }
        let offsets = vec![0; holders.len()];
        Self { rng: StdRng::seed_from_u64(SEED), world: World::default(), holders, sockets, offsets }
    }

    /// A place, often on the border of a zone.
    fn draw_place(&mut self) -> Place {
        let on_grid = corner(self.rng.random_range(0..=10), self.rng.random_range(0..=10));
        let [[west, south], [east, north]] = [corner(0, 0), corner(10, 10)];
        let anywhere = [self.rng.random_range(west..east), self.rng.random_range(south..north)];
        // On one line at most: places of which several are equally near have an order of their own.
        match self.rng.random_range(0..4) {
            0 => [on_grid[0], anywhere[1]],
            1 => [anywhere[0], on_grid[1]],
            _ => anywhere,
        }
    }

    fn draw_event(&mut self, publisher: usize) -> Event {
        let draft = Draft {
            id: format!("e{}", self.rng.random_range(0..6)),
            place: self.draw_place(),
            severity: [None, Some(0), Some(1), Some(2), Some(3), Some(4)]
                .choose(&mut self.rng)
                .copied()
                .expect("some"),
            kind: [None, Some("ship"), Some("bus")].choose(&mut self.rng).copied().expect("some"),
            key: self.rng.random_bool(0.7).then(|| format!("k{}", self.rng.random_range(0..5))),
        };
        self.world.event(&self.holders[publisher], draft)
    }

    async fn steps(&mut self, door: &Door, count: usize) {
        for step in 0..count {
            let who = self.rng.random_range(0..self.holders.len());
            let what = format!("step {step} of {}", self.holders[who].name);
            let mut published = None;
            match self.rng.random_range(0..10) {
                0..=4 => {
                    let event = self.draw_event(who);
                    let may = self.world.publish(&self.holders[who], &event);
                    let frame = json!({"op": "publish", "event": event.feature()});
                    self.expect(who, &what, frame, may).await;
                    published = may.then_some(event);
                }
                5..=8 => {
                    let place = self.draw_place();
                    let may = self.holders[who].may_be(place);
                    self.expect(who, &what, json!({"op": "move", "coordinates": place}), may).await;
                    if may {
                        self.holders[who].place(place);
                    }
                }
                _ => {
                    let id = format!("e{}", self.rng.random_range(0..6));
                    let holder = &self.holders[who];
                    if self.world.revocable_count(holder, &id) > 1 {
                        continue;
                    }
                    let caller = Caller { door, token: token(holder, "publish") };
                    let (status, answer) = caller.call("DELETE", &format!("/v1/events/{id}"), None).await;
                    let found = self.world.revoke(holder, &id);
                    assert_eq!(status, if found { 204 } else { 404 }, "{what}: {id} {answer}");
                }
            }
            let expected = self.world.tell(&mut self.holders, published.as_ref());
            self.compare(&what, expected).await;
        }
        for socket in &mut self.sockets {
            socket.assert_quiet().await;
        }
    }

    async fn expect(&mut self, who: usize, what: &str, frame: Value, may: bool) {
        let answer = self.sockets[who].request(frame).await;
        if may {
            assert_eq!(answer["op"], "ok", "{what}: {answer}");
        } else {
            assert_eq!(answer["problem"]["type"], "urn:nearcast:problem:forbidden", "{what}: {answer}");
        }
    }

    async fn compare(&mut self, what: &str, expected: Vec<Vec<Told>>) {
        let known = self.holders.iter().zip(&mut self.sockets).zip(&mut self.offsets);
        for (((holder, socket), offset), expected) in known.zip(expected) {
            let mut frames = Vec::new();
            let mut found = Vec::new();
            while found.len() < expected.len() {
                let frame = socket.event().await;
                found.push(told(&frame));
                *offset += 1;
                assert_eq!(frame["offset"], *offset, "{what}, to {}: {frame}", holder.name);
                frames.push(frame);
            }
            found.sort();
            assert_eq!(found, expected, "{what}, to {}: {frames:?}", holder.name);
        }
    }

    /// Goes on with another broker on the same data, from where everybody was.
    async fn reconnect(&mut self, door: &Door, after: &[String]) {
        self.sockets.clear();
        for (holder, after) in self.holders.iter().zip(after) {
            self.sockets.push(open(door, holder, &format!("?resume={after}")).await);
        }
    }

    /// Where everybody is, and that they are shown their own conditions alone.
    async fn marks(&mut self, door: &Door) -> Vec<String> {
        let mut marks = Vec::new();
        for ((holder, socket), offset) in self.holders.iter().zip(&self.sockets).zip(&self.offsets) {
            let caller = Caller { door, token: token(holder, "subscribe") };
            let path = format!("/v1/clients/{}/subscriptions", holder.name);
            let (status, own) = caller.call("GET", &path, None).await;
            assert_eq!((status, own.as_array().map(Vec::len)), (200, Some(4)), "{own}");
            assert!(!own.to_string().contains("ship"), "{own}");
            marks.push(format!("{}:{offset}", socket.ready["epoch"].as_str().expect("an epoch")));
        }
        marks
    }
}

async fn open(door: &Door, holder: &Holder, query: &str) -> Ws {
    let token = token(holder, "publish subscribe");
    Ws::open(ask_for(door, holder.name, &token, query), holder.name).await.expect("it may")
}

fn told(frame: &Value) -> Told {
    const NAMES: [&str; 6] = ["all", "part", "moving", "near", "enter", "exit"];
    let known = |found: &Value| NAMES.into_iter().find(|name| found == name).expect("a name");
    let names: BTreeSet<_> = frame["subscriptions"].as_array().expect("names").iter().map(known).collect();
    assert!(!frame.to_string().contains("\\u0001"), "{frame}");
    let transition = Some(&frame["transition"]).filter(|told| !told.is_null()).map(known);
    (frame["event"]["properties"]["n"].as_u64().expect("a number"), transition, names)
}

/// A broker with the zones.
fn with_zones(config: &str) -> Serve {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("zones.json");
    std::fs::write(&file, zones().to_string()).expect("written");
    let path = file.to_str().expect("a plain path");
    guarded(&ISSUER, &format!("zones = \"{path}\"\n{config}")).0.keeping(folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_hears_or_tells_more_than_their_claim() {
    for engine in ["scan", "cells"] {
        let program = with_zones("").args(&["--engine", engine, "--shards", "2"]).start().await;
        let mut run = Run::begin(&program, false).await;
        run.steps(&program, steps_count()).await;
        program.finish().await;
    }
}

fn on_disk(engine: &str, data: &Path) -> Serve {
    with_zones("").args(&["--engine", engine, "--data", data.to_str().expect("a plain path")])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_after_a_restart() {
    for engine in ["scan", "cells"] {
        let folder = TempDir::new().expect("a folder");
        let data = folder.path().join("data");
        let mut program = on_disk(engine, &data).start().await;
        let mut run = Run::begin(&program, true).await;
        for _ in 0..3 {
            run.steps(&program, steps_count() / 5).await;
            let marks = run.marks(&program).await;
            program.kill();
            program = on_disk(engine, &data).start().await;
            run.reconnect(&program, &marks).await;
        }
        run.steps(&program, steps_count() / 5).await;
        program.finish().await;
    }
}

#[cfg(feature = "gpu")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_on_a_device() {
    use broker::Config;
    use broker::config::{AuthMode, EngineName};
    use device::Device;

    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, document: Value| {
        let path = folder.path().join(name);
        std::fs::write(&path, document.to_string()).expect("written");
        path.to_str().expect("a plain path").to_owned()
    };
    for engine in [EngineName::Clcb, EngineName::Gpu] {
        let mut config = Config::default();
        (config.auth.mode, config.server.engine) = (AuthMode::Jwt, engine);
        config.auth.jwks = write("keys.json", ISSUER.jwks());
        config.auth.zones = write("zones.json", zones());
        let devices = [Device::host(1 << 30)];
        let program = crate::harness::Inside::start(config, &devices).await;
        crate::harness::eventually("it is ready", async || {
            (program.http().get("/readyz").await.status == 200).then_some(())
        })
        .await;
        let mut run = Run::begin(&program, false).await;
        run.steps(&program, steps_count() / 2).await;
        drop(run);
        program.finish().await;
    }
}
