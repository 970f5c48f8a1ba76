//! `nearcast pub` and `move` with CSV, GPX and NMEA.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Typed, typed};
use crate::harness::Serve;

/// A file of this name.
fn file(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_published_and_its_bad_rows_are_told() {
    let program = Serve::new().start().await;
    let mut ws = program.ws("ann").await;
    ws.request(
        json!({"op": "subscribe", "id": "s", "filters": [{"where": "severity >= 2 AND open = TRUE"}]}),
    )
    .await;
    let folder = TempDir::new().expect("a folder");
    let table = "id,lat,lon,type,severity,open\na,45.46,9.19,fire,3,true\nb,95,9.19,fire,3,true\nc,45.46,east,fire,3,true\nd,45.46,9.19,fire,1,true\n";
    let path = file(&folder, "events.csv", table);
    let ended = typed(&program, &["pub", &path], "").await.with(1);
    assert_eq!(ended.out, "2 published, 2 refused");
    for told in [
        format!("nearcast: line 3 of {path}: "),
        format!("nearcast: line 4 of {path}: longitude is \"east\", which is no number"),
    ] {
        assert!(ended.err.lines().any(|line| line.starts_with(&told)), "{told}: {ended:?}");
    }
    let event = ws.next().await["event"].clone();
    assert_eq!((&event["id"], &event["geometry"]["coordinates"]), (&json!("a"), &json!([9.19, 45.46])));
    assert_eq!(event["properties"], json!({"type": "fire", "severity": 3, "open": true}));
    // What nobody has named is not guessed, by whichever name or way it comes.
    let bare = "9.19,45.46,fire\n";
    let path = file(&folder, "bare.csv", bare);
    for (args, input) in
        [(vec!["pub", &path], ""), (vec!["pub", "-"], bare), (vec!["move", "--client", "x", &path], "")]
    {
        let ended = typed(&program, &args, input).await.with(1);
        assert!(
            ended.err.contains("CSV begins with a line that names its columns, such as lon,lat,"),
            "{ended:?}"
        );
        assert!(!ended.err.contains("malformed JSON"), "{ended:?}");
    }
    let ended = typed(&program, &["pub", "-", "--format", "gpx"], bare).await.with(1);
    assert!(ended.err.contains("line "), "{ended:?}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_track_moves_a_client_in_its_order() {
    let program = Serve::new().start().await;
    let mut ws = program.ws("bob").await;
    for n in 0..3 {
        let stop = json!({"type": "Feature", "key": format!("stop-{n}"), "ttl_s": 600, "properties": {"stop": n},
            "geometry": {"type": "Point", "coordinates": [9.0 + f64::from(n) / 10.0, 45.46]}});
        program.http().post("/v1/events", "application/geo+json", stop.to_string()).await.expect(202);
    }
    ws.request(
        json!({"op": "subscribe", "id": "s", "on": ["enter"], "filters": [{"area": {"radius_m": 100}}]}),
    )
    .await;
    let folder = TempDir::new().expect("a folder");
    let points = [9.2, 9.0, 9.1]
        .map(|lon| format!("<trkpt lat=\"45.46\" lon=\"{lon}\"><time>2026-03-01T07:30:00Z</time></trkpt>"));
    let gpx = format!("<gpx><trk><trkseg>\n{}\n</trkseg></trk></gpx>\n", points.join("\n"));
    let path = file(&folder, "track.gpx", &gpx);
    assert_eq!(typed(&program, &["move", "--client", "bob", &path], "").await.with(0).out, "3 moved");
    let mut stops = Vec::new();
    while stops.len() < 3 {
        let frame: Value = ws.next().await;
        if frame["transition"] == "enter" {
            stops.push(frame["event"]["properties"]["stop"].clone());
        }
    }
    assert_eq!(stops, [json!(2), json!(0), json!(1)]);
    // Sentences as a receiver says them.
    let mut moving = Typed::start(&program, &["move", "--client", "car", "-"]);
    moving.say("$GPGGA,123519,4530.000,N,00900.000,E,1,08,0.9,545.4,M,46.9,M,,*4E\r\n");
    moving.say("$GPGGA,123520,4530.000,N,00900.000,E,1,08,0.9,545.4,M,46.9,M,,*00\r\n");
    moving.tells("line 2 of standard input: its checksum is 00, and its characters make ").await;
    assert_eq!(moving.end().await.with(1).out, "1 moved, 1 refused");
    program.finish().await;
}

/// Much of each in little memory, as lines of GeoJSON are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_of_each_streams_in_little_memory() {
    let program = Serve::new().start().await;
    let text = "x".repeat(4000);
    let track = format!("<trkpt lat=\"45.46\" lon=\"9.19\"><desc>{text}</desc></trkpt>\n");
    for (head, entry) in [("lon,lat,text\n", format!("9.19,45.46,{text}\n")), ("<gpx><trk><trkseg>\n", track)]
    {
        let mut publishing = Typed::start(&program, &["pub", "-"]);
        publishing.say(head);
        let (entries, block) = (20_000, 100);
        for _ in 0..entries / block {
            publishing.say(&entry.repeat(block));
        }
        if head.starts_with('<') {
            publishing.say("</trkseg></trk></gpx>\n");
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", publishing.id())).expect("it lives");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel tells it");
        let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
        assert_eq!(publishing.end().await.with(0).out, "20,000 published", "{head}");
        assert!(peak_kib < 90 << 10, "{head}: {peak_kib} KiB for 80 MB");
    }
    program.finish().await;
}
