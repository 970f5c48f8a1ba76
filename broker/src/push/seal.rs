//! Messages sealed for one browser (RFC 8291): nobody between the broker and the browser reads them.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, ParsedPublicKey, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

/// Bytes of an uncompressed point of P-256.
pub(crate) const POINT_BYTES: usize = 65;
/// Bytes of the secret that a browser shares with its application.
pub(crate) const SECRET_BYTES: usize = 16;
/// Bytes of a random salt.
const SALT_BYTES: usize = 16;
/// Bytes of the one record that a message has. A push service takes no more than 4096 for all of it (RFC 8030, 7.2).
const RECORD_BYTES: u32 = 4_096;
/// Bytes of a text, at most: a message without its head, its delimiter and its tag.
pub(super) const TEXT_BYTES_MAX: usize = RECORD_BYTES as usize - HEAD_BYTES - 1 - 16;
/// Bytes before the record: salt, size, and the sender's point with its length.
const HEAD_BYTES: usize = SALT_BYTES + 4 + 1 + POINT_BYTES;
/// Follows the text in the last record (RFC 8188, 2).
const LAST_RECORD: u8 = 2;

/// The keys that a browser gives its application.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BrowserKeys {
    pub(crate) point: [u8; POINT_BYTES],
    pub(crate) secret: [u8; SECRET_BYTES],
}

/// A length in bytes, for the key derivation.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Whether some bytes are an uncompressed point of the curve.
pub(super) fn is_point(bytes: &[u8]) -> bool {
    bytes.len() == POINT_BYTES && ParsedPublicKey::try_from(UnparsedPublicKey::new(&ECDH_P256, bytes)).is_ok()
}

/// Seals a text of at most [`TEXT_BYTES_MAX`] bytes by a key and a salt that are for it alone.
pub(super) fn seal(keys: &BrowserKeys, text: &[u8]) -> Result<Vec<u8>, Unspecified> {
    let mut salt = [0; SALT_BYTES];
    aws_lc_rs::rand::fill(&mut salt)?;
    seal_with(keys, &PrivateKey::generate(&ECDH_P256)?, salt, text)
}

fn seal_with(
    keys: &BrowserKeys,
    own: &PrivateKey,
    salt: [u8; SALT_BYTES],
    text: &[u8],
) -> Result<Vec<u8>, Unspecified> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Unspecified);
    }
    let own_point = own.compute_public_key()?;
    let theirs = UnparsedPublicKey::new(&ECDH_P256, &keys.point);
    let input = agree(own, theirs, Unspecified, |shared| {
        let both = Salt::new(HKDF_SHA256, &keys.secret).extract(shared);
        derive::<32>(&both, &[b"WebPush: info\0", &keys.point, own_point.as_ref()])
    })?;
    let input = Salt::new(HKDF_SHA256, &salt).extract(&input);
    let key: [u8; 16] = derive(&input, &[b"Content-Encoding: aes128gcm\0"])?;
    let nonce: [u8; NONCE_LEN] = derive(&input, &[b"Content-Encoding: nonce\0"])?;
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
    let mut record = [text, &[LAST_RECORD]].concat();
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)?;
    let mut message = Vec::with_capacity(HEAD_BYTES + record.len());
    message.extend_from_slice(&salt);
    message.extend_from_slice(&RECORD_BYTES.to_be_bytes());
    message.push(u8::try_from(POINT_BYTES).map_err(|_| Unspecified)?);
    message.extend_from_slice(own_point.as_ref());
    message.extend_from_slice(&record);
    Ok(message)
}

fn derive<const N: usize>(key: &Prk, info: &[&[u8]]) -> Result<[u8; N], Unspecified> {
    let mut derived = [0; N];
    key.expand(info, Length(N))?.fill(&mut derived)?;
    Ok(derived)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn bytes<const N: usize>(text: &str) -> [u8; N] {
        URL_SAFE_NO_PAD.decode(text).unwrap().try_into().unwrap()
    }

    /// The example of RFC 8291, section 5 and appendix A.
    #[test]
    fn the_example_of_the_standard_is_sealed_as_it_says() {
        let keys = BrowserKeys {
            point: bytes(
                "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            ),
            secret: bytes("BTBZMqHH6r4Tts7J_aSIgg"),
        };
        let own: [u8; 32] = bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw");
        let own = PrivateKey::from_private_key(&ECDH_P256, &own).unwrap();
        let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw");
        let sealed = seal_with(&keys, &own, salt, b"When I grow up, I want to be a watermelon").unwrap();
        assert_eq!(
            URL_SAFE_NO_PAD.encode(sealed),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3\
             jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
    }

    #[test]
    fn a_message_has_as_many_bytes_as_push_services_take() {
        let point = PrivateKey::generate(&ECDH_P256).unwrap().compute_public_key().unwrap();
        let keys = BrowserKeys { point: point.as_ref().try_into().unwrap(), secret: [7; SECRET_BYTES] };
        let sealed = |bytes: usize| seal(&keys, &vec![b'x'; bytes]).map(|sealed| sealed.len());
        assert_eq!(sealed(TEXT_BYTES_MAX), Ok(4_096));
        assert_eq!(sealed(TEXT_BYTES_MAX + 1), Err(Unspecified));
        assert_eq!(sealed(0), Ok(HEAD_BYTES + 17));
        assert_ne!(seal(&keys, b"x"), seal(&keys, b"x"), "each has a salt and a key of its own");
    }

    #[test]
    fn a_point_is_on_the_curve() {
        let point = PrivateKey::generate(&ECDH_P256).unwrap().compute_public_key().unwrap();
        assert!(is_point(point.as_ref()));
        let mut off = point.as_ref().to_vec();
        off[64] ^= 1;
        let mut compressed = point.as_ref()[..33].to_vec();
        compressed[0] = 2;
        for wrong in [&off, &compressed, &point.as_ref()[1..].to_vec(), &vec![0; POINT_BYTES], &Vec::new()] {
            assert!(!is_point(wrong), "{wrong:?}");
        }
    }
}
