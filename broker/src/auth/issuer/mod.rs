//! The keys of an issuer: fetched over HTTPS, fetched again when they are no longer fresh or a token names one that is not among
//! them, and used on while the issuer is away.

mod fetch;
mod freshness;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::Uri;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::keys::{Keys, KeysError};
use crate::config::{Auth, AuthMode, https};
use crate::https_client::EXCHANGE_TIMEOUT;
use fetch::{FetchError, Fetcher};

/// Least time between two fetches because of keys that are not known: anybody can make a token that names one.
const UNKNOWN_KEY_INTERVAL: Duration = Duration::from_secs(30);
/// Time after which a first fetch that failed is tried again; each further time takes twice as long.
const RETRY_LEAST: Duration = Duration::from_secs(1);
/// The most that it takes.
const RETRY_MOST: Duration = Duration::from_secs(60);

/// An issuer and its keys.
pub(super) struct Issuer {
    whereabouts: Whereabouts,
    fetcher: Fetcher,
    state: watch::Sender<State>,
    /// A std mutex: held for a look.
    asked: Mutex<Asked>,
    /// A fetch before its time is wanted.
    wanted: Notify,
}

enum Whereabouts {
    /// The address of the keys.
    Keys(Uri),
    /// The issuer, letter by letter, and the address of the document that says where its keys are.
    Issuer { name: String, document: Uri },
}

/// How the keys are.
#[derive(Clone, Default)]
pub(super) struct State {
    /// The last that could be used.
    pub(super) keys: Option<Arc<Keys>>,
    /// When those were fetched.
    pub(super) fetched: Option<Instant>,
    /// Whether the last fetch failed.
    pub(super) is_away: bool,
    /// Fetches that failed.
    pub(super) failures: u64,
    /// Fetches that began.
    begun: u64,
    /// Fetches that are over.
    over: u64,
}

/// The last fetch because of a key that was not known.
#[derive(Default)]
struct Asked {
    at: Option<Instant>,
    /// How many fetches are over when it is.
    goal: u64,
}

/// What the log was told last.
#[derive(Default)]
struct Told {
    text: Vec<u8>,
    failure: Option<String>,
    failures_in_a_row: u32,
}

/// What an issuer says of itself.
#[derive(serde::Deserialize)]
struct Document {
    issuer: String,
    jwks_uri: String,
}

/// Why there are no newer keys, and of which address that is said.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", shown(.uri))]
struct Failure {
    uri: Uri,
    why: Why,
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the document {0}")]
    Keys(#[from] KeysError),
    #[error("the document is not that of an issuer, a JSON object with texts \"issuer\" and \"jwks_uri\"")]
    NotIssuer,
    #[error(
        "the document is of the issuer {found:?}, and auth.issuer is {expected:?}: they have to be equal letter by letter"
    )]
    OtherIssuer { found: String, expected: String },
    #[error("its jwks_uri is not an https address")]
    NotHttps,
}

/// An address for people: without its query, which may have a secret.
fn shown(uri: &Uri) -> String {
    format!("https://{}{}", uri.authority().map_or("", |authority| authority.as_str()), uri.path())
}

impl Issuer {
    /// Makes it as the settings say, if keys are published somewhere. Blocks, and fetches nothing yet.
    ///
    /// # Errors
    /// Certificates to know the issuer by that cannot be had.
    pub(super) fn of(settings: &Auth) -> anyhow::Result<Option<Self>> {
        let whereabouts = if settings.mode == AuthMode::Oidc {
            let name = settings.issuer.clone();
            https::discovery(&name).map(|document| Whereabouts::Issuer { name, document })
        } else {
            https::parse(&settings.jwks).map(Whereabouts::Keys)
        };
        let Some(whereabouts) = whereabouts else { return Ok(None) };
        let fetcher = Fetcher::new(settings)?;
        let state = watch::Sender::new(State::default());
        Ok(Some(Self { whereabouts, fetcher, state, asked: Mutex::default(), wanted: Notify::new() }))
    }

    /// The state now.
    pub(super) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Fetches the keys again and again, until the broker ends.
    pub(super) async fn follow(&self, ended: &CancellationToken) {
        let mut told = Told::default();
        while let Some(rest) = ended.run_until_cancelled(self.renew(&mut told)).await {
            let wait = tokio::time::timeout(rest, self.wanted.notified());
            if ended.run_until_cancelled(wait).await.is_none() {
                return;
            }
        }
    }

    /// Waits for a fetch that begins now or later, if the last one for this reason was long enough ago: the keys after it may
    /// have one that those of before did not.
    pub(super) async fn ask_again(&self) {
        let mut changes = self.state.subscribe();
        let goal = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let (begun, over) = {
                let state = changes.borrow();
                (state.begun, state.over)
            };
            if asked.goal <= over {
                if asked.at.is_some_and(|at| at.elapsed() < UNKNOWN_KEY_INTERVAL) {
                    return;
                }
                *asked = Asked { at: Some(Instant::now()), goal: begun + 1 };
                self.wanted.notify_one();
            }
            asked.goal
        };
        // Nobody is held for longer by an issuer that does not answer.
        let over = changes.wait_for(|state| state.over >= goal);
        let _ = tokio::time::timeout(EXCHANGE_TIMEOUT, over).await;
    }

    /// Fetches the keys once. Returns the time until that is due again. The log says what has come of it once it counts.
    async fn renew(&self, told: &mut Told) -> Duration {
        self.state.send_modify(|state| state.begun += 1);
        match self.fetch().await {
            Ok((keys, text, lifetime)) => {
                let keys = Arc::new(keys);
                self.state.send_modify(|state| {
                    state.keys = Some(Arc::clone(&keys));
                    state.fetched = Some(Instant::now());
                    state.is_away = false;
                    state.over += 1;
                });
                self.tell(&keys, text, told);
                lifetime
            }
            Err(failure) => {
                self.state.send_modify(|state| {
                    state.is_away = true;
                    state.failures += 1;
                    state.over += 1;
                });
                self.tell_failure(failure.to_string(), told);
                let doublings = told.failures_in_a_row.saturating_sub(1).min(16);
                (RETRY_LEAST * (1 << doublings)).min(RETRY_MOST)
            }
        }
    }

    async fn fetch(&self) -> Result<(Keys, Vec<u8>, Duration), Failure> {
        let uri = match &self.whereabouts {
            Whereabouts::Keys(uri) => uri.clone(),
            Whereabouts::Issuer { name, document } => {
                let found = self.discover(name, document).await;
                found.map_err(|why| Failure { uri: document.clone(), why })?
            }
        };
        let fetched = async {
            let fetched = self.fetcher.fetch(&uri).await?;
            Ok((Keys::of_issuer(&fetched.body)?, fetched.body, fetched.lifetime))
        };
        fetched.await.map_err(|why| Failure { uri, why })
    }

    /// Finds out where the issuer has its keys.
    async fn discover(&self, name: &str, document: &Uri) -> Result<Uri, Why> {
        let fetched = self.fetcher.fetch(document).await?;
        let Document { issuer, jwks_uri } =
            serde_json::from_slice(&fetched.body).map_err(|_| Why::NotIssuer)?;
        if issuer != name {
            let found = issuer.chars().take(200).collect();
            return Err(Why::OtherIssuer { found, expected: name.to_owned() });
        }
        https::parse(&jwks_uri).ok_or(Why::NotHttps)
    }

    /// Tells in the log of keys that are others than before, and that the issuer is back.
    fn tell(&self, keys: &Keys, text: Vec<u8>, told: &mut Told) {
        let origin = self.shown();
        if told.text != text {
            tracing::info!(keys = keys.count(), "tokens are checked with the keys of {origin}");
            keys.unused_told().for_each(|unused| tracing::info!("{origin}: a key is not used: {unused}"));
            told.text = text;
        }
        if told.failure.take().is_some() {
            tracing::info!("the keys of {origin} can be fetched again");
        }
        told.failures_in_a_row = 0;
    }

    /// Tells in the log what is wrong, once for each thing.
    fn tell_failure(&self, failure: String, told: &mut Told) {
        told.failures_in_a_row = told.failures_in_a_row.saturating_add(1);
        if told.failure.as_ref() == Some(&failure) {
            return;
        }
        let origin = self.shown();
        if self.state.borrow().keys.is_some() {
            tracing::error!("{failure}; tokens are checked with the keys that {origin} had before");
        } else {
            tracing::error!(
                "{failure}; there is no key of {origin} to check tokens with, and the broker is not ready until there is"
            );
        }
        told.failure = Some(failure);
    }

    fn shown(&self) -> String {
        match &self.whereabouts {
            Whereabouts::Keys(uri) => shown(uri),
            Whereabouts::Issuer { name, .. } => name.clone(),
        }
    }
}
