//! One document of an issuer.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::ACCEPT;
use axum::http::{Request, StatusCode, Uri};

use super::freshness;
use crate::config;
use crate::https_client::{HttpsClient, HttpsError, Trust};

/// The most bytes of a document. Those of issuers have some thousand.
const BODY_BYTES_MAX: usize = 1 << 18;

/// Fetches documents.
pub(super) struct Fetcher(HttpsClient);

/// A document, and for how long it is fresh.
pub(super) struct Fetched {
    pub(super) body: Vec<u8>,
    pub(super) lifetime: Duration,
}

/// Why a document cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// There is no answer.
    #[error(transparent)]
    Https(#[from] HttpsError),
    /// It is somewhere else, where nobody looks.
    #[error("the answer is {0}, a redirect, which is not followed")]
    Redirect(StatusCode),
    /// There is none.
    #[error("the answer is {0}")]
    Status(StatusCode),
}

impl Fetcher {
    /// Reads whom to trust. Blocks.
    ///
    /// # Errors
    /// A file of certificates that cannot be read or has none, and a machine that trusts nobody.
    pub(super) fn new(settings: &config::Auth) -> anyhow::Result<Self> {
        let trust = Trust {
            ca: &settings.ca,
            ca_setting: "auth.ca",
            is_private_allowed: settings.private_addresses,
            private_setting: "auth.private_addresses",
        };
        HttpsClient::new(trust).map(Self)
    }

    /// Fetches the document at an address, which is one of HTTPS.
    pub(super) async fn fetch(&self, uri: &Uri) -> Result<Fetched, FetchError> {
        let request = Request::get("/").header(ACCEPT, "application/json").body(Body::empty());
        let request = request.map_err(|error| HttpsError::Broken(error.to_string()))?;
        let answer = self.0.send(uri, request, BODY_BYTES_MAX).await?;
        match answer.status() {
            StatusCode::OK => {
                let lifetime = freshness::lifetime(answer.headers());
                Ok(Fetched { body: answer.into_body(), lifetime })
            }
            status if status.is_redirection() => Err(FetchError::Redirect(status)),
            status => Err(FetchError::Status(status)),
        }
    }
}
