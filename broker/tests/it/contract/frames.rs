//! Frames that clients write: each is taken by the broker.

use serde_json::{Value, json};

use super::{list, text, vectors};
use crate::harness::{Serve, Ws, feature};

/// What has to be before a frame can be carried out.
async fn prepare(car: &mut Ws, frame: &Value) {
    match text(&frame["op"]) {
        "unsubscribe" => car.subscribe(text(&frame["id"]), json!({"filters": [{"where": "FALSE"}]})).await,
        "ack" => {
            // What other frames have published may be live.
            car.subscribe("own", json!({"filters": [{"where": "own = TRUE"}]})).await;
            for offset in 1..=frame["offset"].as_u64().expect("a number") {
                car.publish(&feature("e", [9.0, 45.0], json!({"own": true}))).await;
                assert_eq!(car.event().await["offset"], offset);
            }
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_clients_write_is_taken() {
    let program = Serve::new().start().await;
    for (idx, vector) in list(&vectors("frames")["client"]).iter().enumerate() {
        let (name, frame) = (text(&vector["name"]), &vector["frame"]);
        let mut car = program.ws(&format!("car-{idx}")).await;
        prepare(&mut car, frame).await;
        car.send(frame).await;
        if let Some(reference) = frame.get("ref") {
            let answer = car.next().await;
            assert_eq!((&answer["op"], &answer["ref"]), (&json!("ok"), reference), "{name}: {answer}");
        } else if frame["op"] == "ping" {
            assert_eq!(car.next().await, json!({"op": "pong"}), "{name}");
        } else {
            car.assert_quiet().await;
        }
    }
    program.finish().await;
}
