//! Questions about what a situation knows, which it answers between two of its turns.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;
use wire::ExplainedObject;

use super::Logic;
use super::runner::Work;
use crate::model::error::ApiError;

/// Asks why a live object is in groups or in none.
pub(super) struct Question {
    pub(super) object: String,
    pub(super) reply: oneshot::Sender<Option<ExplainedObject>>,
}

impl Work {
    /// Answers a question, beside the threads that serve everybody.
    pub(super) async fn answer(
        &mut self,
        logic: Box<dyn Logic>,
        Question { object, reply }: Question,
    ) -> Result<Box<dyn Logic>, ApiError> {
        let _turn = self.stage.threads.acquire().await.map_err(|_| ApiError::Stopping)?;
        let share = Arc::clone(&self.holding.share);
        let work = move || {
            let began = Instant::now();
            // Nobody may wait for it any more.
            let _ = reply.send(logic.why(&object));
            share.pay(Instant::now(), began.elapsed());
            logic
        };
        let answered = self.stage.host.runtime.spawn_blocking(work).await;
        answered.map_err(|_| ApiError::Internal("an evaluation panicked"))
    }
}
