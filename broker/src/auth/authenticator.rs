//! From a token to what it permits.

use std::hash::BuildHasher as _;
use std::ops::BitOr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::issuer::Issuer;
use super::key_file::KeyFile;
use super::keys::Keys;
use super::{Principal, Scopes, Token};
use crate::config::{Auth, AuthMode, Config};
use crate::ingest::{Confinement, Zones};
use crate::model::error::ApiError;
use crate::model::tenant;

/// The most bytes of a token. Those that are sent in a header have a few hundred.
const TOKEN_BYTES_MAX: usize = 16_384;
/// The most bytes of a tenant's name.
const TENANT_BYTES_MAX: usize = 128;
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
    source: Source,
    leeway_s: u64,
    issuer: Option<String>,
    audience: Option<String>,
    tenant_claim: String,
    zones: Arc<Zones>,
    client_name_bytes: usize,
    hash: foldhash::quality::RandomState,
}

/// Where the keys come from.
enum Source {
    File(KeyFile),
    Issuer(Box<Issuer>),
}

/// The keys that tokens are checked with, in figures.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeysReport {
    pub(crate) used: usize,
    /// Keys that were found and are of no use here.
    pub(crate) unused: usize,
    /// Time since an issuer was asked with success.
    pub(crate) age: Duration,
    /// Whether it was asked in vain since.
    pub(crate) is_issuer_away: bool,
    /// Times that newer keys could not be had.
    pub(crate) failures: u64,
}

impl Authenticator {
    /// Makes it as the settings say. Reads the files of keys and of zones, and blocks for that. Keys of an issuer are fetched by
    /// `watch`.
    ///
    /// # Errors
    /// When there is no key that can be used in a file, nothing to know an issuer by, and when there is something wrong with the zones.
    pub fn open(config: &Config) -> anyhow::Result<Self> {
        let settings = &config.auth;
        if settings.mode == AuthMode::None {
            let doors = Doors::Open(Arc::new(Principal::of_everything()));
            return Ok(Self { doors, zones: Arc::default() });
        }
        let zones = Arc::new(Zones::read(config)?);
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let checker = Checker {
            source: Source::open(settings)?,
            leeway_s: settings.leeway_s,
            issuer: some(&settings.issuer),
            audience: some(&settings.audience),
            tenant_claim: settings.tenant_claim.clone(),
            zones: Arc::clone(&zones),
            client_name_bytes: config.limits.client_name_bytes,
            hash: Default::default(),
        };
        if settings.mode == AuthMode::Oidc && settings.audience.is_empty() {
            tracing::warn!(
                "only tokens without an audience are accepted (auth.audience), and most issuers name one"
            );
        }
        if !config.on_loopback() && config.tls.cert.is_empty() {
            tracing::warn!(
                "tokens and everything else can be read on their way: the broker listens beyond loopback without TLS, \
                 which is right only behind a proxy that speaks it"
            );
        }
        Ok(Self { doors: Doors::Tokens(Box::new(checker)), zones })
    }

    /// Returns the principal of a request with this token; `None` stands for a request without one, and without anything that
    /// could be one. Waits for an issuer only where the token names a key that is not known yet.
    pub(crate) async fn authenticate(&self, token: Option<Token<'_>>) -> Result<Arc<Principal>, ApiError> {
        match (&self.doors, token) {
            (Doors::Open(principal), _) => Ok(Arc::clone(principal)),
            (Doors::Tokens(checker), Some(token)) => checker.check(&token.0).await.map(Arc::new),
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

    /// Follows the keys as they change, until the broker ends.
    pub(crate) async fn watch(&self, ended: &CancellationToken) {
        match &self.doors {
            Doors::Open(_) => {}
            Doors::Tokens(checker) => match &checker.source {
                Source::File(file) => file.follow(ended).await,
                Source::Issuer(issuer) => issuer.follow(ended).await,
            },
        }
    }

    /// Whether tokens are wanted and there is no key to check them with, so that nobody can be let in.
    pub(crate) fn lacks_keys(&self) -> bool {
        matches!(&self.doors, Doors::Tokens(checker) if checker.source.keys().is_none())
    }

    /// How the keys are.
    pub(crate) fn report(&self) -> KeysReport {
        match &self.doors {
            Doors::Open(_) => KeysReport::default(),
            Doors::Tokens(checker) => checker.source.report(),
        }
    }
}

impl Source {
    fn open(settings: &Auth) -> anyhow::Result<Self> {
        Ok(match Issuer::of(settings)? {
            Some(issuer) => Self::Issuer(Box::new(issuer)),
            None => Self::File(KeyFile::open(&settings.jwks)?),
        })
    }

    /// The keys now, if there are any yet.
    fn keys(&self) -> Option<Arc<Keys>> {
        match self {
            Self::File(file) => Some(file.keys()),
            Self::Issuer(issuer) => issuer.state().keys,
        }
    }

    /// The keys after a token named one that these lack, which an issuer may have made since.
    async fn keys_with(&self, id: &str) -> Option<Arc<Keys>> {
        let keys = self.keys();
        match self {
            Self::Issuer(issuer) if keys.as_ref().is_some_and(|keys| !keys.know(id)) => {
                issuer.ask_again().await;
                self.keys()
            }
            Self::File(_) | Self::Issuer(_) => keys,
        }
    }

    fn report(&self) -> KeysReport {
        let counts = |keys: &Keys| (keys.count(), keys.unused.len());
        match self {
            Self::File(file) => {
                let (used, unused) = counts(&file.keys());
                KeysReport { used, unused, failures: file.failures(), ..KeysReport::default() }
            }
            Self::Issuer(issuer) => {
                let state = issuer.state();
                let (used, unused) = state.keys.as_deref().map_or((0, 0), counts);
                let age = state.fetched.map_or(Duration::ZERO, |fetched| fetched.elapsed());
                KeysReport { used, unused, age, is_issuer_away: state.is_away, failures: state.failures }
            }
        }
    }
}

impl Checker {
    async fn check(&self, token: &str) -> Result<Principal, ApiError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(invalid(format!("a token has at most {TOKEN_BYTES_MAX} bytes")));
        }
        let header = decode_header(token).map_err(refused)?;
        if header.crit.is_some() {
            return Err(invalid("the token's header has crit, of which nothing is understood here"));
        }
        let keys = match &header.kid {
            Some(id) => self.source.keys_with(id).await,
            None => self.source.keys(),
        };
        let keys = keys.ok_or(ApiError::NoKeys)?;
        let key = keys.find(&header).map_err(invalid)?;
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
        // What is no audience at all, the library takes for none.
        if self.audience.is_none() && claims.contains_key("aud") {
            return Err(refused(ErrorKind::InvalidAudience.into()));
        }
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
        if client.is_some_and(tenant::is_own) {
            let own = tenant::OWN;
            return Err(invalid(format!(
                "the claim sub begins with {own:?}, as the names of the broker's own clients do"
            )));
        }
        let tenant_claim = &self.tenant_claim;
        let tenant = text(claims, tenant_claim)?.unwrap_or_default();
        if tenant.len() > TENANT_BYTES_MAX || tenant.chars().any(char::is_control) {
            return Err(invalid(format!(
                "the claim {tenant_claim} is a name of at most {TENANT_BYTES_MAX} bytes without control characters"
            )));
        }
        let confinement = match claims.get("nearcast") {
            Some(claim) => Confinement::read(claim, &self.zones).map_err(invalid)?,
            None => None,
        };
        let scopes = scopes(claims)?;
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

/// The scopes of `scope`, a text (RFC 8693, 4.2), and of `scp`, by which some issuers call it: a text or an array of texts.
fn scopes(claims: &Map<String, Value>) -> Result<Scopes, ApiError> {
    let scope = Scopes::read(text(claims, "scope")?.unwrap_or_default());
    let names = match claims.get("scp") {
        None => return Ok(scope),
        Some(Value::Array(names)) => names.iter().map(Value::as_str).collect::<Option<Vec<_>>>(),
        Some(name) => name.as_str().map(|names| vec![names]),
    };
    let names = names.ok_or_else(|| invalid("the claim scp must be an array of texts, or a text"))?;
    Ok(names.into_iter().map(Scopes::read).fold(scope, BitOr::bitor))
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
        _ => invalid("this is not a JSON Web Token that is signed with RS256, ES256, EdDSA or HS256"),
    }
}
