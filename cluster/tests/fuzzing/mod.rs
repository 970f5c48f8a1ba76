//! The door for fuzzing, which the tests go through with `fuzz/corpus/ledger_record`: it panics where a reader breaks a promise.

use cluster::record::{Record, RecordError, encode};

/// Reads bytes as a record whose CRC is right.
pub(crate) fn ledger_record(data: &[u8]) {
    let mut bytes = data.to_vec();
    mend(&mut bytes);
    read(&bytes);
}

/// Reads bytes, whatever they are. What is read can be written, and is read as it was.
fn read(bytes: &[u8]) {
    let Ok(record) = Record::decode(bytes) else { return };
    let Ok(body) = record.body() else { return };
    let header = record.header;
    let again = encode(header.incarnation, header.number, header.previous, &body).unwrap();
    let again = Record::decode(&again).unwrap();
    assert_eq!((again.header, again.body().unwrap()), (header, body));
}

/// Makes the CRC of a record right, so that what is behind it is read, too.
pub(crate) fn mend(bytes: &mut [u8]) {
    if let Err(RecordError::Crc { found, .. }) = Record::decode(bytes) {
        bytes[4..8].copy_from_slice(&found.to_le_bytes());
    }
}
