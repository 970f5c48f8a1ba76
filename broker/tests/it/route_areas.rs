//! Areas along routes, which follow their clients.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use routes::{Cost, Graph, dijkstra, durations_ms};
use serde_json::{Value, json};
use streets::Network;
use tempfile::TempDir;

use crate::harness::{Http, Program, Serve, Ws, eventually, feature};
use crate::routes::square;

/// Metres from the border of a corridor within which the oracle does not decide.
const UNDECIDED_M: f64 = 0.5;

fn config(streets: &Path) -> String {
    format!("[routes]\nstreets = {:?}\n", streets.display().to_string())
}

async fn start(streets: &Path) -> Program {
    Serve::new().args(&["--shards", "2"]).config(&config(streets)).start().await
}

fn along(to: [f64; 2], radius_m: f64) -> Value {
    json!({"filters": [{"area": {"route": {"to": to}, "radius_m": radius_m}}, {"where": "end = TRUE"}]})
}

async fn put(http: &Http, client: &str, document: &Value) -> Value {
    http.put(&format!("/v1/clients/{client}/subscriptions/way"), document).await.expect(201).json()
}

async fn place(http: &Http, client: &str, at: [f64; 2]) {
    http.put(&format!("/v1/clients/{client}/position"), &json!({"coordinates": at})).await.expect(204);
}

async fn publish(http: &Http, event: &Value) {
    http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
}

/// The ids of the events that a client gets before the one with which all end.
async fn ids(http: &Http, ws: &mut Ws, end: &str) -> Vec<String> {
    let mut event = feature(end, [-170.0, -80.0], json!({"end": true}));
    event["time"] = json!("2026-01-01T00:00:00Z");
    publish(http, &event).await;
    let mut found = Vec::new();
    loop {
        let frame = ws.event().await;
        let id = frame["event"]["id"].as_str().expect("an id").to_owned();
        if id == end {
            return found;
        }
        found.push(id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_area_lies_along_the_best_route_until_its_client_leaves_it() {
    let folder = square();
    let program = start(folder.path()).await;
    let http = program.http();
    let mut ws = program.ws("car").await;
    // Before it has told where it is there is no route.
    let made = put(&http, "car", &along([0.0, 0.01], 100.0)).await;
    assert_eq!(
        made["filters"][0]["area"],
        json!({"route": {"to": [0.0, 0.01]}, "radius_m": 100.0}),
        "{made}"
    );
    assert_eq!(made["warnings"][0]["pointer"], "/filters/0/area", "{made}");
    publish(&http, &feature("early", [0.0, 0.01], json!({}))).await;
    // The street from 1 to 2 leads one way only, so that from 2 the way to 4 is by 3.
    place(&http, "car", [0.01, 0.0]).await;
    for (id, at) in [("at-3", [0.01, 0.01]), ("half-way", [0.005, 0.0095]), ("not-there", [0.0, 0.0])] {
        publish(&http, &feature(id, at, json!({}))).await;
    }
    // On the way nothing changes: what lies behind is part of it still.
    place(&http, "car", [0.01, 0.005]).await;
    publish(&http, &feature("behind", [0.01, 0.0], json!({}))).await;
    // Off the way another one is found.
    place(&http, "car", [0.0, 0.0]).await;
    publish(&http, &feature("old", [0.01, 0.005], json!({}))).await;
    publish(&http, &feature("new", [0.0, 0.005], json!({}))).await;
    assert_eq!(ids(&http, &mut ws, "end").await, ["at-3", "half-way", "behind", "new"]);
    // What is live on the new way is met by the move.
    let mut jam = feature("jam", [0.01, 0.004], json!({}));
    jam["ttl_s"] = json!(600);
    publish(&http, &jam).await;
    place(&http, "car", [0.01, 0.0]).await;
    let frame = ws.event().await;
    assert_eq!((&frame["event"]["id"], &frame["cause"]), (&json!("jam"), &json!("moved")), "{frame}");
    let metrics = http.get("/metrics").await.expect(200).text();
    assert!(metrics.contains("nearcast_route_areas_moved_total 3"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_leads_nowhere_is_refused_with_its_place() {
    let folder = square();
    let program = start(folder.path()).await;
    let http = program.http();
    let path = "/v1/clients/car/subscriptions/way";
    let refused = async |to: Value, pointer: &str, detail: &str| {
        let document = json!({"filters": [{}, {"area": {"route": to, "radius_m": 50}}]});
        let problem = http.put(path, &document).await.problem(400);
        let fault = &problem["errors"][0];
        assert_eq!(fault["pointer"], format!("/filters/1/area/route{pointer}"), "{problem}");
        assert!(fault["detail"].as_str().is_some_and(|told| told.contains(detail)), "{problem}");
    };
    refused(json!({"to": [50.0, 8.0]}), "/to", "no street within 1000 m").await;
    refused(json!({"to": [0.0, 0.0], "by": "speed"}), "/by", "\"duration\" or \"length\"").await;
    refused(Value::Null, "", "must be an object").await;
    // With the numbers in the other order it would be near the island.
    refused(json!({"to": [0.1, 0.11]}), "/to", "longitude comes first: did you mean [0.11, 0.1]?").await;
    place(&http, "car", [0.0, 0.0]).await;
    // An island, and back to it.
    refused(json!({"to": [0.1, 0.1]}), "/to", "no way leads there").await;
    place(&http, "car", [0.1, 0.1]).await;
    refused(json!({"to": [0.0, 0.0]}), "/to", "no way leads there").await;
    place(&http, "car", [5.0, 5.0]).await;
    refused(json!({"to": [0.0, 0.0]}), "", "of where the client is").await;
    let mut ws = program.ws("car").await;
    let problem = ws
        .problem(json!({"op": "subscribe", "id": "s", "filters": [{"area": {"route": {"to": [9, 9]}, "radius_m": 5}}]}))
        .await;
    assert_eq!(problem["errors"][0]["pointer"], "/filters/0/area/route/to", "{problem}");
    // One that is there, and whose client goes where no way leads, is nowhere.
    place(&http, "car", [0.0, 0.0]).await;
    put(&http, "car", &along([0.0, 0.01], 100.0)).await;
    for at in [[5.0, 5.0], [0.1, 0.1]] {
        place(&http, "car", at).await;
        publish(&http, &feature("none", [0.0, 0.005], json!({}))).await;
        let why = explain(&http, "car", [0.0, 0.005]).await;
        assert_eq!(why["filters"][0]["area"]["distance_m"], Value::Null, "{why}");
        assert!(why["why"].as_str().is_some_and(|why| why.contains("no way is known")), "{why}");
    }
    place(&http, "car", [0.0, 0.0]).await;
    publish(&http, &feature("again", [0.0, 0.005], json!({}))).await;
    assert_eq!(ids(&http, &mut ws, "end").await, ["again"]);

    let plain = Serve::new().start().await;
    let problem = plain.http().put(path, &along([0.0, 0.0], 50.0)).await.problem(400);
    assert_eq!(problem["errors"][0]["pointer"], "/filters/0/area/route", "{problem}");
    assert!(problem.to_string().contains("(routes.streets)"), "{problem}");
    let planar = Serve::new().args(&["--world", "planar"]).start().await;
    let problem = planar.http().put(path, &along([0.0, 0.0], 50.0)).await.problem(400);
    assert!(problem.to_string().contains("server.world"), "{problem}");
}

async fn told(http: &Http, client: &str) -> Value {
    let page = http.get(&format!("/v1/clients/{client}/routes")).await.expect(200).json();
    assert_eq!(page.get("next"), None, "{page}");
    page["routes"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn areas_come_in_pages_in_the_order_of_ids_and_filters() {
    let folder = square();
    let program = start(folder.path()).await;
    let http = program.http();
    let area = json!({"area": {"route": {"to": [0.0, 0.01]}, "radius_m": 10}});
    let mut expected = Vec::new();
    for id in ["a", "b:1&c", "c"] {
        let document = json!({"filters": [{"where": "a = 1"}, area, area]});
        let path = format!("/v1/clients/car/subscriptions/{}", id.replace('&', "%26"));
        http.put(&path, &document).await.expect(201);
        expected.extend([json!([id, 1]), json!([id, 2])]);
    }
    for limit in [1, 2, 4, 5, 6, 7, 1_000] {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page =
                http.get(&format!("/v1/clients/car/routes?limit={limit}{after}")).await.expect(200).json();
            let routes = page["routes"].as_array().expect("an array");
            assert_eq!(routes.len(), limit.min(expected.len() - found.len()), "{page}");
            found.extend(routes.iter().map(|route| json!([route["subscription"], route["filter"]])));
            let Some(next) = page.get("next") else { break };
            let next: String =
                form_urlencoded::byte_serialize(next.as_str().expect("a text").as_bytes()).collect();
            after = format!("&after={next}");
        }
        assert_eq!(found, expected, "{limit}");
    }
    for query in ["limit=0", "limit=1001", "after=", "after=x", "after=1:a&after=1:a"] {
        http.get(&format!("/v1/clients/car/routes?{query}")).await.problem(400);
    }
    // What was there when the page before was told may be gone.
    http.delete("/v1/clients/car/subscriptions/b:1%26c").await.expect(204);
    let page = http.get("/v1/clients/car/routes?after=1:b:1%26c").await.expect(200).json();
    assert_eq!(
        (page["routes"].as_array().map(Vec::len), &page["routes"][0]["subscription"]),
        (Some(2), &json!("c"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_has_as_many_areas_as_the_setting_permits() {
    let folder = square();
    let settings = config(folder.path()) + "areas_per_client = 3\n";
    let program = Serve::new().config(&settings).start().await;
    let http = program.http();
    let areas = |count: usize| {
        let area = json!({"area": {"route": {"to": [0.0, 0.01]}, "radius_m": 10}});
        json!({"filters": vec![area; count]})
    };
    let put = async |id: &str, count: usize| {
        http.put(&format!("/v1/clients/car/subscriptions/{id}"), &areas(count)).await
    };
    let is_refused = |problem: &Value| {
        assert_eq!(
            (&problem["setting"], &problem["limit"]),
            (&json!("routes.areas_per_client"), &json!(3)),
            "{problem}"
        );
    };
    is_refused(&put("one", 4).await.problem(409));
    put("one", 2).await.expect(201);
    is_refused(&put("two", 2).await.problem(409));
    put("two", 1).await.expect(201);
    // What takes the place of others counts as what it is.
    put("one", 2).await.expect(200);
    is_refused(&put("one", 3).await.problem(409));
    let ask = async |subscription: Value| {
        let question = json!({"client": "car", "position": [0.0, 0.0], "subscription": subscription, "event": feature("e", [0.0, 0.0], json!({}))});
        http.post("/v1/explain", "application/json", question.to_string()).await
    };
    is_refused(&ask(areas(1)).await.problem(409));
    http.delete("/v1/clients/car/subscriptions/one").await.expect(204);
    ask(areas(1)).await.expect(200);
    put("three", 2).await.expect(201);
    is_refused(&put("four", 1).await.problem(409));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_told_which_corridors_are_in_force_and_why_others_are_not() {
    let folder = square();
    let program = start(folder.path()).await;
    let http = program.http();
    assert_eq!(told(&http, "nobody").await, json!([]));
    let two = json!({"filters": [{"where": "a = 1"}, {"area": {"route": {"to": [0.0, 0.01], "by": "length"}, "radius_m": 100}}]});
    http.put("/v1/clients/car/subscriptions/second", &two).await.expect(201);
    put(&http, "car", &json!({"filters": [{"area": {"radius_m": 5}}]})).await;
    http.put("/v1/clients/car/subscriptions/first", &along([0.01, 0.01], 50.0)).await.expect(201);
    let state = |subscription: &str, filter: usize, to: [f64; 2], radius_m: f64, by: &str, state: Value| {
        let mut expected =
            json!({"subscription": subscription, "filter": filter, "to": to, "by": by, "radius_m": radius_m});
        expected.as_object_mut().expect("an object").extend(state.as_object().expect("an object").clone());
        expected
    };
    let both = |one: Value, other: Value| {
        json!([
            state("first", 0, [0.01, 0.01], 50.0, "duration", one),
            state("second", 1, [0.0, 0.01], 100.0, "length", other),
        ])
    };
    let unknown = json!({"state": "no-position", "why": "the client has told no position"});
    assert_eq!(told(&http, "car").await, both(unknown.clone(), unknown));
    // A quarter of the way to 3, near the street.
    let line = |coordinates: Value| json!({"type": "LineString", "coordinates": coordinates});
    let found = |coordinates: Value, left_m: f64, left_s: f64| json!({"state": "found", "route": line(coordinates), "left_m": left_m, "left_s": left_s});
    place(&http, "car", [0.01, 0.0]).await;
    let first = found(json!([[0.01, 0.0], [0.01, 0.01]]), 1_000.0, 72.0);
    let second = found(json!([[0.01, 0.0], [0.01, 0.01], [0.0, 0.01]]), 2_000.0, 144.0);
    assert_eq!(told(&http, "car").await, both(first, second));
    // On its way a client comes nearer, and the corridors stay.
    place(&http, "car", [0.010_2, 0.0025]).await;
    let routes = told(&http, "car").await;
    for (route, left_m, left_s, points) in [(&routes[0], 750.0, 54.0, 2), (&routes[1], 1_750.0, 126.0, 3)] {
        let left = ["left_m", "left_s"].map(|member| route[member].as_f64().expect("a number"));
        assert!((left[0] - left_m).abs() < 0.01 && (left[1] - left_s).abs() < 0.01, "{routes}");
        assert_eq!(route["route"]["coordinates"].as_array().map(Vec::len), Some(points), "{routes}");
    }
    // At the end of one.
    place(&http, "car", [0.01, 0.01]).await;
    let routes = told(&http, "car").await;
    assert_eq!((&routes[0]["left_m"], &routes[1]["left_m"]), (&json!(0.0), &json!(1_000.0)), "{routes}");
    // Off the streets, and where no way leads there.
    for (at, state, why) in [
        ([5.0, 5.0], "off-streets", "there is no street within 1000 m of where the client is"),
        ([0.1, 0.1], "unreachable", "no way leads there along the streets from where the client is"),
    ] {
        place(&http, "car", at).await;
        let state = json!({"state": state, "why": why});
        assert_eq!(told(&http, "car").await, both(state.clone(), state));
    }
    let problem = Serve::new().start().await.http().get("/v1/clients/car/routes").await.problem(404);
    assert!(problem.to_string().contains("no-streets"), "{problem}");
}

async fn explain(http: &Http, client: &str, at: [f64; 2]) -> Value {
    let question = json!({"client": client, "subscription": "way", "event": feature("asked", at, json!({}))});
    http.post("/v1/explain", "application/json", question.to_string()).await.expect(200).json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_explained_how_far_the_event_is_from_the_corridor() {
    let folder = square();
    let program = start(folder.path()).await;
    let http = program.http();
    place(&http, "car", [0.0, 0.0]).await;
    put(&http, "car", &along([0.0, 0.01], 100.0)).await;
    let why = explain(&http, "car", [0.003, 0.005]).await;
    let area = &why["filters"][0]["area"];
    let metres = area["distance_m"].as_f64().expect("a number");
    assert!((metres - 333.6).abs() < 1.0, "{why}");
    assert_eq!(
        (&area["form"], &area["holds"], &area["radius_m"]),
        (&json!("route"), &json!(false), &json!(100.0))
    );
    assert!(why["why"].as_str().is_some_and(|why| why.contains("234 m outside of the corridor")), "{why}");
    // One that nobody has made, from another place.
    let question = json!({
        "client": "bike", "position": [0.01, 0.0], "subscription": along([0.0, 0.01], 20.0),
        "event": feature("asked", [0.01, 0.005], json!({})),
    });
    let why = http.post("/v1/explain", "application/json", question.to_string()).await.expect(200).json();
    assert_eq!((&why["matched"], &why["filters"][0]["area"]["holds"]), (&json!(true), &json!(true)), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_the_route_is_found_again_from_the_kept_position() {
    let folder = square();
    let data = TempDir::new().expect("a folder");
    let data_path = data.path().join("data").display().to_string();
    let serve = || Serve::new().args(&["--data", &data_path]).config(&config(folder.path()));
    let program = serve().start().await;
    let http = program.http();
    let document = json!({
        "durable": true, "on": ["enter", "exit"],
        "filters": [{"area": {"route": {"to": [0.0, 0.01]}, "radius_m": 100}}],
    });
    put(&http, "car", &document).await;
    place(&http, "car", [0.0, 0.0]).await;
    place(&http, "car", [0.01, 0.0]).await;
    let live = |id: &str, at: [f64; 2]| {
        let mut event = feature(id, at, json!({}));
        (event["ttl_s"], event["key"]) = (json!(600), json!(id));
        event
    };
    publish(&http, &live("before", [0.01, 0.005])).await;
    program.kill();
    let program = serve().start().await;
    let http = program.http();
    publish(&http, &live("after", [0.005, 0.01])).await;
    publish(&http, &live("elsewhere", [0.0, 0.003])).await;
    // Those are left, and the other one is met.
    place(&http, "car", [0.0, 0.0]).await;
    let mut sse = program.sse("car").await;
    let mut told = Vec::new();
    for _ in 0..5 {
        let frame = sse.next().await.frame();
        told.push(format!(
            "{} {}",
            frame["transition"].as_str().expect("a transition"),
            frame["event"]["id"]
        ));
    }
    told[2..].sort_unstable();
    let expected =
        ["enter \"before\"", "enter \"after\"", "enter \"elsewhere\"", "exit \"after\"", "exit \"before\""];
    assert_eq!(told, expected);
    program.kill();
    // Without streets the broker starts all the same, and the area is nowhere.
    let program = Serve::new().args(&["--data", &data_path]).start().await;
    program.http().get("/v1/clients/car/routes").await.problem(404);
    let why = explain(&program.http(), "car", [0.0, 0.003]).await;
    for part in ["no way is known", "this broker knows no streets (routes.streets)"] {
        assert!(why["why"].as_str().is_some_and(|why| why.contains(part)), "{why}");
    }
    program.says("areas along routes hold nothing").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn areas_that_take_too_much_are_refused_with_the_setting() {
    let folder = square();
    let settings = config(folder.path()) + "client_bytes = 900\n";
    let program = Serve::new().config(&settings).start().await;
    let http = program.http();
    put(&http, "car", &along([0.0, 0.0], 100.0)).await;
    place(&http, "car", [0.0, 0.0]).await;
    let more = json!({"filters": [{"area": {"route": {"to": [0.01, 0.01]}, "radius_m": 100}}]});
    let problem = http.put("/v1/clients/car/subscriptions/more", &more).await.problem(409);
    assert!(problem.to_string().contains("routes.client_bytes"), "{problem}");
    // One that grows beyond that is nowhere.
    place(&http, "car", [0.0, 0.01]).await;
    place(&http, "car", [0.01, 0.0]).await;
    let metrics = http.get("/metrics").await.expect(200).text();
    assert!(metrics.contains("nearcast_route_areas_refused_total 1"), "{metrics}");
    let routes = told(&http, "car").await;
    let why = "the corridor has no room (routes.client_bytes, routes.tenant_bytes)";
    assert_eq!((&routes[0]["state"], &routes[0]["why"]), (&json!("no-room"), &json!(why)), "{routes}");
}

/// A town: a grid whose nodes are shifted, with one-way streets, gaps, and an island.
fn town() -> TempDir {
    const WIDTH: usize = 24;
    let mut random = StdRng::seed_from_u64(7);
    let (mut nodes, mut edges) =
        (String::from("node,lat,lon\n"), String::from("from,to,length_mm,oneway,highway,maxspeed\n"));
    for node in 0..WIDTH * WIDTH {
        let mut shifted = |at: usize| 0.002 * at as f64 + random.random_range(-0.000_5..0.000_5);
        nodes += &format!("{node},{:.7},{:.7}\n", shifted(node / WIDTH), shifted(node % WIDTH));
    }
    for node in 0..WIDTH * WIDTH {
        for (other, is_there) in
            [(node + 1, node % WIDTH + 1 < WIDTH), (node + WIDTH, node / WIDTH + 1 < WIDTH)]
        {
            // The last two columns are an island.
            let is_bridge = other == node + 1 && node % WIDTH == WIDTH - 3;
            if !is_there || is_bridge || random.random_bool(0.1) {
                continue;
            }
            let (length_mm, oneway) =
                (random.random_range(200_000..320_000), u8::from(random.random_bool(0.3)));
            let kind = ["residential", "primary", "tertiary"][random.random_range(0..3)];
            edges += &format!("{node},{other},{length_mm},{oneway},{kind},\n");
        }
    }
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("nodes.csv"), nodes).expect("written");
    std::fs::write(folder.path().join("edges.csv"), edges).expect("written");
    folder
}

/// Streets that the project does not carry; `None`, said aloud, in a clone that has none beside it.
fn liechtenstein() -> Option<PathBuf> {
    let around = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let folder =
        around.map(|folder| folder.join("shared/data/streets-liechtenstein")).find(|folder| folder.exists());
    if folder.is_none() {
        eprintln!(
            "NOT TESTED: no shared/data/streets-liechtenstein beside the project or a folder around it"
        );
    }
    folder
}

/// The right answers: routes by Dijkstra's algorithm, corridors by trying every segment.
pub(crate) struct Oracle {
    pub(crate) network: Network,
    graph: Graph,
    pub(crate) costs: Vec<Cost>,
}

impl Oracle {
    pub(crate) fn of(streets: &Path) -> Self {
        let network = streets::load(streets).expect("streets");
        let (graph, costs) = (Graph::of(&network), durations_ms(&network));
        Self { network, graph, costs }
    }

    fn nodes_count(&self) -> u32 {
        u32::try_from(self.network.nodes_count()).expect("nodes")
    }

    /// The line of the best route; empty where there is none.
    fn line(&self, from: u32, to: u32) -> Vec<[f64; 2]> {
        let Some(route) = dijkstra(&self.graph, &self.costs, from, to) else { return Vec::new() };
        let mut line = vec![self.network.node_at(from); 2];
        line.extend(route.arcs.iter().flat_map(|arc| self.network.shape(*arc)));
        line
    }
}

/// Metres from a place to a line; infinite where that is empty. The town is small enough for a plane.
fn distance_m(line: &[[f64; 2]], at: [f64; 2]) -> f64 {
    const DEGREE_M: f64 = 6_371_008.8 * std::f64::consts::PI / 180.0;
    let scale = [at[1].to_radians().cos() * DEGREE_M, DEGREE_M];
    let flat = |place: [f64; 2]| [(place[0] - at[0]) * scale[0], (place[1] - at[1]) * scale[1]];
    line.windows(2)
        .map(|ends| {
            let ([ax, ay], [bx, by]) = (flat(ends[0]), flat(ends[1]));
            let (dx, dy) = (bx - ax, by - ay);
            let length_sq = dx * dx + dy * dy;
            let part = if length_sq > 0.0 { (-(ax * dx + ay * dy) / length_sq).clamp(0.0, 1.0) } else { 0.0 };
            (ax + part * dx).hypot(ay + part * dy)
        })
        .fold(f64::INFINITY, f64::min)
}

struct Traveller {
    name: String,
    to: u32,
    radius_m: f64,
    line: Vec<[f64; 2]>,
    expected: Vec<String>,
    /// Events too near to the border to say.
    undecided: BTreeSet<String>,
}

/// Clients that move, with areas along routes, and what each of them gets.
async fn travel(streets: &Path, clients: usize, steps: usize, seed: u64) {
    let oracle = Oracle::of(streets);
    let program = start(streets).await;
    let (http, mut random) = (program.http(), StdRng::seed_from_u64(seed));
    let nodes = oracle.nodes_count();
    let mut travellers = Vec::new();
    for index in 0..clients {
        let to = random.random_range(0..nodes);
        let radius_m = [30.0, 100.0, 250.0][index % 3];
        let name = format!("c{index}");
        put(&http, &name, &along(oracle.network.node_at(to), radius_m)).await;
        let (line, expected, undecided) = (Vec::new(), Vec::new(), BTreeSet::new());
        travellers.push(Traveller { name, to, radius_m, line, expected, undecided });
    }
    let mut sockets = Vec::new();
    for traveller in &travellers {
        sockets.push(program.ws(&traveller.name).await);
    }
    let (mut found, mut kept) = (0, 0);
    for step in 0..steps {
        // Some go on along their way, others are elsewhere: at a node, so that none other is as near.
        let mut moves = Vec::new();
        for traveller in &mut travellers {
            if step > 0 && random.random_bool(0.5) {
                continue;
            }
            let is_on = !traveller.line.is_empty() && random.random_bool(0.6);
            let at = if is_on {
                traveller.line[random.random_range(0..traveller.line.len())]
            } else {
                oracle.network.node_at(random.random_range(0..nodes))
            };
            let metres = distance_m(&traveller.line, at);
            if (metres - traveller.radius_m).abs() < UNDECIDED_M {
                continue;
            }
            if metres > traveller.radius_m {
                let from = (0..nodes).find(|node| oracle.network.node_at(*node) == at);
                let Some(from) = from else { continue };
                traveller.line = oracle.line(from, traveller.to);
                found += 1;
            } else {
                kept += 1;
            }
            moves.push(json!({"client": traveller.name, "coordinates": at}));
        }
        let moved =
            http.post("/v1/positions", "application/json", json!(moves).to_string()).await.expect(202).json();
        assert_eq!(moved["moved"], moves.len(), "{moved}");
        let mut lines = String::new();
        for number in 0..20 {
            let [x, y] = oracle.network.node_at(random.random_range(0..nodes));
            let at = [x + random.random_range(-0.002..0.002), y + random.random_range(-0.002..0.002)];
            let id = format!("e{step}-{number}");
            lines += &format!("{}\n", feature(&id, at, json!({})));
            for traveller in &mut travellers {
                let metres = distance_m(&traveller.line, at);
                if (metres - traveller.radius_m).abs() < UNDECIDED_M {
                    traveller.undecided.insert(id.clone());
                } else if metres < traveller.radius_m {
                    traveller.expected.push(id.clone());
                }
            }
        }
        http.post("/v1/events", "application/x-ndjson", lines).await.expect(202);
    }
    for traveller in &travellers {
        let routes = told(&http, &traveller.name).await;
        let mut line = traveller.line.clone();
        line.dedup();
        let route = &routes[0]["route"];
        if line.is_empty() {
            assert_eq!((&routes[0]["state"], route), (&json!("unreachable"), &Value::Null), "{routes}");
            continue;
        }
        let mut shown: Vec<[f64; 2]> =
            serde_json::from_value(route["coordinates"].clone()).expect("coordinates");
        shown.dedup();
        assert_eq!(shown, line, "{}, seed {seed}", traveller.name);
    }
    let mut deliveries = 0;
    publish(&http, &feature("end", [-170.0, -80.0], json!({"end": true}))).await;
    for (traveller, ws) in travellers.iter().zip(&mut sockets) {
        let mut got = Vec::new();
        loop {
            let id = ws.event().await["event"]["id"].as_str().expect("an id").to_owned();
            if id == "end" {
                break;
            }
            got.push(id);
        }
        got.retain(|id| !traveller.undecided.contains(id));
        assert_eq!(got, traveller.expected, "{}, seed {seed}", traveller.name);
        deliveries += got.len();
    }
    eprintln!("{found} routes found, {kept} moves within the corridor, {deliveries} deliveries");
    assert!(found > clients && kept > clients && deliveries > clients, "{found} {kept} {deliveries}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_get_what_lies_on_their_way_by_an_oracle() {
    let town = town();
    travel(town.path(), 200, 20, 11).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_country_get_what_lies_on_their_way_by_an_oracle() {
    if let Some(streets) = liechtenstein() {
        travel(&streets, 300, 20, 12).await;
    }
}

fn jam(key: &str, at: [f64; 2]) -> Value {
    let mut event = feature(&format!("{key}-event"), at, json!({"type": "jam"}));
    (event["key"], event["ttl_s"]) = (json!(key), json!(600));
    event
}

/// How long the way from one place to another takes, in seconds, and how long it is.
async fn duration_and_length(http: &Http, from: [f64; 2], to: [f64; 2]) -> (f64, f64) {
    let question = json!({"from": from, "to": to}).to_string();
    let found = http.post("/v1/routes", "application/json", question).await.expect(200).json();
    (found["duration_s"].as_f64().expect("a number"), found["length_m"].as_f64().expect("a number"))
}

const SLOW: &str = "[routes.slow]\nwhere = \"type = 'jam'\"\nfactor = 6\nradius_m = 50\nhold_s = 0\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_street_that_becomes_slow_is_gone_round_and_areas_along_it_are_found_again() {
    let folder = square();
    let settings = config(folder.path()) + SLOW + "derived = false\n";
    let program = Serve::new().args(&["--shards", "2"]).config(&settings).start().await;
    let http = program.http();
    let [from, to] = [[0.0, 0.0], [0.01, 0.01]];
    for client in ["car", "bike"] {
        place(&http, client, from).await;
    }
    put(&http, "car", &along(to, 100.0)).await;
    put(&http, "bike", &along([0.0, 0.01], 100.0)).await;
    let mut ws = program.ws("car").await;
    // By 2 or by 4: as long either way. One of the two becomes slow, and then the other.
    assert_eq!(duration_and_length(&http, from, to).await, (144.0, 2_000.0));
    let holds = async |at: [f64; 2]| {
        let why = explain(&http, "car", at).await;
        why["filters"][0]["area"]["holds"].as_bool().expect("true or false")
    };
    let corners = [[0.01, 0.0], [0.0, 0.01]];
    let first = usize::from(holds(corners[1]).await);
    for turn in [first, 1 - first] {
        let (slow, other) = (corners[turn], corners[1 - turn]);
        publish(&http, &jam("jam", slow)).await;
        eventually("the other way", async || (holds(other).await && !holds(slow).await).then_some(())).await;
        assert_eq!(duration_and_length(&http, from, to).await, (144.0, 2_000.0));
    }
    // Both are slow: the diagonal, which is slow by itself, is quicker.
    publish(&http, &jam("second", corners[first])).await;
    let diagonal = (270.0, 1_500.0);
    eventually("the diagonal", async || {
        (duration_and_length(&http, from, to).await == diagonal).then_some(())
    })
    .await;
    eventually("it is gone along", async || holds([0.005, 0.005]).await.then_some(())).await;
    publish(&http, &feature("on-it", [0.005, 0.005], json!({}))).await;
    // When that is over, those who ask go the quick way again; areas stay where they are until their clients leave them.
    http.delete("/v1/events/second-event").await.expect(204);
    eventually("the quick way", async || {
        (duration_and_length(&http, from, to).await == (144.0, 2_000.0)).then_some(())
    })
    .await;
    assert!(holds([0.005, 0.005]).await);
    let got = ids(&http, &mut ws, "end").await;
    assert_eq!(got.last().map(String::as_str), Some("on-it"), "{got:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_nobody_derived_slow_nothing_down_unless_the_setting_says_so() {
    let folder = square();
    let slow = "slow = {where = \"type = 'jam'\", factor = 6, radius_m = 50}\n";
    let program = Serve::new().config(&(config(folder.path()) + slow)).start().await;
    let http = program.http();
    let [from, to] = [[0.0, 0.0], [0.01, 0.0]];
    assert_eq!(duration_and_length(&http, from, to).await, (72.0, 1_000.0));
    publish(&http, &jam("told", [0.005, 0.0])).await;
    let rules = json!({
        "facts": {"slow": {"where": "kind = 'slow'", "args": ["@lon", "@lat"]}},
        "program": "slow(X,Y) <=> jam(X,Y).",
        "publish": {"jam": {"at": [0, 1], "properties": {"type": "jam"}, "key": "jam-{0}-{1}", "ttl_s": 600}},
    });
    http.put("/v1/rules/traffic", &rules).await.expect(201);
    publish(&http, &feature("crawls", [0.005, 0.0], json!({"kind": "slow"}))).await;
    // Both events are on the way, and only the derived one counts.
    eventually("it is slow", async || {
        let (duration_s, length_m) = duration_and_length(&http, from, to).await;
        assert!(
            [(72.0, 1_000.0), (216.0, 3_000.0)].contains(&(duration_s, length_m)),
            "{duration_s} {length_m}"
        );
        (duration_s == 216.0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streets_are_slow_by_more_events_than_a_reader_may_be_behind() {
    let folder = square();
    let settings = format!("{}{SLOW}derived = false\n[outbox]\nframes = 64\n", config(folder.path()));
    let program = Serve::new().config(&settings).start().await;
    let http = program.http();
    let [from, to] = [[0.0, 0.0], [0.01, 0.0]];
    let jams = |first: usize, at: [f64; 2]| {
        let lines: Vec<_> =
            (first..first + 300).map(|idx| jam(&format!("jam-{idx}"), at).to_string()).collect();
        lines.join("\n")
    };
    publish(&http, &jam("here", [0.005, 0.0])).await;
    let publish_all = async |lines| http.post("/v1/events", "application/x-ndjson", lines).await.expect(202);
    publish_all(jams(0, [20.0, 20.0])).await;
    let slow = (216.0, 3_000.0);
    // What is live before the first question, and what comes at once after it.
    assert_eq!(duration_and_length(&http, from, to).await, slow);
    publish_all(jams(300, [20.0, 20.0])).await;
    // An event that is not live ends none.
    publish(&http, &feature("here-event", [20.0, 20.0], json!({"type": "jam"}))).await;
    for _ in 0..15 {
        assert_eq!(duration_and_length(&http, from, to).await, slow);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(!program.log().contains("are read"), "{}", program.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_streets_are_slow_again_after_a_restart() {
    let folder = square();
    let data = TempDir::new().expect("a folder");
    let data_path = data.path().join("data").display().to_string();
    let settings = config(folder.path()) + SLOW + "derived = false\n";
    let serve = || Serve::new().args(&["--data", &data_path]).config(&settings);
    let program = serve().start().await;
    let http = program.http();
    let [from, to] = [[0.0, 0.0], [0.01, 0.01]];
    place(&http, "car", from).await;
    put(&http, "car", &along(to, 100.0)).await;
    let on_one = explain(&http, "car", [0.01, 0.0]).await["filters"][0]["area"]["holds"] == true;
    let (slow, other) = if on_one { ([0.01, 0.0], [0.0, 0.01]) } else { ([0.0, 0.01], [0.01, 0.0]) };
    publish(&http, &jam("jam", slow)).await;
    program.kill();
    let program = serve().start().await;
    let http = program.http();
    eventually("the other way", async || {
        let area = explain(&http, "car", other).await["filters"][0]["area"].clone();
        (area["holds"] == true).then_some(())
    })
    .await;
}

#[test]
fn settings_of_slow_streets_are_checked() {
    for (setting, fault) in [
        ("where = \"type = \"", "routes.slow.where"),
        ("factor = 0.5", "routes.slow.factor"),
        ("radius_m = -1", "routes.slow.radius_m"),
        ("hold_s = 4000", "routes.slow.hold_s"),
    ] {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("nearcast.toml"), format!("[routes.slow]\n{setting}\n"))
            .expect("written");
        let output = crate::harness::run_to_end(&["serve", "--config", "nearcast.toml"], &[], folder.path());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(fault), "{setting}: {told}");
    }
}
