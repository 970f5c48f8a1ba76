//! Brokers that speak TLS call one another by https, and trust what `cluster.ca` says.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::{folder, publish, run};
use crate::harness::{Http, Pair, Program, Serve, Ws, eventually, feature};
use crate::nats::{SYSTEM, Servers, USER, held};

/// A broker of a partition, of two, with a certificate of its own, that trusts this one for others.
async fn start(servers: &Servers, partition: u32, own: &Arc<Pair>, trusted: &Pair) -> (Program, String) {
    let address = held().local_addr().expect("a port").to_string();
    let url = format!("https://{address}");
    let kept = folder();
    let [data, ca] =
        ["data", "ca.pem"].map(|name| kept.path().join(name).to_str().expect("UTF-8").to_owned());
    std::fs::write(&ca, trusted.cert()).expect("written");
    let serve = Serve::new()
        .args(&["--cluster", &servers.addresses(USER), "--cluster-partition", &format!("{partition}/2")])
        .args(&["--data", &data])
        .env("BROKER__CLUSTER__SYSTEM_NATS", &servers.addresses(SYSTEM))
        .env("BROKER__CLUSTER__URL", &url)
        .env("BROKER__CLUSTER__CA", &ca)
        .listen(&address)
        .tls(kept.path(), own)
        .keeping(kept);
    (serve.start().await, url)
}

#[test]
fn brokers_ask_one_another_over_tls() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let (trusted, unknown) = (Arc::new(Pair::new()), Arc::new(Pair::new()));
        // The first trusts the second's certificate; the second does not trust the first's.
        let (one, one_url) = start(&servers, 1, &unknown, &trusted).await;
        let (two, two_url) = start(&servers, 2, &trusted, &trusted).await;
        let doors = [Http::trusting(one.address(), &unknown), Http::trusting(two.address(), &trusted)];
        let clients = eventually("both partitions are served", async || {
            let mut found = BTreeMap::new();
            for name in (0..64).map(|number| format!("car{number}")) {
                let told = doors[0].get(&format!("/v1/cluster?client={name}")).await.expect(200).json();
                found.entry(told["client_url"].as_str()?.to_owned()).or_insert(name);
            }
            Some([found.remove(&one_url)?, found.remove(&two_url)?])
        })
        .await;
        let subscription = json!({"filters": [{"area": {"radius_m": 500}}]});
        for (door, client) in doors.iter().zip(&clients) {
            door.put(&format!("/v1/clients/{client}/subscriptions/near"), &subscription).await.expect(201);
        }

        let listed = doors[0].get("/v1/clients").await.expect(200).json().to_string();
        assert!(clients.iter().all(|client| listed.contains(client.as_str())), "{listed}");
        let problem = eventually("the second knows the first", async || {
            let answer = doors[1].get("/v1/clients").await;
            (answer.status == 503).then(|| answer.json())
        })
        .await;
        let detail = format!("the broker of another partition does not answer: {one_url}");
        assert_eq!(
            (&problem["type"], &problem["detail"]),
            (&json!("urn:nearcast:problem:storage"), &json!(detail))
        );
        assert!(two.log().contains("invalid peer certificate"), "{}", two.log());

        // A call is passed on by the first; the second tells that it cannot.
        let door = |from: usize, to: usize| {
            (&doors[from], format!("/v1/clients/{}/subscriptions/near", clients[to]))
        };
        let (first, path) = door(0, 1);
        first.get(&path).await.expect(200);
        let (second, path) = door(1, 0);
        assert_eq!(second.get(&path).await.problem(503)["type"], "urn:nearcast:problem:storage");

        // A batch of positions is split by the first, and both move.
        let moves = clients
            .iter()
            .map(|client| format!("{}\n", json!({"client": client, "coordinates": [9.0, 45.0]})));
        let answer = doors[0].post("/v1/positions", "application/x-ndjson", moves.collect::<String>()).await;
        assert_eq!(answer.expect(202).json()["moved"], 2);
        let mut sockets = [
            Ws::secured(one.address(), &clients[0], &unknown).await,
            Ws::secured(two.address(), &clients[1], &trusted).await,
        ];
        assert!(publish(&doors[1], &feature("here", [9.0, 45.0], json!({}))).await);
        for socket in &mut sockets {
            assert_eq!(socket.event().await["event"]["id"], "here");
        }
        one.finish().await;
        two.finish().await;
    });
}
