//! Turns: what is held back rather than refused, so that nobody waits behind one flow's flood of it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::flows::Flow;
use crate::refusal::Refusal;

/// Moves of one turn.
const MOVES: u32 = 32;

/// Turns that a flow has under way at once: what an engine does meanwhile is a fraction of a millisecond, unless there are tracks.
pub(super) const TURNS: usize = 4;

/// The turns of a flow, for one of those who send its moves.
#[derive(Debug)]
pub(crate) struct Turns {
    flow: Arc<Flow>,
    /// How long a sender is held back before it is refused.
    patience: Duration,
    /// The last one, as long as a move of it is under way: whoever sends nothing holds nothing.
    current: Weak<Turn>,
    /// Moves that it has room for.
    left: u32,
}

/// Some moves of a flow on their way to an engine. It is over when the last of them has been carried out.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Flow>);

impl Turns {
    pub(super) fn new(flow: &Arc<Flow>, patience: Duration) -> Self {
        Self { flow: Arc::clone(flow), patience, current: Weak::new(), left: 0 }
    }

    /// The turn of a move. Waits while the flow has as many under way as it may.
    pub(super) async fn next(&mut self) -> Result<Arc<Turn>, Refusal> {
        if self.left > 0
            && let Some(turn) = self.current.upgrade()
        {
            self.left -= 1;
            return Ok(turn);
        }
        let turn = self.begin().await?;
        self.current = Arc::downgrade(&turn);
        self.left = MOVES - 1;
        Ok(turn)
    }

    /// A turn of its own, for a move that may take as long as many.
    pub(super) async fn alone(&mut self) -> Result<Arc<Turn>, Refusal> {
        self.left = 0;
        self.begin().await
    }

    async fn begin(&self) -> Result<Arc<Turn>, Refusal> {
        let turns = &self.flow.turns;
        let permit = match turns.try_acquire() {
            Ok(permit) => permit,
            Err(_) => match tokio::time::timeout(self.patience, turns.acquire()).await {
                Ok(Ok(permit)) => permit,
                Ok(Err(_)) | Err(_) => return Err(Refusal::Overloaded),
            },
        };
        // Given back by the turn.
        permit.forget();
        Ok(Arc::new(Turn(Arc::clone(&self.flow))))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.turns.add_permits(1);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::super::flows::Rates;
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn a_flow_has_so_many_moves_under_way_and_no_more() {
        let flow = Flow::new(Rates::default());
        let [mut first, mut second] = [(); 2].map(|()| Turns::new(&flow, PATIENCE));
        let mut under_way = Vec::new();
        while let Some(turn) = first.next().now_or_never() {
            under_way.push(turn.unwrap());
        }
        assert_eq!(under_way.len(), TURNS * MOVES as usize);
        assert_eq!(second.next().await.unwrap_err(), Refusal::Overloaded);
        // One that is over makes room for the next, of whomever.
        under_way.drain(..MOVES as usize);
        under_way.push(second.next().now_or_never().expect("a turn is over").unwrap());
        assert!(first.next().now_or_never().is_none());
        under_way.clear();
        // A move that has a turn of its own shares it with none that comes behind it.
        let alone = first.alone().now_or_never().expect("no turn is under way").unwrap();
        assert!(!Arc::ptr_eq(&alone, &first.next().await.unwrap()));
        drop(alone);
        assert_eq!(flow.turns.available_permits(), TURNS);
    }

    #[tokio::test]
    async fn who_sends_nothing_holds_nothing() {
        let flow = Flow::new(Rates::default());
        let mut senders: Vec<_> = (0..3 * TURNS).map(|_| Turns::new(&flow, PATIENCE)).collect();
        for sender in &mut senders {
            drop(sender.next().now_or_never().expect("nothing is under way"));
        }
        assert_eq!(flow.turns.available_permits(), TURNS);
    }
}
