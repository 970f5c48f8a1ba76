//! The principal of a connection, which its client can renew.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use tokio::sync::watch;

use super::{Principal, Scope, Scopes};
use crate::ingest::Behalf;
use crate::model::error::ApiError;

/// The principal of a connection. It may expire before the connection ends, or be renewed.
pub(crate) struct Renewable {
    /// The principal with which the connection began. Its client and its confinement stay the same.
    first: Arc<Principal>,
    /// The scopes now.
    scopes: AtomicU8,
    /// The end now, of one that ends.
    expires: Option<watch::Sender<Instant>>,
}

impl Renewable {
    pub(crate) fn new(principal: Arc<Principal>) -> Self {
        let scopes = AtomicU8::new(principal.scopes.0);
        let expires = principal.expires.map(watch::Sender::new);
        Self { first: principal, scopes, expires }
    }

    /// The behalf of the principal, as in [`Principal::behalf`].
    pub(crate) fn behalf(&self) -> Behalf<'_> {
        self.first.behalf()
    }

    /// The principal with which the connection began.
    pub(crate) fn first(&self) -> &Arc<Principal> {
        &self.first
    }

    /// The scopes as they are now.
    pub(crate) fn scopes(&self) -> Scopes {
        Scopes(self.scopes.load(Ordering::Relaxed))
    }

    /// Refuses a holder that lacks a scope.
    pub(crate) fn require(&self, scope: Scope) -> Result<(), ApiError> {
        self.scopes().require(scope)
    }

    /// Goes on as another principal, which has to have the same client and the scope for this connection.
    pub(crate) fn renew(&self, principal: &Principal, scope: Scope) -> Result<(), ApiError> {
        if (&principal.tenant, &principal.client) != (&self.first.tenant, &self.first.client) {
            let detail = "this token is not of whom the connection was opened for".to_owned();
            return Err(ApiError::Forbidden { detail, scope: None });
        }
        if principal.confinement != self.first.confinement {
            let detail =
                "this token is confined otherwise than the connection (claim nearcast): open another one";
            return Err(ApiError::Forbidden { detail: detail.to_owned(), scope: None });
        }
        principal.scopes.require(scope)?;
        if let (Some(now), Some(expires)) = (&self.expires, principal.expires) {
            self.scopes.store(principal.scopes.0, Ordering::Relaxed);
            now.send_replace(expires);
        }
        Ok(())
    }

    /// Waits until it has ended; for good where it does not end.
    pub(crate) async fn ended(&self) {
        let Some(expires) = &self.expires else { return std::future::pending().await };
        let mut changes = expires.subscribe();
        loop {
            let expires = *changes.borrow_and_update();
            tokio::select! {
                () = tokio::time::sleep_until(expires.into()) => return,
                // The sender is this one's own.
                _ = changes.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use super::*;

    fn principal(client: &str, scope: Scope, lasts: Duration) -> Principal {
        Principal {
            tenant: None,
            client: Some(client.into()),
            scopes: Scopes::default() | scope,
            confinement: None,
            expires: Some(Instant::now() + lasts),
            token: 0,
        }
    }

    #[tokio::test]
    async fn it_ends_when_the_last_one_does() {
        let (soon, late) = (Duration::from_millis(20), Duration::from_secs(3_600));
        let renewable = Renewable::new(Arc::new(principal("ann", Scope::Subscribe, late)));
        let mut ended = std::pin::pin!(renewable.ended());
        assert_eq!(ended.as_mut().now_or_never(), None);
        let other = renewable.renew(&principal("bob", Scope::Subscribe, soon), Scope::Subscribe);
        assert!(matches!(other, Err(ApiError::Forbidden { scope: None, .. })));
        let lacking = renewable.renew(&principal("ann", Scope::Publish, soon), Scope::Subscribe);
        assert!(matches!(lacking, Err(ApiError::Forbidden { scope: Some("subscribe"), .. })));
        assert!(renewable.require(Scope::Publish).is_err());
        // Earlier, too.
        renewable.renew(&principal("ann", Scope::Admin, soon), Scope::Subscribe).unwrap();
        assert!(renewable.require(Scope::Publish).is_ok());
        ended.await;
        assert_eq!(Renewable::new(Arc::new(Principal::of_everything())).ended().now_or_never(), None);
    }
}
