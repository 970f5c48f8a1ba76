//! JSON Web Tokens: where they come from, and when they end.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures_util::future::BoxFuture;

use crate::{Error, chance::Chance, error};

type Provider = dyn Fn() -> BoxFuture<'static, Result<String, error::Cause>> + Send + Sync;

/// Source of a token.
#[derive(Clone, Default)]
pub(crate) enum Source {
    #[default]
    None,
    Fixed(String),
    Provider(Arc<Provider>),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

/// So long before its end a token counts as ended.
const MARGIN_S: f64 = 60.0;

/// The token of a session.
pub(crate) struct Tokens {
    source: Source,
    chance: Chance,
    /// The one in use. Locked for a copy, never across an `await`.
    held: Mutex<Option<String>>,
}

impl Tokens {
    pub(crate) fn new(source: Source, chance: Chance) -> Self {
        Self { source, chance, held: Mutex::default() }
    }

    /// Whether there is somebody to ask for another one.
    pub(crate) fn renewable(&self) -> bool {
        matches!(self.source, Source::Provider(_))
    }

    /// Asks for a token; a fixed one stays what it is.
    pub(crate) async fn fresh(&self) -> Result<Option<String>, Error> {
        let token = match &self.source {
            Source::None => None,
            Source::Fixed(token) => Some(token.clone()),
            Source::Provider(provider) => Some(provider().await.map_err(|source| Error::Connection {
                code: None,
                reason: "no token could be had".to_owned(),
                source: Some(source),
            })?),
        };
        self.held().clone_from(&token);
        Ok(token)
    }

    /// The token in use, or another where that is about to end.
    pub(crate) async fn current(&self) -> Result<Option<String>, Error> {
        let held = self.held().clone();
        match held {
            Some(held) if expiry_s(&held).is_none_or(|end_s| self.chance.unix_s() < end_s - MARGIN_S) => {
                Ok(Some(held))
            }
            _ => self.fresh().await,
        }
    }

    /// In what time the token in use is to be renewed: a minute before its end, or when half of a shorter rest is over.
    pub(crate) fn renewal(&self) -> Option<Duration> {
        let end_s = self.held().as_deref().filter(|_| self.renewable()).and_then(expiry_s)?;
        let rest_s = end_s - self.chance.unix_s();
        // One that has ended by this machine's clock may count at the broker's: then its close with 4401 is what renews.
        (rest_s > 0.0).then(|| Duration::from_secs_f64((rest_s - MARGIN_S).max(rest_s / 2.0).clamp(1.0, 1e9)))
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a JSON Web Token ends (claim `exp`), in seconds since 1970. Nothing is verified; `None` where it does not say.
fn expiry_s(token: &str) -> Option<f64> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice::<serde_json::Value>(&claims).ok()?["exp"].as_f64().filter(|exp| exp.is_finite())
}
