//! Allotments of tenants: as they are set, or as they are by default.

use super::{Config, Quotas};

/// Value of a quota in the settings that stands for its default.
const BY_DEFAULT: i64 = -1;

/// Subscriptions of a tenant, by default.
const SUBSCRIPTIONS: u64 = 1_000_000;

/// Constraints of a tenant, by default: one to three gigabytes.
const CONSTRAINTS: u64 = 4_000_000;

/// Milliseconds per second of each engine for a tenant, by default: half of it.
const ENGINE_MS_PER_SECOND: u64 = 500;

/// How much a tenant may have of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allotment {
    /// 0: any number.
    limit: u64,
    /// Whether it is for tenants alone that have a name. Where tokens name no tenants, all clients are of the one without, and the limits
    /// hold for it.
    is_for_named: bool,
}

/// The allotments of all quotas.
pub(crate) struct Allotments {
    pub(crate) clients: Allotment,
    pub(crate) subscriptions: Allotment,
    pub(crate) constraints: Allotment,
    pub(crate) live_events: Allotment,
    pub(crate) live_bytes: Allotment,
    pub(crate) page_bytes: Allotment,
    pub(crate) connections: Allotment,
    pub(crate) push_messages: Allotment,
    pub(crate) engine_ms_per_second: Allotment,
}

impl Allotment {
    /// Makes an allotment of `limit` for each tenant; 0: any number.
    pub(crate) const fn of(limit: u64) -> Self {
        Self { limit, is_for_named: false }
    }

    /// How much a tenant may have; 0: any number.
    pub(crate) fn limit(&self, tenant: &str) -> u64 {
        if self.is_for_named && tenant.is_empty() { 0 } else { self.limit }
    }
}

impl Quotas {
    pub(super) fn faults(&self) -> impl Iterator<Item = String> {
        let quotas = [
            ("quotas.tenant_clients", self.tenant_clients),
            ("quotas.tenant_subscriptions", self.tenant_subscriptions),
            ("quotas.tenant_constraints", self.tenant_constraints),
            ("quotas.tenant_live_events", self.tenant_live_events),
            ("quotas.tenant_live_bytes", self.tenant_live_bytes),
            ("quotas.tenant_connections", self.tenant_connections),
            ("quotas.tenant_push_messages", self.tenant_push_messages),
            ("quotas.tenant_engine_ms_per_second", self.tenant_engine_ms_per_second),
        ];
        let negative = quotas.into_iter().filter(|(_, quota)| *quota < BY_DEFAULT);
        negative.map(|(key, quota)| {
            format!(
                "{key} {quota} is neither a number of things, nor 0 for any number, nor -1 for the default"
            )
        })
    }
}

impl Config {
    /// The allotments of each tenant.
    pub(crate) fn allotments(&self) -> Allotments {
        let of = |set: i64, by_default: u64| match u64::try_from(set) {
            Ok(limit) => Allotment::of(limit),
            Err(_) if self.wants_tokens() => Allotment { limit: by_default, is_for_named: true },
            Err(_) => Allotment::of(0),
        };
        let (limits, quotas) = (&self.limits, &self.quotas);
        Allotments {
            clients: of(quotas.tenant_clients, limits.clients.div_ceil(2)),
            subscriptions: of(quotas.tenant_subscriptions, SUBSCRIPTIONS),
            constraints: of(quotas.tenant_constraints, CONSTRAINTS),
            live_events: of(quotas.tenant_live_events, limits.live_events.div_ceil(2)),
            live_bytes: of(quotas.tenant_live_bytes, limits.live_bytes.div_ceil(2)),
            page_bytes: of(BY_DEFAULT, limits.page_bytes.div_ceil(2)),
            connections: of(quotas.tenant_connections, (limits.connections as u64).div_ceil(2)),
            push_messages: of(quotas.tenant_push_messages, (self.push.queue as u64).div_ceil(2)),
            engine_ms_per_second: of(
                quotas.tenant_engine_ms_per_second,
                ENGINE_MS_PER_SECOND * self.shards_count() as u64,
            ),
        }
    }
}
