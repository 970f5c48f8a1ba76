//! Moves, changes of subscriptions and publishes by every way that PROTOCOL offers, told to the brute force as well.
//!
//! In rounds: first the changes, many at a time, all answered; then the events of the round, by five ways at a time. So
//! there is real concurrency, and yet one right answer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::mpsc;

use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};

use super::CALLS_AT_A_TIME;
use super::brute::{Step, document};
use super::clients::Client;
use super::geometry::Place;
use super::plan::Plan;
use super::taxis::Report;
use crate::harness::{Door, Form, Http, Ws, encode, within};

/// Most events of a round.
const ROUND_EVENTS_MAX: usize = 200;

/// The driver of a run.
pub(crate) struct Traffic<'a> {
    http: Http,
    clients: &'a [Client],
    publishers: Vec<Ws>,
    plan: Plan,
    steps: mpsc::Sender<Step>,
    /// The clients that ride in each taxi.
    riders: HashMap<u32, Vec<usize>>,
    /// Subscriptions that there are, by client.
    present: Vec<BTreeSet<String>>,
    made_count: usize,
    rounds_count: usize,
}

impl<'a> Traffic<'a> {
    /// A driver for connected clients; each rides in a taxi.
    pub(crate) async fn new(
        door: &Door,
        clients: &'a [Client],
        plan: Plan,
        steps: mpsc::Sender<Step>,
        reports: &[Report],
    ) -> Self {
        let taxis = reports.iter().map(|report| report.taxi_id).collect::<BTreeSet<_>>();
        let taxis = taxis.into_iter().collect::<Vec<_>>();
        let mut riders = HashMap::<u32, Vec<usize>>::new();
        for client_idx in 0..clients.len() {
            riders.entry(taxis[client_idx % taxis.len()]).or_default().push(client_idx);
        }
        let publishers =
            join_all((0..4).map(|idx| async move { door.ws(&format!("publisher-{idx}")).await }));
        Self {
            http: door.http(),
            clients,
            publishers: publishers.await,
            plan,
            steps,
            riders,
            present: vec![BTreeSet::new(); clients.len()],
            made_count: 0,
            rounds_count: 0,
        }
    }

    /// Makes the first subscriptions, and one more for each client, which only the last event of all satisfies.
    pub(crate) async fn set_the_scene(&mut self, subscriptions_count: usize) {
        let last = json!({"filters": [{"where": "kind = 'last'"}]});
        let mut calls = (0..self.clients.len())
            .map(|idx| self.put(idx, "last".to_owned(), last.clone(), 201))
            .collect::<Vec<_>>();
        for idx in 0..subscriptions_count {
            calls.push(self.subscribe(idx % self.clients.len()));
        }
        all(calls).await;
    }

    /// Replays the reports: each moves somebody and is published.
    pub(crate) async fn replay(&mut self, reports: &[Report]) {
        let mut rest = reports;
        while !rest.is_empty() {
            // Rounds of one event and of many.
            let count = if self.plan.below(4) == 0 { 1 } else { 1 + self.plan.below(ROUND_EVENTS_MAX) };
            let (round, later) = rest.split_at(count.min(rest.len()));
            self.changes(round, later.len() < reports.len() / 2).await;
            self.publish(round).await;
            rest = later;
            self.rounds_count += 1;
        }
    }

    /// Says how many rounds there were; the brute force then has all it needs.
    pub(crate) fn finish(self) -> usize {
        self.rounds_count
    }

    async fn changes(&mut self, round: &[Report], second_half: bool) {
        let mut calls = self.moves(round, second_half);
        let mut touched = BTreeSet::new();
        for _ in 0..(round.len() / 10).max(1) {
            // Two changes of one client's subscriptions at a time would have no order.
            let client_idx = self.plan.below(self.clients.len());
            if !touched.insert(client_idx) {
                continue;
            }
            calls.push(match self.plan.below(4) {
                0 => self.unsubscribe(client_idx),
                1 => self.subscribe(client_idx),
                _ => self.replace(client_idx),
            });
        }
        all(calls).await;
    }

    /// A rider of each reporting taxi moves there, by one of the four ways.
    fn moves(&mut self, round: &[Report], second_half: bool) -> Vec<BoxFuture<'a, ()>> {
        let mut places = BTreeMap::new();
        for report in round {
            let riders = self.riders.get(&report.taxi_id).map_or(&[][..], Vec::as_slice);
            let Some(client_idx) = riders.get(report.seq % riders.len().max(1)) else { continue };
            // Some never tell a position, some begin in the middle.
            let silent = client_idx % 10 == 9 && !(second_half && client_idx % 20 == 19);
            if !silent {
                places.insert(*client_idx, report.place);
            }
        }
        let (mut calls, mut array, mut lines) = (Vec::<BoxFuture<'a, ()>>::new(), Vec::new(), Vec::new());
        for (client_idx, place) in places {
            self.steps.send(Step::Move { client_idx, place }).expect("the brute force lives");
            let client = &self.clients[client_idx];
            match self.plan.below(4) {
                0 if client.has_socket() => calls.push(client.place(place).boxed()),
                0 | 1 => calls.push(put_position(self.http.clone(), client, place).boxed()),
                2 => array.push(json!({"client": client.name, "coordinates": place})),
                _ => lines.push(json!({"client": client.name, "coordinates": place})),
            }
        }
        calls.push(
            post_positions(self.http.clone(), "application/json", json!(array).to_string(), array.len())
                .boxed(),
        );
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        calls.push(post_positions(self.http.clone(), "application/x-ndjson", text, lines.len()).boxed());
        calls
    }

    fn subscribe(&mut self, client_idx: usize) -> BoxFuture<'a, ()> {
        self.made_count += 1;
        let id = format!("s{}", self.made_count);
        self.present[client_idx].insert(id.clone());
        self.install(client_idx, id, 201)
    }

    fn replace(&mut self, client_idx: usize) -> BoxFuture<'a, ()> {
        match self.present[client_idx].first().cloned() {
            Some(id) => self.install(client_idx, id, 200),
            None => self.subscribe(client_idx),
        }
    }

    fn install(&mut self, client_idx: usize, id: String, status: u16) -> BoxFuture<'a, ()> {
        let subscription = self.plan.subscription();
        let text = document(&subscription);
        let step = Step::Subscribe { client_idx, id: id.clone(), subscription };
        self.steps.send(step).expect("the brute force lives");
        self.put(client_idx, id, text, status)
    }

    /// Over the socket where there is one, for two in three; else by `PUT`.
    fn put(&mut self, client_idx: usize, id: String, mut document: Value, status: u16) -> BoxFuture<'a, ()> {
        let client = &self.clients[client_idx];
        if client.has_socket() && self.plan.below(3) > 0 {
            document["op"] = json!("subscribe");
            document["id"] = json!(id);
            return client.ok(document).boxed();
        }
        let http = self.http.clone();
        let path = format!("/v1/clients/{}/subscriptions/{id}", client.name);
        async move {
            http.put(&path, &document).await.expect(status);
        }
        .boxed()
    }

    fn unsubscribe(&mut self, client_idx: usize) -> BoxFuture<'a, ()> {
        let Some(id) = self.present[client_idx].pop_last() else { return self.subscribe(client_idx) };
        let step = Step::Unsubscribe { client_idx, id: id.clone() };
        self.steps.send(step).expect("the brute force lives");
        let client = &self.clients[client_idx];
        if client.has_socket() && self.plan.below(2) == 0 {
            return client.ok(json!({"op": "unsubscribe", "id": id})).boxed();
        }
        let http = self.http.clone();
        let path = format!("/v1/clients/{}/subscriptions/{id}", client.name);
        async move {
            http.delete(&path).await.expect(204);
        }
        .boxed()
    }

    /// The events of a round, a fifth by each way, all ways at a time.
    async fn publish(&mut self, round: &[Report]) {
        let mut ways = [const { Vec::new() }; 5];
        for report in round {
            let step = Step::Publish {
                id: report.id(),
                place: report.place,
                reach_m: report.reach_m(),
                properties: report.properties(),
            };
            self.steps.send(step).expect("the brute force lives");
            ways[self.plan.below(5)].push(report.event());
        }
        let [frames, features, collection, lines, sequence] = ways;
        let shares =
            frames.chunks(frames.len().div_ceil(self.publishers.len()).max(1)).map(<[Value]>::to_vec);
        let shares = shares.collect::<Vec<_>>();
        let over_sockets = self.publishers.iter_mut().zip(shares).map(async |(publisher, events)| {
            for event in events {
                publisher.publish(&event).await;
            }
        });
        let mut posts =
            vec![(Form::Collection, collection), (Form::Lines, lines), (Form::Sequence, sequence)];
        posts.retain(|(_, events)| !events.is_empty());
        posts.extend(features.into_iter().map(|event| (Form::Feature, vec![event])));
        let posts = posts.into_iter().map(|(form, events)| post_events(self.http.clone(), form, events));
        let posts = stream::iter(posts).buffer_unordered(CALLS_AT_A_TIME).collect::<Vec<_>>();
        within("a round is published", async { tokio::join!(join_all(over_sockets), posts) }).await;
    }
}

async fn all(calls: Vec<BoxFuture<'_, ()>>) {
    let calls = stream::iter(calls).buffer_unordered(CALLS_AT_A_TIME).collect::<Vec<_>>();
    calls.await;
}

async fn put_position(http: Http, client: &Client, place: Place) {
    let path = format!("/v1/clients/{}/position", client.name);
    http.put(&path, &json!({"coordinates": place})).await.expect(204);
}

async fn post_positions(http: Http, content_type: &str, body: String, count: usize) {
    if count == 0 {
        return;
    }
    let answer = http.post("/v1/positions", content_type, body).await.expect(202).json();
    assert_eq!(answer, json!({"moved": count, "rejected": []}));
}

async fn post_events(http: Http, form: Form, events: Vec<Value>) {
    let (content_type, body) = encode(form, &events);
    let answer = http.post("/v1/events", content_type, body).await.expect(202).json();
    assert_eq!(answer, json!({"accepted": events.len(), "rejected": []}), "{form:?}");
}
