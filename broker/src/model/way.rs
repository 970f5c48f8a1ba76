//! Ways along streets that areas lie along.

/// The way from where a client was to where it wants to go. It leads nowhere where there is none.
#[derive(Debug, Default)]
pub(crate) struct Way {
    /// The node that was nearest to the client, if one was near enough.
    pub(crate) from: Option<u32>,
    /// Its arcs, in order.
    pub(crate) arcs: Box<[u32]>,
    /// What the streets cost then: costs of a greater number are newer.
    pub(crate) costs: u64,
}
