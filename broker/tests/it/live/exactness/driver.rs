//! Carries steps out, one after the other, each acknowledged before the next, by every way that PROTOCOL offers.

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::oracle::Question;
use super::plan::{Planned, Step};
use super::reading::Reading;
use crate::harness::{Door, Form, Http, Ws, encode, feature};

/// After so many steps everybody reads what has come.
const STRIDE: usize = 250;

/// The id of the event that ends a run.
const LAST: &str = "last";

/// Carries out a run.
pub(crate) struct Driver<'a> {
    door: &'a Door,
    http: Http,
    publisher: Ws,
    /// Is told when an event is over.
    witness: Ws,
    pub(crate) clients: Vec<Reading>,
    /// All events, by number.
    documents: Vec<Value>,
    steps_count: usize,
    /// How often a question was answered with no and with yes.
    pub(crate) answers_counts: [usize; 2],
}

impl<'a> Driver<'a> {
    /// Connects everybody.
    pub(crate) async fn new(door: &'a Door, clients_count: usize) -> Self {
        let connect = (0..clients_count).map(async |idx| {
            let mut client = Reading::new(idx);
            client.come(door).await;
            let path = format!("/v1/clients/{}/subscriptions/{LAST}", client.name);
            let last = json!({"filters": [{"where": "kind = 'last'"}]});
            door.http().put(&path, &last).await.expect(201);
            client
        });
        let mut witness = door.ws("witness").await;
        let brief = json!({"filters": [{"where": "brief = TRUE"}], "on": ["exit"]});
        witness.subscribe("brief", brief).await;
        Self {
            door,
            http: door.http(),
            publisher: door.ws("publisher").await,
            witness,
            clients: stream::iter(connect).buffered(16).collect().await,
            documents: Vec::new(),
            steps_count: 0,
            answers_counts: [0; 2],
        }
    }

    /// Carries a step out, and notes what must come of it.
    pub(crate) async fn take(&mut self, planned: Planned) {
        let Planned { step, outcome } = planned;
        self.steps_count += usize::from(!matches!(step, Step::Ask { .. }));
        let shown = format!("step {}: {step:?}", self.steps_count);
        self.carry_out(step).await;
        for (client_idx, told) in outcome {
            self.clients[client_idx].expect(&shown, told);
        }
        if self.steps_count.is_multiple_of(STRIDE) {
            self.settle().await;
        }
    }

    /// Lets everybody read all that has to have come.
    async fn settle(&mut self) {
        for client in &mut self.clients {
            client.settle(&self.documents).await;
        }
    }

    /// Ends the run: what comes next is the last event, so nothing came that had not to.
    pub(crate) async fn finish(&mut self) {
        self.settle().await;
        for client in &mut self.clients {
            if !client.is_here() {
                client.come(self.door).await;
            }
        }
        self.publisher.publish(&feature(LAST, [0.0, 0.0], json!({"kind": "last"}))).await;
        for client in &mut self.clients {
            let frame = client.next("the last event").await;
            assert_eq!(frame["event"]["id"], LAST, "{}: {frame}", client.name);
        }
    }

    async fn carry_out(&mut self, step: Step) {
        let even = self.steps_count.is_multiple_of(2);
        match step {
            Step::Move { client_idx, place, accuracy_m } => {
                let client = &self.clients[client_idx];
                let mut fix = json!({"coordinates": place});
                if accuracy_m > 0.0 {
                    fix["accuracy_m"] = json!(accuracy_m);
                }
                if even && accuracy_m == 0.0 && client.can_ask() {
                    fix["op"] = json!("move");
                    client.ok(fix).await;
                } else if self.steps_count.is_multiple_of(3) {
                    fix["client"] = json!(client.name);
                    let body = json!([fix]).to_string();
                    let answer = self.http.post("/v1/positions", "application/json", body).await;
                    assert_eq!(answer.expect(202).json(), json!({"moved": 1, "rejected": []}));
                } else {
                    let path = format!("/v1/clients/{}/position", client.name);
                    self.http.put(&path, &fix).await.expect(204);
                }
            }
            Step::Publish { document } => {
                self.publish(&document).await;
                self.documents.push(document);
            }
            Step::Expired { number } => loop {
                let frame = self.witness.event().await;
                assert_eq!((&frame["transition"], &frame["cause"]), (&json!("exit"), &json!("expired")));
                if frame["event"]["properties"]["number"] == number {
                    return;
                }
            },
            Step::Revoke { id, lives } => {
                let status = if lives { 204 } else { 404 };
                self.http.delete(&format!("/v1/events/{id}")).await.expect(status);
            }
            Step::Subscribe { client_idx, id, mut document, replaces } => {
                let client = &self.clients[client_idx];
                // What is made over a socket ends with it, so those who come and go make nothing there.
                if even && client.can_ask() && client_idx.is_multiple_of(2) {
                    document["op"] = json!("subscribe");
                    document["id"] = json!(id);
                    client.ok(document).await;
                } else {
                    let path = format!("/v1/clients/{}/subscriptions/{id}", client.name);
                    self.http.put(&path, &document).await.expect(if replaces { 200 } else { 201 });
                }
            }
            Step::Unsubscribe { client_idx, id } => {
                let client = &self.clients[client_idx];
                if even && client.can_ask() {
                    client.ok(json!({"op": "unsubscribe", "id": id})).await;
                } else {
                    let path = format!("/v1/clients/{}/subscriptions/{id}", client.name);
                    self.http.delete(&path).await.expect(204);
                }
            }
            Step::Leave { client_idx } => self.clients[client_idx].leave(&self.documents).await,
            Step::Return { client_idx } => self.clients[client_idx].come(self.door).await,
            Step::Ask { questions } => self.ask(questions).await,
        }
    }

    /// What is explained is what is told.
    async fn ask(&mut self, questions: Vec<Question>) {
        let (http, step) = (&self.http, self.steps_count);
        let asking = questions.into_iter().map(|question| async move {
            let Question { client_idx, subscription, event, matched, inside } = &question;
            let client = Reading::name_of(*client_idx);
            let body = json!({"client": client, "subscription": subscription, "event": event});
            let answer =
                http.post("/v1/explain", "application/json", body.to_string()).await.expect(200).json();
            let said = (&answer["matched"], &answer["inside"]);
            assert_eq!(said, (&json!(matched), &json!(inside)), "after step {step}: {question:?}: {answer}");
            *matched
        });
        let answers: Vec<bool> = stream::iter(asking).buffer_unordered(8).collect().await;
        for matched in answers {
            self.answers_counts[usize::from(matched)] += 1;
        }
    }

    async fn publish(&mut self, document: &Value) {
        if self.steps_count.is_multiple_of(2) {
            self.publisher.publish(document).await;
            return;
        }
        let form = [Form::Feature, Form::Collection, Form::Lines, Form::Sequence][self.steps_count / 2 % 4];
        let (content_type, body) = encode(form, std::slice::from_ref(document));
        let answer = self.http.post("/v1/events", content_type, body).await.expect(202).json();
        assert_eq!(answer, json!({"accepted": 1, "rejected": []}), "{form:?}: {document}");
    }
}
