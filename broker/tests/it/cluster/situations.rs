//! Checks, rules and groups in a cluster with several active brokers: each is served by the broker of its partition.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::several_active::{Member, PLACE, flood, follows, two};
use super::{AWAY, NOT_TOLD, flooding, folder, kills, publish, ready, run};
use crate::harness::{Link, State, Ws, eventually, feature};
use crate::nats::Servers;

/// A rule set that numbers the events of a kind from 1 on.
fn counting() -> Value {
    json!({
        "facts": {"add": {"where": "kind = 'kept'", "args": ["@id"]}},
        "program": "add(I), total(T) <=> U is T + 1, total(U), counted(U, I).\nadd(I) <=> total(1), counted(1, I).",
        "publish": {"counted": {"properties": {"type": "counted", "count": "{0}", "id": "{1}"}}},
    })
}

/// Puts a document under a name that is in a broker's partition, and returns the name. The other broker passes calls on.
async fn put(there: &Member, other: &Member, kind: &str, document: &Value) -> String {
    // What was passed on goes no further, by which it is seen where a name belongs.
    let marked = [("nearcast-forwarded", "1")];
    for number in 0..64 {
        let name = format!("{kind}{number}");
        let path = format!("/v1/{kind}/{name}");
        let content_type = Some("application/json");
        let http = there.program.http();
        let answer = http.send_with("PUT", &path, content_type, &marked, document.to_string()).await;
        if answer.status == 201 {
            assert_eq!(other.program.http().put(&path, document).await.status, 200);
            for (method, of) in [("GET", ""), ("GET", "/findings"), ("POST", "/pause"), ("POST", "/resume")] {
                let path = format!("{path}{of}");
                let [here, passed] = [there, other].map(|member| member.program.http());
                let passed = passed.send(method, &path, None, String::new()).await;
                assert!([200, 204].contains(&passed.status), "{of}: {}", passed.text());
                assert_eq!(here.send(method, &path, None, String::new()).await.status, passed.status, "{of}");
            }
            return name;
        }
        assert_eq!((answer.status, &answer.json()["type"]), (307, &json!("urn:nearcast:problem:elsewhere")));
        assert_eq!(answer.headers["location"], format!("{}{path}", other.url));
    }
    panic!("of 64 names none is in partition {}", there.partition);
}

/// A durable subscription of a client to findings, and what came of them.
struct Listener {
    client: String,
    epoch: String,
    /// The ids of the events that were counted, in the order of their numbers.
    counted: Vec<String>,
}

impl Listener {
    async fn begin(there: &Member, client: &str) -> Self {
        let subscription = json!({"filters": [{"where": "type = 'counted'"}], "durable": true});
        let path = format!("/v1/clients/{client}/subscriptions/counted");
        there.program.http().put(&path, &subscription).await.expect(201);
        let epoch = Ws::connect(there.program.address(), client).await.ready["epoch"].clone();
        let epoch = epoch.as_str().expect("a text").to_owned();
        Self { client: client.to_owned(), epoch, counted: Vec::new() }
    }

    /// Reads until the finding about an event has come: all numbers come, each once, in their order.
    async fn read_to(&mut self, there: &Member, id: &str) {
        let offset = self.counted.len() as u64;
        let mut socket = Ws::resume(there.program.address(), &self.client, &self.epoch, offset).await;
        assert_eq!(socket.ready["epoch"], *self.epoch, "{}", socket.ready);
        while self.counted.last().is_none_or(|last| last != id) {
            let frame = socket.event().await;
            let properties = &frame["event"]["properties"];
            let next = self.counted.len() as u64 + 1;
            assert_eq!((&frame["offset"], &properties["count"]), (&json!(next), &json!(next)), "{frame}");
            self.counted.push(properties["id"].as_str().expect("an id").to_owned());
        }
    }
}

/// The broker of a rule set is killed while many events are on their way, and that of a listener: each accepted event is counted once, and
/// the listeners of both partitions get each finding once.
#[test]
fn a_rule_set_goes_on_at_its_standby_and_each_finding_comes_once() {
    let _one = flooding();
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let [mut first, mut active] = two(&servers).await;
        let clients = first.clients().await;
        let name = put(&active, &first, "rules", &counting()).await;
        let mut listeners =
            [Listener::begin(&first, &clients[0]).await, Listener::begin(&active, &clients[1]).await];
        let mut standby = Member::start(&servers, 2).await;
        let (mut next, mut acknowledged) = (0, BTreeSet::new());
        for round in 0..kills(10) {
            follows(&standby).await;
            let stop = CancellationToken::new();
            let flood = tokio::spawn(flood(first.program.http(), 10, next, stop.clone()));
            tokio::time::sleep(Duration::from_millis(500)).await;
            active.program.signal("KILL");
            active.program.exit_status().await;
            ready(&mut standby.program).await;
            stop.cancel();
            let (taken, behind) = flood.await.expect("no panic");
            acknowledged.extend(taken.into_iter().map(|number| format!("e{number}")));
            next = behind;
            active = std::mem::replace(&mut standby, Member::start(&servers, 2).await);
            // The listener's broker has to know, too, which findings it has had.
            let Member { data, program, .. } = first;
            program.kill();
            first = Member::start_in(&servers, 1, data).await;
            ready(&mut first.program).await;
            let last = format!("last{round}");
            let event = feature(&last, PLACE, json!({"kind": "kept"}));
            eventually("it is taken", async || publish(&first.program.http(), &event).await.then_some(()))
                .await;
            listeners[0].read_to(&first, &last).await;
            listeners[1].read_to(&active, &last).await;
        }
        check_counted(&listeners, &acknowledged);
        let activity = active.program.http().get(&format!("/v1/rules/{name}")).await.json();
        assert_eq!(activity["activity"]["restarts"], 0, "{activity}");
        standby.program.finish().await;
        active.program.finish().await;
        first.program.finish().await;
    });
}

/// The broker of a rule set is cut off from all servers while it finds something, and what it had sent arrives after another one has taken over.
#[test]
fn findings_of_a_broker_that_was_cut_off_come_once() {
    let _one = flooding();
    run(async {
        let nats = folder();
        let servers = Servers::start_linked(nats.path(), 3, "always", NOT_TOLD, |_, _, port| port);
        let links = || servers.ports().into_iter().map(Link::to).collect::<Vec<_>>();
        let all = [links(), links()];
        let start = async |at: usize| {
            let ports: Vec<_> = all[at].iter().map(Link::port).collect();
            Member::start_over(&ports, 2, folder()).await
        };
        let mut first = Member::start(&servers, 1).await;
        let mut members = [start(0).await, start(1).await];
        ready(&mut first.program).await;
        let mut old = eventually("one is active", async || {
            let mut roles = Vec::new();
            for member in &members {
                roles.push(member.program.http().get("/readyz").await.status == 200);
            }
            roles.into_iter().position(|is_active| is_active)
        })
        .await;
        for member in [&first, &members[old]] {
            member.clients().await;
        }
        put(&members[old], &first, "rules", &counting()).await;
        let clients = first.clients().await;
        let mut listeners =
            [Listener::begin(&first, &clients[0]).await, Listener::begin(&members[old], &clients[1]).await];
        let (mut next, mut acknowledged) = (0, BTreeSet::new());
        for (round, away) in (0..kills(5)).flat_map(|round| AWAY.map(|away| (round, away))) {
            follows(&members[1 - old]).await;
            let stop = CancellationToken::new();
            let flood = tokio::spawn(flood(first.program.http(), 10, next, stop.clone()));
            tokio::time::sleep(Duration::from_millis(500)).await;
            all[old].iter().for_each(|link| link.set(away));
            ready(&mut members[1 - old].program).await;
            all[old].iter().for_each(|link| link.set(State::Whole));
            follows(&members[old]).await;
            stop.cancel();
            let (taken, behind) = flood.await.expect("no panic");
            acknowledged.extend(taken.into_iter().map(|number| format!("e{number}")));
            (next, old) = (behind, 1 - old);
            let last = format!("last{round}{away:?}");
            let event = feature(&last, PLACE, json!({"kind": "kept"}));
            eventually("it is taken", async || publish(&first.program.http(), &event).await.then_some(()))
                .await;
            listeners[0].read_to(&first, &last).await;
            listeners[1].read_to(&members[old], &last).await;
        }
        check_counted(&listeners, &acknowledged);
        let [one, other] = members;
        let (active, standby) = if old == 0 { (one, other) } else { (other, one) };
        standby.program.finish().await;
        active.program.finish().await;
        first.program.finish().await;
    });
}

/// Checks that the listeners have the same, each event once, and all that was acknowledged.
fn check_counted(listeners: &[Listener; 2], acknowledged: &BTreeSet<String>) {
    assert_eq!(listeners[0].counted, listeners[1].counted);
    let counted: BTreeSet<_> = listeners[0].counted.iter().cloned().collect();
    assert_eq!(counted.len(), listeners[0].counted.len(), "an event was counted twice");
    let missed = acknowledged.difference(&counted).count();
    assert_eq!(missed, 0, "of {} some were not counted", acknowledged.len());
    println!("{} acknowledged, {} counted at both, none twice", acknowledged.len(), counted.len());
}

/// A check and a group definition see what comes in at any broker, and say what they find to the clients of all.
#[test]
fn checks_and_groups_see_the_events_of_all_brokers() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let [one, two] = two(&servers).await;
        let clients = one.clients().await;
        let doors = [one.program.http(), two.program.http()];
        let subscription = json!({"filters": [{"where": "type = 'violation' OR type = 'group'"}]});
        let path = format!("/v1/clients/{}/subscriptions/found", clients[0]);
        doors[0].put(&path, &subscription).await.expect(201);
        let mut listener = Ws::connect(one.program.address(), &clients[0]).await;

        let mut check = json!({
            "contexts": {"all": {"where": "speed >= 0", "for_s": 600}},
            "formula": {"forall": "a", "in": "all", "that":
                {"forall": "b", "in": "all", "that": "a.speed <= b.speed + 50"}},
        });
        let name = put(&two, &one, "checks", &check).await;
        for (door, speed) in doors.iter().zip([10, 90]) {
            let event = feature(&format!("s{speed}"), PLACE, json!({"speed": speed}));
            assert!(publish(door, &event).await);
        }
        let event = listener.event().await["event"].clone();
        assert_eq!(event["derived"]["by"], format!("checks/{name}"), "{event}");
        let own = put(&one, &two, "checks", &check).await;
        for door in &doors {
            let listed = door.get("/v1/checks").await.json();
            let names = listed.as_array().into_iter().flatten().map(|one| one["name"].to_string());
            assert_eq!(
                names.collect::<BTreeSet<_>>(),
                BTreeSet::from([json!(name).to_string(), json!(own).to_string()])
            );
        }
        doors[0].delete(&format!("/v1/checks/{own}")).await.expect(204);
        assert_eq!(event["properties"]["bindings"], json!({"a": "s90", "b": "s10"}), "{event}");
        let found = doors[1].get(&format!("/v1/checks/{name}/findings")).await.json();
        assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
        check["on_violation"] = json!("mark");
        let problem = doors[1].put(&format!("/v1/checks/{name}"), &check).await.problem(400);
        assert_eq!(problem["errors"][0]["pointer"], "/on_violation", "{problem}");

        let pickup = json!({
            "roles": {"taxi": {"where": "type = 'taxi'"}, "rider": {"where": "type = 'rider'"}},
            "where": ["DISTANCE(taxi, rider) <= 800"],
        });
        put(&two, &one, "groups", &pickup).await;
        for (door, kind) in doors.iter().zip(["taxi", "rider"]) {
            let mut event = feature(kind, PLACE, json!({"type": kind}));
            event["ttl_s"] = json!(600);
            assert!(publish(door, &event).await);
        }
        let event = listener.event().await["event"].clone();
        assert_eq!(event["properties"]["roles"], json!({"taxi": "taxi", "rider": "rider"}), "{event}");
        doors[0].delete("/v1/events/rider").await.expect(204);
        let event = listener.event().await["event"].clone();
        assert_eq!(event["properties"]["transition"], "exit", "{event}");
        listener.assert_quiet().await;
        one.program.finish().await;
        two.program.finish().await;
    });
}
