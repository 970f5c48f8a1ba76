//! The permit of a connection, which its holder can renew.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use tokio::sync::watch;

use super::{Permit, Scope, Scopes};
use crate::ingest::Behalf;
use crate::model::error::Refusal;

/// A permit that counts for as long as a connection lasts, or ends before, or is renewed.
pub(crate) struct Renewable {
    /// The permit with which the connection began. Its holder and its confinement stay the same.
    first: Arc<Permit>,
    /// The scopes now.
    scopes: AtomicU8,
    /// The end now, of one that ends.
    expires: Option<watch::Sender<Instant>>,
}

impl Renewable {
    pub(crate) fn new(permit: Arc<Permit>) -> Self {
        let scopes = AtomicU8::new(permit.scopes.0);
        let expires = permit.expires.map(watch::Sender::new);
        Self { first: permit, scopes, expires }
    }

    /// The behalf of the permit, as [`Permit::behalf`] tells it.
    pub(crate) fn behalf(&self) -> Behalf<'_> {
        self.first.behalf()
    }

    /// The permit as the connection began.
    pub(crate) fn first(&self) -> &Arc<Permit> {
        &self.first
    }

    /// The scopes as they are now.
    pub(crate) fn scopes(&self) -> Scopes {
        Scopes(self.scopes.load(Ordering::Relaxed))
    }

    /// Refuses a holder that lacks a scope.
    pub(crate) fn require(&self, scope: Scope) -> Result<(), Refusal> {
        self.scopes().require(scope)
    }

    /// Goes on by another permit, which has to be the same one's and let it be here.
    pub(crate) fn renew(&self, permit: &Permit, scope: Scope) -> Result<(), Refusal> {
        if (&permit.tenant, &permit.client) != (&self.first.tenant, &self.first.client) {
            let detail = "this token is not of whom the connection was opened for".to_owned();
            return Err(Refusal::Forbidden { detail, scope: None });
        }
        if permit.confinement != self.first.confinement {
            let detail =
                "this token is confined otherwise than the connection (claim nearcast): open another one";
            return Err(Refusal::Forbidden { detail: detail.to_owned(), scope: None });
        }
        permit.scopes.require(scope)?;
        if let (Some(now), Some(expires)) = (&self.expires, permit.expires) {
            self.scopes.store(permit.scopes.0, Ordering::Relaxed);
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

    fn permit(client: &str, scope: Scope, lasts: Duration) -> Permit {
        Permit {
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
        let renewable = Renewable::new(Arc::new(permit("ann", Scope::Subscribe, late)));
        let mut ended = std::pin::pin!(renewable.ended());
        assert_eq!(ended.as_mut().now_or_never(), None);
        let other = renewable.renew(&permit("bob", Scope::Subscribe, soon), Scope::Subscribe);
        assert!(matches!(other, Err(Refusal::Forbidden { scope: None, .. })));
        let lacking = renewable.renew(&permit("ann", Scope::Publish, soon), Scope::Subscribe);
        assert!(matches!(lacking, Err(Refusal::Forbidden { scope: Some("subscribe"), .. })));
        assert!(renewable.require(Scope::Publish).is_err());
        // Earlier, too.
        renewable.renew(&permit("ann", Scope::Admin, soon), Scope::Subscribe).unwrap();
        assert!(renewable.require(Scope::Publish).is_ok());
        ended.await;
        assert_eq!(Renewable::new(Arc::new(Permit::of_everything())).ended().now_or_never(), None);
    }
}
