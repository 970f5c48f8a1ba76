//! Keys and tokens: those that a service would make, and those that somebody else would.

use std::path::Path;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

/// The PKCS #8 frame around the PKCS #1 form of an RSA key of 2048 bits.
const PKCS8_FRAME_BYTES: usize = 26;

/// Who makes tokens: a key of each kind.
pub(crate) struct Issuer {
    keys: [(&'static str, Algorithm, EncodingKey); 4],
}

/// The one whose keys a broker has.
pub(crate) static ISSUER: LazyLock<Issuer> = LazyLock::new(|| Issuer::new(b'a'));
/// One whose keys it has not, by the same names.
pub(crate) static FORGER: LazyLock<Issuer> = LazyLock::new(|| Issuer::new(b'b'));

/// Seconds since 1970.
pub(crate) fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    i64::try_from(now.as_secs()).expect("and not much later")
}

/// Claims of a client, good for an hour.
pub(crate) fn claims(client: Option<&str>, scope: &str) -> Value {
    let mut claims = json!({"exp": now_s() + 3_600, "iat": now_s(), "scope": scope});
    if let Some(client) = client {
        claims["sub"] = json!(client);
    }
    claims
}

fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Issuer {
    /// With keys of its own.
    pub(crate) fn new(secret: u8) -> Self {
        let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
        let pair = AsDer::as_der(&pair).expect("its encoding");
        let rsa = EncodingKey::from_rsa_der(&pair.as_ref()[PKCS8_FRAME_BYTES..]);
        let pair = Ed25519KeyPair::generate().expect("a key");
        let pair = pair.to_pkcs8v1().expect("its encoding");
        let ed = EncodingKey::from_ed_der(pair.as_ref());
        let hs = EncodingKey::from_secret(&[secret; 40]);
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let pair = pair.to_pkcs8v1().expect("its encoding");
        let p256 = EncodingKey::from_ec_der(pair.as_ref());
        Self {
            keys: [
                ("h", Algorithm::HS256, hs),
                ("r", Algorithm::RS256, rsa),
                ("e", Algorithm::EdDSA, ed),
                ("p", Algorithm::ES256, p256),
            ],
        }
    }

    /// Its public side, and of the secret the secret.
    pub(crate) fn jwks(&self) -> Value {
        let keys = self.keys.iter().map(|(id, algorithm, key)| {
            let mut jwk = Jwk::from_encoding_key(key, *algorithm).expect("a key");
            jwk.common.key_id = Some((*id).to_owned());
            serde_json::to_value(jwk).expect("JSON")
        });
        json!({"keys": keys.collect::<Vec<_>>()})
    }

    /// Writes that into a file, as one does whose readers look all the time.
    pub(crate) fn write(&self, path: &Path) {
        let beside = path.with_extension("new");
        std::fs::write(&beside, self.jwks().to_string()).expect("written");
        std::fs::rename(&beside, path).expect("put in its place");
    }

    /// A token by the key of this name.
    pub(crate) fn sign_by(&self, id: &str, claims: &Value) -> String {
        let (_, algorithm, key) =
            self.keys.iter().find(|(found, ..)| *found == id).expect("a key of that name");
        sign(&Header { kid: Some(id.to_owned()), ..Header::new(*algorithm) }, claims, key)
    }

    /// A token.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_by("e", claims)
    }

    /// A token of a client.
    pub(crate) fn token(&self, client: &str, scope: &str) -> String {
        self.sign(&claims(Some(client), scope))
    }
}

fn sign(header: &Header, claims: &Value, key: &EncodingKey) -> String {
    encode(header, claims, key).expect("a token")
}

/// A token from its parts.
fn compact(header: &Value, claims: &Value, signature: &[u8]) -> String {
    format!("{}.{}.{}", b64(header.to_string()), b64(claims.to_string()), b64(signature))
}

/// Tokens that permit nothing, whatever they say, with the kind of problem that they are.
pub(crate) fn bad(claims: &Value) -> Vec<(String, String, &'static str)> {
    let mut all = Vec::new();
    let mut add = |name: &str, token: String, kind| all.push((name.to_owned(), token, kind));
    let with = |changes: Value| {
        let mut claims = claims.clone();
        for (name, value) in changes.as_object().expect("an object") {
            claims[name] = value.clone();
        }
        claims
    };
    let without = |name: &str| {
        let mut claims = claims.clone();
        claims.as_object_mut().expect("an object").remove(name);
        claims
    };
    let (unauthenticated, expired) = ("unauthenticated", "token-expired");
    for id in ["h", "r", "e", "p"] {
        add(&format!("forged {id}"), FORGER.sign_by(id, claims), unauthenticated);
        add(&format!("expired {id}"), ISSUER.sign_by(id, &with(json!({"exp": now_s() - 60}))), expired);
        add(&format!("expired long ago {id}"), ISSUER.sign_by(id, &with(json!({"exp": 1}))), expired);
        let good = ISSUER.sign_by(id, claims);
        let [header, _, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!("{good}") };
        let more = b64(with(json!({"scope": "admin"})).to_string());
        add(&format!("changed {id}"), format!("{header}.{more}.{signature}"), unauthenticated);
        add(
            &format!("without signature {id}"),
            good[..=good.rfind('.').unwrap_or_default()].to_owned(),
            unauthenticated,
        );
        add(&format!("cut {id}"), good[..good.len() - 2].to_owned(), unauthenticated);
        // The name of another key, which is for another algorithm.
        let (_, algorithm, key) = ISSUER.keys.iter().find(|(found, ..)| *found == id).expect("a key");
        let other = if id == "h" { "e" } else { "h" };
        let confused = Header { kid: Some(other.to_owned()), ..Header::new(*algorithm) };
        add(&format!("{id} as {other}"), sign(&confused, claims, key), unauthenticated);
        let unknown = Header { kid: Some("nobody".to_owned()), ..Header::new(*algorithm) };
        add(&format!("{id} as nobody"), sign(&unknown, claims, key), unauthenticated);
    }
    // Without a signature, by every spelling of the algorithm that there is none.
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        for kid in [json!(null), json!("r")] {
            let mut header = json!({"alg": alg, "typ": "JWT"});
            if kid.is_string() {
                header["kid"] = kid;
            }
            add(&format!("alg {alg:?}"), compact(&header, claims, b""), unauthenticated);
            add(&format!("alg {alg:?} signed"), compact(&header, claims, &[7; 64]), unauthenticated);
        }
    }
    // What everybody may know of a key, as the secret of another algorithm.
    let jwks = ISSUER.jwks();
    for (index, member) in [(1, "n"), (2, "x"), (3, "x")] {
        let key = &jwks["keys"][index];
        let text = key[member].as_str().expect("a text");
        let decoded = URL_SAFE_NO_PAD.decode(text).expect("base64url");
        for secret in [text.as_bytes().to_vec(), decoded, key.to_string().into_bytes()] {
            for kid in [Some("r"), Some("e"), Some("p"), Some("h"), None] {
                let header = Header { kid: kid.map(str::to_owned), ..Header::new(Algorithm::HS256) };
                let token = sign(&header, claims, &EncodingKey::from_secret(&secret));
                add(&format!("HS256 by the public {member}, as {kid:?}"), token, unauthenticated);
            }
        }
    }
    // The right secret, by an algorithm that the key is not for.
    let strong = Header { kid: Some("h".to_owned()), ..Header::new(Algorithm::HS512) };
    add("HS512", sign(&strong, claims, &ISSUER.keys[0].2), unauthenticated);
    // A key that the token brings along.
    let mut header = Header { kid: None, ..Header::new(Algorithm::EdDSA) };
    header.jwk = Jwk::from_encoding_key(&FORGER.keys[2].2, Algorithm::EdDSA).ok();
    add("a key of its own", sign(&header, claims, &FORGER.keys[2].2), unauthenticated);
    let critical = Header {
        crit: Some(vec!["exp".to_owned()]),
        kid: Some("e".to_owned()),
        ..Header::new(Algorithm::EdDSA)
    };
    add("crit", sign(&critical, claims, &ISSUER.keys[2].2), unauthenticated);
    for (name, claims) in [
        ("not yet", with(json!({"nbf": now_s() + 600}))),
        ("issued tomorrow", with(json!({"iat": now_s() + 86_400}))),
        ("without exp", without("exp")),
        ("exp a text", with(json!({"exp": "4102444800"}))),
        ("exp null", with(json!({"exp": null}))),
        ("nbf a text", with(json!({"nbf": "yesterday"}))),
        ("iat a text", with(json!({"iat": "yesterday"}))),
        ("sub a number", with(json!({"sub": 5}))),
        ("sub empty", with(json!({"sub": ""}))),
        ("sub with a control character", with(json!({"sub": "ann\u{0}"}))),
        ("sub too long", with(json!({"sub": "a".repeat(129)}))),
        ("scope a list", with(json!({"scope": ["admin"]}))),
        ("scp a number", with(json!({"scp": 5}))),
        ("scp of numbers", with(json!({"scp": ["subscribe", 5]}))),
        ("for somebody else", with(json!({"aud": "another service"}))),
        ("for two others", with(json!({"aud": ["one", "two"]}))),
        ("for a number", with(json!({"aud": 5}))),
        ("for an object", with(json!({"aud": {"a": "b"}}))),
        ("for null", with(json!({"aud": null}))),
        ("for none of none", with(json!({"aud": []}))),
        ("confined by nothing that is", with(json!({"nearcast": null}))),
        ("confined by a text", with(json!({"nearcast": "a = 1"}))),
        ("confined to more than is understood", with(json!({"nearcast": {"where": "a = 1", "until": 5}}))),
        ("confined by no condition", with(json!({"nearcast": {"where": "a ="}}))),
        (
            "confined by a condition that is not text",
            with(json!({"nearcast": {"where": {"op": "=", "args": []}}})),
        ),
        ("confined to a zone that there is not", with(json!({"nearcast": {"zones": ["nowhere"]}}))),
        ("confined to no zone", with(json!({"nearcast": {"zones": []}}))),
        ("tenant a number", with(json!({"tenant": 5}))),
        ("tenant with a control character", with(json!({"tenant": "a\u{1}b"}))),
        ("tenant too long", with(json!({"tenant": "a".repeat(129)}))),
    ] {
        add(name, ISSUER.sign(&claims), unauthenticated);
    }
    add("claims that are none", ISSUER.sign(&json!(["sub", "ann"])), unauthenticated);
    for garbage in ["garbage", "a.b.c", "..", ".", "e30.e30.", "~"] {
        add(&format!("{garbage:?}"), garbage.to_owned(), unauthenticated);
    }
    add("too long", "a".repeat(16_385), unauthenticated);
    all
}
