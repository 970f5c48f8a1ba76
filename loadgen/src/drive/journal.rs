//! What was sent, and when: the half of the journal that the sender writes.

use super::shared::Nanos;

/// Record of what was sent by checked clients and of checked events, by the load's own clock.
#[derive(Debug, Default)]
pub struct SentJournal {
    /// Steps that were carried out.
    pub steps: u64,
    /// When each checked event was sent, by its number.
    pub events: Vec<(u64, Nanos)>,
    /// When each move of a checked client was sent: who, which of its moves.
    pub moves: Vec<(u32, u64, Nanos)>,
    /// When a checked client's connection was broken.
    pub breaks: Vec<(u32, Nanos)>,
    /// When the phase ended.
    pub ended: Nanos,
}
