//! Appends what a broker accepts.

use std::sync::Arc;
use std::time::Duration;

use cluster::events::{Done, Outcome};
use cluster::log::Log;
use tokio_util::sync::CancellationToken;

use super::EventStream;
use crate::model::error::ApiError;

/// Pause before it is looked whether an append is due again.
const TICK: Duration = Duration::from_millis(50);

impl EventStream {
    /// Appends until the broker has ended. What waits then is refused.
    pub(crate) async fn append_to(self: Arc<Self>, log: Arc<impl Log>, ended: CancellationToken) {
        while !ended.is_cancelled() {
            let append = self.state().writer.poll(self.begun.elapsed());
            if let Some(append) = append {
                // It is answered after a second at the latest, and what it appended has to be known.
                let outcome = log.append(append).await;
                self.state().writer.answer(self.begun.elapsed(), outcome);
            } else {
                tokio::select! {
                    () = ended.cancelled() => {}
                    () = self.pushed.notified() => {}
                    () = tokio::time::sleep(TICK) => {}
                }
            }
            self.settle();
        }
        let waiting = std::mem::take(&mut self.state().waiting);
        waiting.into_values().for_each(|(.., waiting)| waiting.refuse(ApiError::Stopping));
    }

    /// Refuses what is not in the stream, and what is not read for long. Other entries are settled when they have been read.
    fn settle(&self) {
        let mut refused = Vec::new();
        {
            let mut state = self.state();
            while let Some(done) = state.writer.take_done() {
                let Done::Events { publishes, outcome: Outcome::Refused | Outcome::Unknown } = done else {
                    continue;
                };
                refused.extend(publishes.into_iter().filter_map(|number| state.take(number)));
            }
            let now = self.begun.elapsed();
            refused.extend(std::iter::from_fn(|| state.take_late(now)));
        }
        refused.into_iter().for_each(|waiting| waiting.refuse(ApiError::Storage));
    }
}
