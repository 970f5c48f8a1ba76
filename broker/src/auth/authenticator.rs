//! From a token to what it permits.

use std::hash::BuildHasher as _;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::keys::{self, Keys};
use super::{Principal, Scopes, Token};
use crate::config::{AuthMode, Config};
use crate::ingest::{Confinement, Zones};
use crate::model::error::ApiError;

/// The most bytes of a token. Those that are sent in a header have a few hundred.
const TOKEN_BYTES_MAX: usize = 16_384;
/// The most bytes of a tenant's name.
const TENANT_BYTES_MAX: usize = 128;
/// How often the file of keys is looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// A token that lasts longer ends after so long, ten years: a time that clocks know.
const LIFE_MAX_S: f64 = 315_360_000.0;

/// Lets requests in.
pub struct Authenticator {
    doors: Doors,
    zones: Arc<Zones>,
}

enum Doors {
    /// Everybody, to everything.
    Open(Arc<Principal>),
    /// Holders of tokens, and the principals of their tokens.
    Tokens(Box<Checker>),
}

/// Checks tokens: against keys, issuer, audience and time.
struct Checker {
    path: PathBuf,
    /// The file as it was read last.
    text: Vec<u8>,
    /// Held for a look or an exchange.
    keys: RwLock<Arc<Keys>>,
    leeway_s: u64,
    issuer: Option<String>,
    audience: Option<String>,
    zones: Arc<Zones>,
    client_name_bytes: usize,
    hash: foldhash::quality::RandomState,
}

impl Authenticator {
    /// Makes it as the settings say. Reads the files of keys and of zones, and blocks for that.
    ///
    /// # Errors
    /// When there is no key that can be used, and when there is something wrong with the zones.
    pub fn open(config: &Config) -> anyhow::Result<Self> {
        let settings = &config.auth;
        if settings.mode == AuthMode::None {
            let doors = Doors::Open(Arc::new(Principal::of_everything()));
            return Ok(Self { doors, zones: Arc::default() });
        }
        let zones = Arc::new(Zones::read(config)?);
        let path = PathBuf::from(&settings.jwks);
        let context = || format!("the keys in {} (auth.jwks)", settings.jwks);
        let text = keys::read_file(&path).map_err(keys::KeysError::from).with_context(context)?;
        let keys = Keys::parse(&text).with_context(context)?;
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let checker = Checker {
            path,
            text,
            keys: RwLock::new(Arc::new(keys)),
            leeway_s: settings.leeway_s,
            issuer: some(&settings.issuer),
            audience: some(&settings.audience),
            zones: Arc::clone(&zones),
            client_name_bytes: config.limits.client_name_bytes,
            hash: Default::default(),
        };
        checker.tell();
        if !config.on_loopback() && config.tls.cert.is_empty() {
            tracing::warn!(
                "tokens and everything else can be read on their way: the broker listens beyond loopback without TLS, \
                 which is right only behind a proxy that speaks it"
            );
        }
        Ok(Self { doors: Doors::Tokens(Box::new(checker)), zones })
    }

    /// Returns the principal of a request with this token; `None` stands for a request without one, and without anything that
    /// could be one.
    pub(crate) fn authenticate(&self, token: Option<Token<'_>>) -> Result<Arc<Principal>, ApiError> {
        match (&self.doors, token) {
            (Doors::Open(principal), _) => Ok(Arc::clone(principal)),
            (Doors::Tokens(checker), Some(token)) => checker.check(&token.0).map(Arc::new),
            (Doors::Tokens(_), None) => Err(ApiError::Unauthenticated {
                detail: "this needs a token: Authorization: Bearer and a JSON Web Token".to_owned(),
                has_token: false,
            }),
        }
    }

    /// Whether requests need tokens, for which they are then searched.
    pub(crate) fn wants_tokens(&self) -> bool {
        matches!(self.doors, Doors::Tokens(_))
    }

    /// The zones that there are.
    pub(crate) fn zones(&self) -> &Arc<Zones> {
        &self.zones
    }

    /// Reads the keys again whenever their file has changed, until the broker ends.
    pub(crate) async fn watch(&self, ended: &CancellationToken) {
        let Doors::Tokens(checker) = &self.doors else { return };
        let mut last = Ok(checker.text.clone());
        while ended.run_until_cancelled(tokio::time::sleep(WATCH_INTERVAL)).await.is_some() {
            let path = checker.path.clone();
            let read = tokio::task::spawn_blocking(move || keys::read_file(&path)).await;
            let Ok(read) = read else { continue };
            let read = read.map_err(|error| error.to_string());
            if read != last {
                checker.take(&read);
                last = read;
            }
        }
    }
}

impl Checker {
    /// Goes on with the keys of a text, or with those that there are.
    fn take(&self, read: &Result<Vec<u8>, String>) {
        let parsed = match read {
            Ok(text) => Keys::parse(text).map_err(|error| error.to_string()),
            Err(error) => Err(format!("cannot be read: {error}")),
        };
        match parsed {
            Ok(keys) => {
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
                self.tell();
            }
            Err(error) => {
                tracing::error!(
                    "{} {error}; tokens are checked with the keys of before",
                    self.path.display()
                );
            }
        }
    }

    fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells in the log what there is to check tokens with.
    fn tell(&self) {
        let (keys, path) = (self.keys(), self.path.display());
        tracing::info!(keys = keys.count(), "tokens are checked with the keys in {path}");
        for unused in &keys.unused {
            tracing::warn!("{path}: a key is not used: {unused}");
        }
        if keys.have_secrets() && keys::is_open_to_others(&self.path) {
            tracing::warn!(
                "{path} has secrets, and everybody on this machine can read it: chmod 640 or less"
            );
        }
    }

    fn check(&self, token: &str) -> Result<Principal, ApiError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(invalid(format!("a token has at most {TOKEN_BYTES_MAX} bytes")));
        }
        let header = decode_header(token).map_err(refused)?;
        if header.crit.is_some() {
            return Err(invalid("the token's header has crit, of which nothing is understood here"));
        }
        let keys = self.keys();
        let key = keys.find(&header).ok_or_else(|| {
            invalid("no key, or more than one, fits the token's header (alg, kid): of which one it is has to be clear")
        })?;
        let mut validation = Validation::new(key.algorithm);
        validation.leeway = self.leeway_s;
        validation.validate_nbf = true;
        validation.required_spec_claims.insert("exp".to_owned());
        if let Some(issuer) = &self.issuer {
            validation.set_issuer(&[issuer]);
            validation.required_spec_claims.insert("iss".to_owned());
        }
        if let Some(audience) = &self.audience {
            validation.set_audience(&[audience]);
            validation.required_spec_claims.insert("aud".to_owned());
        }
        let claims =
            decode::<Map<String, Value>>(token, &key.verifying, &validation).map_err(refused)?.claims;
        Ok(Principal { token: self.hash.hash_one(token), ..self.principal(&claims)? })
    }

    /// Reads the principal from the claims of a token, and refuses claims that do not count.
    fn principal(&self, claims: &Map<String, Value>) -> Result<Principal, ApiError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a day at most")]
        let leeway_s = self.leeway_s as f64;
        let time = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(value) => {
                value.as_f64().map(Some).ok_or_else(|| invalid(format!("the claim {name} must be a number")))
            }
        };
        if time("iat")?.is_some_and(|issued| issued > now + leeway_s) {
            return Err(invalid("the token was issued in the future (claim iat)"));
        }
        let lasts_s = time("exp")?.unwrap_or(0.0) + leeway_s - now;
        let expires = Instant::now() + Duration::from_secs_f64(lasts_s.clamp(0.0, LIFE_MAX_S));
        let client = text(claims, "sub")?;
        if let Some(name) = client
            && (name.is_empty() || name.len() > self.client_name_bytes || name.chars().any(char::is_control))
        {
            let limit = self.client_name_bytes;
            return Err(invalid(format!(
                "the claim sub names a client: 1 to {limit} bytes (limits.client_name_bytes) without control characters"
            )));
        }
        let tenant = text(claims, "tenant")?.unwrap_or_default();
        if tenant.len() > TENANT_BYTES_MAX || tenant.chars().any(char::is_control) {
            return Err(invalid(format!(
                "the claim tenant is a name of at most {TENANT_BYTES_MAX} bytes without control characters"
            )));
        }
        let confinement = match claims.get("nearcast") {
            Some(claim) => Confinement::read(claim, &self.zones).map_err(invalid)?,
            None => None,
        };
        let scopes = Scopes::read(text(claims, "scope")?.unwrap_or_default());
        Ok(Principal {
            tenant: Some(tenant.into()),
            client: client.map(Arc::from),
            scopes,
            confinement: confinement.map(Arc::new),
            expires: Some(expires),
            token: 0,
        })
    }
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, ApiError> {
    let not_text = || invalid(format!("the claim {name} must be a text"));
    claims.get(name).map(|value| value.as_str().ok_or_else(not_text)).transpose()
}

fn invalid(detail: impl Into<String>) -> ApiError {
    ApiError::Unauthenticated { detail: detail.into(), has_token: true }
}

/// The refusal of a token that does not count.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "of whatever else is wrong there is nothing to tell but that"
)]
fn refused(error: Error) -> ApiError {
    match error.into_kind() {
        ErrorKind::ExpiredSignature => ApiError::TokenExpired,
        ErrorKind::ImmatureSignature => invalid("the token is not valid yet (claim nbf)"),
        ErrorKind::InvalidSignature => invalid("the token's signature is wrong"),
        ErrorKind::MissingRequiredClaim(claim) => {
            invalid(format!("the token lacks the claim {claim}, or it is malformed"))
        }
        ErrorKind::InvalidClaimFormat(claim) => invalid(format!("the claim {claim} is malformed")),
        ErrorKind::InvalidIssuer => invalid("the token's issuer (claim iss) is not auth.issuer"),
        ErrorKind::InvalidAudience => {
            invalid("the token is for somebody else: its claim aud is not auth.audience")
        }
        _ => invalid("this is not a JSON Web Token that is signed with HS256, RS256 or EdDSA"),
    }
}
