//! How a session begins.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use futures_util::{FutureExt, future::BoxFuture};
use rand::RngCore;
use tokio::sync::{Notify, watch};

use crate::{
    Broker, Checkpoint, Connection, Error, Messages, Session,
    backoff::{self, Backoff},
    broker::BrokerBuilder,
    link::{End, Limits, Link},
    state::State,
};

/// Opens a session of a client: a WebSocket that reconnects by itself. `url` is the broker's, `http`, `https`, `ws` or `wss`.
///
/// Returns options that become a session when awaited; they can be set first. Awaiting has to happen in a tokio
/// runtime.
///
/// ```no_run
/// # async fn example() -> Result<(), nearcast_client::Error> {
/// let (session, messages) = nearcast_client::connect("http://localhost:7070", "ann").await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`Error::Problem`] and [`Error::Closed`] when the broker refuses, [`Error::Timeout`] when there is no connection in time,
/// [`Error::Invalid`] for a URL that is none.
pub fn connect(url: impl Into<String>, client: impl Into<String>) -> Connect {
    Connect {
        broker: Broker::builder(url),
        client: client.into(),
        resume: None,
        acknowledge: Acknowledge::Auto,
        inbox: 1000,
        queue: 1000,
        track_points: 1000,
        backoff: (backoff::BASE, backoff::CAP),
        connect_timeout: Duration::from_secs(30),
        handshake_timeout: Duration::from_secs(10),
        silence: Duration::from_secs(45),
    }
}

/// Which side acknowledges deliveries: the session or the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Acknowledge {
    /// The session: a message counts as processed when the application asks for the next one, and is acknowledged within a second.
    #[default]
    Auto,
    /// The application, by [`Session::ack`].
    Manual,
}

/// Options of a session that is about to begin. Made by [`connect`](connect()).
#[derive(Debug)]
#[must_use = "it connects when it is awaited"]
pub struct Connect {
    broker: BrokerBuilder,
    client: String,
    resume: Option<Checkpoint>,
    acknowledge: Acknowledge,
    inbox: usize,
    queue: usize,
    track_points: usize,
    backoff: (Duration, Duration),
    connect_timeout: Duration,
    handshake_timeout: Duration,
    silence: Duration,
}

impl Connect {
    /// Adds the URL of another broker of the cluster. Where the one in use does not answer, or is a standby, the next one is asked, without a
    /// wait until each was tried.
    pub fn address(mut self, url: impl Into<String>) -> Self {
        self.broker = self.broker.address(url);
        self
    }

    /// Sets a JSON Web Token that the session opens with.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.broker = self.broker.token(token);
        self
    }

    /// With tokens from a function, which is asked before each connection and a minute before a token ends.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), nearcast_client::Error> {
    /// # async fn fetch_token() -> Result<String, std::io::Error> { Ok(String::new()) }
    /// let (session, messages) =
    ///     nearcast_client::connect("https://broker.example", "ann").token_provider(fetch_token).await?;
    /// # Ok(()) }
    /// ```
    pub fn token_provider<F, T, E>(mut self, provider: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<String, E>> + Send + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        self.broker = self.broker.token_provider(provider);
        self
    }

    /// Continues behind a checkpoint that an application has stored.
    pub fn resume(mut self, checkpoint: impl Into<Option<Checkpoint>>) -> Self {
        self.resume = checkpoint.into();
        self
    }

    /// Chooses which side acknowledges deliveries: the session, which is the default, or the application.
    pub fn acknowledge(mut self, acknowledge: Acknowledge) -> Self {
        self.acknowledge = acknowledge;
        self
    }

    /// Sets how many messages may wait for the application (1,000) before the connection is read no further.
    pub fn inbox(mut self, messages: usize) -> Self {
        self.inbox = messages;
        self
    }

    /// Sets how many publishes (1,000), and how many other calls, may wait for their answers, also while there is no
    /// connection.
    pub fn queue(mut self, calls: usize) -> Self {
        self.queue = calls;
        self
    }

    /// Sets how many points [`Session::follow`] records while there is no connection (1,000). Every other point of a
    /// longer way is left out.
    pub fn track_points(mut self, points: usize) -> Self {
        self.track_points = points;
        self
    }

    /// After a connection broke it is tried again after a random time, whose bound begins with `base` (1 s) and doubles up to `cap`
    /// (30 s). For the first minute in which the broker is away, the bound is no more than 3 s.
    pub fn backoff(mut self, base: Duration, cap: Duration) -> Self {
        self.backoff = (base, cap);
        self
    }

    /// Sets how long the first connection is tried (30 s).
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// So long each connection may take until it is ready (10 s).
    pub fn handshake_timeout(mut self, limit: Duration) -> Self {
        self.handshake_timeout = limit;
        self
    }

    /// So long a call over HTTP may take (30 s).
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.broker = self.broker.request_timeout(limit);
        self
    }

    /// Sets the time after which a connection on which nothing was heard is made anew (45 s). The broker is asked for a
    /// sign of life before.
    pub fn silence(mut self, limit: Duration) -> Self {
        self.silence = limit;
        self
    }

    /// Trusts certificates of this authority, in PEM, beside those that the machine trusts.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.broker = self.broker.root_certificates(pem);
        self
    }

    /// Takes random numbers, for waits and ids, from here.
    pub fn random(mut self, random: impl RngCore + Send + 'static) -> Self {
        let chance = self.broker.chance();
        *chance = chance.clone().with_random(random);
        self
    }

    /// Takes the time of day, for the ends of tokens and for tracks, from here.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        let chance = self.broker.chance();
        *chance = chance.clone().with_clock(now);
        self
    }

    async fn open(self) -> Result<(Session, Messages), Error> {
        let broker = self.broker.open()?;
        let backoff = Backoff::new(self.backoff.0, self.backoff.1, broker.chance.clone());
        let state = State::new(self.inbox, self.queue, self.track_points, self.resume);
        let mut changes = state.changes.subscribe();
        let link = Arc::new(Link {
            client: self.client,
            broker,
            limits: Limits { handshake: self.handshake_timeout, silence: self.silence },
            state: Mutex::new(state),
            work: Notify::new(),
            room: Notify::new(),
            answered: Notify::new(),
            hurry: Notify::new(),
            end: watch::Sender::new(End::Open),
        });
        let (session, messages) = Session::new(link, backoff, self.acknowledge);
        let mut last = None;
        let ready = async {
            loop {
                match changes.recv().await {
                    Ok(Connection::Ready { .. }) => return Ok(()),
                    Ok(Connection::Closed { error }) => {
                        return Err(error.unwrap_or_else(|| Error::closed("before it was connected")));
                    }
                    Ok(Connection::Lost { error, .. }) => last = Some(Box::new(error)),
                    Ok(_) | Err(_) => {}
                }
            }
        };
        match tokio::time::timeout(self.connect_timeout, ready).await {
            Ok(done) => done.map(|()| (session, messages)),
            Err(_) => Err(Error::Timeout { what: "connecting", limit: self.connect_timeout, source: last }),
        }
    }
}

impl IntoFuture for Connect {
    type Output = Result<(Session, Messages), Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.open().boxed()
    }
}
