//! How much each account may hold, by the settings.

use super::Kind;
use crate::config::Config;
use crate::refusal::Refusal;

/// Whose account it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// That of all together.
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
    pub(super) bytes: u64,
    pub(super) what: &'static str,
    pub(super) setting: &'static str,
}

impl Bounds {
    pub(super) fn of(config: &Config) -> Self {
        let documents = Bound {
            bytes: config.limits.subscription_bytes_per_client as u64,
            what: "bytes of subscriptions for one client",
            setting: "limits.subscription_bytes_per_client",
        };
        Self::default().with(Level::Client, Kind::Documents, documents)
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
    pub(super) fn refusal(&self) -> Refusal {
        Refusal::Limit { what: self.what, limit: self.bytes, setting: self.setting }
    }
}
