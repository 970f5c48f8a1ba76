//! The slice of work that one task does before others get their turn. A flood that never pauses would keep its thread for
//! itself.

/// Bytes of requests until the others' turn, about a millisecond of work. With an eighth of it the broker took half to four fifths of the
/// events, because each write to a subscriber carries fewer (bench `overload`, two busy cores, two runs, November 2026).
const BYTES: usize = 128 * 1_024;

/// Bytes that the smallest request counts as.
const LEAST_BYTES: usize = 512;

/// Bytes that are left of a task's slice of its thread.
#[derive(Debug)]
pub(super) struct CoopBudget(usize);

impl Default for CoopBudget {
    fn default() -> Self {
        Self(BYTES)
    }
}

impl CoopBudget {
    /// Counts a request, and says whether others should go before it: the slice is used up, and another one begins.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes.max(LEAST_BYTES));
        self.0 = left.unwrap_or(BYTES);
        left.is_none()
    }
}
