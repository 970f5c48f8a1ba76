//! Publishers that do not give up: what had no answer is published again, under the same id, by the next broker.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::gate::Gate;
use super::ledger::{Event, Ledger};
use super::world::{KINDS, LAST_KIND, Place, SPOTS, Spot};
use crate::harness::{Answer, Form, Http, Received, Ws, encode, feature};

/// Objects that each publisher moves about.
const KEYS: u32 = 8;

/// The longest that an event with a time to live lives.
pub(crate) const BRIEF: Duration = Duration::from_millis(1_000);

/// Events under way on a WebSocket at most.
const WINDOW: usize = 40;

/// What a publisher needs.
pub(crate) struct Publisher {
    gate: Gate,
    ledger: Arc<Mutex<Ledger>>,
    rng: StdRng,
    /// Also in its events.
    number: u64,
}

impl Publisher {
    /// One with a number of its own.
    pub(crate) fn new(gate: &Gate, ledger: &Arc<Mutex<Ledger>>, number: u64, seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed ^ (number << 32));
        Self { gate: gate.clone(), ledger: Arc::clone(ledger), rng, number }
    }

    /// Publishes batches over HTTP, one after the other, and revokes a live event now and then.
    pub(crate) async fn batches(mut self) {
        loop {
            self.pause().await;
            let work = self.gate.work().await;
            if self.rng.random_bool(0.1) {
                self.revoke().await;
            } else {
                let count = self.rng.random_range(1..20);
                let numbers = self.draw(count);
                self.publish(numbers).await;
            }
            drop(work);
        }
    }

    /// Publishes over a WebSocket, many at a time before the first is answered.
    pub(crate) async fn pipelined(mut self) {
        let mut socket = None;
        loop {
            self.pause().await;
            let work = self.gate.work().await;
            let count = self.rng.random_range(1..WINDOW);
            let mut numbers = self.draw(count);
            while !numbers.is_empty() {
                let Some(open) = &mut socket else {
                    let name = format!("publisher-{}", self.number);
                    socket = Ws::attempt(self.gate.address().await, &name, "").await;
                    continue;
                };
                let answered_count = self.send(open, &numbers).await;
                if answered_count < numbers.len() {
                    socket = None;
                }
                numbers.drain(..answered_count);
            }
            drop(work);
        }
    }

    /// Sends all, and returns how many were answered before the broker went away.
    async fn send(&mut self, socket: &mut Ws, numbers: &[u64]) -> usize {
        for number in numbers {
            let event = self.lock().send_event(*number);
            let frame = json!({"op": "publish", "ref": number, "event": event});
            if !socket.try_send_message(frame.to_string().into()).await {
                break;
            }
        }
        for (idx, number) in numbers.iter().enumerate() {
            match socket.read().await {
                Received::Frame(answer) if answer == json!({"op": "ok", "ref": number}) => {
                    self.lock().ack_event(*number);
                }
                // The disk is full; what is asked for behind it will be answered the same.
                Received::Frame(answer) if answer["problem"]["status"] == 503 => return idx,
                Received::Frame(answer) => {
                    self.lock().fault(format!("event {number} was answered {answer}"));
                    return idx;
                }
                Received::Closed(..) => return idx,
            }
        }
        numbers.len()
    }

    /// Publishes events in one request, until that is answered.
    pub(crate) async fn publish(&mut self, numbers: Vec<u64>) {
        let forms = if numbers.len() == 1 {
            &[Form::Feature, Form::Lines][..]
        } else {
            &[Form::Collection, Form::Lines, Form::Sequence]
        };
        let form = *forms.choose(&mut self.rng).expect("not empty");
        loop {
            let address = self.gate.address().await;
            let events = numbers.iter().map(|number| self.lock().send_event(*number)).collect::<Vec<_>>();
            let (content_type, body) = encode(form, &events);
            let answer = Http::new(address).attempt("POST", "/v1/events", Some(content_type), body).await;
            match answer {
                Some(answer) if answer.status == 202 => {
                    let told = answer.json();
                    if told != json!({"accepted": numbers.len(), "rejected": []}) {
                        self.lock().fault(format!("{} events were answered {told}", numbers.len()));
                    }
                    let mut ledger = self.lock();
                    numbers.iter().for_each(|number| ledger.ack_event(*number));
                    return;
                }
                answer => wait_for_another(answer, &self.ledger).await,
            }
        }
    }

    /// Ends the life of one of its own events, if there is one.
    async fn revoke(&mut self) {
        let candidates = {
            let ledger = self.lock();
            let own = ledger.events.values().filter(|event| {
                let object = event.object.as_ref().filter(|object| ledger.is_last(object, event.number));
                object.is_some() && event.document["properties"]["from"] == self.number
            });
            own.map(|event| (event.number, event.certain_life())).collect::<Vec<_>>()
        };
        let Some((number, life)) = candidates.choose(&mut self.rng).copied() else { return };
        let is_live = life.is_some_and(|(_, end)| end.is_none());
        self.lock().send_end(number);
        for attempt in 0.. {
            let address: SocketAddr = self.gate.address().await;
            let path = format!("/v1/events/e{number}");
            let answer = Http::new(address).attempt("DELETE", &path, None, "").await;
            match answer {
                Some(answer) if [204, 404].contains(&answer.status) => {
                    if answer.status == 404 && attempt == 0 && is_live {
                        self.lock().fault(format!("event {number} was live and is not found"));
                    }
                    self.lock().ack_end(number);
                    return;
                }
                answer => wait_for_another(answer, &self.ledger).await,
            }
        }
    }

    /// The event that ends a stretch: it comes to all clients.
    pub(crate) async fn publish_last(&mut self) -> u64 {
        let number = self.lock().add_event(|number| {
            let properties = json!({"number": number, "kind": LAST_KIND, "from": 0});
            let document = feature(&format!("e{number}"), [-60.0, -30.0], properties);
            Event::new(number, document, Spot(u32::MAX), LAST_KIND, None, None)
        });
        self.publish(vec![number]).await;
        number
    }

    /// Makes events, of which no two are about the same object.
    fn draw(&mut self, count: usize) -> Vec<u64> {
        let mut keys = (0..KEYS).collect::<Vec<_>>();
        (0..count).map(|_| self.draw_one(&mut keys)).collect()
    }

    fn draw_one(&mut self, keys: &mut Vec<u32>) -> u64 {
        let spot = Spot(self.rng.random_range(0..SPOTS));
        let kind = self.rng.random_range(0..KINDS);
        let is_keyed = self.rng.random_range(0..10) < 3 && !keys.is_empty();
        let key = is_keyed.then(|| keys.swap_remove(self.rng.random_range(0..keys.len())));
        let is_brief = self.rng.random_range(0..10) == 0;
        let ttl = is_brief.then(|| self.rng.random_range(Duration::from_millis(150)..BRIEF));
        let from = self.number;
        self.lock().add_event(|number| {
            let coordinates = Place { spot, number: 0, passed: 0 }.coordinates();
            let properties = json!({"number": number, "kind": kind, "from": from});
            let mut document: Value = feature(&format!("e{number}"), coordinates, properties);
            let mut object = None;
            if let Some(ttl) = ttl {
                document["ttl_s"] = json!(ttl.as_secs_f64());
                object = Some(format!("e{number}"));
            }
            if let Some(key) = key {
                document["key"] = json!(format!("k{from}-{key}"));
                object = Some(format!("k{from}-{key}"));
            }
            Event::new(number, document, spot, kind, object, ttl)
        })
    }

    async fn pause(&mut self) {
        tokio::time::sleep(self.rng.random_range(Duration::ZERO..Duration::from_millis(30))).await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("nobody panicked")
    }
}

/// After an answer that is none: the broker has gone away, or cannot now.
pub(crate) async fn wait_for_another(answer: Option<Answer>, ledger: &Mutex<Ledger>) {
    if let Some(answer) = answer
        && answer.status != 503
    {
        let fault = format!("{}: {} {}", answer.call, answer.status, answer.text());
        ledger.lock().expect("nobody panicked").fault(fault);
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
}
