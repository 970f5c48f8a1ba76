//! Connections that break, with the test in the client's place: a real broker says what the contract has it say.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{by_value, list, publish, text, vectors};
use crate::harness::{Program, Serve, Ws, eventually};

/// One sequence that goes on.
struct Replay {
    program: Program,
    client: String,
    socket: Option<Ws>,
    /// The epochs of the contract, and what the broker calls them.
    epochs: BTreeMap<String, String>,
    /// What stands for each `$ref`.
    references: BTreeMap<String, Value>,
    last_reference: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_says_what_the_contract_has_it_say() {
    let sequences = vectors("resume");
    let replayed: Vec<_> = list(&sequences).iter().filter(|sequence| sequence["broker"] == true).collect();
    assert!(replayed.len() > 10, "only {} are about the broker", replayed.len());
    for sequence in replayed {
        let mut replay = Replay::start(text(&sequence["options"]["client"])).await;
        for (idx, step) in list(&sequence["steps"]).iter().enumerate() {
            let place = format!("{}, step {idx}", text(&sequence["name"]));
            replay.step(&place, step).await;
        }
        replay.disconnect().await;
        replay.program.finish().await;
    }
}

impl Replay {
    async fn start(client: &str) -> Self {
        Self {
            program: Serve::new().start().await,
            client: client.to_owned(),
            socket: None,
            epochs: BTreeMap::new(),
            references: BTreeMap::new(),
            last_reference: 0,
        }
    }

    async fn step(&mut self, place: &str, step: &Value) {
        let members = step.as_object().expect("an object");
        let (kind, told) = members.iter().next().expect("a kind of step");
        match kind.as_str() {
            "accept" => self.connect(place, told).await,
            "send" => self.expect(place, told).await,
            "receive" => self.send(told).await,
            "drop" if told == "reset" => self.disconnect().await,
            "drop" => {
                let (code, _) = self.socket().closed().await;
                assert_eq!(json!(code), told["close"], "{place}");
                self.disconnect().await;
            }
            "new" => self.disconnect().await,
            "settled" => self.socket().assert_quiet().await,
            "world" => self.happen(told).await,
            "app" | "call" | "done" | "fails" | "deliver" | "checkpoint" | "lost" => {}
            other => panic!("{place}: there is no step {other}"),
        }
    }

    fn socket(&mut self) -> &mut Ws {
        self.socket.as_mut().expect("a connection")
    }

    async fn connect(&mut self, place: &str, told: &Value) {
        assert!(self.socket.is_none(), "{place}: there is a connection");
        let address = self.program.address();
        self.socket = Some(match told["query"]["resume"].as_str() {
            None => Ws::connect(address, &self.client).await,
            Some(resume) => {
                let (epoch, offset) = resume.split_once(':').expect("an epoch and an offset");
                let epoch = self.epochs.get(epoch).unwrap_or_else(|| panic!("{place}: {epoch} has not been"));
                Ws::resume(address, &self.client, epoch, offset.parse().expect("a number")).await
            }
        });
    }

    /// Expects a frame from the broker.
    async fn expect(&mut self, place: &str, told: &Value) {
        let mut expected = told.clone();
        if told["op"] == "ready" {
            let ready = self.socket().ready.clone();
            let (name, epoch) = (text(&told["epoch"]), text(&ready["epoch"]));
            let is_known = self.epochs.values().any(|known| known == epoch);
            assert_eq!(is_known, self.epochs.contains_key(name), "{place}: whether the epoch is another one");
            assert_eq!(
                self.epochs.entry(name.to_owned()).or_insert_with(|| epoch.to_owned()),
                epoch,
                "{place}"
            );
            expected["epoch"] = json!(epoch);
            assert_eq!(by_value(&ready), by_value(&expected), "{place}");
            return;
        }
        if let Some(name) = take(&mut expected, "$ref") {
            expected["ref"] = self.references[text(&name)].clone();
        }
        let mut frame = self.socket().next().await;
        // They are for people, and the sequences are about something else.
        take(&mut frame, "warnings");
        assert_eq!(by_value(&frame), by_value(&expected), "{place}");
    }

    /// Sends a frame to the broker.
    async fn send(&mut self, told: &Value) {
        let mut frame = told.clone();
        if let Some(name) = take(&mut frame, "$ref") {
            self.last_reference += 1;
            frame["ref"] = json!(self.last_reference);
            self.references.insert(text(&name).to_owned(), frame["ref"].clone());
        }
        self.socket().send(&frame).await;
    }

    /// Breaks the connection off, and waits until the broker knows.
    async fn disconnect(&mut self) {
        self.socket = None;
        let http = self.program.http();
        eventually("the connection is gone", async || {
            let stats = http.get("/v1/stats").await.expect(200).json();
            (stats["websockets"] == 0).then_some(())
        })
        .await;
    }

    /// Has something happen that is none of the connection's.
    async fn happen(&mut self, told: &Value) {
        let http = self.program.http();
        let path = |id: &Value| format!("/v1/clients/{}/subscriptions/{}", self.client, text(id));
        if let Some(event) = told.get("publish") {
            publish(&http, event).await;
        } else if let Some(subscription) = told.get("put") {
            http.put(&path(&subscription["id"]), subscription).await.expect(201);
        } else if let Some(id) = told.get("delete") {
            http.delete(&path(id)).await.expect(204);
        } else if told["forget"] == true {
            http.delete(&format!("/v1/clients/{}", self.client)).await.expect(204);
        } else {
            assert_eq!(told["restart"], true, "nothing that can happen: {told}");
            let other = Serve::new().start().await;
            std::mem::replace(&mut self.program, other).finish().await;
        }
    }
}

fn take(frame: &mut Value, member: &str) -> Option<Value> {
    frame.as_object_mut()?.remove(member)
}
