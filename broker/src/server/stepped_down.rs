//! The end of an active broker of a cluster that is not the active one any more.

/// The broker was the active one of its cluster, and another may be it now. All that it knew is void: it has to begin anew, as a standby.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the broker is not the active one of its cluster any more: {why}")]
pub struct SteppedDown {
    /// Why.
    pub(super) why: String,
}
