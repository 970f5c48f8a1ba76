//! Turns: moves are held back rather than refused, so that nobody waits behind one flow's flood of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::engine_time::Paid;
use super::flows::ClientLimiter;
use crate::model::error::ApiError;

/// Turns that a flow has under way at once.
const TURNS: u32 = 4;

/// Moves of one turn at most.
const MOVES: u64 = 32;

/// Nanoseconds that the moves of one turn may take an engine together, as far as those before them tell.
const TURN_NS: u64 = 500_000;

/// Nanoseconds of a move as long as none has told: many more than most take.
const UNKNOWN_NS: u64 = 100_000;

/// Divisor of the mean time of a move: the last move counts for one part in this many.
const MEAN: u64 = 8;

/// The turns of a flow.
#[derive(Debug)]
pub(super) struct Turns {
    permits: Semaphore,
    /// The last one, as long as a move of it is under way, and how many more it has room for: whoever sends nothing holds nothing.
    /// A std mutex: held for a look.
    current: Mutex<(Weak<MoveTurn>, u64)>,
    /// Mean time that a move takes an engine.
    move_ns: AtomicU64,
}

/// Some moves of a flow on their way to an engine. It is over when the last of them has been carried out.
#[derive(Debug)]
pub(crate) struct MoveTurn {
    flow: Arc<ClientLimiter>,
    permits: u32,
    /// The debts that were waited for: who waits behind this one goes on when it has been charged.
    _paid: Paid,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            permits: Semaphore::new(TURNS as usize),
            current: Mutex::new((Weak::new(), 0)),
            move_ns: AtomicU64::new(UNKNOWN_NS),
        }
    }
}

impl MoveTurn {
    /// The turn of a move. Waits while the flow has as many under way as it may, which are then hurried. A track has one of its own,
    /// and a move for which debts were waited for goes alone.
    pub(super) async fn of_move(
        flow: &Arc<ClientLimiter>,
        has_track: bool,
        paid: Paid,
        patience: Duration,
        hurry: impl FnOnce(),
    ) -> Result<Arc<Self>, ApiError> {
        let turns = &flow.turns;
        let move_ns = turns.move_ns.load(Ordering::Relaxed).max(1);
        let moves = if has_track || paid.had_debts() { 1 } else { (TURN_NS / move_ns).clamp(1, MOVES) };
        if moves > 1
            && let Some(turn) = turns.shared()
        {
            return Ok(turn);
        }
        // One that takes longer than a turn goes alone.
        let permits = if move_ns > TURN_NS || paid.had_debts() { TURNS } else { 1 };
        let permit = match turns.permits.try_acquire_many(permits) {
            Ok(permit) => permit,
            Err(_) => {
                hurry();
                match tokio::time::timeout(patience, turns.permits.acquire_many(permits)).await {
                    Ok(Ok(permit)) => permit,
                    Ok(Err(_)) | Err(_) => return Err(ApiError::Overloaded),
                }
            }
        };
        // Given back by the turn.
        permit.forget();
        let turn = Arc::new(Self { flow: Arc::clone(flow), permits, _paid: paid });
        if moves > 1 {
            *turns.current.lock().unwrap_or_else(PoisonError::into_inner) =
                (Arc::downgrade(&turn), moves - 1);
        }
        Ok(turn)
    }

    /// A move of it has taken an engine so long.
    pub(crate) fn took(&self, time: Duration) {
        let move_ns = &self.flow.turns.move_ns;
        let before = move_ns.load(Ordering::Relaxed);
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / MEAN);
        move_ns.store((before / MEAN * (MEAN - 1)).saturating_add(time / MEAN), Ordering::Relaxed);
    }
}

impl Turns {
    /// The last turn, if it has room for another move.
    fn shared(&self) -> Option<Arc<MoveTurn>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let (turn, left) = &mut *current;
        *left = left.checked_sub(1)?;
        turn.upgrade()
    }
}

impl Drop for MoveTurn {
    fn drop(&mut self) {
        self.flow.turns.permits.add_permits(self.permits as usize);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use std::time::Instant;

    use futures_util::future::join_all;

    use super::super::EngineTime;
    use super::super::flows::Rates;
    use super::*;
    use crate::config::Config;
    use crate::metrics::Metrics;

    const PATIENCE: Duration = Duration::from_millis(10);

    /// Makes as many moves as may be under way, each of which takes `each`.
    fn under_way(flow: &Arc<ClientLimiter>, each: Duration) -> Vec<Arc<MoveTurn>> {
        let turn = MoveTurn::of_move(flow, false, Paid::default(), PATIENCE, || {})
            .now_or_never()
            .expect("none is under way")
            .unwrap();
        (0..200).for_each(|_| turn.took(each));
        drop(turn);
        std::iter::from_fn(|| MoveTurn::of_move(flow, false, Paid::default(), PATIENCE, || {}).now_or_never())
            .map(Result::unwrap)
            .collect()
    }

    #[tokio::test]
    async fn a_flow_has_so_many_moves_under_way_and_no_more() {
        let flow = ClientLimiter::new(Rates::default());
        for (each, expected) in [
            (Duration::from_micros(1), 128),
            (Duration::from_micros(100), 20),
            (Duration::from_micros(400), 4),
            (Duration::from_millis(200), 1),
        ] {
            let mut turns = under_way(&flow, each);
            assert!(turns.len().abs_diff(expected) <= expected / 5, "{each:?}: {}", turns.len());
            assert_eq!(
                MoveTurn::of_move(&flow, false, Paid::default(), PATIENCE, || {}).await.unwrap_err(),
                ApiError::Overloaded
            );
            // One that is over makes room.
            turns.drain(..turns.len().min(32));
            assert!(
                MoveTurn::of_move(&flow, false, Paid::default(), PATIENCE, || {}).now_or_never().is_some()
            );
        }
        assert_eq!(flow.turns.permits.available_permits(), TURNS as usize);
    }

    #[tokio::test]
    async fn of_a_client_in_debt_one_move_is_under_way_over_all_connections() {
        const CONNECTIONS: usize = 24;
        const COST: Duration = Duration::from_millis(1);
        let mut config = Config::default();
        config.admission.engine_ms_per_second = 1_000;
        let time = EngineTime::new(&config, &Arc::new(Metrics::new(1)));
        // A debt that is there until all wait, also on a busy machine.
        time.charge("car", 2_500 * COST, Instant::now());
        let under_way = AtomicU64::new(0);
        let patience = Duration::from_secs(60);
        let moves = (0..CONNECTIONS).map(|_| async {
            let flow = ClientLimiter::new(Rates::default());
            let paid = time.pay("car", None, patience).await.unwrap();
            let turn = MoveTurn::of_move(&flow, false, paid, patience, || {}).await.unwrap();
            assert!(flow.turns.permits.available_permits() == 0, "it goes alone");
            assert_eq!(under_way.fetch_add(1, Ordering::Relaxed), 0, "more than one is under way");
            // The engine comes to it.
            tokio::time::sleep(Duration::from_millis(2)).await;
            under_way.fetch_sub(1, Ordering::Relaxed);
            time.charge("car", COST, Instant::now());
            drop(turn);
        });
        join_all(moves).await;
    }

    #[tokio::test]
    async fn a_track_shares_its_turn_with_none() {
        let flow = ClientLimiter::new(Rates::default());
        let next =
            |has_track| MoveTurn::of_move(&flow, has_track, Paid::default(), PATIENCE, || {}).now_or_never();
        let first = next(false).expect("none is under way").unwrap();
        let tracks: Vec<_> = std::iter::from_fn(|| next(true)).collect();
        assert_eq!(tracks.len(), TURNS as usize - 1);
        // What began before goes on.
        assert!(Arc::ptr_eq(&first, &next(false).expect("it has room").unwrap()));
    }
}
