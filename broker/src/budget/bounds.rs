//! How much each account may hold, by the settings.

use super::Kind;
use crate::config::{Allotment, Config};
use crate::model::error::ApiError;

/// The level of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The account of all together.
    Broker,
    Tenant,
    Client,
    Connection,
}

/// The bounds of every level. What has none here is bounded by what holds it, which loses something rather than to be refused.
#[derive(Default)]
pub(super) struct Bounds([[Option<Bound>; Kind::COUNT]; 4]);

/// The most that an account may hold of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) allotment: Allotment,
    pub(super) what: &'static str,
    pub(super) setting: &'static str,
}

impl Bounds {
    pub(super) fn of(config: &Config) -> Self {
        let documents = Bound {
            allotment: Allotment::of(config.limits.subscription_bytes_per_client as u64),
            what: "bytes of subscriptions for one client",
            setting: "limits.subscription_bytes_per_client",
        };
        let live = Bound {
            allotment: Allotment::of(config.limits.live_bytes),
            what: "bytes of live events",
            setting: "limits.live_bytes",
        };
        let live_of_tenant = Bound {
            allotment: config.allotments().live_bytes,
            what: "bytes of live events of one tenant",
            setting: "quotas.tenant_live_bytes",
        };
        let pages = Bound {
            allotment: Allotment::of(config.limits.page_bytes),
            what: "bytes of pages of live events",
            setting: "limits.page_bytes",
        };
        let pages_of_tenant = Bound {
            allotment: config.allotments().page_bytes,
            what: "bytes of pages of live events for one tenant",
            ..pages
        };
        let pages_of_client = Bound {
            allotment: Allotment::of(config.limits.page_bytes_per_client),
            what: "bytes of pages of live events for one client",
            setting: "limits.page_bytes_per_client",
        };
        let routes_of_client = Bound {
            allotment: Allotment::of(config.routes.client_bytes),
            what: "bytes of areas along routes for one client",
            setting: "routes.client_bytes",
        };
        let routes_of_tenant = Bound {
            allotment: Allotment::of(config.routes.tenant_bytes),
            what: "bytes of areas along routes for one tenant",
            setting: "routes.tenant_bytes",
        };
        Self::default()
            .with(Level::Client, Kind::Documents, documents)
            .with(Level::Client, Kind::Routes, routes_of_client)
            .with(Level::Tenant, Kind::Routes, routes_of_tenant)
            .with(Level::Broker, Kind::LiveEvents, live)
            .with(Level::Tenant, Kind::LiveEvents, live_of_tenant)
            .with(Level::Broker, Kind::Pages, pages)
            .with(Level::Tenant, Kind::Pages, pages_of_tenant)
            .with(Level::Client, Kind::Pages, pages_of_client)
    }

    pub(super) fn with(mut self, level: Level, kind: Kind, bound: Bound) -> Self {
        self.0[level as usize][kind as usize] = Some(bound);
        self
    }

    pub(super) fn at(&self, level: Level, kind: Kind) -> Option<&Bound> {
        self.0[level as usize][kind as usize].as_ref()
    }
}

impl Bound {
    /// How many bytes the account of a name may hold; `None` where any number.
    pub(super) fn bytes(&self, name: &str) -> Option<u64> {
        Some(self.allotment.limit(name)).filter(|limit| *limit > 0)
    }

    pub(super) fn refusal(&self, limit: u64) -> ApiError {
        ApiError::Limit { what: self.what, limit, setting: self.setting }
    }
}
