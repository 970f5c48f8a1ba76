//! Push subscriptions: where a client is woken while no connection reads.

use serde::{Deserialize, Serialize};

/// The key that browsers subscribe to push messages with: the answer to `GET /v1/push`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PushKey {
    /// The uncompressed point of P-256 in base64url, for `applicationServerKey`.
    pub public_key: String,
}

/// A push subscription as `PushSubscription.toJSON()` of a browser writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({
    "endpoint": "https://push.example/a1b2",
    "expirationTime": null,
    "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    },
})))]
pub struct PushSubscription {
    /// The address of the push service for this browser alone.
    pub endpoint: String,
    /// When the push service ends it, in Unix milliseconds.
    #[serde(default, rename = "expirationTime")]
    pub expiration_time: Option<f64>,
    /// The keys that messages are sealed with.
    pub keys: PushKeys,
}

/// The keys of a push subscription, in base64url.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PushKeys {
    /// The browser's uncompressed point of P-256.
    pub p256dh: String,
    /// 16 bytes.
    pub auth: String,
}

/// The state of a client's push subscription. Its endpoint is shown to nobody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(example = json!({
    "endpoint_origin": "https://push.example", "since": "2026-03-01T07:30:00Z", "last_push": null, "failures": 0,
})))]
pub struct PushState {
    /// The origin of the push service.
    pub endpoint_origin: String,
    /// When the broker got it, RFC 3339.
    pub since: String,
    /// When the push service last took a message, RFC 3339; `null` where it has not since the broker began.
    #[serde(default)]
    pub last_push: Option<String>,
    /// Tries that failed since then.
    pub failures: u64,
}
