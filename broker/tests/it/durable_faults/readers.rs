//! Durable readers that are cut off, sleep and come back, in each of the three ways in which one can go on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use super::gate::Gate;
use super::ledger::Ledger;
use crate::harness::{Received, Sse, Ws};

/// How a reader says where it was.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Manner {
    /// A WebSocket with `?resume=`.
    Resuming,
    /// A WebSocket without, which goes on behind what was acknowledged.
    Acknowledging,
    /// An event stream with `Last-Event-ID`.
    Streaming,
}

/// Reads for a client.
pub(crate) struct Reader {
    gate: Gate,
    ledger: Arc<Mutex<Ledger>>,
    rng: StdRng,
    client_idx: usize,
    name: String,
    manner: Manner,
}

impl Reader {
    /// The one of a client.
    pub(crate) fn new(gate: &Gate, ledger: &Arc<Mutex<Ledger>>, client_idx: usize, seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed ^ ((client_idx as u64) << 50));
        let name = ledger.lock().expect("nobody panicked").clients[client_idx].name.clone();
        let manner = [Manner::Resuming, Manner::Acknowledging, Manner::Streaming][client_idx % 3];
        Self { gate: gate.clone(), ledger: Arc::clone(ledger), rng, client_idx, name, manner }
    }

    /// Reads for a while, goes, and comes back.
    pub(crate) async fn read(mut self) {
        loop {
            let until = Instant::now() + self.rng.random_range(Duration::ZERO..Duration::from_millis(700));
            match self.manner {
                Manner::Resuming | Manner::Acknowledging => self.read_socket(until).await,
                Manner::Streaming => self.read_stream(until).await,
            }
            // Some come back so soon that the broker has not taken in what they acknowledged before.
            if self.rng.random_bool(0.8) {
                sleep(self.rng.random_range(Duration::ZERO..Duration::from_millis(250))).await;
            }
        }
    }

    async fn read_socket(&mut self, until: Instant) {
        let resume = match self.manner {
            Manner::Resuming => self.lock().resume(self.client_idx),
            Manner::Acknowledging | Manner::Streaming => None,
        };
        let (after, asked) = resume.map_or((String::new(), None), |(after, asked)| (after, Some(asked)));
        let Some(mut socket) = Ws::attempt(self.gate.address().await, &self.name, &after).await else {
            return;
        };
        let epoch = socket.ready["epoch"].as_str().unwrap_or_default().to_owned();
        let offset = socket.ready["offset"].as_u64().unwrap_or_default();
        self.lock().ready(self.client_idx, &epoch, offset, asked);
        let mut left = self.rng.random_range(1..60);
        while let Ok(received) = timeout_at(until, socket.read()).await {
            match received {
                // What an acknowledgement is answered that comes when the broker is told to end.
                Received::Frame(frame) if frame["problem"]["status"] == 503 => return,
                Received::Frame(frame) => self.lock().frame(self.client_idx, &frame),
                Received::Closed(..) => return,
            }
            left -= 1;
            if left == 0 {
                left = self.rng.random_range(1..60);
                if !self.acknowledge(&mut socket).await {
                    return;
                }
            }
        }
        if self.rng.random_bool(0.5) {
            self.acknowledge(&mut socket).await;
        }
    }

    /// Acknowledges what was read; false where the connection is gone.
    async fn acknowledge(&mut self, socket: &mut Ws) -> bool {
        let offset = self.lock().ack(self.client_idx);
        let ack = json!({"op": "ack", "offset": offset}).to_string();
        socket.try_send_message(ack.into()).await
    }

    async fn read_stream(&mut self, until: Instant) {
        let resume = self.lock().resume(self.client_idx);
        let (after, asked) = resume.clone().unwrap_or_default();
        // To go on is to acknowledge.
        self.lock().ack(self.client_idx);
        let Some(mut stream) = Sse::attempt(self.gate.address().await, &self.name, &after).await else {
            return;
        };
        if let Some((epoch, _)) = after.split_once(':') {
            self.lock().ready(self.client_idx, epoch, asked, Some(asked));
        }
        while let Ok(received) = timeout_at(until, stream.read()).await {
            let Some(message) = received else { return };
            let (epoch, offset) = message.epoch_and_offset();
            let frame = message.frame();
            let mut ledger = self.lock();
            if ledger.resume(self.client_idx).is_none() {
                ledger.ready(self.client_idx, &epoch, 0, None);
            }
            let told = if frame["op"] == "gap" { &frame["to"] } else { &frame["offset"] };
            if after.split_once(':').is_some_and(|(known, _)| known != epoch) || *told != offset {
                ledger.fault(format!("{}: resumed after {after} and got {message:?}", self.name));
            }
            ledger.frame(self.client_idx, &frame);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("nobody panicked")
    }
}
