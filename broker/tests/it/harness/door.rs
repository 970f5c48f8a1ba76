//! The address of a broker, and the ways in.

use std::net::SocketAddr;

use super::{Http, Sse, Ws};

/// Where a broker listens, and the ways in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door(pub(crate) SocketAddr);

impl Door {
    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.0
    }

    /// A client for its HTTP calls.
    pub(crate) fn http(&self) -> Http {
        Http::new(self.0)
    }

    /// A WebSocket session, past its `ready`.
    pub(crate) async fn ws(&self, client: &str) -> Ws {
        Ws::connect(self.0, client).await
    }

    /// An event stream.
    pub(crate) async fn sse(&self, client: &str) -> Sse {
        Sse::connect(self.0, client).await
    }
}
