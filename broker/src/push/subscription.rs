//! Push subscriptions as browsers give them (Push API, `PushSubscription.toJSON()`).

use axum::http::Uri;
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use wire::Fault;

use super::seal::{BrowserKeys, POINT_BYTES, SECRET_BYTES, is_point};
use crate::config::https;
use crate::ingest::json::{self, Members};
use crate::model::clock;
use crate::model::error::ApiError;
use crate::store::StoredPush;

/// Bytes of an endpoint, at most. Those of push services have some hundred.
const ENDPOINT_BYTES_MAX: usize = 2_048;

/// Reads base64url as browsers write it, and with padding as others do.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A push subscription: where to send messages for one browser, and how to seal them. The endpoint is a capability, so that nobody is
/// shown it and no log has it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PushSubscription {
    pub(crate) endpoint: Uri,
    pub(crate) keys: BrowserKeys,
    /// When the push service ends it, in Unix milliseconds.
    pub(crate) expires_ms: Option<u64>,
    /// When the broker got it, in Unix milliseconds.
    pub(crate) since_ms: u64,
}

impl PushSubscription {
    /// Reads a subscription. Members that there may be besides mean nothing to the broker.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut members = Members::parse(text)?;
        let mut faults = Vec::new();
        let endpoint = endpoint(members.take("endpoint")).map_err(|fault| faults.push(fault)).ok();
        let expires_ms = expiration(members.take("expirationTime"));
        let expires_ms = expires_ms.map_err(|fault| faults.push(fault)).ok().flatten();
        let keys = keys(members.take("keys"), &mut faults);
        match (endpoint, keys) {
            (Some(endpoint), Some(keys)) if faults.is_empty() => {
                Ok(Self { endpoint, keys, expires_ms, since_ms: clock::unix_ms() })
            }
            _ => Err(ApiError::Invalid(faults)),
        }
    }

    /// Reads a stored subscription again; `None` where it cannot be one.
    pub(crate) fn read_again(stored: &StoredPush) -> Option<Self> {
        let StoredPush { endpoint, point, secret, expires_ms, since_ms } = stored;
        let point = is_point(point).then_some(point)?;
        let keys = BrowserKeys { point: (**point).try_into().ok()?, secret: (**secret).try_into().ok()? };
        let endpoint = https::parse(endpoint)?;
        Some(Self { endpoint, keys, expires_ms: *expires_ms, since_ms: *since_ms })
    }

    /// The subscription as it is stored.
    pub(crate) fn stored(&self) -> StoredPush {
        let Self { endpoint, keys, expires_ms, since_ms } = self;
        StoredPush {
            endpoint: endpoint.to_string().into(),
            point: keys.point.as_slice().into(),
            secret: keys.secret.as_slice().into(),
            expires_ms: *expires_ms,
            since_ms: *since_ms,
        }
    }

    /// The origin of its push service.
    pub(crate) fn origin(&self) -> String {
        let host = self.endpoint.host().unwrap_or_default().to_ascii_lowercase();
        match self.endpoint.port_u16().filter(|port| *port != 443) {
            Some(port) => format!("https://{host}:{port}"),
            None => format!("https://{host}"),
        }
    }

    /// When the broker got it.
    pub(crate) fn since(&self) -> String {
        clock::rfc3339(self.since_ms)
    }

    /// Whether the push service has ended it by now.
    pub(super) fn is_over(&self) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= clock::unix_ms())
    }
}

impl std::fmt::Debug for PushSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PushSubscription({})", self.origin())
    }
}

fn endpoint(text: Option<&str>) -> Result<Uri, Fault> {
    let fault = |detail: String| Fault { pointer: "/endpoint".to_owned(), detail };
    let text = text.ok_or_else(|| fault("must be there: the address of the push service".to_owned()))?;
    let text: String = json::read(text, "/endpoint", "a text")?;
    if text.len() > ENDPOINT_BYTES_MAX {
        return Err(fault(format!("must have at most {ENDPOINT_BYTES_MAX} bytes, not {}", text.len())));
    }
    // Not shown: it is a capability.
    https::parse(&text).ok_or_else(|| {
        let expected =
            "must be an address such as https://push.example/a1: https, a host, no user, no fragment";
        fault(expected.to_owned())
    })
}

fn expiration(text: Option<&str>) -> Result<Option<u64>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let expected = "a number of milliseconds since 1970, or null";
    let ms: f64 = json::read(text, "/expirationTime", expected)?;
    if ms < 0.0 {
        let detail = format!("must be {expected}");
        return Err(Fault { pointer: "/expirationTime".to_owned(), detail });
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not below 0, and one too large is never reached"
    )]
    Ok(Some(ms as u64))
}

fn keys(text: Option<&str>, faults: &mut Vec<Fault>) -> Option<BrowserKeys> {
    let mut fault = |pointer: &str, detail: &str| {
        faults.push(Fault { pointer: pointer.to_owned(), detail: detail.to_owned() });
    };
    let Some(text) = text else {
        fault("/keys", "must be there: an object with p256dh and auth");
        return None;
    };
    let Ok(mut members) = Members::parse(text) else {
        fault("/keys", "must be an object with p256dh and auth");
        return None;
    };
    let mut bytes = |name: &str| -> Option<Vec<u8>> {
        let text: String = json::read(members.take(name)?, "", "").ok()?;
        BASE64.decode(text).ok()
    };
    let point = bytes("p256dh").filter(|bytes| is_point(bytes));
    let secret = bytes("auth").and_then(|bytes| <[u8; SECRET_BYTES]>::try_from(bytes).ok());
    if point.is_none() {
        fault("/keys/p256dh", "must be an uncompressed point of P-256 (65 bytes), in base64url");
    }
    if secret.is_none() {
        fault("/keys/auth", "must be 16 bytes, in base64url");
    }
    let point = point.and_then(|point| <[u8; POINT_BYTES]>::try_from(point).ok())?;
    Some(BrowserKeys { point, secret: secret? })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const POINT: &str =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    const SECRET: &str = "BTBZMqHH6r4Tts7J_aSIgg";

    fn document() -> Value {
        let keys = json!({"p256dh": POINT, "auth": SECRET});
        json!({"endpoint": "https://Push.example:443/a1?b=c", "expirationTime": null, "keys": keys, "later": 1})
    }

    #[test]
    fn what_a_browser_says_is_read() {
        let read = PushSubscription::parse(&document().to_string()).unwrap();
        assert_eq!((read.origin().as_str(), read.expires_ms), ("https://push.example", None));
        assert_eq!(format!("{read:?}"), "PushSubscription(https://push.example)");
        assert!(!read.is_over());
        let mut document = document();
        document["endpoint"] = json!("https://push.example:8443/a1");
        document["expirationTime"] = json!(1_000.5);
        document["keys"]["auth"] = json!(format!("{SECRET}=="));
        let read = PushSubscription::parse(&document.to_string()).unwrap();
        assert_eq!((read.origin().as_str(), read.expires_ms), ("https://push.example:8443", Some(1_000)));
        assert!(read.is_over());
    }

    #[test]
    fn each_fault_is_told_where_it_is() {
        let pointers = |document: &Value| match PushSubscription::parse(&document.to_string()) {
            Err(ApiError::Invalid(faults)) => {
                faults.into_iter().map(|fault| fault.pointer).collect::<Vec<_>>()
            }
            _ => Vec::new(),
        };
        for endpoint in [
            json!(null),
            json!(1),
            json!("http://push.example/a1"),
            json!("https://ann:secret@push.example/"),
            json!("https://push.example/#a"),
            json!(format!("https://push.example/{}", "a".repeat(ENDPOINT_BYTES_MAX))),
        ] {
            let mut document = document();
            document["endpoint"] = endpoint;
            assert_eq!(pointers(&document), ["/endpoint"], "{document}");
        }
        for (member, wrong) in [
            ("p256dh", json!(null)),
            ("p256dh", json!("AAAA")),
            ("p256dh", json!(SECRET)),
            ("auth", json!("not base64!")),
            ("auth", json!("AAAA")),
            ("auth", json!([1])),
        ] {
            let mut document = document();
            document["keys"][member] = wrong;
            assert_eq!(pointers(&document), [format!("/keys/{member}")], "{document}");
        }
        assert_eq!(pointers(&json!({})), ["/endpoint", "/keys"]);
        let all = json!({"endpoint": "x", "expirationTime": -1, "keys": {}});
        assert_eq!(pointers(&all), ["/endpoint", "/expirationTime", "/keys/p256dh", "/keys/auth"]);
    }
}
