//! Events on their way into the queues of all shards.

use std::sync::Arc;

use super::executor::{LITTLE, LITTLE_TIME};
use super::queue::Room;
use super::{Coming, Command, Shards};
use crate::engines::Report;
use crate::model::completion::Completion;
use crate::model::error::ApiError;

impl Shards {
    /// Takes events: they go into every queue, or first through the stream of the cluster where there is one. After a refusal `events` holds
    /// the events that were refused.
    pub(crate) async fn publish(&self, events: &mut Vec<Coming>) -> Result<(), ApiError> {
        match &self.stream {
            Some(stream) => {
                self.health.check()?;
                stream.publish(events)
            }
            None => self.put(events).await.map(drop),
        }
    }

    /// Puts events into every queue, as many at a time as a queue holds and the disk has room for, each time all of them or none: room is
    /// found everywhere first. After a refusal `events` holds the events that were refused.
    pub(crate) async fn take(&self, events: &mut Vec<Coming>) -> Result<(), ApiError> {
        self.put(events).await.map(drop)
    }

    /// Publishes events as [`publish`](Self::publish) does, for a caller that would do the engines' work itself. Returns
    /// whether the work is little enough for that: it then waits for [`run_inline`](Self::run_inline).
    pub(crate) async fn publish_inline(&self, events: &mut Vec<Coming>) -> Result<bool, ApiError> {
        if self.stream.is_some() {
            return self.publish(events).await.map(|()| false);
        }
        let is_little = self.is_little(events);
        let mut rooms = self.put(events).await?;
        if is_little && let Some(last) = rooms.pop() {
            last.hand_over();
        }
        Ok(is_little)
    }

    /// Runs the shard inline that was left to the caller.
    pub(crate) fn run_inline(&self) {
        if let Some(executor) = self.executors.last() {
            executor.run_inline();
        }
    }

    /// Whether events are done in less time than it takes to wake a thread for them and a little more. An alarm goes to many.
    fn is_little(&self, events: &[Coming]) -> bool {
        let (Some(sender), Some(load)) = (self.senders.last(), self.loads.last()) else { return false };
        events.len() <= LITTLE
            && !self.has_store
            && self.executors.last().is_some_and(|executor| executor.can_run_inline())
            && !self.reports.iter().any(Report::has_device)
            && !events.iter().any(|coming| coming.event.body.is_alarm)
            && load.cost(sender.depth() + events.len()) < LITTLE_TIME
    }

    /// Says how many were put in last, by the rooms that they are in.
    async fn put(&self, events: &mut Vec<Coming>) -> Result<Vec<Room<'_>>, ApiError> {
        self.health.check()?;
        let mut rooms = Vec::new();
        while !events.is_empty() {
            let coming = events.iter().take(self.senders[0].max());
            let (count, accepted) =
                self.health.accept(coming.map(|coming| coming.event.body.text.len() as u64));
            if count == 0 {
                return Err(ApiError::Full);
            }
            rooms = self.room(count).await?;
            let _order =
                events[..count].iter().any(|coming| coming.event.live.is_some()).then(|| self.order());
            for Coming { event, pass, receipt } in events.drain(..count) {
                let event = Arc::new(event);
                for (room, load) in rooms.iter_mut().zip(&*self.loads) {
                    load.coming(event.body.is_alarm);
                    let ticket = receipt.as_ref().map(Completion::ticket);
                    let held = accepted.as_ref().map(|accepted| Arc::clone(accepted) as _);
                    let ticket = ticket.map(|ticket| ticket.holding(held));
                    room.put(Command::Match { event: Arc::clone(&event), pass: pass.clone(), ticket });
                }
            }
        }
        Ok(rooms)
    }
}
