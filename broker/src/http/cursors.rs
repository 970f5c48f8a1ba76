//! Cursors of questions: sealed, so that a client can neither make one nor read what the broker has in it.

use std::fmt::Write as _;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use matcher::live::{PLACE_BYTES, Place};

use crate::model::error::ApiError;

/// Seals the cursors of one run of the broker: the numbers in a place are those of this run.
pub(super) struct Cursors(RandomizedNonceKey);

/// Bytes of a shard's number.
const SHARD_BYTES: usize = 4;

impl Cursors {
    pub(super) fn new() -> Self {
        let key: [u8; 32] = rand::random();
        Self(RandomizedNonceKey::new(&AES_256_GCM, &key).expect("the key is as long as the cipher wants it"))
    }

    /// Seals a place in the order of a shard's events, for a question.
    pub(super) fn seal(&self, question: &str, shard: usize, place: Place) -> Result<String, ApiError> {
        let shard = u32::try_from(shard).map_err(|_| BROKEN)?;
        let mut sealed = [&shard.to_be_bytes()[..], &place.to_bytes()[..]].concat();
        let nonce = self
            .0
            .seal_in_place_append_tag(Aad::from(question.as_bytes()), &mut sealed)
            .map_err(|_| BROKEN)?;
        let bytes = nonce.as_ref().iter().chain(&sealed);
        Ok(bytes.fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a text grows");
            text
        }))
    }

    /// The shard and the place of a cursor that was sealed for the same question.
    pub(super) fn open(&self, question: &str, cursor: &str) -> Result<(usize, Place), ApiError> {
        self.opened(question, cursor).ok_or_else(|| {
            let detail =
                "after must be `next` of the page before, of the same question, and since the broker began";
            ApiError::BadRequest(detail.to_owned())
        })
    }

    fn opened(&self, question: &str, cursor: &str) -> Option<(usize, Place)> {
        let mut bytes = bytes_of(cursor)?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = self.0.open_in_place(nonce, Aad::from(question.as_bytes()), sealed).ok()?;
        let (shard, place) = opened.split_first_chunk::<SHARD_BYTES>()?;
        let place: &[u8; PLACE_BYTES] = place.try_into().ok()?;
        Some((usize::try_from(u32::from_be_bytes(*shard)).ok()?, Place::from_bytes(place)))
    }
}

const BROKEN: ApiError = ApiError::Internal("a cursor could not be sealed");

fn bytes_of(hexadecimal: &str) -> Option<Vec<u8>> {
    let digits = hexadecimal.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    (0..hexadecimal.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hexadecimal[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_question_and_its_run_alone() {
        let (cursors, place) = (Cursors::new(), Place::from_bytes(&[7; PLACE_BYTES]));
        let cursor = cursors.seal("bbox=0,0,1,1", 3, place).unwrap();
        assert_eq!(cursors.open("bbox=0,0,1,1", &cursor), Ok((3, place)));
        assert_ne!(
            cursors.seal("bbox=0,0,1,1", 3, place).unwrap(),
            cursor,
            "two cursors have nothing in common"
        );
        assert!(cursors.open("bbox=0,0,1,2", &cursor).is_err());
        assert!(Cursors::new().open("bbox=0,0,1,1", &cursor).is_err());
        for text in ["", "0", "é", "0g", &cursor[..24], &cursor[1..], &cursor.replace(&cursor[..1], "x")] {
            assert!(cursors.open("bbox=0,0,1,1", text).is_err(), "{text}");
        }
        for at in 0..cursor.len() {
            let other = if cursor.as_bytes()[at] == b'0' { "1" } else { "0" };
            let mut forged = cursor.clone();
            forged.replace_range(at..=at, other);
            assert!(cursors.open("bbox=0,0,1,1", &forged).is_err(), "{forged}");
        }
    }
}
