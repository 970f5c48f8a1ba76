//! Push subscriptions of a shard's clients: made, described and removed; written, and taken up again.

use std::sync::Arc;

use super::Sessions;
use crate::ingest::Confinement;
use crate::model::error::ApiError;
use crate::push::{PushSubscription, Subscribed};

impl Sessions {
    /// Makes or replaces the push subscription of a client; says whether it replaced one.
    pub(crate) fn put_push(
        &mut self,
        name: &Arc<str>,
        subscription: Arc<PushSubscription>,
        confinement: Option<&Arc<Confinement>>,
    ) -> Result<bool, ApiError> {
        let push = self.push.clone().ok_or(ApiError::NoPush)?;
        let id = self.enter(name, None)?;
        let bound = self.bind(id, confinement);
        if bound.is_err() {
            self.leave(id);
            return bound.map(|()| false);
        }
        self.record_confinement(id);
        let client = self.clients.get_mut(id).ok_or(ApiError::Internal("the client is gone"))?;
        if let Some(batch) = self.ledger.record() {
            client.is_stored = true;
            batch.put_push(name, &subscription.stored());
        }
        if let Some(subscribed) = &client.push {
            subscribed.replace(subscription);
            return Ok(true);
        }
        client.push = Some(Box::new(Subscribed::new(&push, name, subscription)));
        Ok(false)
    }

    /// Describes the push subscription of a client.
    pub(crate) fn push_of(&self, name: &str) -> Option<wire::PushState> {
        let client = self.ids.get(name).and_then(|id| self.clients.get(*id))?;
        client.push.as_ref()?.describe()
    }

    /// Removes the push subscription of a client, or only a particular one; says whether there was one.
    pub(crate) fn remove_push(&mut self, name: &str, only: Option<&Arc<PushSubscription>>) -> bool {
        let Some(&id) = self.ids.get(name) else { return false };
        let Some(client) = self.clients.get_mut(id) else { return false };
        let is_it = |subscribed: &mut Box<Subscribed>| only.is_none_or(|only| subscribed.is(only));
        if client.push.take_if(is_it).is_none() {
            return false;
        }
        if let Some(batch) = self.ledger.record() {
            batch.remove_push(name);
        }
        self.leave(id);
        true
    }

    /// Takes a push subscription up again. Where push is off it stays on disk as it is.
    pub(super) fn restore_push(&mut self, id: u32, subscription: PushSubscription) {
        let Some(push) = &self.push else { return };
        if let Some(client) = self.clients.get_mut(id) {
            client.push = Some(Box::new(Subscribed::new(push, &client.name, Arc::new(subscription))));
        }
    }
}
