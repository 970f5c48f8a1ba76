//! Lives end by the time of the stream of events while a broker has yet to read it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::several_active::{Member, PLACE, follows, two, watch_place};
use super::{folder, publish, ready, run};
use crate::harness::{Http, Ws, feature};
use crate::nats::Servers;

/// Publishes an object that lives for 3 s.
async fn see(http: &Http, object: &str) {
    let mut event = feature(object, PLACE, json!({}));
    event["ttl_s"] = json!(3);
    assert!(publish(http, &event).await);
}

/// Publishes the bus again and again, in less time than it lives, for so long at least.
async fn keep_alive(http: &Http, at_least: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < at_least {
        see(http, "bus").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// An object that others keep alive stays, for a client whose broker is stopped for longer than the object lives, and for one whose broker
/// dies and is replaced later than that. It leaves once, when it is published no more.
#[test]
fn an_object_that_is_published_again_in_time_stays_over_a_pause_and_a_takeover() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let [first, mut active] = two(&servers).await;
        let clients = first.clients().await;
        let client = &clients[1];
        let epoch = watch_place(&active.program, client).await;
        let http = first.program.http();
        keep_alive(&http, Duration::from_secs(1)).await;
        active.program.signal("STOP");
        keep_alive(&http, Duration::from_secs(4)).await;
        active.program.signal("CONT");
        keep_alive(&http, Duration::from_secs(1)).await;
        let mut standby = Member::start(&servers, 2).await;
        tokio::join!(follows(&standby), keep_alive(&http, Duration::from_secs(1)));
        active.program.signal("KILL");
        let replaced = async {
            active.program.exit_status().await;
            ready(&mut standby.program).await;
        };
        // For as long as that takes.
        tokio::select! {
            () = keep_alive(&http, Duration::MAX) => {}
            () = replaced => {}
        }
        keep_alive(&http, Duration::from_secs(4)).await;
        let mut reader = Ws::resume(standby.program.address(), client, &epoch, 0).await;
        let mut next = async || {
            let frame = reader.event().await;
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            (text(&frame["event"]["id"]), text(&frame["transition"]))
        };
        for transition in ["enter", "exit"] {
            assert_eq!(next().await, ("bus".into(), transition.into()));
        }
        see(&http, "tram").await;
        assert_eq!(next().await, ("tram".into(), "enter".into()));
        standby.program.finish().await;
        first.program.finish().await;
    });
}
