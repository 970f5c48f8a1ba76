//! A client of the demo: a WebSocket, as anybody's would be, and a task that owns it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use wire::{ClientFrame, Problem, ServerFrame};

use super::PATIENCE;
use super::check;
use super::display::Progress;
use super::fleet::Role;
use super::oracle::Fact;

/// Frames of the demo are a few hundred bytes; the library's own 128 KiB for each of hundreds of sockets would be a waste.
const READ_BUFFER_BYTES: usize = 4 * 1024;

/// Requests of one client that wait for their answers, and that wait to be sent; who has more waits. Far fewer than
/// the answers that the broker keeps for a connection.
const REQUESTS_MAX: usize = 64;

/// How long to wait after a refusal: what `Retry-After` says of all but a debt, which is paid bit by bit.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// The way to a client's socket. Dropped, the socket stays open until the broker closes it.
pub(super) struct Client {
    requests: mpsc::Sender<Request>,
    next_ref: u64,
}

/// A frame that wants an answer.
struct Request {
    reference: u64,
    text: String,
    answer: oneshot::Sender<Result<(), Problem>>,
}

/// The answer to a request that is under way.
pub(super) struct Answer(oneshot::Receiver<Result<(), Problem>>);

/// What became of a request.
pub(super) enum Outcome {
    /// It is carried out.
    Done,
    /// The broker has more to do than it can, by this title of a problem, and would carry it out later.
    Busy(String),
}

type Socket = WebSocketStream<TcpStream>;

impl Client {
    /// Connects, waits for `ready`, and makes the role's subscriptions. What then arrives is told to `facts`.
    pub(super) async fn connect(
        broker: SocketAddr,
        role: Arc<Role>,
        client_idx: u32,
        facts: mpsc::Sender<Fact>,
        progress: &Progress,
        tasks: &mut JoinSet<anyhow::Result<()>>,
    ) -> anyhow::Result<Self> {
        let socket = loop {
            let opened = open(broker, &role.client).await;
            match opened.with_context(|| format!("client {}", role.client))? {
                Ok(socket) => break socket,
                Err(title) => wait_after(&title, progress).await,
            }
        };
        let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
        let wishes = role.wishes.clone();
        tasks.spawn(attend(socket, role, client_idx, inbox, facts));
        let mut client = Self { requests, next_ref: 1 };
        for wish in wishes {
            let subscribe = |reference| ClientFrame::Subscribe { reference, subscription: wish.document() };
            while let Outcome::Busy(title) = client.ask(subscribe).await?.wait().await? {
                wait_after(&title, progress).await;
            }
        }
        Ok(client)
    }

    /// Sends a request. The broker carries out what one client asks in the order in which it was asked.
    pub(super) async fn ask(
        &mut self,
        frame: impl FnOnce(Option<serde_json::Value>) -> ClientFrame,
    ) -> anyhow::Result<Answer> {
        let reference = self.next_ref;
        self.next_ref += 1;
        let text = serde_json::to_string(&frame(Some(reference.into())))?;
        let (answer, answered) = oneshot::channel();
        let request = Request { reference, text, answer };
        self.requests.send(request).await.ok().context("the connection is closed")?;
        Ok(Answer(answered))
    }
}

impl Answer {
    /// Waits until the broker has carried the request out, or refused it for now.
    ///
    /// # Errors
    /// No answer, or a refusal for good.
    pub(super) async fn wait(self) -> anyhow::Result<Outcome> {
        let answered = tokio::time::timeout(PATIENCE, self.0).await.context("no answer from the broker")?;
        match answered.context("the connection closed before the answer")? {
            Ok(()) => Ok(Outcome::Done),
            Err(problem) if is_for_now(problem.status) => Ok(Outcome::Busy(problem.title)),
            Err(problem) => bail!("the broker refused a request: {problem:?}"),
        }
    }
}

/// Whether a later request would be carried out: 429 says that there is too much to do, and 503 that a part is away.
fn is_for_now(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// Counts a refusal, says that the demo goes on, and waits.
async fn wait_after(title: &str, progress: &Progress) {
    progress.refused(title);
    println!("the broker is busy ({title}): the demo asks again in {} s", PAUSE.as_secs());
    tokio::time::sleep(PAUSE).await;
}

/// The id of the demo's event of this number.
pub(super) fn id_of(number: u64) -> String {
    format!("report-{number}")
}

fn number_of(id: &str) -> Option<u64> {
    id.strip_prefix("report-")?.parse().ok()
}

/// Connects and waits for `ready`. The inner error is the title of a refusal for now.
async fn open(broker: SocketAddr, client: &str) -> anyhow::Result<Result<Socket, String>> {
    let stream = TcpStream::connect(broker).await?;
    stream.set_nodelay(true)?;
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
    let url = format!("ws://{broker}/v1/clients/{client}/ws");
    let opened = tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await;
    let (mut socket, _) = match opened {
        Err(tungstenite::Error::Http(answer)) if is_for_now(answer.status().as_u16()) => {
            return Ok(Err(answer.status().to_string()));
        }
        opened => opened?,
    };
    match read(&mut socket).await? {
        Some(ServerFrame::Ready { .. }) => Ok(Ok(socket)),
        Some(ServerFrame::Problem { problem, .. }) if is_for_now(problem.status) => Ok(Err(problem.title)),
        other => bail!("{other:?} came instead of `ready`"),
    }
}

/// The next frame; `None` once the broker has closed the connection.
async fn read(socket: &mut Socket) -> anyhow::Result<Option<ServerFrame>> {
    while let Some(message) = socket.next().await {
        match message? {
            Message::Text(text) => return Ok(Some(serde_json::from_str(&text)?)),
            Message::Binary(_) => bail!("a binary frame"),
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => {}
        }
    }
    Ok(None)
}

/// Owns the socket until the broker closes it.
async fn attend(
    mut socket: Socket,
    role: Arc<Role>,
    client_idx: u32,
    mut inbox: mpsc::Receiver<Request>,
    facts: mpsc::Sender<Fact>,
) -> anyhow::Result<()> {
    let mut open_requests: VecDeque<(u64, oneshot::Sender<Result<(), Problem>>)> = VecDeque::new();
    loop {
        let frame = tokio::select! {
            Some(request) = inbox.recv(), if open_requests.len() < REQUESTS_MAX => {
                open_requests.push_back((request.reference, request.answer));
                socket.send(Message::text(request.text)).await?;
                continue;
            }
            frame = read(&mut socket) => frame.with_context(|| format!("client {}", role.client))?,
        };
        let received_at = Instant::now();
        let mut answer = |reference: Option<serde_json::Value>, result| match open_requests.pop_front() {
            Some((open, sender)) if reference == Some(open.into()) => {
                // Nobody waits any more where the demo is being stopped.
                let _ = sender.send(result);
                Ok(())
            }
            open => {
                bail!("{} was answered {reference:?}, open is {:?}", role.client, open.map(|open| open.0))
            }
        };
        let fact = match frame {
            None => return Ok(()),
            Some(ServerFrame::Ok { reference, .. }) => {
                answer(reference, Ok(()))?;
                continue;
            }
            Some(ServerFrame::Problem { reference, problem }) => {
                answer(reference, Err(problem))?;
                continue;
            }
            Some(ServerFrame::Event { offset, subscriptions, event, .. }) => {
                let subscriptions = subscriptions.iter().fold(0, |set, id| set | role.bit(id));
                match event.id.as_ref().and_then(serde_json::Value::as_str).and_then(number_of) {
                    Some(number) => {
                        Fact::Delivered { client_idx, number, offset, subscriptions, received_at }
                    }
                    None if check::tells(&event) => Fact::Violated { client_idx, offset },
                    None => Fact::Foreign { client_idx, offset },
                }
            }
            Some(ServerFrame::Gap { count, .. }) => Fact::Lost { count },
            Some(ServerFrame::Ready { .. } | ServerFrame::Retry { .. } | ServerFrame::Pong) => continue,
        };
        facts.send(fact).await.context("the check is over")?;
    }
}
