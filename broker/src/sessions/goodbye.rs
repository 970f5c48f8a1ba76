//! When the clients of a broker that stops are to come back.

/// Time over which few connections come back: a restart takes about as long.
const FEW_MS: u64 = 1_000;
/// Time that each connection adds, for the new process has to serve them all: a handshake with TLS takes about as long on a core.
const EACH_MS: u64 = 1;
/// Bound of all of it: alarms wait no longer than clients wait where the broker did not say when.
const ALL_MS: u64 = 30_000;

/// Returns when each of `count` connections is to come back, evenly over a time that grows with their number: the first soon, and never
/// many at once. In milliseconds from now.
pub(super) fn return_times_ms(count: usize) -> impl Iterator<Item = u32> {
    let count = count as u64;
    let all_ms = FEW_MS.saturating_add(EACH_MS.saturating_mul(count)).min(ALL_MS);
    (0..count)
        .map(move |index| u32::try_from(all_ms * (2 * index + 1) / (2 * count)).expect("within the bound"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_back_soon_and_never_many_at_once() {
        assert_eq!(return_times_ms(0).next(), None);
        assert_eq!(return_times_ms(1).collect::<Vec<_>>(), [500]);
        assert_eq!(return_times_ms(4).collect::<Vec<_>>(), [125, 376, 627, 878]);
        for (count, last_ms) in [(1_000, 1_999), (10_000, 10_999), (1_000_000, 29_999)] {
            let times: Vec<_> = return_times_ms(count).collect();
            assert_eq!((times.len(), times.last()), (count, Some(&last_ms)));
            assert!(times.is_sorted() && times[count / 2] < last_ms / 2 + 10);
        }
    }
}
