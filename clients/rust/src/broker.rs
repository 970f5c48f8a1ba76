//! The broker's calls over HTTP, for applications that need no session.

use std::{sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt};
use reqwest::Method;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use wire::{Clients, Cluster, Deliveries, Explanation, NamedPosition, Stats};

use crate::{
    Batch, Coordinates, Error, Feature, Id, Subscription,
    batch::{Batcher, Report},
    chance::Chance,
    error::Cause,
    feature::WithId,
    http::{Body, Http, client_path, encoded},
    session::Subject,
    token::{Source, Tokens},
};

/// A broker without a session: for programs that only publish, tell where others are, or look after it. Made by [`Broker::builder`].
///
/// It opens no WebSocket, so it is nobody's reader. It is cheap to clone. A token has to permit what is asked.
///
/// ```no_run
/// # async fn example() -> Result<(), nearcast_client::Error> {
/// use nearcast_client::{Broker, event};
/// let broker = Broker::builder("http://localhost:7070").open()?;
/// let id = broker.publish(&event([9.19, 45.464], serde_json::json!({"type": "fire"}))).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Broker {
    pub(crate) http: Arc<Http>,
    pub(crate) chance: Chance,
}

impl Broker {
    /// The broker at this URL: `http`, `https`, `ws` or `wss`. Options come behind it, and [`BrokerBuilder::open`].
    pub fn builder(url: impl Into<String>) -> BrokerBuilder {
        BrokerBuilder {
            urls: vec![url.into()],
            token: Source::None,
            request_timeout: Duration::from_secs(30),
            roots_pem: Vec::new(),
            chance: Chance::new(),
        }
    }

    /// Publishes an event, and returns its id when the broker has it. It is tried once.
    ///
    /// # Errors
    /// [`Error::Problem`] when the broker refuses it, [`Error::Invalid`] for properties that JSON cannot write, [`Error::Connection`], and
    /// [`Error::Timeout`].
    pub async fn publish<P: Serialize>(&self, event: &Feature<P>) -> Result<Id, Error> {
        let id = event.id.clone().unwrap_or_else(|| self.chance.id());
        let body = Body::json(&WithId { id: &id, feature: event })?;
        let answer = self.call(Method::POST, "/v1/events", Some(body)).await?;
        match read(&answer)? {
            Taken { accepted: 1 } => Ok(id),
            Taken { accepted } => {
                Err(Error::broken(format!("one event was published, and {accepted} taken")))
            }
        }
    }

    /// Publishes many events, and reads the source no faster than the broker takes them. Events that it refuses are in
    /// the report. Where it is overloaded, or away, they are tried again. [`iter`](crate::iter) makes a source of an
    /// iterator.
    ///
    /// # Errors
    /// [`Error::Batch`], which says how far it came.
    pub async fn publish_many<P: Serialize>(
        &self,
        events: impl Stream<Item = Feature<P>>,
        options: Batch,
    ) -> Result<Report, Error> {
        let lines = events.map(|feature| {
            let id = feature.id.clone().unwrap_or_else(|| self.chance.id());
            line(&WithId { id: &id, feature: &feature })
        });
        self.batcher("/v1/events", options).send(lines).await
    }

    /// Publishes many Features that are given as texts, like [`publish_many`](Self::publish_many). Each text is one
    /// line without line ends and is passed on as it is. A Feature without an `id` may come under two ids where it has
    /// to be sent again.
    ///
    /// # Errors
    /// As [`publish_many`](Self::publish_many).
    pub async fn publish_lines(
        &self,
        lines: impl Stream<Item = String>,
        options: Batch,
    ) -> Result<Report, Error> {
        self.batcher("/v1/events", options).send(lines.map(Ok)).await
    }

    /// Ends the life of every live event of this id.
    ///
    /// # Errors
    /// [`Error::Problem`] with `not-found` where none is live, [`Error::Connection`], and [`Error::Timeout`].
    pub async fn revoke(&self, id: &Id) -> Result<(), Error> {
        self.call(Method::DELETE, &format!("/v1/events/{}", encoded(&id.to_string())), None).await.map(drop)
    }

    /// Tells where clients are. `accepted` of the report is how many positions are in force.
    ///
    /// # Errors
    /// [`Error::Batch`], which says how far it came.
    pub async fn move_many(
        &self,
        positions: impl Stream<Item = NamedPosition>,
        options: Batch,
    ) -> Result<Report, Error> {
        let lines = positions.map(|position| line(&position));
        self.batcher("/v1/positions", options).send(lines).await
    }

    /// A client's subscriptions as the broker shows them, also those that others made for it.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn subscriptions(&self, client: &str) -> Result<Vec<wire::Subscription>, Error> {
        self.get(&format!("{}/subscriptions", client_path(client))).await
    }

    /// Ends a client's subscription, also one that others made for it.
    ///
    /// # Errors
    /// [`Error::Problem`] with `not-found` where there is none, [`Error::Connection`], and [`Error::Timeout`].
    pub async fn unsubscribe(&self, client: &str, id: &str) -> Result<(), Error> {
        let path = format!("{}/subscriptions/{}", client_path(client), encoded(id));
        self.call(Method::DELETE, &path, None).await.map(drop)
    }

    /// Ends a client: its position, its subscriptions and what is kept for it are gone, and its sessions are closed.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn forget(&self, client: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &client_path(client), None).await.map(drop)
    }

    /// Asks why an event comes to a client, or does not. Subscription and event may be the ids of what is there, or what might be;
    /// `position` takes the place of the client's own.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn explain(
        &self,
        client: &str,
        subscription: impl Into<Subject<Subscription>>,
        event: impl Into<Subject<Feature>>,
        position: Option<Coordinates>,
    ) -> Result<Explanation, Error> {
        #[derive(Serialize)]
        struct Question<'a> {
            client: &'a str,
            subscription: Subject<wire::Subscription>,
            event: Subject<Feature>,
            #[serde(skip_serializing_if = "Option::is_none")]
            position: Option<Coordinates>,
        }
        let subscription = match subscription.into() {
            Subject::Id(id) => Subject::Id(id),
            Subject::Document(subscription) => Subject::Document(subscription.into()),
        };
        let question = Question { client, subscription, event: event.into(), position };
        read(&self.call(Method::POST, "/v1/explain", Some(Body::json(&question)?)).await?)
    }

    /// Asks to whom an event went; takes a token that permits it.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn deliveries(&self, id: &Id) -> Result<Deliveries, Error> {
        self.get(&format!("/v1/events/{}/deliveries", encoded(&id.to_string()))).await
    }

    /// Clients, those that are furthest behind first: `limit` of them (1 to 1,000), behind `next` of the page before. It costs each of the
    /// broker's engines a look at all of its clients.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn clients(&self, limit: u32, after: Option<&str>) -> Result<Clients, Error> {
        let after = after.map(|after| format!("&after={}", encoded(after))).unwrap_or_default();
        self.get(&format!("/v1/clients?limit={limit}{after}")).await
    }

    /// The members of the cluster that the broker is in.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn cluster(&self) -> Result<Cluster, Error> {
        self.get("/v1/cluster").await
    }

    /// Figures of what the broker holds, and of what it has done since it started.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn stats(&self) -> Result<Stats, Error> {
        self.get("/v1/stats").await
    }

    /// All figures of the broker, as Prometheus text.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn metrics(&self) -> Result<String, Error> {
        self.text("/metrics").await
    }

    /// Whether it carries out requests: `Ok` with a line that says so, for people. Needs no token.
    ///
    /// # Errors
    /// [`Error::Problem`] while it starts or stops, or its disk takes nothing; [`Error::Connection`], and [`Error::Timeout`].
    pub async fn ready(&self) -> Result<String, Error> {
        self.text("/readyz").await
    }

    fn batcher(&self, path: &'static str, options: Batch) -> Batcher<'_> {
        Batcher::new(&self.http, self.chance.clone(), path, options)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        read(&self.call(Method::GET, path, None).await?)
    }

    async fn text(&self, path: &str) -> Result<String, Error> {
        let answer = self.call(Method::GET, path, None).await?;
        Ok(String::from_utf8_lossy(&answer).trim_end().to_owned())
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Body>,
    ) -> Result<Vec<u8>, Error> {
        self.http.call(method, path, body).await
    }
}

/// Options of a [`Broker`] that is about to be used.
#[derive(Clone, Debug)]
#[must_use = "it is of use when it is opened"]
pub struct BrokerBuilder {
    urls: Vec<String>,
    token: Source,
    request_timeout: Duration,
    roots_pem: Vec<Vec<u8>>,
    chance: Chance,
}

impl BrokerBuilder {
    /// Adds the URL of another broker of the cluster. Where the one in use does not answer, or is a standby, the next one is asked; a call that
    /// may have been carried out is repeated there only where that changes nothing, so no publish is.
    pub fn address(mut self, url: impl Into<String>) -> Self {
        self.urls.push(url.into());
        self
    }

    /// Sets a JSON Web Token that the calls have with them.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Source::Fixed(token.into());
        self
    }

    /// With tokens from a function, which is asked before the first call, and a minute before a token ends.
    pub fn token_provider<F, T, E>(mut self, provider: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<String, E>> + Send + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        self.token = Source::Provider(Arc::new(move || {
            let token = provider();
            Box::pin(async move { token.await.map_err(|fault| Arc::new(fault) as Cause) })
        }));
        self
    }

    /// So long a call may take (30 s).
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// Trusts certificates of this authority, in PEM, beside those that the machine trusts.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots_pem.push(pem.into());
        self
    }

    pub(crate) fn chance(&mut self) -> &mut Chance {
        &mut self.chance
    }

    /// Looks at the options. Nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL or a certificate that is none.
    pub fn open(self) -> Result<Broker, Error> {
        let tokens = Tokens::new(self.token, self.chance.clone());
        let http = Http::new(&self.urls, &self.roots_pem, tokens, self.request_timeout)?;
        Ok(Broker { http: Arc::new(http), chance: self.chance })
    }
}

/// The part of the answer to an event that is read.
#[derive(Deserialize)]
struct Taken {
    accepted: u64,
}

fn line(document: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(document)
        .map_err(|fault| Error::Invalid(format!("it cannot be written as JSON: {fault}")))
}

pub(crate) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(answer)
        .map_err(|fault| Error::connection("the answer is none of this broker's", fault))
}
