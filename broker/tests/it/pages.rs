//! The console and the phone page, as far as the broker has a part in them: which files there are is up to how it was built.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::authorisation::{ISSUER, guarded};
use crate::harness::{Answer, Http, Raw, Serve, run_to_end};

const LINES: &str = r#"{"type":"FeatureCollection","attribution":"© nobody","features":[{"type":"Feature","properties":{},
    "geometry":{"type":"LineString","coordinates":[[9.0,45.0],[9.1,45.1],[9.2,45.0],[9.3,45.1],[9.4,45.0],[9.5,45.1]]}}]}"#;

/// A broker with a base map of this text.
fn with_base_map(text: &str) -> Serve {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("map.geojson");
    fs::write(&file, text).expect("written");
    let config = format!(
        "[console]\nbase_map = {:?}\nobject = \"taxi_id\"\ninterests = \"Fires: type = 'fire'\"\n",
        file.to_str().expect("UTF-8")
    );
    Serve::new().config(&config).keeping(folder)
}

async fn ask(http: &Http, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    http.send_with(method, path, None, headers, "").await
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
}

#[track_caller]
fn assert_guarded(answer: &Answer) {
    let policy = header(answer, "content-security-policy");
    for directive in ["default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "object-src 'none'"]
    {
        assert!(policy.split("; ").any(|one| one == directive), "{}: {policy}", answer.call);
    }
    assert!(!policy.contains("unsafe-eval") && !policy.contains("script-src"), "{}: {policy}", answer.call);
    assert_eq!(header(answer, "x-content-type-options"), "nosniff", "{}", answer.call);
    assert_eq!(header(answer, "referrer-policy"), "no-referrer", "{}", answer.call);
}

/// Asks for a document in every way in which a browser does.
async fn check_document(http: &Http, path: &str, expected: &[u8], content_type: &str, cache: &str) {
    let plain = http.get(path).await.expect(200);
    assert_eq!(plain.body, expected, "{path}");
    assert_eq!(plain.content_type, content_type, "{path}");
    assert_eq!(header(&plain, "cache-control"), cache, "{path}");
    assert_eq!(header(&plain, "content-encoding"), "", "{path}");
    assert_guarded(&plain);
    let etag = header(&plain, "etag");
    assert!(etag.starts_with("W/\"") && etag.ends_with('"'), "{path}: {etag}");

    let gzip = ask(http, "GET", path, &[("accept-encoding", "gzip, deflate, br, zstd")]).await.expect(200);
    assert_eq!((header(&gzip, "etag"), header(&gzip, "vary")), (etag, "accept-encoding"), "{path}");
    match header(&gzip, "content-encoding") {
        "gzip" => {
            let mut unpacked = Vec::new();
            GzDecoder::new(gzip.body.as_slice()).read_to_end(&mut unpacked).expect("gzip");
            assert!(unpacked == expected && gzip.body.len() < expected.len(), "{path}");
        }
        encoding => assert!(encoding.is_empty() && gzip.body == expected, "{path}: {encoding}"),
    }

    for told in [etag, etag.trim_start_matches("W/"), "\"0\", *"] {
        let unchanged = ask(http, "GET", path, &[("if-none-match", told)]).await.expect(304);
        assert!(unchanged.body.is_empty(), "{path}");
        assert_eq!(
            (header(&unchanged, "etag"), header(&unchanged, "cache-control")),
            (etag, cache),
            "{path}"
        );
    }
    ask(http, "GET", path, &[("if-none-match", "\"0\"")]).await.expect(200);

    let head = ask(http, "HEAD", path, &[]).await.expect(200);
    assert!(head.body.is_empty(), "{path}");
    for name in ["content-type", "content-length", "etag", "cache-control", "content-security-policy"] {
        assert_eq!(header(&head, name), header(&plain, name), "{path}: {name}");
    }
    assert_eq!(header(&head, "content-length"), expected.len().to_string(), "{path}");
    ask(http, "POST", path, &[]).await.problem(405);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_and_file_is_served_or_it_is_said_why_not() {
    let program = Serve::new().start().await;
    let http = program.http();
    for (path, file) in [("/", "index.html"), ("/phone", "phone.html")] {
        if nearcast_web::built() {
            let file = nearcast_web::file(file).expect("it was built");
            check_document(&http, path, file.plain, "text/html; charset=utf-8", "no-cache").await;
        } else {
            let page = http.get(path).await.expect(200);
            assert_eq!(page.content_type, "text/html; charset=utf-8");
            assert_guarded(&page);
            for word in ["not built into this program", "Node 20.19", "make web", "docs/"] {
                assert!(page.text().contains(word), "no {word}: {}", page.text());
            }
        }
    }
    let slash = ask(&http, "GET", "/phone/", &[]).await.expect(308);
    assert_eq!(header(&slash, "location"), "../phone");
    // The service worker is of every build, and asked for anew each time: that is how pages learn of a newer one.
    if let Some(worker) = nearcast_web::file("phone-worker.js") {
        check_document(&http, "/phone-worker.js", worker.plain, worker.content_type, "no-cache").await;
        assert!(worker.content_type.starts_with("text/javascript"), "{}", worker.content_type);
    }
    assert_eq!(nearcast_web::file("phone-worker.js").is_some(), nearcast_web::built());
    let assets = nearcast_web::files().iter().filter(|file| file.path.starts_with("assets/"));
    let mut immutable_count = 0;
    for file in assets {
        let cache = if file.is_immutable() { "public, max-age=31536000, immutable" } else { "no-cache" };
        immutable_count += usize::from(file.is_immutable());
        check_document(&http, &format!("/{}", file.path), file.plain, file.content_type, cache).await;
    }
    assert_eq!(immutable_count > 0, nearcast_web::built(), "scripts have names of their content");
    program.finish().await;
}

/// Paths as they are, since clients that mean well tidy them up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_path_leads_out_of_the_pages() {
    let program = with_base_map(LINES).start().await;
    for path in [
        "/assets/",
        "/assets/../index.html",
        "/assets/%2e%2e/index.html",
        "/assets/..%2findex.html",
        "/assets/%2e%2e%2fassets/icon.svg",
        "/assets/../../Cargo.toml",
        "/assets//etc/passwd",
        "/assets/%2fetc%2fpasswd",
        "/assets/..\\index.html",
        "/assets/icon.svg%00",
        "/assets/./icon.svg",
        "/assets/%ff",
        "/index.html",
        "/phone.html",
        "/../phone",
        "/.gitignore",
        "/map.geojson",
    ] {
        let mut raw = Raw::connect(program.address()).await;
        raw.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes())
            .await;
        let answer = String::from_utf8_lossy(&raw.rest(path).await).into_owned();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
        assert!(answer.contains("application/problem+json"), "{path}: {answer}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_told_what_they_have_to_know() {
    let rows = [
        (
            Serve::new(),
            json!({"world": "geodetic", "tokens": false, "base_map": false, "routes": false, "object": null, "round_m": 1, "interests": [], "notice": null}),
        ),
        (
            with_base_map(LINES),
            json!({"world": "geodetic", "tokens": false, "base_map": true, "routes": false, "object": "taxi_id", "round_m": 1, "interests": [{"label": "Fires", "where": "type = 'fire'"}], "notice": null}),
        ),
        (
            Serve::new().args(&["--world", "planar"]),
            json!({"world": "planar", "tokens": false, "base_map": false, "routes": false, "object": null, "round_m": 1, "interests": [], "notice": null}),
        ),
    ];
    for (serve, expected) in rows {
        let program = serve.start().await;
        let told = program.http().get("/pages.json").await.expect(200);
        assert_eq!(told.json(), expected);
        assert_eq!((&*told.content_type, header(&told, "cache-control")), ("application/json", "no-cache"));
        assert_guarded(&told);
        program.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_base_map_is_served_as_it_was_written() {
    let program = with_base_map(LINES).start().await;
    check_document(&program.http(), "/base-map.json", LINES.as_bytes(), "application/geo+json", "no-cache")
        .await;
    program.finish().await;
    let program = Serve::new().start().await;
    program.http().get("/base-map.json").await.problem(404);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_roads_of_the_demo_are_a_base_map_for_anybody() {
    let program = Serve::new().config("[console]\nbase_map = \"demo\"\n").start().await;
    let map = program.http().get("/base-map.json").await.expect(200).json();
    assert_eq!(map["attribution"], "Streets inferred from drives of 749 taxis, 2007 | Quarters: GeoNames");
    let (features, quarters): (Vec<_>, Vec<_>) = map["features"]
        .as_array()
        .expect("features")
        .iter()
        .partition(|feature| feature["properties"]["traffic"].is_number());
    assert!(quarters.iter().any(|quarter| quarter["properties"]["name"] == "Nanshan"));
    let traffic: Vec<_> = features.iter().map(|feature| &feature["properties"]["traffic"]).collect();
    assert_eq!(traffic, [1, 2, 3, 4]);
    let lines =
        features.iter().flat_map(|feature| feature["geometry"]["coordinates"].as_array().expect("lines"));
    let lines: Vec<_> = lines.collect();
    assert!(lines.len() > 400, "{}", lines.len());
    for place in lines.iter().flat_map(|line| line.as_array().expect("a line")) {
        let [lon, lat] = [&place[0], &place[1]].map(|number| number.as_f64().expect("a number"));
        assert!((113.0..115.0).contains(&lon) && (22.0..24.0).contains(&lat), "{place}");
        let is_short =
            |number: f64| number.to_string().split('.').next_back().is_some_and(|parts| parts.len() <= 5);
        assert!(is_short(lon) && is_short(lat), "{place}");
    }
    program.finish().await;
}

/// A file of tiles with one byte in it.
fn archive() -> Vec<u8> {
    let mut file = vec![0; 300];
    file[..8].copy_from_slice(b"PMTiles\x03");
    file[99] = 1;
    for (idx, byte) in file.iter_mut().enumerate().skip(127) {
        *byte = u8::try_from(idx % 251).expect("small");
    }
    file
}

fn with_file(name: &str, bytes: &[u8]) -> Serve {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("written");
    Serve::new()
        .config(&format!("[console]\nbase_map = {:?}\n", path.to_str().expect("UTF-8")))
        .keeping(folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tiles_in_a_file_are_served_in_parts() {
    let file = archive();
    let program = with_file("city.pmtiles", &file).start().await;
    let http = program.http();
    let told = http.get("/base-map.json").await.expect(200);
    assert_eq!(told.json(), json!({"pmtiles": "base-map.pmtiles"}));
    let path = "/base-map.pmtiles";
    let whole = http.get(path).await.expect(200);
    assert_eq!((whole.body.as_slice(), header(&whole, "accept-ranges")), (file.as_slice(), "bytes"));
    assert_guarded(&whole);
    let etag = header(&whole, "etag").to_owned();
    assert!(etag.starts_with('"'), "parts need a strong tag: {etag}");
    let part = ask(&http, "GET", path, &[("range", "bytes=127-199")]).await.expect(206);
    assert_eq!(
        (part.body.as_slice(), header(&part, "content-range")),
        (&file[127..200], "bytes 127-199/300")
    );
    assert_eq!((header(&part, "content-length"), header(&part, "etag")), ("73", etag.as_str()));
    let current = [("range", "bytes=-5"), ("if-range", etag.as_str())];
    assert_eq!(ask(&http, "GET", path, &current).await.expect(206).body, file[295..]);
    let stale = [("range", "bytes=-5"), ("if-range", "\"0\"")];
    assert_eq!(ask(&http, "GET", path, &stale).await.expect(200).body, file);
    assert_eq!(ask(&http, "GET", path, &[("range", "bytes=0-1,5-6")]).await.expect(200).body, file);
    let beyond = ask(&http, "GET", path, &[("range", "bytes=300-")]).await.expect(416);
    assert_eq!(header(&beyond, "content-range"), "bytes */300");
    ask(&http, "GET", path, &[("if-none-match", &etag)]).await.expect(304);
    for other in ["/base-map/14/1/1", "/base-map/names.json"] {
        http.get(other).await.problem(404);
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extract_is_served_in_tiles() {
    let extract =
        fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../loadgen/data/liechtenstein/highways.osm.pbf"))
            .expect("it is in the repository");
    let program = with_file("vaduz.osm.pbf", &extract).start().await;
    let http = program.http();
    let map = http.get("/base-map.json").await.expect(200).json();
    assert_eq!((&map["tiles"][0], &map["maxzoom"]), (&json!("base-map/{z}/{x}/{y}"), &json!(15)));
    assert!(map["attribution"].as_str().is_some_and(|text| text.contains("OpenStreetMap")), "{map}");
    let bounds: Vec<f64> =
        map["bounds"].as_array().expect("bounds").iter().filter_map(Value::as_f64).collect();
    assert!(bounds[0] > 9.4 && bounds[1] > 47.0 && bounds[2] < 9.7 && bounds[3] < 47.3, "{bounds:?}");
    // Vaduz.
    let tile = http.get("/base-map/14/8625/5753").await.expect(200);
    assert_eq!(tile.content_type, "application/vnd.mapbox-vector-tile");
    for word in [&b"roads"[..], b"kind_detail", b"residential", b"Landstrasse"] {
        assert!(tile.body.windows(word.len()).any(|part| part == word), "{}", String::from_utf8_lossy(word));
    }
    let etag = header(&tile, "etag").to_owned();
    ask(&http, "GET", "/base-map/14/8625/5753", &[("if-none-match", &etag)]).await.expect(304);
    let gzip = ask(&http, "GET", "/base-map/14/8625/5753", &[("accept-encoding", "gzip")]).await.expect(200);
    let mut unpacked = Vec::new();
    GzDecoder::new(gzip.body.as_slice()).read_to_end(&mut unpacked).expect("gzip");
    assert_eq!(unpacked, tile.body);
    assert!(http.get("/base-map/14/0/0").await.expect(200).body.is_empty(), "nothing is there");
    for none in [
        "/base-map/4/0/0",
        "/base-map/16/0/0",
        "/base-map/14/16384/0",
        "/base-map/14/1/x",
        "/base-map/-1/0/0",
    ] {
        http.get(none).await.problem(404);
    }
    let names = http.get("/base-map/names.json").await.expect(200).json();
    let names = names["names"].as_array().expect("names");
    let street = names.iter().find(|row| row[0] == "Landstrasse").expect("it is in every village");
    assert_eq!(street[1], "street");
    assert!(street[2].as_f64().is_some_and(|lon| lon > bounds[0] && lon < bounds[2]), "{street}");
    http.get("/base-map.pmtiles").await.problem(404);
    program.finish().await;
}

/// Runs what must fail before it listens, and returns what it says.
#[track_caller]
fn refusal(folder: &Path, base_map: &str, args: &[&str]) -> String {
    let all = [&["serve", "--listen", "127.0.0.1:0"], args].concat();
    let output = run_to_end(&all, &[("BROKER__CONSOLE__BASE_MAP", base_map)], folder);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output.stdout.is_empty(), "{base_map}: {told}");
    assert!(!told.contains("panicked") && told.contains("console.base_map"), "{base_map}: {told}");
    told
}

#[test]
fn a_base_map_that_cannot_be_used_is_told_before_a_port_is_bound() {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("written");
    let far = LINES.replace("9.1,45.1", "9.1,145.1");
    write("far.json", far.as_bytes());
    write("cut.json", &LINES.as_bytes()[..LINES.len() - 1]);
    write("latin.json", b"{\"type\":\"Feature\",\"name\":\"\xfc\"}");
    write("other.json", b"{\"type\":\"Topology\"}");
    let large = File::create(folder.path().join("large.json")).expect("created");
    large.set_len((64 << 20) + 1).expect("a hole");
    write("cut.pmtiles", &archive()[..126]);
    write("other.pmtiles", &[7; 200]);
    write("other.osm.pbf", &[7; 200]);
    write("empty.osm.pbf", b"");
    for (base_map, words) in [
        ("missing.json", &["missing.json", "cannot be read"][..]),
        ("cut.pmtiles", &["no header"]),
        ("other.pmtiles", &["version 3"]),
        ("other.osm.pbf", &["no .osm.pbf file"]),
        ("empty.osm.pbf", &["nothing to draw"]),
        (".", &["cannot be read"]),
        ("far.json", &["/features/0/geometry/coordinates/1"]),
        ("cut.json", &["cut.json", "line"]),
        ("latin.json", &["UTF-8"]),
        ("other.json", &["/type"]),
        ("large.json", &["67108864 bytes"]),
    ] {
        let told = refusal(folder.path(), base_map, &[]);
        assert!(words.iter().all(|word| told.contains(word)), "{base_map}: {told}");
    }
    let told = refusal(folder.path(), "demo", &["--world", "planar"]);
    assert!(told.contains("server.world"), "{told}");
    write("whole.pmtiles", &archive());
    let told = refusal(folder.path(), "whole.pmtiles", &["--world", "planar"]);
    assert!(told.contains("server.world"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_need_no_token_where_calls_do() {
    let program = guarded(&ISSUER, "[console]\nbase_map = \"demo\"\n").0.start().await;
    let http = program.http();
    // The service worker is of every build, and asked for anew each time: that is how pages learn of a newer one.
    if let Some(worker) = nearcast_web::file("phone-worker.js") {
        check_document(&http, "/phone-worker.js", worker.plain, worker.content_type, "no-cache").await;
        assert!(worker.content_type.starts_with("text/javascript"), "{}", worker.content_type);
    }
    assert_eq!(nearcast_web::file("phone-worker.js").is_some(), nearcast_web::built());
    let assets = nearcast_web::files().iter().filter(|file| file.path.starts_with("assets/"));
    let assets = assets.map(|file| format!("/{}", file.path));
    for path in ["/", "/phone", "/pages.json", "/base-map.json"].map(str::to_owned).into_iter().chain(assets)
    {
        for headers in [&[][..], &[("authorization", "Bearer garbage")]] {
            ask(&http, "GET", &path, headers).await.expect(200);
        }
    }
    http.get("/assets/nothing.js").await.problem(404);
    let told: Value = http.get("/pages.json").await.json();
    assert_eq!(told["tokens"], true, "{told}");
    for path in ["/v1/stats", "/v1/clients", "/v1/clients/ann/events"] {
        http.get(path).await.problem(401);
    }
    program.finish().await;
}
