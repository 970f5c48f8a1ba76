//! `nearcast explain`.

use serde_json::{Value, json};

use super::{line, output, typed};
use crate::harness::Serve;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_says_filter_by_filter_why_and_why_not() {
    let program = Serve::new().start().await;
    let http = program.http();
    http.put("/v1/clients/ann/position", &json!({"coordinates": [9.19, 45.464]})).await.expect(204);
    let wanted = json!({"filters": [{"area": {"radius_m": 500}, "where": "severity >= 3 AND type = 'fire'"}, {"where": "lanes = 1"}]});
    http.put("/v1/clients/ann/subscriptions/alarms", &wanted).await.expect(201);
    http.put("/v1/clients/ann/subscriptions/all", &json!({"filters": [{}]})).await.expect(201);
    let asked = [
        "explain",
        "--client",
        "ann",
        "--subscription",
        "alarms",
        "--at",
        "9.2,45.464",
        "--set",
        "severity=2",
        "--set",
        "type=fire",
    ];
    let told = typed(&program, &asked, "").await.with(0).out;
    for part in [
        "ann, alarms: no, ",
        "client: at 9.19,45.464, told ",
        "✗ filter 1",
        "✗ area: within 500 m of the client; the event is 779.8",
        " too far",
        "✗ condition",
        "✗ severity >= 3 (severity is 2, which is not >= 3)",
        "✓ type = 'fire'",
        "✗ filter 2",
        "? lanes = 1",
    ] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
    // With the latitude first.
    let exchanged = asked.map(|word| if word == "9.2,45.464" { "45.464,9.19" } else { word });
    let told = typed(&program, &exchanged, "").await.with(0).out;
    let why = "the event is 5312 km outside of the circle around the client (with longitude and latitude swapped it would be 0 m away)";
    assert!(told.contains(why), "{told}");
    let tree = "; the event is 5313 km away, 5312 km too far; 0 m away with longitude and latitude swapped";
    assert!(told.contains(tree), "{told}");
    let told = typed(&program, &[&exchanged[..], &["--json"]].concat(), "").await.with(0).json();
    assert_eq!(told["filters"][0]["area"]["swapped_distance_m"], 0.0, "{told}");
    // From another place, and as JSON.
    let told = typed(&program, &[&asked[..], &["--position", "9.2,45.464", "--json"]].concat(), "")
        .await
        .with(0)
        .json();
    assert_eq!((&told["matched"], &told["filters"][0]["area"]["distance_m"]), (&json!(false), &json!(0.0)));
    // All of them, for an event that is live.
    typed(&program, &["pub", "--at", "9.19,45.464", "--id", "e-1", "--ttl", "1m"], "").await.with(0);
    let told = typed(&program, &["explain", "--client", "ann", "--event", "e-1"], "").await.with(0).out;
    assert!(told.contains("ann, alarms: no") && told.contains("ann, all: yes"), "{told}");
    assert!(told.contains("event: e-1, live for "), "{told}");
    // Neither has to be there.
    let flags = [
        "explain",
        "--client",
        "nobody",
        "--circle",
        "9.19,45.464,10",
        "--where",
        "severity > 2",
        "-",
        "--json",
    ];
    let told: Value = typed(&program, &flags, &line("x", 3)).await.with(0).json();
    assert_eq!(told["matched"], true);
    for (args, part) in [
        (&["explain", "--client", "nobody", "--event", "e-1"][..], "nobody has no subscriptions"),
        (&["explain", "--client", "ann", "--event", "gone"], "nearcast: "),
        (&["explain", "--client", "ann", "--where", "a =", "--event", "e-1"], "/where"),
        (&["explain", "--client", "ann", "nowhere.json"], "cannot read nowhere.json"),
    ] {
        let ended = typed(&program, args, "").await.with(1);
        assert!(ended.err.contains(part) && ended.out.is_empty(), "{ended:?}");
    }
    for (args, part) in [
        (&["explain", "--client", "ann"][..], "which event?"),
        (&["explain", "--event", "e"], "--client"),
        (
            &["explain", "--client", "ann", "--subscription", "a", "--everywhere", "--event", "e"],
            "the flags say another",
        ),
    ] {
        let (code, err) = output(args);
        assert!(code == Some(2) && err.contains(part), "{args:?}: {err}");
    }
    program.finish().await;
}
