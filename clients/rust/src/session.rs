//! Sessions and their calls.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::Stream;
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::{
    sync::{Mutex, oneshot},
    task::JoinHandle,
    time::timeout,
};
use wire::{Deliveries, Explanation, NamedPosition};

use crate::{
    Acknowledge, Batch, Broker, Checkpoint, Connection, Error, Feature, Filter, Fix, Follow, Id, Message,
    Messages, Subscription, Trace,
    backoff::Backoff,
    batch::Report,
    connection::Connections,
    feature::WithId,
    link::{End, Link},
    state::{Answer, State, Track},
};

/// A session of a client: a WebSocket that reconnects by itself, and the broker's calls over HTTP. Made by [`connect`](crate::connect()).
///
/// It is cheap to clone, and its clones are the same session. It ends with [`close`](Self::close), or when all of its clones and its
/// [`Messages`] are dropped, which waits for nothing.
///
/// A future that is dropped before it is done takes nothing back: what was asked may take effect.
#[derive(Clone, Debug)]
pub struct Session {
    handle: Arc<Handle>,
}

/// Keeps a session open. The session closes when this is dropped.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) link: Arc<Link>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.link.state().flush_acks();
        self.link.end.send_if_modified(|end| {
            let open = *end == End::Open;
            if open {
                *end = End::Close;
            }
            open
        });
    }
}

impl Session {
    pub(crate) fn new(link: Arc<Link>, backoff: Backoff, acknowledge: Acknowledge) -> (Self, Messages) {
        let task = Mutex::new(Some(tokio::spawn(link.clone().run(backoff))));
        let handle = Arc::new(Handle { link, task });
        (Self { handle: handle.clone() }, Messages::new(handle, acknowledge))
    }

    fn link(&self) -> &Link {
        &self.handle.link
    }

    /// The broker's calls over HTTP, with the token of the session.
    #[must_use]
    pub fn broker(&self) -> &Broker {
        &self.link().broker
    }

    /// The client of the session.
    #[must_use]
    pub fn client(&self) -> &str {
        &self.link().client
    }

    /// Makes a subscription, or replaces the one of this id. Done when it is in force: what is published afterwards is matched against it.
    ///
    /// One that is not durable ends with the connection, and is made again on the next one, where its live events may come again.
    ///
    /// # Errors
    /// [`Error::Problem`] when the broker refuses it, [`Error::QueueFull`], and [`Error::Closed`].
    pub async fn subscribe(
        &self,
        id: impl Into<String>,
        subscription: impl Into<Subscription>,
    ) -> Result<(), Error> {
        let id = id.into();
        let subscription = subscription.into().named(id.clone());
        self.ask(|state, answer| state.subscribe(id, subscription, answer)).await
    }

    /// Ends a subscription of the client, also one that others made for it.
    ///
    /// # Errors
    /// [`Error::Problem`] with `not-found` where there is none, [`Error::QueueFull`], and [`Error::Closed`].
    pub async fn unsubscribe(&self, id: &str) -> Result<(), Error> {
        self.ask(|state, answer| state.unsubscribe(id, answer)).await
    }

    /// Publishes an event, and returns its id when the broker has it. While there is no connection it waits for one.
    ///
    /// A publish that was not answered when a connection broke is sent again. A live event (`ttl_s`, `key`) then takes
    /// its own place; another one may come twice, under the same id.
    ///
    /// # Errors
    /// [`Error::Problem`] when the broker refuses it, [`Error::QueueFull`] when too many wait, [`Error::Invalid`] for properties that JSON
    /// cannot write, and [`Error::Closed`].
    pub async fn publish<P: Serialize>(&self, event: &Feature<P>) -> Result<Id, Error> {
        self.publish_in(event, None).await
    }

    /// Publishes an event that belongs to a trace. Otherwise as [`publish`](Self::publish).
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub async fn publish_traced<P: Serialize>(&self, event: &Feature<P>, trace: &Trace) -> Result<Id, Error> {
        self.publish_in(event, Some(trace)).await
    }

    async fn publish_in<P: Serialize>(&self, event: &Feature<P>, trace: Option<&Trace>) -> Result<Id, Error> {
        let id = event.id.clone().unwrap_or_else(|| self.link().broker.chance.id());
        let json = to_raw_value(&WithId { id: &id, feature: event })
            .map_err(|fault| Error::Invalid(format!("the event cannot be written as JSON: {fault}")))?;
        self.ask(|state, answer| state.publish(&json, trace, answer)).await?;
        Ok(id)
    }

    /// Publishes many events over HTTP, and reads the source no faster than the broker takes them. Events that it
    /// refuses are in the report. Where it is overloaded, or away, they are tried again. [`iter`](crate::iter) makes a
    /// source of an iterator.
    ///
    /// # Errors
    /// [`Error::Batch`], which says how far it came.
    pub async fn publish_many<P: Serialize>(
        &self,
        events: impl Stream<Item = Feature<P>>,
        options: Batch,
    ) -> Result<Report, Error> {
        self.broker().publish_many(events, options).await
    }

    /// Ends the life of every live event of this id.
    ///
    /// # Errors
    /// [`Error::Problem`] with `not-found` where none is live, [`Error::Connection`], and [`Error::Timeout`].
    pub async fn revoke(&self, id: &Id) -> Result<(), Error> {
        self.broker().revoke(id).await
    }

    /// Tells where the client is, and waits for nothing. While there is no connection the newest position wins, and it is sent
    /// again on each new one. A broker that refuses it says so by [`Connection::Refused`].
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn move_to(&self, position: impl Into<Fix>) -> Result<(), Error> {
        let position = position.into();
        self.link().with(|state| state.check_open().map(|()| state.move_to(position)))
    }

    /// Tells where the client is. Done when this position, or a newer one, is in force.
    ///
    /// # Errors
    /// [`Error::Problem`] when the broker refuses it, [`Error::QueueFull`], and [`Error::Closed`].
    pub async fn move_confirmed(&self, position: impl Into<Fix>) -> Result<(), Error> {
        let position = position.into();
        self.ask(|state, answer| state.move_confirmed(position, answer)).await
    }

    /// Tells where the client was: `[longitude, latitude, unix_s]`, oldest first; the last point is where it is now. Live events along the
    /// way come as well.
    ///
    /// # Errors
    /// As [`move_confirmed`](Self::move_confirmed).
    pub async fn track(&self, points: Vec<[f64; 3]>, accuracy_m: Option<f64>) -> Result<(), Error> {
        self.ask(|state, answer| state.track(Track { points, accuracy_m }, answer)).await
    }

    /// Follows a source of positions until it ends. Only fixes that are worth it are sent. While there is no connection they are recorded,
    /// and told as a track afterwards.
    ///
    /// # Errors
    /// [`Error::Closed`], or what else ended the session before the source did.
    pub async fn follow(&self, source: impl Stream<Item = Fix>, options: Follow) -> Result<(), Error> {
        let link = self.link();
        let sending = options.run(source, |fix| {
            let unix_s = fix.unix_s.unwrap_or_else(|| link.broker.chance.unix_s());
            link.with(|state| state.followed(fix, unix_s));
        });
        tokio::select! {
            () = sending => Ok(()),
            error = self.wait_for(|state| state.check_open().err()) => Err(error),
        }
    }

    /// Tells where many clients are, over HTTP; takes a token that permits it. `accepted` of the report is how many positions are in force.
    ///
    /// # Errors
    /// [`Error::Batch`], which says how far it came.
    pub async fn move_many(
        &self,
        positions: impl Stream<Item = NamedPosition>,
        options: Batch,
    ) -> Result<Report, Error> {
        self.broker().move_many(positions, options).await
    }

    /// Says that everything up to a message, a checkpoint, or an offset of the session that the checkpoint is of, is not needed any more. Told
    /// at once, and again after a reconnect.
    pub fn ack(&self, up_to: impl Into<AckTarget>) {
        let up_to = up_to.into();
        self.link().with(|state| {
            let checkpoint = match up_to {
                AckTarget::Checkpoint(checkpoint) => Some(checkpoint),
                AckTarget::Offset(offset) => {
                    state.inbox.taken.clone().map(|taken| Checkpoint { offset, ..taken })
                }
            };
            checkpoint.into_iter().for_each(|checkpoint| state.ack(checkpoint));
        });
    }

    /// The last message that the application took, or where the session began: what it stores, and another process goes on at.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.link().state().inbox.taken.clone()
    }

    /// The present state of the connection.
    #[must_use]
    pub fn connection(&self) -> Connection {
        self.link().state().connection.clone()
    }

    /// Changes of the connection from now on, until the session has ended.
    pub fn connections(&self) -> Connections {
        Connections::new(self.link().state().changes.subscribe())
    }

    /// Tries to connect now instead of when its time has come: the network is back, or the application in the foreground.
    pub fn wake(&self) {
        self.link().hurry.notify_waiters();
    }

    /// The client's subscriptions as the broker shows them, also those that others made for it.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn subscriptions(&self) -> Result<Vec<wire::Subscription>, Error> {
        self.broker().subscriptions(self.client()).await
    }

    /// Asks why an event comes to the client, or does not. Either may be the id of one that is there, or one that might be.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn explain(
        &self,
        subscription: impl Into<Subject<Subscription>>,
        event: impl Into<Subject<Feature>>,
    ) -> Result<Explanation, Error> {
        self.broker().explain(self.client(), subscription, event, None).await
    }

    /// Asks to whom an event went; takes a token that permits it.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn deliveries(&self, id: &Id) -> Result<Deliveries, Error> {
        self.broker().deliveries(id).await
    }

    /// Ends the client: its position, its subscriptions and what is kept for it are gone, and the session is closed.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn forget(&self) -> Result<(), Error> {
        self.close().await;
        self.broker().forget(self.client()).await
    }

    /// Closes the session: waits up to 5 s until what is under way was answered, acknowledges what was processed, and ends the messages. What
    /// the application has not taken it does not get; of a durable subscription the next session gets it.
    pub async fn close(&self) {
        const PATIENCE: Duration = Duration::from_secs(5);
        let link = self.link();
        link.with(|state| state.closing = true);
        link.answered.notify_waiters();
        _ = timeout(PATIENCE, self.wait_for(|state| state.requests.is_empty().then_some(()))).await;
        link.with(State::flush_acks);
        let mut task = self.handle.task.lock().await;
        if let Some(running) = task.as_mut() {
            link.end.send_replace(End::Close);
            if timeout(PATIENCE, &mut *running).await.is_err() {
                link.end.send_replace(End::Cut);
                _ = running.await;
            }
            *task = None;
        }
    }

    /// Waits until there is what is looked for.
    async fn wait_for<T>(&self, look: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let mut change = pin!(self.link().answered.notified());
            change.as_mut().enable();
            if let Some(found) = look(&self.link().state()) {
                return found;
            }
            change.await;
        }
    }

    async fn ask(&self, ask: impl FnOnce(&mut State, Answer) -> Result<(), Error>) -> Result<(), Error> {
        let (answer, outcome) = oneshot::channel();
        self.link().with(|state| ask(state, answer))?;
        outcome.await.unwrap_or_else(|_| Err(Error::closed("before it was answered")))
    }
}

/// Subject of a question to [`Session::explain`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Subject<T> {
    /// The id of a document that is there.
    Id(String),
    /// A document that might be there.
    Document(T),
}

impl<T> From<&str> for Subject<T> {
    fn from(id: &str) -> Self {
        Self::Id(id.to_owned())
    }
}

impl<F: Into<Filter>> From<F> for Subject<Subscription> {
    fn from(filter: F) -> Self {
        Self::Document(filter.into().into())
    }
}

impl From<Subscription> for Subject<Subscription> {
    fn from(subscription: Subscription) -> Self {
        Self::Document(subscription)
    }
}

impl From<&Id> for Subject<Feature> {
    fn from(id: &Id) -> Self {
        Self::Id(id.to_string())
    }
}

impl From<Feature> for Subject<Feature> {
    fn from(event: Feature) -> Self {
        Self::Document(event)
    }
}

/// End of the deliveries that are acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AckTarget {
    /// An offset of the session that the checkpoint is of.
    Offset(u64),
    /// A checkpoint.
    Checkpoint(Checkpoint),
}

impl From<u64> for AckTarget {
    fn from(offset: u64) -> Self {
        Self::Offset(offset)
    }
}

impl From<Checkpoint> for AckTarget {
    fn from(checkpoint: Checkpoint) -> Self {
        Self::Checkpoint(checkpoint)
    }
}

impl<P> From<&Message<P>> for AckTarget {
    fn from(message: &Message<P>) -> Self {
        Self::Checkpoint(message.checkpoint())
    }
}

impl<P> From<&crate::Event<P>> for AckTarget {
    fn from(event: &crate::Event<P>) -> Self {
        Self::Checkpoint(event.checkpoint())
    }
}
