//! The contract's vectors of connections that break; `clients/contract/README.md` says what each step is.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::FutureExt;
use nearcast_client::{
    Acknowledge, Checkpoint, Connection, Error, Feature, Fix, Message, Messages, Session, Subscription,
    connect, documents,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    by_value,
    scripted::{Peer, Server},
    until, vectors, within,
};

type Connecting = JoinHandle<Result<(Session, Messages), Error>>;

struct Runner {
    server: Server,
    options: Value,
    connecting: Option<Connecting>,
    session: Option<(Session, Messages)>,
    peer: Option<Peer>,
    calls: HashMap<String, JoinHandle<Result<(), Error>>>,
    references: HashMap<String, Value>,
    ids: HashMap<String, Value>,
}

#[tokio::test]
async fn a_session_behaves_as_the_contract_says() {
    let vectors = vectors("resume.json");
    let vectors = vectors.as_array().expect("an array");
    assert!(vectors.len() >= 48, "there are {}", vectors.len());
    for vector in vectors {
        let mut runner = Runner::new(vector["options"].clone()).await;
        let steps = vector["steps"].as_array().expect("steps");
        for (n, step) in steps.iter().enumerate() {
            let next = steps.get(n + 1).unwrap_or(&Value::Null);
            let carried_out = std::panic::AssertUnwindSafe(runner.step(step, next)).catch_unwind().await;
            assert!(carried_out.is_ok(), "{}: step {n}, {step}", vector["name"]);
        }
    }
}

impl Runner {
    async fn new(options: Value) -> Self {
        let server = Server::start().await;
        let connecting = Some(begin(&server, &options));
        let (session, peer) = (None, None);
        Self {
            server,
            options,
            connecting,
            session,
            peer,
            calls: HashMap::new(),
            references: HashMap::new(),
            ids: HashMap::new(),
        }
    }

    async fn step(&mut self, step: &Value, next: &Value) {
        let (verb, value) = step
            .as_object()
            .and_then(|step| step.iter().find(|(name, _)| *name != "call"))
            .expect("a step has a verb");
        match verb.as_str() {
            "accept" => {
                let request = self.server.request().await;
                assert_eq!(request.resume().as_deref(), value["query"]["resume"].as_str());
                if let Some(token) = value["token"].as_str() {
                    assert_eq!(request.token(), Some(token));
                }
                self.peer = Some(request.accept().await);
            }
            "refuse" => {
                let request = self.server.request().await;
                assert_eq!(request.resume().as_deref(), value["query"]["resume"].as_str());
                let status = value["status"].as_u64().and_then(|status| u16::try_from(status).ok());
                let body = value["body"].as_str().expect("a body");
                request.answer(status.expect("a status"), &value["headers"], body).await;
            }
            "send" => self.send(value, next).await,
            "receive" => {
                let frame = self.peer().receive().await;
                self.compare(&frame, value);
            }
            "receive_until" => {
                let mut said = None;
                while said != value["offset"].as_u64() {
                    let frame = self.peer().receive().await;
                    assert_eq!(frame["op"], "ack");
                    assert!(
                        frame["offset"].as_u64() > said
                            && frame["offset"].as_u64() <= value["offset"].as_u64()
                    );
                    said = frame["offset"].as_u64();
                }
            }
            "app" => {
                let call = tokio::spawn(call(self.session().await.0.clone(), value.clone()));
                // It begins before the next step does.
                tokio::task::yield_now().await;
                if let Some(name) = step["call"].as_str() {
                    self.calls.insert(name.to_owned(), call);
                }
            }
            "done" => {
                let call = self.calls.remove(value.as_str().expect("a name")).expect("a call");
                within("a call", call).await.expect("no panic").expect("done well");
            }
            "fails" => self.fails(value).await,
            "deliver" => {
                let (_, messages) = self.session().await;
                let message =
                    within("a message", messages.next()).await.expect("a message").expect("a message");
                for (name, expected) in value.as_object().expect("members") {
                    includes(&members(&message)[name], expected);
                }
            }
            "drop" => {
                let peer = self.peer.take().expect("a connection");
                match value["close"].as_u64().and_then(|code| u16::try_from(code).ok()) {
                    None => peer.reset(),
                    Some(code) => peer.close(code, value["reason"].as_str().unwrap_or_default()).await,
                }
            }
            "lost" => {
                let session = self.session().await.0.clone();
                until("the loss", || !matches!(session.connection(), Connection::Ready { .. })).await;
            }
            "checkpoint" => {
                let expected: Checkpoint = serde_json::from_value(value.clone()).expect("a checkpoint");
                let session = self.session().await.0.clone();
                until("the checkpoint", || session.checkpoint().as_ref() == Some(&expected)).await;
            }
            "closed" => {
                assert_eq!(u64::from(self.peer().closed().await), value["code"].as_u64().expect("a code"))
            }
            "new" => {
                let (session, _messages) = self.session.take().expect("a session");
                let peer = self.peer.take().expect("a connection");
                tokio::spawn(peer.close(1000, ""));
                session.close().await;
                let mut options = self.options.clone();
                for (name, value) in value.as_object().expect("options") {
                    options[name] = value.clone();
                }
                self.connecting = Some(begin(&self.server, &options));
            }
            "world" | "settled" => {}
            other => panic!("a step that the contract does not have: {other}"),
        }
    }

    fn peer(&mut self) -> &mut Peer {
        self.peer.as_mut().expect("somebody is connected")
    }

    /// The session, when it is connected.
    async fn session(&mut self) -> &mut (Session, Messages) {
        if let Some(connecting) = self.connecting.take() {
            self.session = Some(within("connect", connecting).await.expect("no panic").expect("connected"));
        }
        self.session.as_mut().expect("a session")
    }

    async fn send(&mut self, frame: &Value, next: &Value) {
        let mut frame = frame.clone();
        if let Some(name) = frame.as_object_mut().and_then(|members| members.remove("$ref")) {
            frame["ref"] = self.references[name.as_str().expect("a name")].clone();
        }
        self.peer().send(&frame).await;
        if frame["op"] == "ready" && next.get("drop").is_none() {
            let session = self.session().await.0.clone();
            until("the client to be ready", || matches!(session.connection(), Connection::Ready { .. }))
                .await;
        }
    }

    /// A frame is the expected one, but for what the client chooses.
    fn compare(&mut self, frame: &Value, expected: &Value) {
        let mut expected = expected.clone();
        if let Some(name) = expected.as_object_mut().and_then(|members| members.remove("$ref")) {
            assert!(frame["ref"].is_number() || frame["ref"].is_string(), "{frame}");
            self.references.insert(name.as_str().expect("a name").to_owned(), frame["ref"].clone());
            expected["ref"] = frame["ref"].clone();
        }
        if let Some(name) = expected["event"].as_object_mut().and_then(|members| members.remove("$id")) {
            let id = &frame["event"]["id"];
            assert!(!id.is_null(), "{frame}");
            let bound =
                self.ids.entry(name.as_str().expect("a name").to_owned()).or_insert_with(|| id.clone());
            assert_eq!(id, bound);
            expected["event"]["id"] = id.clone();
        }
        if expected["event"].is_null() {
            expected.as_object_mut().expect("members").remove("event");
        }
        assert_eq!(by_value(frame), by_value(&expected));
    }

    async fn fails(&mut self, expected: &Value) {
        let call = expected["call"].as_str().map(|name| self.calls.remove(name).expect("a call"));
        let of_the_session = call.is_none();
        let error = match (call, self.connecting.take()) {
            (Some(call), connecting) => {
                self.connecting = connecting;
                within("a failure", call).await.expect("no panic").expect_err("it fails")
            }
            (None, Some(connecting)) => {
                within("a failure", connecting).await.expect("no panic").map(drop).expect_err("it fails")
            }
            (None, None) => {
                let (_, messages) = self.session.as_mut().expect("a session");
                within("a failure", messages.next()).await.expect("a failure").expect_err("it fails")
            }
        };
        match (&expected["kind"], &expected["code"], &error) {
            (kind, _, Error::QueueFull { .. }) => assert_eq!(kind, "queue-full"),
            (_, Value::Number(code), Error::Closed { code: closed, .. }) => {
                assert_eq!(code.as_u64(), closed.map(u64::from));
            }
            (_, Value::String(code), Error::Problem { problem, .. }) => {
                assert_eq!(problem.code(), code);
                assert_eq!(Some(u64::from(problem.status)), expected["status"].as_u64());
            }
            _ => panic!("{error:?} is not {expected}"),
        }
        if of_the_session {
            assert!(self.server.is_left_alone(Duration::from_millis(20)).await, "the client connects again");
        }
    }
}

fn begin(server: &Server, options: &Value) -> Connecting {
    let mut connect = connect(server.url(), options["client"].as_str().expect("a client"))
        .backoff(Duration::ZERO, Duration::ZERO);
    if options["ack"] == "manual" {
        connect = connect.acknowledge(Acknowledge::Manual);
    }
    if let Some(token) = options["token"].as_str() {
        connect = connect.token(token);
    }
    if let Some(tokens) = options["tokens"].as_array() {
        let tokens = Arc::new(Mutex::new(tokens.clone().into_iter()));
        connect = connect.token_provider(move || {
            let token =
                tokens.lock().expect("no panic").next().and_then(|token| Some(token.as_str()?.to_owned()));
            async move { token.ok_or_else(|| std::io::Error::other("none left")) }
        });
    }
    if let Some(queue) = options["queue"].as_u64() {
        connect = connect.queue(usize::try_from(queue).expect("a number"));
    }
    if !options["resume"].is_null() {
        connect = connect
            .resume(serde_json::from_value::<Checkpoint>(options["resume"].clone()).expect("a checkpoint"));
    }
    tokio::spawn(connect.into_future())
}

pub(crate) async fn call(session: Session, call: Value) -> Result<(), Error> {
    let text = |name: &str| call[name].as_str().expect("a text").to_owned();
    match call["verb"].as_str().expect("a verb") {
        "subscribe" => {
            let subscription: documents::Subscription =
                serde_json::from_value(call.clone()).expect("a subscription");
            session.subscribe(text("id"), Subscription::from(subscription)).await
        }
        "unsubscribe" => session.unsubscribe(&text("id")).await,
        "move" => {
            let mut fix = Fix::at(
                serde_json::from_value::<nearcast_client::Coordinates>(call["coordinates"].clone())
                    .expect("a place"),
            );
            fix.accuracy_m = call["accuracy_m"].as_f64();
            fix.time = call["time"].as_str().map(str::to_owned);
            if call["ref"].is_null() { session.move_to(fix) } else { session.move_confirmed(fix).await }
        }
        "publish" => {
            let event: Feature<Option<Value>> =
                serde_json::from_value(call["event"].clone()).expect("an event");
            session.publish(&event).await.map(drop)
        }
        "ack" => {
            session.ack(call["offset"].as_u64().expect("an offset"));
            Ok(())
        }
        "close" => {
            session.close().await;
            Ok(())
        }
        other => panic!("a verb that the contract does not have: {other}"),
    }
}

/// A message by its wire names.
pub(crate) fn members(message: &Message) -> Value {
    match message {
        Message::Event(event) => json!({
            "kind": "event", "offset": event.offset, "ahead": event.ahead, "subscriptions": event.subscriptions,
            "cause": event.cause.as_str(), "transition": event.transition.as_ref().map(|transition| transition.as_str()),
            "traceparent": event.trace.as_ref().map(|trace| &trace.parent),
            "tracestate": event.trace.as_ref().and_then(|trace| trace.state.as_ref()),
            "violates": (!event.violates.is_empty()).then_some(&event.violates), "event": event.feature,
        }),
        Message::Gap(gap) => json!({
            "kind": "gap", "from": gap.from, "to": gap.to, "count": gap.count, "reason": gap.reason.as_str(),
        }),
        other @ (Message::Unreadable(_) | _) => {
            panic!("a message that the contract does not have: {other:?}")
        }
    }
}

/// Everything that is expected is there; of objects, others may be as well.
fn includes(found: &Value, expected: &Value) {
    let Value::Object(expected) = expected else {
        return assert_eq!(by_value(found), by_value(expected));
    };
    expected.iter().for_each(|(name, expected)| includes(&found[name], expected));
}
