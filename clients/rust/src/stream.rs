//! The stream of messages.

use std::{
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{Stream, StreamExt};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Acknowledge, Error, Message, messages::Incoming, session::Handle};

/// Messages of a session as they come: a [`Stream`]. `P` is what the application expects of the properties of events.
///
/// - To ask for the next one says that the one before is processed, which acknowledges it ([`Acknowledge::Auto`]).
/// - An event of another type is a [`Message::Unreadable`], and the stream goes on. An `Err` is its last item: the session has ended.
/// - While the application takes none, [`inbox`](crate::Connect::inbox) of them wait. Then the connection is read no further, and the
///   broker's policy decides ([`overflow`](crate::Subscription::overflow)). While somebody waits for an answer it is read on, up to 16
///   times as many; beyond that the connection is made anew later, and goes on where it was.
/// - When it is dropped, deliveries are passed over and not acknowledged.
#[derive(Debug)]
#[must_use = "when it is dropped nothing is received"]
pub struct Messages<P = Value> {
    reader: Reader,
    properties: PhantomData<fn() -> P>,
}

/// Taker of the session's messages, whatever type their properties have.
#[derive(Debug)]
struct Reader {
    handle: Arc<Handle>,
    acknowledge: Acknowledge,
}

impl Messages {
    pub(crate) fn new(handle: Arc<Handle>, acknowledge: Acknowledge) -> Self {
        Self { reader: Reader { handle, acknowledge }, properties: PhantomData }
    }
}

impl<P> Messages<P> {
    /// Reads the properties of the stream's events as `T`.
    pub fn typed<T: DeserializeOwned>(self) -> Messages<T> {
        Messages { reader: self.reader, properties: PhantomData }
    }
}

impl<P: DeserializeOwned> Messages<P> {
    /// The next message; `None` when the session was closed. What [`StreamExt::next`] does, without an import.
    pub async fn next(&mut self) -> Option<Result<Message<P>, Error>> {
        StreamExt::next(self).await
    }
}

impl<P: DeserializeOwned> Stream for Messages<P> {
    type Item = Result<Message<P>, Error>;

    fn poll_next(self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Reader { handle, acknowledge } = &self.reader;
        let link = &handle.link;
        let mut state = link.state();
        if let Some(done) = state.inbox.done()
            && *acknowledge == Acknowledge::Auto
            && state.processed(done)
        {
            link.work.notify_one();
        }
        let Some(taken) = state.inbox.take() else {
            state.inbox.waker = Some(ctx.waker().clone());
            return Poll::Pending;
        };
        let renews = state.renews();
        drop(state);
        link.room.notify_one();
        if renews {
            link.work.notify_one();
        }
        Poll::Ready(taken.map(|taken| taken.map(Incoming::read)))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.handle.link.with(|state| state.inbox.abandon());
    }
}
