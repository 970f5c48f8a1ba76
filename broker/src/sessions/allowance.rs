//! How many subscriptions a client and its tenant may have, and how many constraints and bytes these may have.

use std::sync::Arc;

use super::Client;
use crate::budget::{self, Budget, Kind};
use crate::config::Config;
use crate::limits::{Quota, QuotaPermit, Quotas};
use crate::model::error::ApiError;
use crate::model::tenant;

/// Limits of each client and each tenant on subscriptions.
pub(super) struct Allowance {
    budget: Budget,
    client_subscriptions: usize,
    client_constraints: u64,
    /// 0: any number.
    client_areas: usize,
    tenant_subscriptions: Arc<Quota>,
    tenant_constraints: Arc<Quota>,
}

/// The share of a subscription in these limits. Its tenant has the share again when this is dropped.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) constraints: u64,
    subscription_quota: QuotaPermit,
    constraints_quota: QuotaPermit,
    documents: budget::Held,
}

/// The resources that a subscription asks for.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) constraints: u64,
    /// Bytes of its document and its id.
    pub(super) bytes: usize,
}

/// Bytes of a subscription besides its texts, its constraints and its areas.
const SUBSCRIPTION_BYTES: usize = 512;

impl Allowance {
    pub(super) fn new(config: &Config, quotas: &Quotas, budget: &Budget) -> Self {
        Self {
            budget: budget.clone(),
            client_subscriptions: config.limits.subscriptions_per_client,
            client_constraints: config.limits.constraints_per_client,
            client_areas: config.routes.areas_per_client,
            tenant_subscriptions: Arc::clone(&quotas.subscriptions),
            tenant_constraints: Arc::clone(&quotas.constraints),
        }
    }

    /// Takes the share of a client's subscription. A subscription that replaces another takes only what that one does not
    /// have. A replacement that is no larger is never refused.
    pub(super) fn take(
        &self,
        client: &mut Client,
        wanted: Wanted,
        replaced: Option<&Taken>,
    ) -> Result<Taken, ApiError> {
        let Wanted { constraints, .. } = wanted;
        if replaced.is_none() && client.subscriptions.len() >= self.client_subscriptions {
            return Err(ApiError::Limit {
                what: "subscriptions for one client",
                limit: self.client_subscriptions as u64,
                setting: "limits.subscriptions_per_client",
            });
        }
        let more = constraints.saturating_sub(replaced.map_or(0, |replaced| replaced.constraints));
        if more > 0 && client.constraints.saturating_add(more) > self.client_constraints {
            return Err(ApiError::Limit {
                what: "constraints in the subscriptions of one client",
                limit: self.client_constraints,
                setting: "limits.constraints_per_client",
            });
        }
        let more_bytes =
            wanted.bytes().saturating_sub(replaced.map_or(0, |replaced| replaced.documents.bytes()));
        let documents = client.account(&self.budget).hold(Kind::Documents, more_bytes)?;
        let tenant = tenant::split(&client.name).0;
        Ok(Taken {
            constraints,
            subscription_quota: self.tenant_subscriptions.acquire(tenant, u64::from(replaced.is_none()))?,
            constraints_quota: self.tenant_constraints.acquire(tenant, more)?,
            documents,
        })
    }

    /// Checks that a client with some areas along routes may have others in place of those of one subscription.
    pub(super) fn check_areas(&self, all: usize, replaced: usize, wanted: usize) -> Result<(), ApiError> {
        let limit = self.client_areas;
        if limit == 0 || wanted <= replaced || all - replaced + wanted <= limit {
            return Ok(());
        }
        Err(ApiError::Limit {
            what: "areas along routes for one client",
            limit: limit as u64,
            setting: "routes.areas_per_client",
        })
    }

    /// Takes the share of a subscription that a client had before the broker began, whatever the limits are now.
    pub(super) fn take_again(&self, client: &mut Client, wanted: Wanted) -> Taken {
        let Wanted { constraints, .. } = wanted;
        let documents = client.account(&self.budget).hold_anyway(Kind::Documents, wanted.bytes());
        let tenant = tenant::split(&client.name).0;
        Taken {
            constraints,
            subscription_quota: self.tenant_subscriptions.acquire_again(tenant, 1),
            constraints_quota: self.tenant_constraints.acquire_again(tenant, constraints),
            documents,
        }
    }
}

impl Wanted {
    fn bytes(&self) -> u64 {
        (SUBSCRIPTION_BYTES + self.bytes) as u64
    }
}

impl Taken {
    /// Goes on with what the one has that is replaced, and gives back what of that is not needed.
    pub(super) fn replace(&mut self, replaced: Self, wanted: Wanted) {
        self.subscription_quota.join(replaced.subscription_quota);
        self.constraints_quota.join(replaced.constraints_quota);
        self.constraints_quota.shrink(self.constraints);
        self.documents.join(replaced.documents);
        self.documents.shrink(wanted.bytes());
    }
}
