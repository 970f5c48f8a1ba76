//! Where the broker is now, and whether anybody may ask something of it.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, watch};

/// Shared by all who talk to a broker that goes away and comes back elsewhere.
#[derive(Clone)]
pub(crate) struct Gate {
    address: watch::Sender<Option<SocketAddr>>,
    work: Arc<RwLock<()>>,
}

impl Gate {
    /// With no broker yet.
    pub(crate) fn new() -> Self {
        Self { address: watch::Sender::new(None), work: Arc::new(RwLock::new(())) }
    }

    /// The broker is there, or it is gone.
    pub(crate) fn set(&self, address: Option<SocketAddr>) {
        self.address.send_replace(address);
    }

    /// Where the broker is, as soon as it is somewhere.
    pub(crate) async fn address(&self) -> SocketAddr {
        let mut address = self.address.subscribe();
        let address = address.wait_for(Option::is_some).await.expect("the sender lives as long as `self`");
        address.expect("waited for")
    }

    /// Held while something is asked for, until it is answered, however often the broker goes away meanwhile.
    pub(crate) async fn work(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.work).read_owned().await
    }

    /// Waits until all is answered that was asked for, and lets nobody ask for more until it is dropped.
    pub(crate) async fn calm(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.work).write_owned().await
    }
}
