//! A client that reads what it is told and holds it against what it must be told, over WebSocket or over SSE. Some go
//! away and come back.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::oracle::{Kind, Told};
use crate::harness::{Door, Received, Sse, Ws, within};

/// A frame to send, and where its answer goes.
type Request = (Value, oneshot::Sender<Value>);

/// One client.
pub(crate) struct Reading {
    pub(crate) name: String,
    over_socket: bool,
    reader: Option<Reader>,
    /// Of the last delivery that there was, read or not.
    offset: u64,
    /// The id of the last message of an event stream.
    last_id: String,
    /// What has to come, step by step.
    pending: VecDeque<(String, Vec<Told>)>,
    /// How many frames of each kind came.
    pub(crate) counts: [usize; 3],
    /// How many deliveries there were while it was away.
    pub(crate) missed_count: u64,
}

struct Reader {
    frames: mpsc::UnboundedReceiver<(Value, String)>,
    requests: Option<mpsc::Sender<Request>>,
    /// Ends with the test, so that one failure is not followed by one of each client.
    _task: AbortOnDropHandle<()>,
}

impl Reading {
    /// A client that is not connected yet: of those with numbers 2 and 3 modulo 4 over SSE.
    pub(crate) fn new(idx: usize) -> Self {
        Self {
            name: Self::name_of(idx),
            over_socket: idx % 4 < 2,
            reader: None,
            offset: 0,
            last_id: String::new(),
            pending: VecDeque::new(),
            counts: [0; 3],
            missed_count: 0,
        }
    }

    pub(crate) fn name_of(idx: usize) -> String {
        format!("car-{idx}")
    }

    /// Connects; what was missed is told by number.
    pub(crate) async fn come(&mut self, door: &Door) {
        let (tx, frames) = mpsc::unbounded_channel();
        if self.over_socket {
            let ws = door.ws(&self.name).await;
            assert_eq!(ws.ready["offset"], self.offset, "{}", self.name);
            let (requests_tx, requests) = mpsc::channel(16);
            let task = AbortOnDropHandle::new(tokio::spawn(read_ws(ws, requests, tx)));
            self.reader = Some(Reader { frames, requests: Some(requests_tx), _task: task });
            return;
        }
        let sse = Sse::resume(door.address(), &self.name, &self.last_id).await;
        let task = AbortOnDropHandle::new(tokio::spawn(read_sse(sse, tx)));
        self.reader = Some(Reader { frames, requests: None, _task: task });
        let seen = self.last_id.split_once(':').map(|(_, offset)| offset.parse::<u64>().expect("a number"));
        if let Some(seen) = seen.filter(|seen| *seen < self.offset) {
            let gap = self.next("what was missed").await;
            let expected = [seen + 1, self.offset, self.offset - seen].map(|number| json!(number));
            assert_eq!(
                [&gap["from"], &gap["to"], &gap["count"]],
                expected.each_ref(),
                "{}: {gap}",
                self.name
            );
        }
    }

    /// Goes; nothing of what came before is left unread.
    pub(crate) async fn leave(&mut self, documents: &[Value]) {
        self.settle(documents).await;
        self.reader = None;
    }

    /// Whether it can ask over a socket.
    pub(crate) fn can_ask(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.requests.is_some())
    }

    /// Asks over its socket, and waits for the `ok`.
    pub(crate) async fn ok(&self, frame: Value) {
        let requests = self.reader.as_ref().and_then(|reader| reader.requests.as_ref());
        let (tx, rx) = oneshot::channel();
        requests.expect("it can ask").send((frame.clone(), tx)).await.expect("the reader lives");
        let answer = within("an answer", rx).await.expect("the reader lives");
        assert_eq!(answer["op"], "ok", "{}: {frame}: {answer}", self.name);
    }

    /// Notes what must come of a step.
    pub(crate) fn expect(&mut self, step: &str, mut told: Vec<Told>) {
        if self.reader.is_some() {
            told.sort();
            self.pending.push_back((step.to_owned(), told));
        } else {
            self.offset += told.len() as u64;
            self.missed_count += told.len() as u64;
        }
    }

    /// Takes all that has to have come, and demands that it is that.
    pub(crate) async fn settle(&mut self, documents: &[Value]) {
        while let Some((step, expected)) = self.pending.pop_front() {
            let mut got = Vec::new();
            for _ in &expected {
                let what = format!("{}: {step}: {expected:?}, of which came {got:?}", self.name);
                let frame = self.next(&what).await;
                assert_eq!(frame["op"], "event", "{what}: {frame}");
                assert_eq!(frame["offset"], self.offset + 1, "{what}: {frame}");
                self.offset += 1;
                let told = parse(&frame);
                check_event(&frame["event"], &documents[usize::try_from(told.number - 1).expect("few")]);
                self.counts[told.kind as usize] += 1;
                got.push(told);
            }
            got.sort();
            assert_eq!(got, expected, "{}: {step}", self.name);
        }
    }

    /// The next frame.
    pub(crate) async fn next(&mut self, what: &str) -> Value {
        let reader = self.reader.as_mut().expect("a reader");
        let (frame, id) = within(what, reader.frames.recv()).await.expect("the reader did not fail");
        if !id.is_empty() {
            self.last_id = id;
        }
        frame
    }

    /// Whether it reads.
    pub(crate) fn is_here(&self) -> bool {
        self.reader.is_some()
    }
}

/// The frame as the oracle writes it.
fn parse(frame: &Value) -> Told {
    let kind = match frame.get("transition").map(|kind| kind.as_str()) {
        None => Kind::Event,
        Some(Some("enter")) => Kind::Enter,
        Some(Some("exit")) => Kind::Exit,
        Some(_) => panic!("neither enter nor exit: {frame}"),
    };
    let number = frame["event"]["properties"]["number"].as_u64().unwrap_or_else(|| panic!("{frame}"));
    let names = frame["subscriptions"].as_array().unwrap_or_else(|| panic!("no names: {frame}")).iter();
    let mut names = names.map(|name| name.as_str().expect("a text").to_owned()).collect::<Vec<_>>();
    names.sort();
    let cause = frame["cause"].as_str().unwrap_or_else(|| panic!("no cause: {frame}")).to_owned();
    Told { number, kind, subscriptions: names, cause }
}

/// An event comes as it was published.
fn check_event(event: &Value, document: &Value) {
    for (member, value) in document.as_object().expect("an object") {
        assert_eq!(event[member], *value, "{member} of {event}");
    }
}

async fn read_ws(
    mut ws: Ws,
    mut requests: mpsc::Receiver<Request>,
    frames: mpsc::UnboundedSender<(Value, String)>,
) {
    let mut waiting = VecDeque::<oneshot::Sender<Value>>::new();
    loop {
        tokio::select! {
            Some((mut frame, reply)) = requests.recv() => {
                // Requests of one socket are answered in their order.
                frame["ref"] = json!("r");
                waiting.push_back(reply);
                ws.send(&frame).await;
            }
            received = ws.read() => match received {
                Received::Frame(frame) if frame.get("ref").is_some() => {
                    let reply = waiting.pop_front().unwrap_or_else(|| panic!("nobody asked: {frame}"));
                    // Who asked may have failed.
                    let _ = reply.send(frame);
                }
                Received::Frame(frame) => {
                    if frames.send((frame, String::new())).is_err() {
                        return;
                    }
                }
                Received::Closed(code, reason) => panic!("closed with {code} {reason:?}"),
            },
        }
    }
}

async fn read_sse(mut sse: Sse, frames: mpsc::UnboundedSender<(Value, String)>) {
    loop {
        let message = sse.read().await.expect("the stream goes on");
        let frame = message.frame();
        assert_eq!(frame["op"], message.event, "{message:?}");
        let (_, offset) = message.epoch_and_offset();
        assert_eq!(*frame.get("offset").unwrap_or(&frame["to"]), offset, "{message:?}");
        if frames.send((frame, message.id)).is_err() {
            return;
        }
    }
}
