//! Records as bytes.

use std::path::Path;

use cluster::record::{
    BODY_BYTES_MAX, Body, COMPRESSED_FROM_BYTES, Chunk, HEADER_BYTES, Incarnation, ROWS_MAX, Record,
    RecordError, Seal, encode,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use crate::fuzzing::{ledger_record, mend};

const INCARNATION: Incarnation = Incarnation { term: 3, nonce: 0x1234_5678_9abc_def0 };

#[derive(Clone, Debug)]
enum Owned {
    Rows(Vec<Vec<u8>>),
    Seal(String),
    Chunk(u64, u32, bool, Vec<u8>),
    Events(Vec<Vec<u8>>),
    Marker,
}

impl Owned {
    fn body(&self) -> Body<'_> {
        match self {
            Self::Rows(rows) => Body::Rows(rows.iter().map(Vec::as_slice).collect()),
            Self::Events(events) => Body::Events(events.iter().map(Vec::as_slice).collect()),
            Self::Marker => Body::Marker,
            Self::Seal(member) => Body::Seal(Seal { member }),
            Self::Chunk(row, index, is_last, bytes) => {
                let (row, index, is_last) = (*row, *index, *is_last);
                Body::Chunk(Chunk { member: "a", row, start: row, index, is_last, bytes })
            }
        }
    }
}

fn bodies() -> impl Strategy<Value = Owned> {
    let bytes = || prop_oneof![vec(any::<u8>(), 0..100), (0..9_000_usize).prop_map(|len| vec![7; len])];
    prop_oneof![
        vec(bytes(), 0..20).prop_map(Owned::Rows),
        vec(bytes(), 0..20).prop_map(Owned::Events),
        Just(Owned::Marker),
        ".{0,20}".prop_map(Owned::Seal),
        (any::<u64>(), any::<u32>(), any::<bool>(), bytes())
            .prop_map(|(row, index, is_last, bytes)| Owned::Chunk(row, index, is_last, bytes)),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(body in bodies(), number in any::<u64>(), previous in any::<u32>()) {
        let bytes = encode(INCARNATION, number, previous, &body.body()).unwrap();
        let record = Record::decode(&bytes).unwrap();
        prop_assert_eq!(record.body().unwrap(), body.body());
        let header = record.header;
        prop_assert_eq!((header.incarnation, header.number, header.previous), (INCARNATION, number, previous));
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in vec(any::<u8>(), 0..200), is_ours in any::<bool>()) {
        if is_ours && bytes.len() >= 4 {
            let (kind, compression) = (1 + bytes[1] % 5, bytes[2] % 2);
            bytes[..4].copy_from_slice(&[1, kind, compression, 0]);
        }
        ledger_record(&bytes);
    }

    #[test]
    fn a_record_with_a_wrong_byte_is_refused(body in bodies(), at in any::<usize>(), change in 1..=255_u8) {
        let mut bytes = encode(INCARNATION, 1, 2, &body.body()).unwrap().to_vec();
        let at = at % bytes.len();
        bytes[at] ^= change;
        prop_assert!(Record::decode(&bytes).is_err());
        ledger_record(&bytes);
    }

    #[test]
    fn a_record_that_is_cut_is_refused(body in bodies(), end in any::<usize>()) {
        let bytes = encode(INCARNATION, 1, 2, &body.body()).unwrap();
        prop_assert!(Record::decode(&bytes[..end % bytes.len()]).is_err());
    }
}

#[test]
fn a_record_is_compressed_from_4_kib_on() {
    // A byte for how many rows there are and two for the length of the row.
    for (len, is_compressed) in [(COMPRESSED_FROM_BYTES - 4, 0), (COMPRESSED_FROM_BYTES - 3, 1)] {
        let row = vec![7; len];
        let bytes = encode(INCARNATION, 1, 0, &Body::Rows(vec![&row])).unwrap();
        assert_eq!(bytes[2], is_compressed);
    }
}

#[test]
fn a_record_says_what_is_wrong_with_it() {
    let bytes = encode(INCARNATION, 1, 0, &Body::Rows(vec![b"row"])).unwrap().to_vec();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        mend(&mut bytes);
        match Record::decode(&bytes).map(|record| record.body().map(|_| ()).unwrap_err()) {
            Ok(error) | Err(error) => error.to_string(),
        }
    };
    assert_eq!(with(0, 2), "a record has format 2; this version reads 1");
    assert_eq!(with(1, 9), "byte 1 of a record's header is 9");
    assert_eq!(with(2, 9), "byte 2 of a record's header is 9");
    assert_eq!(with(3, 9), "byte 3 of a record's header is 9");
    assert_eq!(with(32, 2), "a record's body cannot be read: it has 1 rows, and its header says 2");
    let short = Record::decode(&bytes[..HEADER_BYTES - 1]).unwrap_err();
    assert_eq!(short.to_string(), "a record has 39 bytes, fewer than the 40 of its header");
    let large = vec![0; BODY_BYTES_MAX];
    let large = encode(INCARNATION, 1, 0, &Body::Rows(vec![&large])).unwrap_err();
    assert!(matches!(large, RecordError::TooLarge { bytes_max: BODY_BYTES_MAX, .. }), "{large}");
}

/// A body that expands to more than a record may have.
#[test]
fn a_bomb_is_refused() {
    let row = vec![0; BODY_BYTES_MAX - 10];
    let mut bytes = encode(INCARNATION, 1, 0, &Body::Rows(vec![&row])).unwrap().to_vec();
    bytes.truncate(HEADER_BYTES);
    bytes.extend(zstd::bulk::compress(&vec![0; BODY_BYTES_MAX + 1], 1).unwrap());
    mend(&mut bytes);
    assert!(matches!(Record::decode(&bytes), Err(RecordError::TooLarge { .. })));
}

/// Rows without bytes cost nothing in a record, and memory where it is read.
#[test]
fn a_record_of_too_many_rows_is_refused() {
    let rows = |count| Body::Rows(vec![b"".as_slice(); count]);
    let bytes = encode(INCARNATION, 1, 0, &rows(ROWS_MAX)).unwrap().to_vec();
    assert_eq!(Record::decode(&bytes).unwrap().body(), Ok(rows(ROWS_MAX)));
    let wanted = "a record's body cannot be read: it has 4097 rows, more than 4096";
    assert_eq!(encode(INCARNATION, 1, 0, &rows(ROWS_MAX + 1)).unwrap_err().to_string(), wanted);
    let many = BODY_BYTES_MAX - 4;
    let mut body = postcard::to_stdvec(&many).unwrap();
    body.resize(body.len() + many, 0);
    let mut bytes = bytes[..HEADER_BYTES].to_vec();
    bytes.extend(zstd::bulk::compress(&body, 1).unwrap());
    let mut told = |count: u32| {
        bytes[32..36].copy_from_slice(&count.to_le_bytes());
        mend(&mut bytes);
        Record::decode(&bytes).and_then(|record| record.body().map(|_| ())).unwrap_err().to_string()
    };
    assert_eq!(told(4_097), wanted);
    let wanted = "a record's body cannot be read: it has 4194300 rows, and its header says 1";
    assert_eq!(told(1), wanted);
}

#[test]
fn what_was_found_once_stays_mended() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/ledger_record");
    let seeds: Vec<_> = std::fs::read_dir(corpus).unwrap().map(|seed| seed.unwrap().path()).collect();
    assert!(!seeds.is_empty());
    for seed in seeds {
        eprintln!("{}", seed.display());
        ledger_record(&std::fs::read(seed).unwrap());
    }
}

/// Versions run beside each other while a cluster is upgraded: what one of them writes, the other has to read. Other bytes are another
/// format.
#[test]
fn records_of_this_format_stay_as_they_are() {
    let chunk = Chunk { member: "b", row: 300, start: 7, index: 1, is_last: true, bytes: b"xy" };
    let bodies = [
        (
            Body::Rows(vec![b"one", b""]),
            "0101000082abb8a00300000000000000f0debc9a78563412020100000000000002000000d4c3b2a102036f6e6500",
        ),
        (
            Body::Seal(Seal { member: "b" }),
            "01020000103f8a300300000000000000f0debc9a78563412020100000000000000000000d4c3b2a10162",
        ),
        (
            Body::Chunk(chunk),
            "0103000002ef31c50300000000000000f0debc9a78563412020100000000000000000000d4c3b2a10162ac02070101027879",
        ),
        (
            Body::Events(vec![b"two"]),
            "01040000d7412a530300000000000000f0debc9a78563412020100000000000001000000d4c3b2a1010374776f",
        ),
        (Body::Marker, "01050000735f55130300000000000000f0debc9a78563412020100000000000000000000d4c3b2a1"),
    ];
    for (body, told) in bodies {
        let bytes = encode(INCARNATION, 258, 0xa1b2_c3d4, &body).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, told, "{body:?}");
        assert_eq!(Record::decode(&bytes).unwrap().body().unwrap(), body);
    }
}
