//! Permits of requests, and the scopes of tokens.

use std::ops::BitOr;
use std::sync::Arc;
use std::time::Instant;

use crate::ingest::{Behalf, Confinement};
use crate::model::error::ApiError;
use crate::model::tenant;

/// A kind of things that a token lets its holder do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Publish events, and end live ones.
    Publish = 1,
    /// Be a client: move, subscribe, read.
    Subscribe = 2,
    /// All that, in the name of any client, and see what became of events.
    Admin = 4,
    /// Publish alarms, for which the others wait.
    Alarm = 8,
}

impl Scope {
    /// All scopes.
    pub(crate) const ALL: [Self; 4] = [Self::Publish, Self::Subscribe, Self::Admin, Self::Alarm];

    /// Name of the scope, as the claim `scope` has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Subscribe => "subscribe",
            Self::Admin => "admin",
            Self::Alarm => "alarm",
        }
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scopes(pub(super) u8);

impl Scopes {
    /// Reads the claim `scope`: names with spaces between. Those of other services mean nothing here.
    pub(super) fn read(claim: &str) -> Self {
        let named = |scope: &Scope| claim.split(' ').any(|name| name == scope.name());
        Scope::ALL.into_iter().filter(named).fold(Self::default(), BitOr::bitor)
    }

    /// Whether it lets its holder do what a scope stands for.
    pub(crate) const fn allows(self, scope: Scope) -> bool {
        self.0 & (scope as u8 | Scope::Admin as u8) != 0
    }

    /// Refuses a holder that lacks a scope.
    pub(crate) fn require(self, scope: Scope) -> Result<(), ApiError> {
        if self.allows(scope) {
            return Ok(());
        }
        let name = scope.name();
        Err(ApiError::Forbidden {
            detail: format!("this needs a token with the scope {name}"),
            scope: Some(name),
        })
    }
}

impl BitOr for Scopes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOr<Scope> for Scopes {
    type Output = Self;

    fn bitor(self, scope: Scope) -> Self {
        Self(self.0 | scope as u8)
    }
}

/// The principal of a request: the rights that it has, whichever client sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Principal {
    /// Tenant whose clients and events the principal may reach, by name: empty for the tenant without a name, `None` where nobody
    /// has to say who they are.
    pub(crate) tenant: Option<Arc<str>>,
    /// Its client. A principal that only publishes need not have one.
    pub(crate) client: Option<Arc<str>>,
    pub(crate) scopes: Scopes,
    /// To which events it is confined, if it is.
    pub(crate) confinement: Option<Arc<Confinement>>,
    /// When it ends, if it does.
    pub(crate) expires: Option<Instant>,
    /// A hash of the token, which tells those apart that are nobody's.
    pub(super) token: u64,
}

impl Principal {
    /// Returns a principal for everything, without an end.
    pub(crate) fn of_everything() -> Self {
        let scopes = Scopes::default() | Scope::Admin;
        Self { tenant: None, client: None, scopes, confinement: None, expires: None, token: 0 }
    }

    /// On whose behalf its documents are.
    pub(crate) fn behalf(&self) -> Behalf<'_> {
        Behalf { tenant: self.tenant.as_deref(), confinement: self.confinement.as_ref() }
    }

    /// A name of the tenant's as the broker knows it.
    pub(crate) fn inside(&self, name: &str) -> Arc<str> {
        tenant::inside(self.tenant.as_deref().unwrap_or_default(), name).into()
    }

    /// Whether it asks about itself when it asks about a client of its tenant. Where nobody has to say who they are, anybody may be it.
    pub(crate) fn is_client(&self, name: &str) -> bool {
        self.tenant.is_none() || self.client.as_deref() == Some(name)
    }

    /// The payer of a question: the client of the token, by its name inside, or, without one, the token. No client has such a name.
    pub(crate) fn payer(&self) -> Arc<str> {
        match &self.client {
            Some(client) => self.inside(client),
            None => self.inside(&format!("\u{2}{:016x}", self.token)),
        }
    }

    /// Refuses what is about all tenants and events together to who is of one, or confined.
    pub(crate) fn check_operator(&self) -> Result<(), ApiError> {
        if self.tenant.as_deref().unwrap_or_default().is_empty() && self.confinement.is_none() {
            return Ok(());
        }
        let detail =
            "this is about everything in the broker, and needs a token without the claims tenant and nearcast"
                .to_owned();
        Err(ApiError::Forbidden { detail, scope: None })
    }

    /// Refuses to act for anybody else than whom it is of. What is refused is the same whether there is such a client or not.
    pub(crate) fn check_client(&self, name: &str) -> Result<(), ApiError> {
        if self.scopes.allows(Scope::Admin) || self.client.as_deref() == Some(name) {
            return Ok(());
        }
        let whose = match &self.client {
            Some(client) => format!("this token is client {client}'s (claim sub)"),
            None => "this token is no client's: it has no claim sub".to_owned(),
        };
        let detail = format!("{whose}; to act for another one needs the scope admin");
        Err(ApiError::Forbidden { detail, scope: Some(Scope::Admin.name()) })
    }
}

/// Refuses what comes when the principal that it began with has expired.
pub(crate) fn check_time(expires: Option<Instant>, now: Instant) -> Result<(), ApiError> {
    if expires.is_some_and(|expires| expires <= now) { Err(ApiError::TokenExpired) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_names_with_spaces_between() {
        let allowed = |claim: &str| Scope::ALL.map(|scope| Scopes::read(claim).allows(scope));
        assert_eq!(allowed(""), [false, false, false, false]);
        assert_eq!(allowed("openid publish profile"), [true, false, false, false]);
        assert_eq!(allowed("subscribe"), [false, true, false, false]);
        assert_eq!(allowed("subscribe publish"), [true, true, false, false]);
        assert_eq!(allowed("alarm publish"), [true, false, false, true]);
        assert_eq!(allowed("admin"), [true, true, true, true]);
        for claim in ["Publish", "publisher", "publish,subscribe", "pub lish", "publish\tsubscribe"] {
            assert_eq!(Scopes::read(claim), Scopes::default(), "{claim}");
        }
    }

    #[test]
    fn questions_are_paid_for_by_the_client_or_by_the_token() {
        let of = |tenant: &str, client: Option<&str>, token| {
            let (tenant, client) = (Some(tenant.into()), client.map(Arc::from));
            Principal { tenant, client, token, ..Principal::of_everything() }.payer()
        };
        assert_eq!(of("", Some("ann"), 1), of("", Some("ann"), 2));
        assert_eq!(of("acme", None, 1), of("acme", None, 1));
        assert_ne!(of("acme", None, 1), of("acme", None, 2));
        assert_ne!(of("acme", None, 1), of("", None, 1));
        assert_eq!(tenant::split(&of("acme", None, 1)).0, "acme");
    }

    #[test]
    fn one_acts_for_oneself() {
        let of = |client: Option<&str>, claim| Principal {
            tenant: None,
            client: client.map(Arc::from),
            scopes: Scopes::read(claim),
            confinement: None,
            expires: None,
            token: 0,
        };
        assert!(of(Some("ann"), "subscribe").check_client("ann").is_ok());
        for (client, name) in [(Some("ann"), "bob"), (None, "bob"), (None, ""), (Some("ann"), "ANN")] {
            let refused = of(client, "publish subscribe").check_client(name);
            assert!(matches!(refused, Err(ApiError::Forbidden { .. })), "{client:?} {name}");
            assert!(of(client, "admin").check_client(name).is_ok());
        }
    }
}
