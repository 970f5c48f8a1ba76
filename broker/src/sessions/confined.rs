//! One confinement a client: all that there is of it was made under the same claim `nearcast`, so that nothing of it tells the
//! holder of a token more than that token allows.

use std::sync::Arc;

use super::activity::{Evaluations, Happened};
use super::{Client, Sessions};
use crate::ingest::Confinement;
use crate::model::error::ApiError;

impl Client {
    /// The evaluations that it may know of: how much there is outside of its confinement is nobody's business.
    pub(super) fn evaluations(&self, all: &Evaluations) -> Option<Happened> {
        self.confinement.is_none().then(|| all.of(&self.name))
    }

    /// Whether it has anything that an event may come to, or have come to.
    fn has_something(&self) -> bool {
        !self.subscriptions.is_empty()
            || !self.readers.is_empty()
            || self.durable.is_some()
            || self.push.is_some()
            || self.released < self.offset
    }
}

impl Sessions {
    /// Binds a client that has nothing yet to a confinement. One that has something was bound before, and refuses any other.
    pub(super) fn bind(&mut self, id: u32, confinement: Option<&Arc<Confinement>>) -> Result<(), ApiError> {
        let client = self.clients.get_mut(id).ok_or(ApiError::Internal("the client is gone"))?;
        if client.confinement.as_ref() == confinement {
            return Ok(());
        }
        if client.has_something() {
            return Err(confined_otherwise());
        }
        client.confinement = confinement.cloned();
        Ok(())
    }

    /// Refuses to show a client's subscriptions, or to end something of it, to who is confined otherwise than it is. Who is not
    /// confined may know of everything.
    pub(crate) fn check_confinement(
        &self,
        name: &str,
        confinement: Option<&Arc<Confinement>>,
    ) -> Result<(), ApiError> {
        let Some(confinement) = confinement else { return Ok(()) };
        let client = self.ids.get(name).and_then(|id| self.clients.get(*id));
        let is_within =
            |client: &Client| client.confinement.as_ref() == Some(confinement) || !client.has_something();
        if client.is_none_or(is_within) { Ok(()) } else { Err(confined_otherwise()) }
    }

    /// Writes to what a client is confined, if that is not on disk, with the first of what it has there.
    pub(super) fn record_confinement(&mut self, id: u32) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if client.confinement == client.stored_confinement {
            return;
        }
        let Some(batch) = self.ledger.record() else { return };
        match &client.confinement {
            Some(confinement) => batch.put_confinement(&client.name, confinement.text()),
            None => batch.remove_confinement(&client.name),
        }
        client.stored_confinement.clone_from(&client.confinement);
    }
}

fn confined_otherwise() -> ApiError {
    let detail = "the client's subscriptions, connections, or what is kept for it, were made under a token that is confined \
                  otherwise (claim nearcast): DELETE the client to begin anew";
    ApiError::Forbidden { detail: detail.to_owned(), scope: None }
}
