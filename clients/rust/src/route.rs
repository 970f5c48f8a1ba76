//! Routes through streets.

use reqwest::Method;

use crate::{Broker, Error, broker::read, http::Body};

impl Broker {
    /// The best way along the streets from one place to another.
    ///
    /// # Errors
    /// [`Error::Problem`] with `no-route`, with `no-streets` where the broker knows no streets, or with `late`,
    /// [`Error::Connection`], and [`Error::Timeout`].
    pub async fn route(&self, question: &wire::RouteQuestion) -> Result<wire::FoundRoute, Error> {
        let body = Body::json(question)?;
        read(&self.call(Method::POST, "/v1/routes", Some(body)).await?)
    }
}
