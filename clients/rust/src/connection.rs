//! State of a session's connection, and its changes.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, StreamExt, stream, stream::BoxStream};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use wire::Warning;

use crate::Error;

/// State of a connection, as [`Session::connections`](crate::Session::connections) tells it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Connection {
    /// A connection is being tried.
    Connecting,
    /// The connection is there.
    Ready {
        /// The session of the broker's.
        epoch: Arc<str>,
        /// The next delivery has the offset after this one.
        offset: u64,
        /// Whether it goes on in the session of before. Where it does not, and there was one, a gap of reason `epoch` follows.
        resumed: bool,
    },
    /// The connection is gone, or could not be made.
    Lost {
        /// Why.
        error: Error,
        /// Time after which it is tried again.
        retry_in: Duration,
    },
    /// The broker refused something that nobody waits for: a position, a subscription that was made again, a token. The connection stays.
    Refused {
        /// Why.
        error: Error,
    },
    /// The broker carried a request of the session out, and says what is probably not meant so in it, such as a misspelt member of an
    /// event at `/event/ttl`. The connection stays.
    Warned {
        /// What it says.
        warnings: Vec<Warning>,
    },
    /// The connection is over for good.
    Closed {
        /// Why, where the application did not close it.
        error: Option<Error>,
    },
}

/// Changes of a connection as they come: a [`Stream`], of [`Session::connections`](crate::Session::connections). A
/// reader that is 256 of them behind misses the oldest.
#[must_use = "it tells nothing by itself"]
pub struct Connections(BoxStream<'static, Connection>);

impl Connections {
    pub(crate) fn new(changes: Receiver<Connection>) -> Self {
        let changes = stream::unfold(Some(changes), |changes| async {
            let mut changes = changes?;
            loop {
                match changes.recv().await {
                    Ok(change) => {
                        let last = matches!(change, Connection::Closed { .. });
                        return Some((change, (!last).then_some(changes)));
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            }
        });
        Self(changes.boxed())
    }

    /// The next change; `None` after [`Connection::Closed`].
    pub async fn next(&mut self) -> Option<Connection> {
        self.0.next().await
    }
}

impl Stream for Connections {
    type Item = Connection;

    fn poll_next(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Option<Connection>> {
        self.0.poll_next_unpin(ctx)
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connections")
    }
}
