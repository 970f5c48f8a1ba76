//! Doors for fuzzing: records, rows of the log, tails and files. Checksums are put right, since whatever gets past them has to be borne, too.

use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

use matcher::live::Cause;
use serde::{Deserialize, Serialize};

use super::disk::{Counted, Medium as _};
use super::format::{self, LogRow, append, open_database};
use super::inline::{InlineStore, TestDisk};
use super::keys::{self, Table};
use super::records::{self, BodyRecord, LiveRecord, MatchRecord, Matched, StandingRecord, seal, unseal};
use super::recovery::Contents;
use super::tail::{self, NumberedRow};
use super::{
    Batch, Recovered, StoreError, StoredDecisions, StoredFinding, StoredFrontier, StoredLive, StoredMatch,
    StoredPosition, StoredPush, StoredSession, StoredStanding, StoredState, kept,
};
use crate::model::delivery::{SubscriptionIds, Transition};
use crate::sessions::Disk as _;

/// A record: the table's number, the key's length, the key, and what postcard wrote.
pub fn store_record(data: &[u8]) {
    let [table, length, rest @ ..] = data else { return };
    let table = Table::ALL[usize::from(*table) % Table::ALL.len()];
    let (key, record) = rest.split_at(usize::from(*length).min(rest.len()));
    let value = [&records::crc(table, key, record), record].concat();
    let mut written = Vec::new();
    match table {
        Table::Subscriptions => check_record::<&str>(table, key, &value, &mut written),
        Table::Positions => check_record::<StoredPosition>(table, key, &value, &mut written),
        Table::Sessions => check_record::<StoredSession>(table, key, &value, &mut written),
        Table::Kept => {
            check_record::<Vec<MatchRecord<'_>>>(table, key, &value, &mut written);
            for record in kept::read_row(key, &value).unwrap_or_default() {
                let kept = record.read(record.names());
                assert!(kept.is_none_or(|kept| Matched::of(&kept) == record.matched));
            }
        }
        Table::Standings => {
            check_record::<StandingRecord>(table, key, &value, &mut written);
            let standing = unseal(table, key, &value).ok().and_then(StandingRecord::read);
            assert!(standing.is_none_or(|standing| StandingRecord::of(&standing).read() == Some(standing)));
        }
        Table::Live => check_record::<LiveRecord<'_>>(table, key, &value, &mut written),
        Table::Bodies => check_record::<BodyRecord<'_>>(table, key, &value, &mut written),
        Table::Wipe => check_record::<()>(table, key, &value, &mut written),
        Table::Frontiers => check_record::<StoredFrontier>(table, key, &value, &mut written),
        Table::Findings => check_record::<StoredFinding>(table, key, &value, &mut written),
        Table::Push => check_record::<StoredPush>(table, key, &value, &mut written),
        Table::States => {
            if keys::split(key).is_some_and(|(_, rest)| keys::of_decisions(rest).is_some()) {
                check_record::<StoredDecisions>(table, key, &value, &mut written);
            } else {
                check_record::<StoredState>(table, key, &value, &mut written);
            }
        }
    }
    let mut faults = 0;
    let mut contents = Contents::default();
    let mut fault = |what: String| {
        assert!(what.contains(table.name()), "{what}");
        faults += 1;
        Ok(())
    };
    contents.take_in(table, key, &value, &mut fault).expect("faults are only told");
    assert!(faults <= 1);
}

/// Checks that a record that was read and written again reads as the same.
fn check_record<'a, T: Deserialize<'a> + Serialize>(
    table: Table,
    key: &[u8],
    value: &'a [u8],
    first: &'a mut Vec<u8>,
) {
    let Ok(read) = unseal::<T>(table, key, value) else { return };
    seal(table, key, &read, first);
    let again: T = unseal(table, key, first).expect("what was written can be read");
    let mut second = Vec::new();
    seal(table, key, &again, &mut second);
    assert_eq!(*first, second);
}

/// Rows of the log, each after a byte with its length: what they come to is the same before they are folded and after, and when they
/// are carried out twice.
pub fn store_log(data: &[u8]) {
    let mut rows = Vec::new();
    let mut rest = data;
    while let [length, behind @ ..] = rest {
        let (ops, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rows.push(row(rows.len() as u64 + 1, ops));
        rest = behind;
    }
    let disk = disk_with(&rows);
    let Ok(opened) = open(&disk) else { return };
    let before = picture(&opened.1);
    fold(opened);
    let opened = open(&disk).expect("what was folded can be read");
    opened.0.check().expect("it can be read once more");
    assert_eq!(picture(&opened.1), before, "after a fold");
    drop(opened);
    let count = rows.len() as u64;
    let again = (0..).zip(&rows).map(|(index, (_, row))| self::row(count + 1 + index, &row[12..]));
    let twice: Vec<_> = rows.iter().cloned().chain(again).collect();
    let opened = open(&disk_with(&twice)).expect("what can be read can be read twice");
    assert_eq!(picture(&opened.1), before, "twice");
}

/// A tail: the number of the last commit, and rows of it, each after a byte with its length. It may be cut anywhere, and anything may
/// be a tail.
pub fn store_tail(data: &[u8]) {
    let Some((last, rest)) = data.split_first_chunk::<8>() else { return };
    let last = u64::from_le_bytes(*last);
    let found = tail::rows_after(rest, last);
    check_tail(&found, last, rest.len());
    let (mut bytes, mut ends) = (Vec::new(), vec![0]);
    let mut left = rest;
    while let [length, behind @ ..] = left {
        let (ops, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        let Some(number) = last.checked_add(ends.len() as u64) else { break };
        let (number, row) = row(number, ops);
        bytes.extend_from_slice(&u32::try_from(row.len()).expect("it is short").to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&row);
        ends.push(bytes.len());
        left = behind;
    }
    let cut = usize::from(data[0]) * bytes.len() / 255;
    for end in [cut, bytes.len()] {
        let found = tail::rows_after(&bytes[..end], last);
        check_tail(&found, last, end);
        assert_eq!(found.rows.len(), ends.iter().filter(|one| **one <= end).count() - 1);
    }
}

fn check_tail(found: &tail::Found, last: u64, bytes: usize) {
    assert!(found.rest_bytes <= bytes);
    for (index, (number, row)) in (1..).zip(&found.rows) {
        assert_eq!(number.checked_sub(last), Some(index));
        assert!(LogRow::unseal(*number, row).is_ok());
    }
}

/// A file of which bytes were altered: offset (three bytes), how many, and the new ones, again and again. What begins as the library's
/// files do is a file as it is.
pub fn store_file(data: &[u8]) {
    let mut bytes = if data.starts_with(b"redb") { data.to_vec() } else { FILE.clone() };
    let mut rest = if data.starts_with(b"redb") { &[] } else { data };
    while let [a, b, c, length, behind @ ..] = rest {
        let (new, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        let from = u32::from_le_bytes([*a, *b, *c, 0]) as usize % bytes.len();
        let new = &new[..new.len().min(bytes.len() - from)];
        bytes[from..from + new.len()].copy_from_slice(new);
        rest = behind;
    }
    let is_altered = bytes != *FILE;
    match open(&TestDisk::of(bytes)) {
        Ok(opened) => {
            let mut batch = Batch::default();
            batch.put_subscription("a", "new", "{}");
            // Damage that the start did not come by may be told now.
            let committed = opened.0.commit(&batch);
            assert!(is_altered || committed.is_ok());
            fold(opened);
        }
        Err(error) => assert!(is_altered && !error.to_string().is_empty(), "{error}"),
    }
}

type Opened = (InlineStore, Recovered);

fn open(disk: &TestDisk) -> Result<Opened, StoreError> {
    InlineStore::open(disk, 0, true, None)
}

/// Folds all that there is, once nobody holds anything of it.
fn fold((store, recovered): Opened) {
    drop(recovered);
    for _ in 0..4 {
        store.idle();
    }
}

fn row(number: u64, ops: &[u8]) -> NumberedRow {
    let rest = [&0_u64.to_le_bytes(), ops].concat();
    (number, [&format::crc(number, &rest)[..], &rest].concat())
}

/// A new file's bytes.
static NEW: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let disk = TestDisk::default();
    drop(open(&disk).expect("a new store"));
    disk.bytes()
});

fn disk_with(rows: &[NumberedRow]) -> TestDisk {
    let disk = TestDisk::of(NEW.clone());
    let path = disk.path();
    let inner = disk.open().expect("it is there");
    let backend = Counted { inner, read: Arc::default(), fault: Arc::default() };
    let database = open_database(backend, path).expect("nothing is damaged");
    append(&database, path, rows).expect("there is room");
    drop(database);
    disk
}

/// A file with a little of everything, most of it in the tables.
static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let disk = TestDisk::of(NEW.clone());
    let (store, _) = open(&disk).expect("a new store");
    let mut handles = Vec::new();
    for number in 1..=4 {
        let stored = store.new_body();
        let body = stored.id();
        let mut batch = Batch::default();
        let epoch = "00c0ffee00c0ffee".into();
        batch.put_session("ann", &StoredSession { epoch, offset: number, acknowledged: 0, lost: 0 });
        batch.put_subscription("ann", "s", r#"{"filters":[{}],"durable":true}"#);
        let position = StoredPosition { coordinates: [1.0, 2.0, 0.0], accuracy_m: 3.0, received_ms: number };
        batch.put_position("ann", &position);
        batch.put_body(&stored, r#"{"type":"Feature"}"#, number);
        let (object, id) = (format!("key:{number}").into(), "e".into());
        let live = StoredLive { object, id, sequence: number, expires_ms: 1 << 50, is_revoked: false, body };
        batch.put_live(&live);
        batch.keep(
            "ann",
            &StoredMatch {
                offset: number,
                subscriptions: SubscriptionIds::One("\"s\"".into()),
                cause: Cause::Published,
                transition: Some(Transition::Enter),
                at_ms: number,
                body,
            },
        );
        let standing = StoredStanding { sequence: number, waits: Some((number, Cause::Moved)) };
        batch.put_standing("ann", "s", &live.object, &standing);
        store.commit(&batch).expect("there is room");
        handles.push(stored);
        if number < 4 {
            while store.idle() {}
        }
    }
    disk.bytes()
});

/// All that was recovered, whatever its order.
fn picture(recovered: &Recovered) -> Vec<String> {
    let show = |what: &[&dyn Debug]| format!("{what:?}");
    let live = recovered.live.iter().map(|one| show(&[&one.live, &one.body.text]));
    let clients = recovered.clients.iter().flat_map(|client| {
        let name = &client.name;
        let mut subscriptions: Vec<_> = client.subscriptions.iter().collect();
        subscriptions.sort_by(|a, b| a.id.cmp(&b.id));
        let subscriptions = subscriptions.into_iter().map(move |one| format!("{name:?} {one:?}"));
        let kept = client.kept.iter().map(move |one| format!("{name:?} {:?} {:?}", one.kept, one.body.text));
        let whole = format!("{name:?} {:?} {:?}", client.session, client.position);
        subscriptions.chain(kept).chain([whole])
    });
    let mut lines: Vec<_> = live.chain(clients).collect();
    lines.sort_unstable();
    lines
}
