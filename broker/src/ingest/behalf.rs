//! On whose behalf documents are read.

use std::sync::Arc;

use matcher::event::Event;
use matcher::subscription::Filter;

use super::Confinement;
use crate::model::error::ApiError;
use crate::model::tenant;

/// The owner of documents: the tenant whose events and subscriptions they are about, and the confinement of the sender.
#[derive(Clone, Copy, Default)]
pub(crate) struct Behalf<'a> {
    /// The tenant of the token; `None` where there are no tenants.
    pub(crate) tenant: Option<&'a str>,
    pub(crate) confinement: Option<&'a Arc<Confinement>>,
}

impl Behalf<'_> {
    /// The tenant's name; empty also where there are none.
    pub(crate) fn tenant_name(&self) -> &str {
        self.tenant.unwrap_or_default()
    }

    /// Lets filters take only the events that are for the sender.
    ///
    /// # Errors
    /// Where a filter's condition is too large together with what the token is confined to.
    pub(crate) fn confine(&self, filters: &mut [Filter]) -> Result<(), ApiError> {
        if let Some(confinement) = self.confinement {
            confinement.confine(filters)?;
        }
        if let Some(tenant) = self.tenant {
            tenant::confine(filters, tenant);
        }
        Ok(())
    }

    /// Refuses an event that is not for who publishes it.
    pub(crate) fn check(&self, event: &Event) -> Result<(), ApiError> {
        self.confinement.map_or(Ok(()), |confinement| confinement.check(event))
    }
}
