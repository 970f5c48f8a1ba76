//! Push subscriptions: where clients are woken while no connection reads.

use reqwest::Method;

use crate::{
    Broker, Error,
    broker::read,
    http::{Body, client_path},
};

impl Broker {
    /// The key that browsers subscribe to push messages with (`applicationServerKey`), in base64url.
    ///
    /// # Errors
    /// [`Error::Problem`] with `no-push` where the broker sends none, [`Error::Connection`], and [`Error::Timeout`].
    pub async fn push_key(&self) -> Result<String, Error> {
        self.get("/v1/push").await.map(|wire::PushKey { public_key }| public_key)
    }

    /// Makes or replaces the push subscription of a client.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn put_push(
        &self,
        client: &str,
        subscription: &wire::PushSubscription,
    ) -> Result<wire::PushState, Error> {
        let body = Body::json(subscription)?;
        read(&self.call(Method::PUT, &push_path(client), Some(body)).await?)
    }

    /// The push subscription of a client, without its address.
    ///
    /// # Errors
    /// [`Error::Problem`] with `not-found` where there is none, [`Error::Connection`], and [`Error::Timeout`].
    pub async fn push(&self, client: &str) -> Result<wire::PushState, Error> {
        self.get(&push_path(client)).await
    }

    /// Ends the push subscription of a client, if it has one.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Connection`], and [`Error::Timeout`].
    pub async fn delete_push(&self, client: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &push_path(client), None).await.map(drop)
    }
}

fn push_path(client: &str) -> String {
    format!("{}/push", client_path(client))
}
