//! Clients that move about and change what they want, each one thing after the other, by every way that there is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::gate::Gate;
use super::ledger::{Ledger, is_durable};
use super::publishers::wait_for_another;
use super::timeline::Timeline;
use super::world::{Area, KINDS, LAST_KIND, On, Place, SPOTS, Spot, Wish};
use crate::harness::{Answer, Http, Received, Ws};

/// Subscriptions of a client that come and go.
const SUBSCRIPTIONS_MAX: usize = 4;

/// What a client asks for besides reading.
pub(crate) struct Changer {
    gate: Gate,
    ledger: Arc<Mutex<Ledger>>,
    rng: StdRng,
    client_idx: usize,
    name: String,
    /// Nobody reads for it, so that it may be forgotten altogether.
    is_visitor: bool,
}

/// A request, and which answers mean that it was carried out. Those of a repeated one say less.
struct Request {
    method: &'static str,
    path: String,
    body: String,
    answers: &'static [u16],
}

impl Changer {
    /// Of a client.
    pub(crate) fn new(
        gate: &Gate,
        ledger: &Arc<Mutex<Ledger>>,
        client_idx: usize,
        is_visitor: bool,
        seed: u64,
    ) -> Self {
        let rng = StdRng::seed_from_u64(seed ^ ((client_idx as u64) << 40));
        let name = ledger.lock().expect("nobody panicked").clients[client_idx].name.clone();
        Self { gate: gate.clone(), ledger: Arc::clone(ledger), rng, client_idx, name, is_visitor }
    }

    /// What a client has from the beginning and never changes: one subscription to the last event, and one to transitions.
    pub(crate) async fn settle_in(&mut self) {
        let number = self.lock().next_number();
        let (kind, on) = (Some(LAST_KIND), On::Events);
        let last = Wish { area: Area::Everywhere, kind, on, durable: true, number };
        self.subscribe("last".to_owned(), last).await;
        let number = self.lock().next_number();
        let area = self.area();
        let on = [On::Transitions, On::Dwelling, On::Reluctant, On::Nearest][self.client_idx % 4];
        self.subscribe("t".to_owned(), Wish { area, kind: None, on, durable: true, number }).await;
        self.move_on().await;
    }

    /// Goes on and on.
    pub(crate) async fn roam(mut self) {
        loop {
            tokio::time::sleep(self.rng.random_range(Duration::ZERO..Duration::from_millis(60))).await;
            let work = self.gate.work().await;
            match self.rng.random_range(0..10) {
                0 if self.is_visitor => self.be_forgotten().await,
                0..5 => self.move_on().await,
                5..9 => {
                    let subscriptions = self.subscriptions();
                    let is_new = subscriptions.len() < SUBSCRIPTIONS_MAX && self.rng.random_bool(0.5);
                    let id = match subscriptions.choose(&mut self.rng) {
                        Some(id) if !is_new => id.clone(),
                        _ => {
                            let durable = self.rng.random_bool(0.7);
                            self.lock().clients[self.client_idx].next_subscription(durable)
                        }
                    };
                    let wish = self.wish(is_durable(&id));
                    self.subscribe(id, wish).await;
                }
                _ => {
                    let subscriptions = self.subscriptions();
                    if let Some(id) = subscriptions.choose(&mut self.rng).cloned() {
                        self.unsubscribe(id).await;
                    }
                }
            }
            drop(work);
        }
    }

    async fn move_on(&mut self) {
        let mut spots = || Spot(self.rng.random_range(0..SPOTS));
        let (spot, over) = (spots(), [spots(), spots(), spots()]);
        let mut place = Place { spot, number: self.lock().next_number(), passed: 0 };
        let mut fix = json!({"coordinates": place.coordinates()});
        if self.rng.random_bool(0.3) {
            let over_count = self.rng.random_range(1..=over.len());
            let track;
            (place, track) = place.reached_over(&over[..over_count]);
            fix = json!({"track": track});
        }
        self.lock().clients[self.client_idx].place.send(Some(place));
        let request = if self.rng.random_bool(0.5) {
            self.request("PUT", "/position", fix.to_string(), &[204])
        } else {
            fix["client"] = json!(self.name);
            let path = "/v1/positions".to_owned();
            Request { method: "POST", path, body: json!([fix]).to_string(), answers: &[202] }
        };
        self.carry_out(&request).await;
        self.lock().clients[self.client_idx].place.ack();
    }

    async fn subscribe(&mut self, id: String, wish: Wish) {
        self.lock().clients[self.client_idx].send_wish(&id, wish);
        // One that is not durable would end with the socket.
        if self.rng.random_bool(0.2) && !self.is_visitor && wish.durable {
            self.subscribe_over_socket(&id, wish).await;
        } else {
            let request = self.request(
                "PUT",
                &format!("/subscriptions/{id}"),
                wish.document().to_string(),
                &[200, 201],
            );
            self.carry_out(&request).await;
        }
        self.wish_timeline(&id, |wish| wish.ack());
    }

    /// A durable one outlives the socket that made it.
    async fn subscribe_over_socket(&mut self, id: &str, wish: Wish) {
        let mut frame = wish.document();
        frame["op"] = json!("subscribe");
        frame["ref"] = json!("made");
        frame["id"] = json!(id);
        loop {
            let Some(mut socket) = Ws::attempt(self.gate.address().await, &self.name, "").await else {
                continue;
            };
            if !socket.try_send_message(frame.to_string().into()).await {
                continue;
            }
            loop {
                match socket.read().await {
                    Received::Frame(answer) if answer["ref"] == "made" => {
                        if answer["op"] == "ok" {
                            return;
                        }
                        if answer["problem"]["status"] == 503 {
                            tokio::time::sleep(Duration::from_millis(5)).await;
                            break;
                        }
                        self.lock().fault(format!("{frame} was answered {answer}"));
                        return;
                    }
                    Received::Frame(_) => {}
                    Received::Closed(..) => break,
                }
            }
        }
    }

    async fn unsubscribe(&mut self, id: String) {
        self.wish_timeline(&id, |wish| wish.send(None));
        let request = self.request("DELETE", &format!("/subscriptions/{id}"), String::new(), &[204]);
        self.carry_out(&request).await;
        self.wish_timeline(&id, |wish| wish.ack());
    }

    /// Has everything of its own removed.
    async fn be_forgotten(&mut self) {
        let ids = {
            let mut ledger = self.lock();
            let client = &mut ledger.clients[self.client_idx];
            client.place.send(None);
            let ids = client.subscriptions();
            ids.iter().for_each(|id| client.wishes.get_mut(id).expect("it is there").send(None));
            ids
        };
        let request = self.request("DELETE", "", String::new(), &[204]);
        self.carry_out(&request).await;
        self.lock().clients[self.client_idx].place.ack();
        ids.iter().for_each(|id| self.wish_timeline(id, |wish| wish.ack()));
    }

    /// Asks until there is an answer.
    async fn carry_out(&self, request: &Request) {
        for attempt in 0.. {
            let http = Http::new(self.gate.address().await);
            let Request { method, path, body, answers } = request;
            let content_type = (!body.is_empty()).then_some("application/json");
            let answer = http.attempt(method, path, content_type, body.clone()).await;
            // What was carried out before, without an answer, is not there to be removed again.
            let is_gone = |answer: &Answer| attempt > 0 && *method == "DELETE" && answer.status == 404;
            match answer {
                Some(answer) if answers.contains(&answer.status) || is_gone(&answer) => return,
                answer => wait_for_another(answer, &self.ledger).await,
            }
        }
    }

    fn request(&self, method: &'static str, path: &str, body: String, answers: &'static [u16]) -> Request {
        Request { method, path: format!("/v1/clients/{}{path}", self.name), body, answers }
    }

    fn wish(&mut self, durable: bool) -> Wish {
        let area = self.area();
        // One that is everywhere would get everything.
        let kind = if area == Area::Wide || self.rng.random_bool(0.3) {
            Some(self.rng.random_range(0..KINDS))
        } else {
            None
        };
        Wish { area, kind, on: On::Events, durable, number: self.lock().next_number() }
    }

    fn area(&mut self) -> Area {
        match self.rng.random_range(0..10) {
            0..5 => Area::Following,
            5..8 => Area::At(Spot(self.rng.random_range(0..SPOTS))),
            _ => Area::Wide,
        }
    }

    /// Those that come and go.
    fn subscriptions(&self) -> Vec<String> {
        let mut ids = self.lock().clients[self.client_idx].subscriptions();
        ids.retain(|id| id.starts_with(['s', 'v']));
        ids
    }

    fn wish_timeline(&self, id: &str, change: impl FnOnce(&mut Timeline<Option<Wish>>)) {
        let mut ledger = self.lock();
        change(ledger.clients[self.client_idx].wishes.get_mut(id).expect("it was asked for"));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("nobody panicked")
    }
}
