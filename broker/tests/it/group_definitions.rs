//! Groups: live objects, one for each role, that fit together, as they come, move and leave.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Form, Http, Program, Serve, Ws, encode, eventually, feature};

/// Taxis with riders near them that fit in. The first role is the rider: `json!` orders names.
fn pickup() -> Value {
    json!({
        "roles": {"taxi": {"where": "type = 'taxi' AND free = TRUE"}, "rider": {"where": "type = 'rider'"}},
        "where": ["DISTANCE(taxi, rider) <= 800", "taxi.seats >= rider.party"],
        "order": "DISTANCE(taxi, rider)",
    })
}

/// A live event about an object, north of a place by some metres.
fn live(object: &str, metres: f64, properties: Value) -> Value {
    let mut event = feature(&format!("{object}@{metres}"), [9.0, 45.0 + metres / 111_195.0], properties);
    event["key"] = json!(object);
    event
}

fn taxi(object: &str, metres: f64, is_free: bool) -> Value {
    live(object, metres, json!({"type": "taxi", "free": is_free, "seats": 4}))
}

fn rider(object: &str, metres: f64, party: u32) -> Value {
    live(object, metres, json!({"type": "rider", "party": party}))
}

async fn publish(http: &Http, event: &Value) {
    http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
}

async fn publish_all(http: &Http, events: &[Value]) {
    let (kind, body) = encode(Form::Lines, events);
    http.post("/v1/events", kind, body).await.expect(202);
}

async fn document(http: &Http, name: &str) -> Value {
    http.get(&format!("/v1/groups/{name}")).await.expect(200).json()
}

/// The document once its groups are these.
async fn holds(http: &Http, name: &str, groups: Value) -> Value {
    eventually("its groups", async || {
        let document = document(http, name).await;
        (document["groups"] == groups).then_some(document)
    })
    .await
}

/// Transition, taxi and rider of what comes next.
async fn told(reader: &mut Ws) -> (String, String, String) {
    let event = reader.event().await["event"].clone();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let properties = &event["properties"];
    assert_eq!((&properties["type"], &properties["group"]), (&json!("group"), &json!("pickup")), "{event}");
    (text(&properties["transition"]), text(&properties["roles"]["taxi"]), text(&properties["roles"]["rider"]))
}

fn of(transition: &str, taxi: &str, rider: &str) -> (String, String, String) {
    (transition.to_owned(), taxi.to_owned(), rider.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn riders_and_taxis_are_grouped_while_they_fit() {
    let program = Serve::new().start().await;
    let http = program.http();
    // What is live already is a candidate.
    publish(&http, &taxi("t1", 0.0, true)).await;
    let mut reader = program.ws("reader").await;
    reader.subscribe("groups", json!({"filters": [{"where": "type = 'group'"}]})).await;
    let made = http.put("/v1/groups/pickup", &pickup()).await.expect(201).json();
    assert_eq!((&made["limit"], &made["where"][1]), (&json!(100), &json!("taxi.seats >= rider.party")));
    publish(&http, &rider("r1", 500.0, 2)).await;
    let event = reader.event().await["event"].clone();
    assert_eq!(event["geometry"], rider("", 500.0, 0)["geometry"], "the place of the first role");
    let roles = json!({"taxi": "t1", "rider": "r1"});
    assert_eq!(
        event["properties"],
        json!({"type": "group", "group": "pickup", "roles": roles, "transition": "enter"})
    );
    assert_eq!(event["derived"], json!({"by": "groups/pickup", "from": ["r1@500", "t1@0"], "depth": 1}));

    // A newer event keeps the group while the conditions hold.
    publish(&http, &rider("r1", 600.0, 4)).await;
    publish(&http, &rider("r2", 100.0, 5)).await;
    publish(&http, &taxi("t2", 700.0, true)).await;
    assert_eq!(told(&mut reader).await, of("enter", "t2", "r1"));
    let found =
        holds(&http, "pickup", json!([{"taxi": "t2", "rider": "r1"}, {"taxi": "t1", "rider": "r1"}])).await;
    assert_eq!(found["activity"]["candidates"], json!({"taxi": 2, "rider": 2}));
    assert_eq!(found["activity"]["consistent"], json!({"taxi": 2, "rider": 1}));
    assert_eq!(found["activity"]["engine"], "cpu");

    let why = http.get("/v1/groups/pickup/objects/r2").await.expect(200).json();
    assert_eq!(
        why["why"],
        "r2 is in no group: as rider, of 2 of role taxi none fits: 2 satisfy DISTANCE(taxi, rider) <= 800, and none of these taxi.seats >= rider.party"
    );
    assert_eq!((&why["groups"], &why["roles"][0]["consistent"]), (&json!(0), &json!(false)));
    let why = http.get("/v1/groups/pickup/objects/r1").await.expect(200).json();
    assert_eq!((&why["why"], &why["groups"]), (&json!("r1 is in 2 groups"), &json!(2)));
    http.get("/v1/groups/pickup/objects/nobody").await.problem(404);

    // It moves away; it is taken; it ends; its time runs out.
    publish(&http, &taxi("t1", 3_000.0, true)).await;
    assert_eq!(told(&mut reader).await, of("exit", "t1", "r1"));
    publish(&http, &taxi("t2", 700.0, false)).await;
    assert_eq!(told(&mut reader).await, of("exit", "t2", "r1"));
    publish(&http, &taxi("t1", 600.0, true)).await;
    assert_eq!(told(&mut reader).await, of("enter", "t1", "r1"));
    http.delete("/v1/events/r1@600").await.expect(204);
    assert_eq!(told(&mut reader).await, of("exit", "t1", "r1"));
    let mut short = rider("r3", 600.0, 1);
    short["ttl_s"] = json!(1);
    publish(&http, &short).await;
    assert_eq!(told(&mut reader).await, of("enter", "t1", "r3"));
    assert_eq!(told(&mut reader).await, of("exit", "t1", "r3"));

    // What is not live is no candidate.
    publish(&http, &feature("once", [9.0, 45.0 + 600.0 / 111_195.0], json!({"type": "rider", "party": 1})))
        .await;
    publish(&http, &rider("r4", 610.0, 1)).await;
    assert_eq!(told(&mut reader).await, of("enter", "t1", "r4"));
    eventually("its findings", async || {
        let findings = http.get("/v1/groups/pickup/findings").await.expect(200).json();
        (findings.as_array().map(Vec::len) == Some(9)).then_some(())
    })
    .await;

    let listed = http.get("/v1/groups").await.expect(200).json();
    assert_eq!((&listed[0]["name"], listed.as_array().map(Vec::len)), (&json!("pickup"), Some(1)));
    // What was answered can be sent back; it begins empty, and what is live comes again.
    http.put("/v1/groups/pickup", &listed[0]).await.expect(200);
    assert_eq!(told(&mut reader).await, of("enter", "t1", "r4"));
    http.delete("/v1/groups/pickup").await.expect(204);
    http.get("/v1/groups/pickup").await.problem(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_groups_are_told_and_to_fall_behind_is_an_exit() {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut reader = program.ws("reader").await;
    reader.subscribe("groups", json!({"filters": [{"where": "type = 'group'"}]})).await;
    let mut first = pickup();
    first["limit"] = json!(1);
    http.put("/v1/groups/pickup", &first).await.expect(201);
    for event in
        [taxi("t2", 0.0, true), rider("r1", 300.0, 1), taxi("t1", 0.0, true), taxi("t3", 250.0, true)]
    {
        publish(&http, &event).await;
    }
    // Equals go by their names.
    let told_now = [told(&mut reader).await, told(&mut reader).await, told(&mut reader).await];
    assert_eq!(told_now, [of("enter", "t2", "r1"), of("exit", "t2", "r1"), of("enter", "t1", "r1")]);
    assert_eq!(told(&mut reader).await, of("exit", "t1", "r1"));
    assert_eq!(told(&mut reader).await, of("enter", "t3", "r1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_told_with_its_place() {
    let program = Serve::new().start().await;
    let http = program.http();
    let pointers = async |document: Value| {
        let problem = http.put("/v1/groups/g", &document).await.problem(400);
        let faults = problem["errors"].as_array().expect("faults").clone();
        faults
            .iter()
            .map(|fault| fault["pointer"].as_str().expect("a pointer").to_owned())
            .collect::<Vec<_>>()
    };
    let with = |member: &str, value: Value| {
        let mut document = pickup();
        document[member] = value;
        document
    };
    assert_eq!(pointers(json!({})).await, ["/roles"]);
    assert_eq!(pointers(with("roles", json!({}))).await, ["/roles"]);
    assert_eq!(
        pointers(with("roles", json!({"a": {"where": "x ="}, "b": {"area": {"radius_m": 5}}}))).await,
        ["/roles/a/where", "/roles/b/area"]
    );
    assert_eq!(
        pointers(with("where", json!(["DISTANCE(taxi, bus) < 5", "taxi.seats >"]))).await,
        ["/where/0", "/where/1"]
    );
    assert_eq!(pointers(with("where", json!(["1 = 1"]))).await, ["/where/0"]);
    assert_eq!(pointers(with("where", json!(["taxi.seats > 1", 1, null]))).await, ["/where/1", "/where/2"]);
    assert_eq!(pointers(with("where", json!("taxi.seats > 1"))).await, ["/where"]);
    assert_eq!(pointers(with("order", json!("taxi.seats < 3"))).await, ["/order"]);
    assert_eq!(pointers(with("limit", json!(0))).await, ["/limit"]);
    assert_eq!(pointers(with("limit", json!(1_001))).await, ["/limit"]);
    assert_eq!(pointers(with("wheres", json!([]))).await, ["/wheres"]);
    http.get("/v1/groups/g").await.problem(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_would_pass_a_bound_is_left_out_and_told() {
    let program = Serve::new().config("[groups]\ncandidates = 3\n").start().await;
    let http = program.http();
    http.put("/v1/groups/pickup", &pickup()).await.expect(201);
    for event in [taxi("t1", 0.0, true), taxi("t2", 10.0, true), rider("r1", 0.0, 1), rider("r2", 0.0, 1)] {
        publish(&http, &event).await;
    }
    let full = eventually("the bound", async || {
        let document = document(&http, "pickup").await;
        (document["activity"]["dropped"] == 1).then_some(document)
    })
    .await;
    let problem = full["activity"]["problem"].as_str().expect("a problem");
    assert!(problem.contains("r2") && problem.contains("groups.candidates"), "{problem}");
    assert_eq!(full["activity"]["restarts"], 0);
    publish(&http, &taxi("t2", 10.0, false)).await;
    publish(&http, &rider("r2", 0.0, 2)).await;
    holds(&http, "pickup", json!([{"taxi": "t1", "rider": "r1"}, {"taxi": "t1", "rider": "r2"}])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_lost_inputs_it_begins_anew_with_all_that_is_live() {
    let program = Serve::new().config("[situations]\nkept_events = 8\n").start().await;
    let http = program.http();
    let mut reader = program.ws("reader").await;
    reader.subscribe("groups", json!({"filters": [{"where": "type = 'group'"}]})).await;
    http.put("/v1/groups/pickup", &pickup()).await.expect(201);
    publish(&http, &taxi("t1", 0.0, true)).await;
    publish(&http, &rider("r1", 0.0, 1)).await;
    assert_eq!(told(&mut reader).await, of("enter", "t1", "r1"));
    http.post("/v1/groups/pickup/pause", "application/json", String::new()).await.expect(204);
    for round in 0..40 {
        publish(&http, &taxi("t2", 5_000.0 + f64::from(round), true)).await;
    }
    http.post("/v1/groups/pickup/resume", "application/json", String::new()).await.expect(204);
    assert_eq!(told(&mut reader).await, of("exit", "t1", "r1"));
    assert_eq!(told(&mut reader).await, of("enter", "t1", "r1"));
    let found = eventually("its candidates", async || {
        let document = document(&http, "pickup").await;
        (document["activity"]["candidates"] == json!({"taxi": 2, "rider": 1})).then_some(document)
    })
    .await;
    assert_eq!(found["activity"]["restarts"], 1, "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_alarm_comes_in_its_turn_and_is_no_loss() {
    let program = Serve::new().start().await;
    let http = program.http();
    publish_all(&http, &(0..5).map(|n| taxi(&format!("far{n}"), 5_000.0, true)).collect::<Vec<_>>()).await;
    let mut alarm = rider("r9", 9_000.0, 1);
    alarm["priority"] = json!("alarm");
    publish(&http, &alarm).await;
    publish_all(&http, &[taxi("t1", 0.0, true), rider("r1", 0.0, 1)]).await;
    http.put("/v1/groups/pickup", &pickup()).await.expect(201);
    let found = eventually("its candidates and its group", async || {
        let document = document(&http, "pickup").await;
        let activity = &document["activity"];
        let all = activity["candidates"] == json!({"taxi": 6, "rider": 2}) && activity["published"] == 1;
        all.then_some(document)
    })
    .await;
    assert_eq!(found["activity"]["restarts"], 0, "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_it_is_paused_it_takes_nothing_in_and_says_why() {
    let program = Serve::new().start().await;
    let http = program.http();
    http.put("/v1/groups/pickup", &pickup()).await.expect(201);
    publish(&http, &taxi("t9", 9_000.0, true)).await;
    let one = json!({"taxi": 1, "rider": 0});
    eventually("a candidate", async || {
        (document(&http, "pickup").await["activity"]["candidates"] == one).then_some(())
    })
    .await;
    http.post("/v1/groups/pickup/pause", "application/json", String::new()).await.expect(204);
    publish_all(&http, &[taxi("t1", 0.0, true), rider("r1", 0.0, 1)]).await;
    let found = eventually("what waits", async || {
        let document = document(&http, "pickup").await;
        (document["activity"]["queued"] == 2).then_some(document)
    })
    .await;
    assert_eq!((&found["activity"]["inputs"], &found["groups"]), (&json!(1), &json!([])), "{found}");
    let why = http.get("/v1/groups/pickup/objects/t9").await.expect(200).json();
    assert_eq!(why["why"], "t9 is in no group: as taxi, there is no candidate for rider");
    http.post("/v1/groups/pickup/resume", "application/json", String::new()).await.expect(204);
    holds(&http, "pickup", json!([{"taxi": "t1", "rider": "r1"}])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_there_while_it_is_replaced() {
    let program = Serve::new().start().await;
    let http = program.http();
    http.put("/v1/groups/pickup", &pickup()).await.expect(201);
    let replaced = async {
        for _ in 0..20 {
            http.put("/v1/groups/pickup", &pickup()).await.expect(200);
        }
    };
    let looked = async {
        loop {
            document(&http, "pickup").await;
        }
    };
    tokio::select! {
        () = replaced => {}
        () = looked => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn candidates_stay_when_limits_are_lowered() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let begin = async |config: &str| {
        let data = ["--data", data.to_str().expect("UTF-8")];
        Serve::new().args(&data).config(config).start().await
    };
    let mut program = begin("").await;
    let http = program.http();
    http.put("/v1/groups/pickup", &pickup()).await.expect(201);
    let mut deep = taxi("t1", 0.0, true);
    deep["properties"]["a"] = json!({"b": {"c": {"d": 1}}});
    publish_all(&http, &[deep, rider("r1", 0.0, 1)]).await;
    let near = json!([{"taxi": "t1", "rider": "r1"}]);
    // A group is shown before its enter is dealt out.
    eventually("its enter", async || {
        (document(&http, "pickup").await["activity"]["published"] == 1).then_some(())
    })
    .await;
    program.assert_healthy();
    program.signal("KILL");
    program.exit_status().await;

    let program = begin("[limits]\ndepth = 2\n").await;
    let http = program.http();
    let mut watch = program.ws("watch").await;
    watch.subscribe("groups", json!({"filters": [{"where": "type = 'group'"}]})).await;
    let found = holds(&http, "pickup", near).await;
    assert_eq!(found["activity"]["restarts"], 0, "{found}");
    publish(&http, &rider("r1", 9_000.0, 1)).await;
    assert_eq!(told(&mut watch).await, of("exit", "t1", "r1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_whose_name_no_event_could_have_is_refused() {
    let program = Serve::new().start().await;
    let long = "r".repeat(252);
    let definition =
        json!({"roles": {"taxi": {"where": "type = 'taxi'"}, &*long: {"where": "type = 'rider'"}}});
    let problem = program.http().put("/v1/groups/long", &definition).await.problem(400);
    let fault = &problem["errors"][0];
    let has = |name: &str, part: &str| fault[name].as_str().is_some_and(|text| text.contains(part));
    assert!(has("pointer", "/roles/rrr") && has("detail", "limits.name_bytes"), "{problem}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_and_an_id_that_read_the_same_are_two_objects() {
    let program = Serve::new().start().await;
    let http = program.http();
    http.put("/v1/groups/pickup", &pickup()).await.expect(201);
    publish_all(&http, &[taxi("7", 0.0, true), rider("r1", 0.0, 1)]).await;
    let near = json!([{"taxi": "7", "rider": "r1"}]);
    holds(&http, "pickup", near.clone()).await;
    let mut other = taxi("", 9_000.0, true);
    (other["id"], other["ttl_s"]) = (json!("7"), json!(600));
    other.as_object_mut().expect("an object").remove("key");
    publish(&http, &other).await;
    let both = json!({"taxi": 2, "rider": 1});
    eventually("both", async || {
        (document(&http, "pickup").await["activity"]["candidates"] == both).then_some(())
    })
    .await;
    http.delete("/v1/events/7").await.expect(204);
    let found = holds(&http, "pickup", near).await;
    assert_eq!(found["activity"]["published"], 1, "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_knows_too_much_tells_the_end_of_its_groups_and_goes_on_with_new_events() {
    let program = Serve::new().config("[situations]\ntenant_state_bytes = 400000\n").start().await;
    let http = program.http();
    let mut reader = program.ws("reader").await;
    reader.subscribe("groups", json!({"filters": [{"where": "type = 'group'"}]})).await;
    http.put("/v1/groups/pickup", &pickup()).await.expect(201);
    publish(&http, &taxi("t1", 0.0, true)).await;
    publish(&http, &rider("r1", 0.0, 1)).await;
    assert_eq!(told(&mut reader).await, of("enter", "t1", "r1"));
    let mut number = 0;
    let ended = eventually("a new beginning", async || {
        let far = (number..number + 100).map(|n| taxi(&format!("far{n}"), 9_000.0 + f64::from(n), true));
        publish_all(&http, &far.collect::<Vec<_>>()).await;
        number += 100;
        let document = document(&http, "pickup").await;
        (document["activity"]["restarts"] != 0).then_some(document)
    })
    .await;
    let problem = ended["activity"]["problem"].as_str().expect("a problem");
    assert!(problem.contains("400000 (situations.tenant_state_bytes)"), "{problem}");
    assert_eq!(told(&mut reader).await, of("exit", "t1", "r1"));
    // Both are live, and are candidates again by their next events.
    publish(&http, &taxi("t1", 1.0, true)).await;
    publish(&http, &rider("r1", 1.0, 1)).await;
    assert_eq!(told(&mut reader).await, of("enter", "t1", "r1"));
}

/// An object of the random town, as the test knows it.
#[derive(Clone, Copy, PartialEq)]
struct Object {
    kind: u32,
    x: i64,
    y: i64,
    size: i64,
}

const KINDS: [&str; 4] = ["taxi", "rider", "stand", "none"];

/// What happens in a town on a plane, and which groups there are by looking at everything.
struct Town {
    random: SmallRng,
    objects: BTreeMap<String, Object>,
}

impl Town {
    fn new(seed: u64) -> Self {
        Self { random: SmallRng::seed_from_u64(seed), objects: BTreeMap::new() }
    }

    /// Moves an object, or makes it another one.
    fn step(&mut self, count: u32) -> Value {
        let name = format!("o{}", self.random.random_range(0..count));
        let kind = if self.random.random_bool(0.1) { 3 } else { self.random.random_range(0..3) };
        let before = self.objects.get(&name).copied();
        let kind = before.filter(|_| self.random.random_bool(0.8)).map_or(kind, |object| object.kind);
        let (x, y) = (self.random.random_range(0..1_000), self.random.random_range(0..1_000));
        let object = Object { kind, x, y, size: self.random.random_range(1..6) };
        self.objects.insert(name.clone(), object);
        let Object { kind, x, y, size } = object;
        json!({
            "type": "Feature", "key": name, "geometry": {"type": "Point", "coordinates": [x, y]},
            "properties": {"type": KINDS[kind as usize], "size": size},
        })
    }

    /// Definitions drawn at random.
    fn definitions(&mut self) -> Vec<Definition> {
        let roles = [2, 2, 3, 3];
        let name = |number| format!("drawn-{number}");
        (0..)
            .zip(roles)
            .map(|(number, roles)| Definition::draw(&mut self.random, name(number), roles))
            .collect()
    }
}

/// A group definition over the roles a, b and c, as a document and as looking at everything.
struct Definition {
    name: String,
    /// Of each role the kind of its objects, and their least size.
    roles: Vec<(u32, i64)>,
    conditions: Vec<Condition>,
    order: Option<Condition>,
    limit: usize,
}

/// A condition over one or two roles, or a term over two.
enum Condition {
    /// At most a number of metres apart; as a term, that number.
    Near(usize, usize, i64),
    /// One size compared with another; as a term, their difference.
    Sizes(usize, &'static str, usize),
    /// A size that is not another.
    IsNot(usize, i64),
}

const ROLES: [&str; 3] = ["a", "b", "c"];

impl Condition {
    fn text(&self) -> String {
        match *self {
            Self::Near(a, b, metres) => format!("DISTANCE({}, {}) <= {metres}", ROLES[a], ROLES[b]),
            Self::Sizes(a, is, b) => format!("{}.size {is} {}.size", ROLES[a], ROLES[b]),
            Self::IsNot(a, size) => format!("{}.size <> {size}", ROLES[a]),
        }
    }

    fn term(&self) -> String {
        match *self {
            Self::Near(a, b, _) => format!("DISTANCE({}, {})", ROLES[a], ROLES[b]),
            Self::Sizes(a, _, b) => format!("{}.size - {}.size", ROLES[a], ROLES[b]),
            Self::IsNot(a, _) => format!("{}.size", ROLES[a]),
        }
    }

    /// A number that ranks as the term does.
    fn value(&self, members: &[(&str, &Object)]) -> i64 {
        match *self {
            Self::Near(a, b, _) => square(members[a].1, members[b].1),
            Self::Sizes(a, _, b) => members[a].1.size - members[b].1.size,
            Self::IsNot(a, _) => members[a].1.size,
        }
    }

    /// Whether it is true of the members that are there; also where it is about others.
    fn holds(&self, members: &[(&str, &Object)]) -> bool {
        match *self {
            Self::Near(a, b, _) | Self::Sizes(a, _, b) if a.max(b) >= members.len() => true,
            Self::IsNot(a, _) if a >= members.len() => true,
            Self::Near(_, _, metres) => self.value(members) <= metres * metres,
            Self::Sizes(_, is, _) => match (is, self.value(members)) {
                ("<", value) => value < 0,
                (">=", value) => value >= 0,
                ("=", value) => value == 0,
                (_, value) => value != 0,
            },
            Self::IsNot(_, size) => self.value(members) != size,
        }
    }
}

impl Definition {
    /// Each role has to be near one before it, so that groups can be counted; the rest is at random.
    fn draw(random: &mut SmallRng, name: String, roles: usize) -> Self {
        let near = |random: &mut SmallRng, role| {
            Condition::Near(role, random.random_range(0..role), random.random_range(20..70))
        };
        let sizes = |random: &mut SmallRng| {
            let is = ["<", ">=", "=", "<>"][random.random_range(0..4)];
            let a = random.random_range(0..roles);
            Condition::Sizes(a, is, (a + random.random_range(1..roles)) % roles)
        };
        let mut conditions: Vec<_> = (1..roles).map(|role| near(random, role)).collect();
        conditions.push(sizes(random));
        conditions.push(Condition::IsNot(random.random_range(0..roles), random.random_range(1..6)));
        let order = match random.random_range(0..3) {
            0 => None,
            1 => Some(near(random, 1)),
            _ => Some(sizes(random)),
        };
        Self {
            name,
            roles: (0..roles).map(|_| (random.random_range(0..3), random.random_range(0..3))).collect(),
            conditions,
            order,
            limit: [20, 50, 1_000][random.random_range(0..3)],
        }
    }

    fn document(&self) -> Value {
        let role = |(role, (kind, size)): (&str, &(u32, i64))| {
            let condition = format!("type = '{}' AND size >= {size}", KINDS[*kind as usize]);
            (role.to_owned(), json!({"where": condition}))
        };
        let conditions: Vec<_> = self.conditions.iter().map(Condition::text).collect();
        let mut document = json!({
            "roles": Value::Object(ROLES.into_iter().zip(&self.roles).map(role).collect()),
            "where": conditions,
            "limit": self.limit,
        });
        if let Some(order) = &self.order {
            document["order"] = json!(order.term());
        }
        document
    }

    /// The reported groups of a town.
    fn groups(&self, town: &Town) -> Vec<Value> {
        let mut found = Vec::new();
        self.extend(town, &mut Vec::new(), &mut found);
        found.sort_unstable();
        found.truncate(self.limit);
        let group =
            |(_, names): (i64, Vec<&str>)| json!(ROLES.into_iter().zip(names).collect::<BTreeMap<_, _>>());
        found.into_iter().map(group).collect()
    }

    fn extend<'t>(
        &self,
        town: &'t Town,
        members: &mut Vec<(&'t str, &'t Object)>,
        found: &mut Vec<(i64, Vec<&'t str>)>,
    ) {
        let Some((kind, size)) = self.roles.get(members.len()) else {
            let value = self.order.as_ref().map_or(0, |order| order.value(members));
            found.push((value, members.iter().map(|(name, _)| *name).collect()));
            return;
        };
        for (name, object) in &town.objects {
            if object.kind != *kind || object.size < *size || members.iter().any(|(one, _)| one == name) {
                continue;
            }
            members.push((name, object));
            if self.conditions.iter().all(|condition| condition.holds(members)) {
                self.extend(town, members, found);
            }
            members.pop();
        }
    }
}

fn square(a: &Object, b: &Object) -> i64 {
    (a.x - b.x).pow(2) + (a.y - b.y).pow(2)
}

/// The groups that follow from what was told, by definition.
#[derive(Default)]
struct Told {
    groups: BTreeMap<String, BTreeSet<String>>,
}

impl Told {
    fn note(&mut self, frame: &Value) {
        let properties = &frame["event"]["properties"];
        let groups = self.groups.entry(properties["group"].as_str().expect("a name").to_owned()).or_default();
        let group = properties["roles"].to_string();
        let is_news = match properties["transition"].as_str() {
            Some("enter") => groups.insert(group),
            Some("exit") => groups.remove(&group),
            _ => false,
        };
        assert!(is_news, "enters and exits alternate: {frame}");
    }

    /// Whether what was told are the groups of these definitions.
    fn are(&self, definitions: &[Definition], groups: &[Vec<Value>]) -> bool {
        definitions.iter().zip(groups).all(|(definition, groups)| {
            let groups: BTreeSet<_> = groups.iter().map(Value::to_string).collect();
            self.groups.get(&definition.name).map_or(groups.is_empty(), |told| *told == groups)
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_are_those_of_looking_at_everything_after_every_step() {
    let config = "[server]\nworld = \"planar\"\n[situations]\nfindings_per_second = 0\ntenant_findings_per_second = 0\n";
    let program = Serve::new().config(config).start().await;
    let http = program.http();
    let mut town = Town::new(29);
    let definitions = town.definitions();
    let (mut reader, mut told) = (program.ws("reader").await, Told::default());
    reader.subscribe("groups", json!({"filters": [{"where": "type = 'group'"}]})).await;
    publish_all(&http, &(0..1_000).map(|_| town.step(1_000)).collect::<Vec<_>>()).await;
    for definition in &definitions {
        http.put(&format!("/v1/groups/{}", definition.name), &definition.document()).await.expect(201);
    }
    for step in 0..200 {
        if step % 50 == 0 {
            // Those at the front come and go with many.
            publish_all(&http, &(0..200).map(|_| town.step(1_000)).collect::<Vec<_>>()).await;
        }
        publish(&http, &town.step(1_000)).await;
        let groups: Vec<_> = definitions.iter().map(|definition| definition.groups(&town)).collect();
        for (definition, groups) in definitions.iter().zip(&groups) {
            let found = holds(&http, &definition.name, json!(groups)).await;
            assert_eq!(
                (&found["activity"]["restarts"], &found["activity"]["dropped"]),
                (&json!(0), &json!(0)),
                "{found}"
            );
        }
        while !told.are(&definitions, &groups) {
            told.note(&reader.event().await);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn enters_and_exits_come_once_whatever_kills_there_are() {
    let folder = TempDir::new().expect("a folder");
    let mut program = start(&folder).await;
    let http = program.http();
    let groups = json!({"filters": [{"where": "type = 'group'"}], "durable": true});
    http.put("/v1/clients/watch/subscriptions/s", &groups).await.expect(201);
    let mut town = Town::new(31);
    let definitions = town.definitions();
    for definition in &definitions {
        http.put(&format!("/v1/groups/{}", definition.name), &definition.document()).await.expect(201);
    }
    // Before anything is kept, behind that, and right after a lot.
    for count in [300, 1_500, 900, 2_500, 40] {
        publish_all(&program.http(), &(0..count).map(|_| town.step(400)).collect::<Vec<_>>()).await;
        program.assert_healthy();
        program.signal("KILL");
        program.exit_status().await;
        program = start(&folder).await;
    }
    let http = program.http();
    let found: Vec<_> = definitions.iter().map(|definition| definition.groups(&town)).collect();
    for (definition, groups) in definitions.iter().zip(&found) {
        let document = holds(&http, &definition.name, json!(groups)).await;
        assert_eq!(document["activity"]["restarts"], 0, "{document}");
    }
    let (mut watch, mut told) = (program.ws("watch").await, Told::default());
    let last = feature("last", [0.0, 0.0], json!({"type": "group", "group": "last"}));
    while !told.are(&definitions, &found) {
        told.note(&watch.event().await);
    }
    // Nothing comes behind that.
    publish(&http, &last).await;
    assert_eq!(watch.event().await["event"]["id"], "last");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_soon_after_a_bound_was_met_changes_nothing() {
    let folder = TempDir::new().expect("a folder");
    // With few events kept the state is kept more often, also among inputs that come again.
    let config = |looks: u32, kept: u32| {
        format!("[groups]\nlooks = {looks}\n[situations]\nkept_events = {kept}\n{UNBOUNDED}")
    };
    let mut program = start_with(&folder, &config(12, 1_000_000)).await;
    let http = program.http();
    let groups = json!({"filters": [{"where": "type = 'group'"}], "durable": true});
    // Some on each shard.
    let names = ["a", "b", "c", "d"];
    for name in names {
        http.put(&format!("/v1/clients/{name}/subscriptions/s"), &groups).await.expect(201);
    }
    http.put("/v1/groups/pickup", &pickup()).await.expect(201);
    let mut random = SmallRng::seed_from_u64(47);
    let mut batch = |count: usize| -> Vec<Value> {
        let step = |_| {
            let (object, metres) = (random.random_range(0..30), random.random_range(0.0..3_000.0));
            match random.random_bool(0.5) {
                true => taxi(&format!("t{object}"), metres, true),
                false => rider(&format!("r{object}"), metres, 1),
            }
        };
        (0..count).map(step).collect()
    };
    // Also where the bound is another one after the kill.
    for (after, kept) in
        [12, 12, 8, 1_000, 12, 12, 8, 12].into_iter().zip([1_000_000, 3_000].into_iter().cycle())
    {
        publish_all(&program.http(), &batch(120)).await;
        eventually("the bound", async || {
            let document = document(&program.http(), "pickup").await;
            (document["activity"]["dropped"].as_u64() > Some(0)).then_some(())
        })
        .await;
        publish_all(&program.http(), &batch(20)).await;
        program.assert_healthy();
        program.signal("KILL");
        program.exit_status().await;
        program = start_with(&folder, &config(after, kept)).await;
        if after > 12 {
            // What no bound leaves out.
            publish_all(&program.http(), &batch(120)).await;
            program.signal("KILL");
            program.exit_status().await;
            program = start_with(&folder, &config(12, kept)).await;
        }
    }
    let http = program.http();
    publish_all(&http, &[taxi("t-last", 90_000.0, true), rider("r-last", 90_000.0, 1)]).await;
    let last = json!({"rider": "r-last", "taxi": "t-last"});
    for name in names {
        let (mut watch, mut told) = (program.ws(name).await, Told::default());
        while !told.groups.get("pickup").is_some_and(|groups| groups.contains(&last.to_string())) {
            told.note(&watch.event().await);
        }
        let document = document(&http, "pickup").await;
        let shown = document["groups"].as_array().expect("groups").iter().map(Value::to_string);
        assert_eq!(told.groups["pickup"], shown.collect(), "{name}: {document}");
        assert_eq!(document["activity"]["restarts"], 0, "{document}");
    }
}

async fn start(folder: &TempDir) -> Program {
    start_with(folder, &format!("[server]\nworld = \"planar\"\n[situations]\n{UNBOUNDED}")).await
}

/// Behind `[situations]`.
const UNBOUNDED: &str =
    "findings_per_second = 0\ntenant_findings_per_second = 0\n[sessions]\nkept_frames = 100000\n";

async fn start_with(folder: &TempDir, config: &str) -> Program {
    let data = folder.path().join("data");
    Serve::new()
        .args(&["--shards", "2", "--data", data.to_str().expect("UTF-8")])
        .config(config)
        .start()
        .await
}
