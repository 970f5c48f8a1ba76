//! Several active brokers, each with the clients of its partition, and one stream of events.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{Watched, flooding, folder, kills, publish, ready, run, told};
use crate::harness::{Http, Program, Serve, Ws, eventually, feature};
use crate::nats::{SYSTEM, Servers, USER, addresses, held};

pub(super) const PLACE: [f64; 2] = [9.0, 45.0];

/// A member of a partition, of two.
pub(super) struct Member {
    pub(super) data: TempDir,
    pub(super) program: Program,
    pub(super) url: String,
    pub(super) partition: u32,
}

impl Member {
    /// Starts one, which follows where the partition has an active broker.
    pub(super) async fn start(servers: &Servers, partition: u32) -> Self {
        Self::start_in(servers, partition, folder()).await
    }

    pub(super) async fn start_in(servers: &Servers, partition: u32, data: TempDir) -> Self {
        Self::start_over(&servers.ports(), partition, data).await
    }

    /// Starts one that reaches the servers at these ports.
    pub(super) async fn start_over(ports: &[u16], partition: u32, data: TempDir) -> Self {
        let address = held().local_addr().expect("a port").to_string();
        let url = format!("http://{address}");
        let nats = addresses(ports, USER);
        let program = Serve::new()
            .args(&["--cluster", &nats, "--cluster-partition", &format!("{partition}/2")])
            .args(&["--data", data.path().to_str().expect("UTF-8"), "--shards", "2"])
            .env("BROKER__CLUSTER__SYSTEM_NATS", &addresses(ports, SYSTEM))
            .env("BROKER__CLUSTER__URL", &url)
            // Nothing is acknowledged by the clients.
            .env("BROKER__SESSIONS__KEPT_FRAMES", "1000000")
            // Many are found in a second.
            .env("BROKER__SITUATIONS__FINDINGS_PER_SECOND", "0")
            .env("BROKER__SITUATIONS__TENANT_FINDINGS_PER_SECOND", "0")
            .listen(&address);
        Self { data, program: program.listening().await, url, partition }
    }

    async fn cluster_of(&self, client: &str) -> Option<Value> {
        let (http, path) = (self.program.http(), format!("/v1/cluster?client={client}"));
        let answer = http.attempt("GET", &path, None, String::new()).await?;
        (answer.status == 200).then(|| answer.json())
    }

    /// A client of each partition, once both have an active broker.
    pub(super) async fn clients(&self) -> [String; 2] {
        let names: Vec<_> = (0..64).map(|number| format!("car{number}")).collect();
        eventually("both partitions are served", async || {
            let mut found = BTreeMap::new();
            for name in &names {
                let told = self.cluster_of(name).await?;
                found.entry(told["client_url"].as_str()?.to_owned()).or_insert_with(|| name.clone());
            }
            let own = found.remove(&self.url)?;
            let (_, other) = found.pop_first()?;
            Some(if self.partition == 1 { [own, other] } else { [other, own] })
        })
        .await
    }
}

/// Waits until a standby reads its partition's ledger.
pub(super) async fn follows(standby: &Member) {
    eventually("the standby follows", async || {
        let answer = standby.program.http().attempt("GET", "/readyz", None, String::new()).await?;
        let is_standby = answer.status == 503 && answer.json()["phase"] == "standby";
        (is_standby && answer.json()["done"].as_u64() > Some(0)).then_some(())
    })
    .await;
}

/// Publishes requests of `count` events one after the other, from a number on, until `stop`; returns those that were acknowledged, and the next
/// number.
pub(super) async fn flood(http: Http, count: u64, first: u64, stop: CancellationToken) -> (Vec<u64>, u64) {
    let (mut next, mut acknowledged) = (first, Vec::new());
    while !stop.is_cancelled() {
        let lines: String = (next..next + count)
            .map(|number| format!("{}\n", feature(&format!("e{number}"), PLACE, json!({"kind": "kept"}))))
            .collect();
        let answer = http.post("/v1/events", "application/x-ndjson", lines).await;
        assert!([202, 503].contains(&answer.status), "{}", answer.text());
        if answer.status == 202 {
            assert_eq!(answer.json()["accepted"], count);
            acknowledged.extend(next..next + count);
        }
        next += count;
        // All of it is kept for a client that reads nothing meanwhile.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    (acknowledged, next)
}

/// Two active brokers that know each other.
pub(super) async fn two(servers: &Servers) -> [Member; 2] {
    let mut members = [Member::start(servers, 1).await, Member::start(servers, 2).await];
    for member in &mut members {
        ready(&mut member.program).await;
    }
    for member in &members {
        member.clients().await;
    }
    members
}

#[test]
fn what_any_broker_accepts_reaches_the_clients_of_all() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let [one, two] = two(&servers).await;
        let clients = one.clients().await;
        let doors = [one.program.http(), two.program.http()];

        let told = one.cluster_of(&clients[1]).await.expect("it answers");
        assert_eq!((&told["partitions"], &told["client_url"]), (&json!(2), &json!(two.url)), "{told}");
        let members = told["members"].as_array().expect("a list");
        assert!(members.iter().all(|member| member["role"] == "active"), "{told}");

        // A client is served by one of them, and the other one passes calls on.
        let path = format!("/v1/clients/{}/subscriptions/all", clients[1]);
        let subscription = json!({"filters": [{"where": "kind = 'kept'"}], "durable": true});
        let refused = doors[0].put(&path, &json!({"filters": [{"where": "kind ="}]})).await.problem(400);
        assert_eq!(refused["type"], "urn:nearcast:problem:invalid-document", "{refused}");
        doors[0].put(&path, &subscription).await.expect(201);
        let kept = doors[0].get(&path).await.expect(200);
        assert_eq!(kept.json()["durable"], true, "{}", kept.text());
        doors[0].delete(&path).await.expect(204);
        doors[1].get(&path).await.problem(404);
        // What a broker has passed on goes no further, and a stream is sent to where it is served.
        let marked = [("nearcast-forwarded", "1")];
        let sent = doors[0].send_with("DELETE", &path, None, &marked, String::new()).await;
        assert_eq!((sent.status, &sent.json()["type"]), (307, &json!("urn:nearcast:problem:elsewhere")));
        assert_eq!(sent.headers["location"], format!("{}{path}", two.url));
        let asked = doors[0].get(&format!("/v1/clients/{}/events?access_token=a&x=1", clients[1])).await;
        assert_eq!(asked.status, 307);
        assert_eq!(asked.headers["location"], format!("{}/v1/clients/{}/events?x=1", two.url, clients[1]));
        for (door, client) in doors.iter().zip(&clients) {
            door.put(&format!("/v1/clients/{client}/subscriptions/all"), &subscription).await.expect(201);
        }
        let mut sockets = [
            Ws::connect(one.program.address(), &clients[0]).await,
            Ws::connect(two.program.address(), &clients[1]).await,
        ];

        // Both publish at the same time, and each client has all in the same order.
        let publish_some = async |door: usize| {
            for number in 0..100 {
                let event = feature(&format!("{door}.{number}"), PLACE, json!({"kind": "kept"}));
                assert!(publish(&doors[door], &event).await);
            }
        };
        tokio::join!(publish_some(0), publish_some(1));
        let mut orders = Vec::new();
        for socket in &mut sockets {
            let mut ids = Vec::new();
            for offset in 1..=200_u64 {
                let frame = socket.event().await;
                assert_eq!(frame["offset"], offset, "{frame}");
                ids.push(frame["event"]["id"].as_str().expect("a text").to_owned());
            }
            orders.push(ids);
        }
        assert_eq!(orders[0], orders[1]);
        for door in 0..2 {
            let own: Vec<_> = orders[0].iter().filter(|id| id.starts_with(&format!("{door}."))).collect();
            assert!(own.iter().enumerate().all(|(number, id)| **id == format!("{door}.{number}")), "{own:?}");
        }

        // Any broker tells to whom an event went, and lists the clients of all.
        for door in &doors {
            let told = door.get("/v1/events/1.7/deliveries").await.json();
            let listed: Vec<_> = told["deliveries"].as_array().into_iter().flatten().collect();
            assert!(clients.iter().all(|name| listed.iter().any(|one| one["client"] == **name)), "{told}");
            let (mut names, mut after) = (BTreeSet::new(), String::new());
            for _ in 0..2 {
                let page = door.get(&format!("/v1/clients?limit=1{after}")).await.json();
                names.insert(page["clients"][0]["client"].as_str().expect("a name").to_owned());
                after = page["next"].as_str().map(|next| format!("&after={next}")).unwrap_or_default();
            }
            assert_eq!((names, &*after), (clients.iter().cloned().collect(), ""));
        }

        // A batch of moves goes to the brokers of its clients.
        let moves: String =
            [(0, [9.0, 45.0]), (1, [9.1, 45.1]), (1, [999.0, 0.0]), (0, [9.2, 45.2]), (1, [9.3, 45.3])]
                .map(|(of, place)| format!("{}\n", json!({"client": clients[of], "coordinates": place})))
                .concat();
        for door in &doors {
            let answer = door.post("/v1/positions", "application/x-ndjson", moves.clone()).await.json();
            assert_eq!(
                (&answer["moved"], &answer["rejected"][0]["index"]),
                (&json!(4), &json!(2)),
                "{answer}"
            );
            assert_eq!(answer["rejected"].as_array().map(Vec::len), Some(1), "{answer}");
        }
        for (number, door) in doors.iter().enumerate() {
            let told = door.get(&format!("/v1/clients/{}/position", clients[number])).await.json();
            assert_eq!(told["coordinates"], json!([[9.2, 45.2], [9.3, 45.3]][number]), "{told}");
        }

        // A live event is everywhere, the last one of an object counts, and any broker ends it.
        for (door, kind) in doors.iter().zip(["first", "second"]) {
            let mut event = feature("bus", PLACE, json!({"kind": kind}));
            event["ttl_s"] = json!(600);
            assert!(publish(door, &event).await);
            let live = door.get("/v1/events").await.json();
            assert_eq!(
                live["features"][0]["properties"]["kind"], kind,
                "what was answered is in force there"
            );
        }
        for door in &doors {
            eventually("it is live", async || {
                let live = door.get("/v1/events").await.json();
                (live["features"][0]["properties"]["kind"] == "second").then_some(())
            })
            .await;
        }
        doors[0].delete("/v1/events/bus").await.expect(204);
        doors[0].delete("/v1/events/bus").await.expect(404);
        eventually("it is not live any more", async || {
            let live = doors[1].get("/v1/events").await.json();
            live["features"].as_array().expect("a list").is_empty().then_some(())
        })
        .await;

        two.program.finish().await;
        // Half of a list would look like all of it, and what can be moved is.
        doors[0].get("/v1/clients").await.problem(503);
        let answer = doors[0].post("/v1/positions", "application/x-ndjson", moves).await.json();
        assert_eq!(answer["moved"], 2, "{answer}");
        assert_eq!(answer["rejected"][0]["problem"]["status"], 503, "{answer}");
        one.program.finish().await;
    });
}

/// Nothing is published for so long that the stream keeps nothing: a takeover is as any other. Another stream is noticed.
#[test]
fn an_empty_stream_holds_nobody_up_and_another_one_is_noticed() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let [first, active] = two(&servers).await;
        let clients = first.clients().await;
        let client: &'static str = clients[1].clone().leak();
        let mut watched = Watched::begin_as(client, &active.program).await;
        let mut standby = Member::start(&servers, 2).await;
        follows(&standby).await;
        watched.publish_more(&first.program, 5).await;
        watched.read(active.program.address()).await;
        // It stores how far it has read.
        tokio::time::sleep(Duration::from_secs(2)).await;
        ask_nats(&servers, "STREAM.PURGE.nearcast-events");
        active.program.kill();
        ready(&mut standby.program).await;
        watched.read(standby.program.address()).await;
        watched.publish_more(&first.program, 5).await;
        watched.read(standby.program.address()).await;

        tokio::time::sleep(Duration::from_secs(2)).await;
        first.program.kill();
        let Member { data, program, .. } = standby;
        program.kill();
        ask_nats(&servers, "STREAM.DELETE.nearcast-events");
        let mut again = Member::start_in(&servers, 2, data).await;
        ready(&mut again.program).await;
        let ready = Ws::connect(again.program.address(), client).await.ready.clone();
        assert_ne!(ready["epoch"], *watched.epoch, "nobody knows what was in the stream");
        again.program.finish().await;
    });
}

/// Asks JetStream for something, and waits until it is done.
fn ask_nats(servers: &Servers, what: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", servers.ports()[0])).expect("NATS listens");
    let (user, password) = USER;
    let connect = format!(r#"CONNECT {{"user":"{user}","pass":"{password}","verbose":false}}"#);
    write!(stream, "{connect}\r\nSUB done 1\r\nPUB $JS.API.{what} done 0\r\n\r\n").expect("it takes it");
    let mut said = String::new();
    let mut lines = BufReader::new(stream);
    while !said.contains("\"success\":true") {
        assert_ne!(lines.read_line(&mut said).expect("it answers"), 0, "{said}");
    }
}

/// Lets a durable client know what enters a circle around the place and what leaves it; returns the epoch of its session.
pub(super) async fn watch_place(program: &Program, client: &str) -> String {
    let filter = json!({"area": {"center": PLACE, "radius_m": 100}});
    let subscription = json!({"filters": [filter], "on": ["enter", "exit"], "durable": true});
    let path = format!("/v1/clients/{client}/subscriptions/area");
    program.http().put(&path, &subscription).await.expect(201);
    let ready = Ws::connect(program.address(), client).await.ready;
    ready["epoch"].as_str().expect("a text").to_owned()
}

/// A live object goes in and out of an area while the brokers of the area's client are killed: each enter and each exit comes once.
#[test]
fn transitions_take_turns_over_takeovers() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let [first, mut active] = two(&servers).await;
        let clients = first.clients().await;
        let client = &clients[1];
        let epoch = watch_place(&active.program, client).await;
        let mut standby = Member::start(&servers, 2).await;
        let http = first.program.http();
        let (mut moves, mut told_count) = (0, 0_u64);
        for _ in 0..kills(10) {
            follows(&standby).await;
            let mut go = async |count: usize| {
                for _ in 0..count {
                    let place = if moves % 2 == 0 { PLACE } else { [9.1, 45.0] };
                    let mut event = feature("bus", place, json!({"number": moves}));
                    event["ttl_s"] = json!(600);
                    assert!(publish(&http, &event).await);
                    moves += 1;
                }
            };
            go(21).await;
            active.program.signal("KILL");
            go(20).await;
            active.program.exit_status().await;
            ready(&mut standby.program).await;
            go(20).await;
            let mut reader = Ws::resume(standby.program.address(), client, &epoch, told_count).await;
            assert_eq!(reader.ready["epoch"], *epoch, "{}", reader.ready);
            while told_count < moves {
                let frame = reader.event().await;
                told_count += 1;
                assert_eq!(frame["offset"], told_count, "{frame}");
                let turn = if told_count % 2 == 1 { "enter" } else { "exit" };
                assert_eq!(frame["transition"], turn, "{frame}");
            }
            active = std::mem::replace(&mut standby, Member::start(&servers, 2).await);
        }
        standby.program.finish().await;
        active.program.finish().await;
        first.program.finish().await;
    });
}

/// Partition 2 loses its active broker, and its standby goes on where the ledger is: each event comes once, in the order of the stream.
#[test]
fn a_partition_that_is_taken_over_misses_nothing_and_has_nothing_twice() {
    let _one = flooding();
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let [mut first, mut active] = two(&servers).await;
        let clients = first.clients().await;
        let client: &'static str = clients[1].clone().leak();
        let mut watched = Watched::begin_as(client, &active.program).await;
        let mut standby = Member::start(&servers, 2).await;
        let mut times = Vec::new();
        for signal in (0..kills(10)).flat_map(|_| ["KILL", "TERM"]) {
            follows(&standby).await;
            watched.publish_more(&first.program, 5).await;
            // Many are on their way when it is killed, and when the other one takes over.
            let stop = CancellationToken::new();
            let flood = tokio::spawn(flood(first.program.http(), 40, watched.next, stop.clone()));
            tokio::time::sleep(Duration::from_millis(300)).await;
            let begun = Instant::now();
            active.program.signal(signal);
            active.program.exit_status().await;
            ready(&mut standby.program).await;
            times.push(begun.elapsed());
            stop.cancel();
            let (acknowledged, next) = flood.await.expect("no panic");
            watched.next = next;
            watched.acknowledged.extend(acknowledged);
            watched.publish_more(&first.program, 10).await;
            watched.read(standby.program.address()).await;
            active = std::mem::replace(&mut standby, Member::start(&servers, 2).await);
        }
        told("kills and ends of a partition's active broker", &mut times, &watched);
        first.program.assert_healthy();
        standby.program.finish().await;
        active.program.finish().await;
        first.program.finish().await;
    });
}
