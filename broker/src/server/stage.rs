//! The stages of a start, as they are announced.

use std::sync::Arc;

/// A stage of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage<'a> {
    /// There is data from before in a directory that can be had, and it is being read back. Connections are accepted, and requests
    /// answered 503.
    Recovering {
        /// The directory, `store.data`.
        data: &'a str,
    },
    /// The broker is a member of a cluster, and follows its ledger until it becomes the active one. Requests are answered 503.
    Standby {
        /// The cluster, `cluster.name`.
        name: &'a str,
    },
    /// Requests are carried out.
    Ready,
}

/// Takes the stages of a start.
pub(super) type Tell = Arc<dyn Fn(Stage<'_>) + Send + Sync>;
