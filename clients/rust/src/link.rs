//! One WebSocket that reconnects by itself.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::{
    Broker, Checkpoint, Connection, Error,
    backoff::Backoff,
    frame::{self, ServerFrame},
    http::{Socket, client_path},
    state::State,
};

/// Time after which a ready connection is taken for a good one: the next wait begins short again.
const STABLE: Duration = Duration::from_secs(10);
/// So long the rest of a connection may take when it is known to end: after a close, or when it takes nothing any more.
const REST: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) handshake: Duration,
    pub(crate) silence: Duration,
}

/// How far the application wants the session to be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Open,
    /// Writes what is under way, then closes the connection.
    Close,
    /// Closes the connection at once.
    Cut,
}

/// A session's parts that its handles and its task share.
pub(crate) struct Link {
    pub(crate) client: String,
    pub(crate) broker: Broker,
    pub(crate) limits: Limits,
    /// Locked for what takes no waiting; see [`State`].
    pub(crate) state: Mutex<State>,
    /// There is something to write, or to look at again.
    pub(crate) work: Notify,
    /// The application has taken messages, or somebody waits for an answer: it may be time to read on.
    pub(crate) room: Notify,
    /// Something was answered.
    pub(crate) answered: Notify,
    /// Try to connect now.
    pub(crate) hurry: Notify,
    pub(crate) end: watch::Sender<End>,
}

/// Leaves out tokens and places, which do not belong in a log.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("client", &self.client).finish_non_exhaustive()
    }
}

/// How a connection ended, and what that means.
struct Ending {
    error: Error,
    /// There is no point in another one.
    last: bool,
    /// A takeover may end it.
    away: bool,
    /// When to make another, where that is known: the broker said so, or the session itself has broken it off, and does at once.
    retry_in: Option<Duration>,
}

impl Ending {
    fn new(error: Error, last: bool) -> Self {
        Self { away: error.is_away(), error, last, retry_in: None }
    }

    fn broken(error: Error) -> Self {
        Self::new(error, false)
    }
}

impl Link {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Who panicked under the lock did so between two consistent states: nothing there calls foreign code.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and has the task look at it.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let done = change(&mut self.state());
        self.work.notify_one();
        self.room.notify_one();
        done
    }

    /// Connects, and again and again until the session is closed or there is no point in it.
    pub(crate) async fn run(self: Arc<Self>, mut backoff: Backoff) {
        let mut end = self.end.subscribe();
        // Addresses that are tried without a wait where the present one fails.
        let mut untried = 0;
        loop {
            self.state().change(Connection::Connecting);
            let ending = self.connection(&mut backoff, &mut untried, &mut end).await;
            let open = *end.borrow_and_update() == End::Open;
            if ending.last || !open {
                self.state().end(open.then_some(ending.error));
                self.answered.notify_waiters();
                return;
            }
            let retry_in = if untried == 0 {
                ending.retry_in.unwrap_or_else(|| backoff.next(ending.away, ending.error.retry_after()))
            } else {
                Duration::ZERO
            };
            self.state().change(Connection::Lost { error: ending.error, retry_in });
            tokio::select! {
                () = sleep(retry_in) => {}
                () = self.hurry.notified() => {}
                _ = end.changed() => {}
            }
        }
    }

    /// One connection from its beginning to its end.
    async fn connection(
        &self,
        backoff: &mut Backoff,
        untried: &mut usize,
        end: &mut watch::Receiver<End>,
    ) -> Ending {
        let closed = Ending::new(Error::closed("by the application"), true);
        if *end.borrow_and_update() != End::Open {
            return closed;
        }
        let resume = self.state().inbox.received.clone();
        let addresses = &self.broker.http.addresses;
        let path = client_path(&self.client);
        let asked = addresses.of(&path);
        if *untried == 0 {
            *untried = addresses.all.len() + usize::from(addresses.home(&path).is_some());
        }
        *untried -= 1;
        let mut address = asked.clone();
        let opening = timeout(self.limits.handshake, self.open(&mut address, resume.as_ref()));
        let opened = tokio::select! {
            opened = opening => opened,
            _ = end.changed() => return closed,
        };
        let late = || Err(Error::broken("the broker was not ready in time"));
        let opened = opened.unwrap_or_else(|_| late());
        // Another address would need a token, too. And where the broker that one names is away, the others would name it, too, until its
        // standby has taken over.
        if matches!(opened, Ok(Opened::Ready(..) | Opened::NoToken(_))) || address != asked {
            *untried = 0;
        }
        if !matches!(opened, Ok(Opened::Ready(..) | Opened::NoToken(_))) {
            addresses.leave(&asked);
            addresses.leave(&address);
        }
        let (socket, epoch) = match opened {
            Ok(Opened::Ready(socket, epoch)) => (socket, epoch),
            Ok(Opened::NoToken(error)) => return Ending { away: false, ..Ending::broken(error) },
            Ok(Opened::Closed(close, problem)) => return self.closed_by_broker(close, problem),
            Err(error) => return self.refused(error),
        };
        let began = Instant::now();
        let (mut sink, mut stream) = socket.split();
        let mut cut = end.clone();
        let ending = tokio::select! {
            ending = self.read(&mut stream, &epoch) => ending,
            ending = self.write(&mut sink, end) => ending,
            ending = self.watch() => ending,
            ending = self.renew_token() => ending,
            _ = cut.wait_for(|end| *end == End::Cut) => closed,
        };
        // Who was told when to come back begins anew with short waits, should the broker not be there then.
        if began.elapsed() >= STABLE || ending.retry_in.is_some() {
            backoff.reset();
        }
        let too_long = matches!(ending.error, Error::Connection { code: Some(1009), .. });
        self.state().lost(too_long.then_some(&ending.error));
        self.answered.notify_waiters();
        ending
    }

    /// Opens a connection and waits until it is ready, which it tells the state.
    async fn open(&self, address: &mut String, resume: Option<&Checkpoint>) -> Result<Opened, Error> {
        let http = &self.broker.http;
        let token = match http.tokens.fresh().await {
            Ok(token) => token,
            Err(error) => return Ok(Opened::NoToken(error)),
        };
        let mut socket = http.socket(address, &self.client, resume, token.as_deref()).await?;
        let none: Arc<str> = "".into();
        let mut problem = None;
        loop {
            match socket.next().await {
                Some(Ok(Message::Text(text))) => match frame::read(&text, &none) {
                    Some(ServerFrame::Ready { epoch, offset }) => {
                        let resumed = resume.is_some_and(|resume| resume.epoch == epoch);
                        let mut state = self.state();
                        state.heard = Instant::now();
                        state.ready(epoch.clone(), offset, resumed);
                        return Ok(Opened::Ready(Box::new(socket), epoch));
                    }
                    Some(ServerFrame::Answer { reference: None, problem: Some(told), .. }) => {
                        problem = Some(told)
                    }
                    Some(_) => {}
                    None => return Err(Error::broken("the broker has sent something that is no frame")),
                },
                Some(Ok(Message::Close(close))) => {
                    // Answered by reading on, and not waited for long.
                    _ = timeout(REST, socket.next()).await;
                    return Ok(Opened::Closed(close, problem));
                }
                Some(Ok(_)) => {}
                Some(Err(fault)) => return Err(Error::connection("it broke off", fault)),
                None => return Err(Error::broken("it broke off: the other side ended it without a close")),
            }
        }
    }

    async fn read(&self, stream: &mut SplitStream<Box<Socket>>, epoch: &Arc<str>) -> Ending {
        let mut problem = None;
        let mut retry_in = None;
        loop {
            while self.state().holds() {
                self.room.notified().await;
            }
            let message = stream.next().await;
            self.state().heard = Instant::now();
            match message {
                Some(Ok(Message::Text(text))) => {
                    let Some(frame) = frame::read(&text, epoch) else {
                        return Ending::broken(Error::broken(
                            "the broker has sent something that is no frame",
                        ));
                    };
                    let answer = matches!(frame, ServerFrame::Answer { .. });
                    if let ServerFrame::Answer { reference: None, problem: Some(told), .. } = &frame {
                        problem = Some(told.clone());
                    }
                    if let ServerFrame::Retry(told) = &frame {
                        retry_in = Some(*told);
                    }
                    self.state().frame(frame);
                    if answer {
                        self.answered.notify_waiters();
                        self.work.notify_one();
                    }
                }
                Some(Ok(Message::Close(close))) => {
                    // Answered by reading on, and not waited for long.
                    _ = timeout(REST, stream.next()).await;
                    return Ending { retry_in, ..self.closed_by_broker(close, problem) };
                }
                Some(Ok(_)) => {}
                Some(Err(fault)) => return Ending::broken(Error::connection("it broke off", fault)),
                None => {
                    return Ending::broken(Error::broken(
                        "it broke off: the other side ended it without a close",
                    ));
                }
            }
        }
    }

    async fn write(
        &self,
        sink: &mut SplitSink<Box<Socket>, Message>,
        end: &mut watch::Receiver<End>,
    ) -> Ending {
        let written = loop {
            let closing = *end.borrow_and_update() != End::Open;
            if self.state().renews() {
                return Ending {
                    retry_in: Some(Duration::ZERO),
                    ..Ending::broken(Error::broken("the application did not keep up"))
                };
            }
            if let Err(fault) = self.write_all(sink).await {
                break Err(fault);
            }
            if closing {
                let close = CloseFrame { code: CloseCode::Normal, reason: "".into() };
                break sink.send(Message::Close(Some(close))).await;
            }
            let deadline = self.state().deadline();
            tokio::select! {
                () = self.work.notified() => {}
                _ = end.changed() => {}
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.state().tick(Instant::now());
                }
            }
        };
        // Why it takes nothing more is what there is to read.
        sleep(REST).await;
        match written {
            Ok(()) => Ending::broken(Error::closed("by the application")),
            Err(fault) => Ending::broken(Error::connection("it broke off", fault)),
        }
    }

    async fn write_all(
        &self,
        sink: &mut SplitSink<Box<Socket>, Message>,
    ) -> Result<(), tokio_tungstenite::tungstenite::Error> {
        let mut fed = false;
        loop {
            let Some(text) = self.state().out.pop() else { break };
            sink.feed(Message::Text(text)).await?;
            fed = true;
        }
        if fed { sink.flush().await } else { Ok(()) }
    }

    /// Notices a connection that is there no more although nobody said so: asks for a sign of life, and does not wait long for it.
    async fn watch(&self) -> Ending {
        let step = (self.limits.silence / 3).max(Duration::from_millis(1));
        loop {
            sleep(step).await;
            let mut state = self.state();
            let holds = state.holds();
            let silent = state.heard.elapsed();
            if !holds && silent >= 3 * step {
                let reason = format!("nothing was heard for {:?}", self.limits.silence);
                return Ending::broken(Error::broken(reason));
            }
            // Who does not read does not answer pings either: these frames tell the broker that somebody is there.
            if holds {
                state.heard = Instant::now();
            }
            if holds || silent >= step {
                state.ping();
                self.work.notify_one();
            }
        }
    }

    /// Has the connection go on by another token before its own ends.
    async fn renew_token(&self) -> Ending {
        while let Some(wait) = self.broker.http.tokens.renewal() {
            sleep(wait).await;
            // A provider that has none now is asked again when half of what is left is over.
            if let Ok(Some(token)) = self.broker.http.tokens.fresh().await {
                self.with(|state| state.auth(token));
            }
        }
        std::future::pending().await
    }

    /// Whether the upgrade was refused for good. A token that has just ended is, if there is no other.
    fn refused(&self, error: Error) -> Ending {
        let last = if let Error::Problem { problem, .. } = &error {
            let expired = problem.code() == "token-expired" && self.broker.http.tokens.renewable();
            [400, 401, 403].contains(&problem.status) && !expired
        } else {
            matches!(error, Error::Invalid(_))
        };
        Ending::new(error, last)
    }

    fn closed_by_broker(&self, close: Option<CloseFrame>, problem: Option<wire::Problem>) -> Ending {
        let code = close.as_ref().map(|close| u16::from(close.code));
        let reason = close.map(|close| close.reason.to_string()).filter(|reason| !reason.is_empty());
        let reason = reason.or_else(|| Some(problem.as_ref()?.to_string()));
        let reason = reason.unwrap_or_else(|| "the broker closed the connection".to_owned());
        let last = code == Some(1008) || (code == Some(4401) && !self.broker.http.tokens.renewable());
        let error = if last {
            Error::Closed { code, reason, problem: problem.map(Box::new) }
        } else {
            let source = problem.map(|problem| Arc::new(Error::refused(problem)) as crate::error::Cause);
            Error::Connection { code, reason, source }
        };
        Ending::new(error, last)
    }
}

enum Opened {
    Ready(Box<Socket>, Arc<str>),
    Closed(Option<CloseFrame>, Option<wire::Problem>),
    /// The broker was not asked.
    NoToken(Error),
}
