//! Kept matches: what becomes of them in a run of log rows, and the rows of their table.
//!
//! A row holds some of one client's, so that a client costs a fold one row and not one for each match. What was kept and
//! acknowledged between two folds never gets there.

use std::collections::{BTreeMap, HashMap, VecDeque};

use foldhash::fast::RandomState;
use redb::ReadableTable as _;

use super::fold::{Bodies, Broken, Rows};
use super::keys::{self, Table};
use super::records::{MatchRecord, Matched, seal, unseal};

/// The effect of a run of log rows on kept matches. Memory: some 40 bytes a match that is kept and not forgotten again.
#[derive(Debug, Default)]
pub(super) struct Kept {
    clients: HashMap<Box<str>, KeptChanges, RandomState>,
    /// Events of the new matches.
    matched: Vec<Matched>,
    /// The subscriptions of new matches, one after the other.
    names: String,
    /// Changes of clients that are not in the table yet, the first of them last.
    left: Vec<(Box<str>, KeptChanges)>,
}

/// Changes of a client's matches: first the offsets go, then the new matches count.
#[derive(Debug, Default)]
pub(super) struct KeptChanges {
    /// First -> last. They do not touch.
    gone: BTreeMap<u64, u64>,
    /// New matches, in the order of their offsets.
    new: VecDeque<NewMatch>,
}

#[derive(Clone, Copy, Debug)]
struct NewMatch {
    offset: u64,
    /// Among what new matches are of.
    matched: usize,
    /// Where its subscriptions begin, and their bytes.
    names: (usize, usize),
}

/// Matches of a row. More, and a row is longer that has to be written again when a part of it goes.
const ROW_MATCHES: usize = 128;

impl Kept {
    /// Something is matched; what is kept of it refers to it by the number.
    pub(super) fn matched(&mut self, matched: Matched) -> usize {
        self.matched.push(matched);
        self.matched.len() - 1
    }

    pub(super) fn keep(&mut self, client: &str, offset: u64, subscriptions: &str, matched: usize) {
        let names = (self.names.len(), subscriptions.len());
        self.names.push_str(subscriptions);
        let new = NewMatch { offset, matched, names };
        let changes = self.of_mut(client);
        match changes.new.back() {
            Some(last) if last.offset >= offset => {
                let index = changes.new.partition_point(|one| one.offset < offset);
                match changes.new.get_mut(index) {
                    Some(one) if one.offset == offset => *one = new,
                    _ => changes.new.insert(index, new),
                }
            }
            _ => changes.new.push_back(new),
        }
    }

    /// Forgets offsets, both ends included.
    pub(super) fn forget(&mut self, client: &str, first: u64, last: u64) {
        if first <= last {
            self.of_mut(client).forget(first, last);
        }
    }

    fn of_mut(&mut self, client: &str) -> &mut KeptChanges {
        // A name is copied only where it is new.
        if !self.clients.contains_key(client) {
            self.clients.insert(client.into(), KeptChanges::default());
        }
        self.clients.get_mut(client).expect("it is there")
    }

    pub(super) fn of(&self, client: &str) -> Option<&KeptChanges> {
        self.clients.get(client)
    }

    /// All that is new, client by client.
    pub(super) fn new_matches(&self) -> impl Iterator<Item = (&str, MatchRecord<'_>)> {
        self.clients
            .iter()
            .flat_map(|(client, changes)| changes.new.iter().map(|new| (&**client, self.record(new))))
    }

    fn record(&self, new: &NewMatch) -> MatchRecord<'_> {
        let (from, bytes) = new.names;
        MatchRecord {
            offset: new.offset,
            matched: self.matched[new.matched],
            subscriptions: &self.names[from..from + bytes],
        }
    }

    /// Puts the changes of the next client into the table, in the order of the names; says whether there was one.
    pub(super) fn put_next(&mut self, rows: &mut Rows<'_>, bodies: &mut Bodies) -> Result<bool, Broken> {
        if !self.clients.is_empty() {
            self.left = self.clients.drain().collect();
            self.left.sort_unstable_by(|a, b| b.0.cmp(&a.0));
        }
        let Some((client, changes)) = self.left.pop() else { return Ok(false) };
        for (first, last) in &changes.gone {
            for (key, value) in take_rows(rows, &client, *first, *last)? {
                put(rows, &client, &changes.staying(&key, &value, bodies)?)?;
            }
        }
        let (Some(first), Some(last)) = (changes.new.front(), changes.new.back()) else { return Ok(true) };
        // Where they are there already they come in their place, so that no row begins within another.
        let beside = take_rows(rows, &client, first.offset, last.offset)?;
        let mut matches: Vec<_> = changes.new.iter().map(|new| self.record(new)).collect();
        matches.iter().for_each(|new| bodies.refer(new.matched.body));
        for (key, value) in &beside {
            matches.append(&mut changes.staying(key, value, bodies)?);
        }
        if !beside.is_empty() {
            matches.sort_unstable_by_key(|one| one.offset);
        }
        put(rows, &client, &matches)?;
        Ok(true)
    }
}

impl KeptChanges {
    fn forget(&mut self, mut first: u64, mut last: u64) {
        let from = self.new.partition_point(|one| one.offset < first);
        let to = self.new.partition_point(|one| one.offset <= last);
        self.new.drain(from..to);
        // Those that it touches become one with it.
        while let Some((from, to)) = self.gone.range(..=last.saturating_add(1)).next_back()
            && first <= to.saturating_add(1)
        {
            let (from, to) = (*from, *to);
            self.gone.remove(&from);
            (first, last) = (first.min(from), last.max(to));
        }
        self.gone.insert(first, last);
    }

    /// Whether a match that is in the table stays there as it is.
    pub(super) fn keeps(&self, offset: u64) -> bool {
        let before = self.gone.range(..=offset).next_back();
        before.is_none_or(|(_, last)| *last < offset)
            && self.new.binary_search_by_key(&offset, |new| new.offset).is_err()
    }

    /// Returns the matches of a row that stay. The bodies of the others are not referred to any more.
    fn staying<'a>(
        &self,
        key: &[u8],
        value: &'a [u8],
        bodies: &mut Bodies,
    ) -> Result<Vec<MatchRecord<'a>>, Broken> {
        let mut matches = read_row(key, value)?;
        matches.retain(|one| {
            let stays = self.keeps(one.offset);
            if !stays {
                bodies.unrefer(one.matched.body);
            }
            stays
        });
        Ok(matches)
    }
}

/// Key and value of a row.
type Row = (Vec<u8>, Vec<u8>);

/// Takes the rows of a client out that reach into a span.
fn take_rows(rows: &mut Rows<'_>, client: &str, first: u64, last: u64) -> Result<Vec<Row>, Broken> {
    let (from, to) = (keys::kept(client, 0, 0), keys::kept(client, last, u64::MAX));
    let mut found = Vec::new();
    for row in rows.range::<&[u8]>(&*from..=&*to)?.rev() {
        let (key, value) = row?;
        let (_, _, row_last) = keys::split_kept(key.value()).ok_or(keys::NO_KEY)?;
        if row_last < first {
            break;
        }
        found.push((key.value().to_vec(), value.value().to_vec()));
    }
    for (key, _) in &found {
        rows.remove(&**key)?;
    }
    Ok(found)
}

fn put(rows: &mut Rows<'_>, client: &str, matches: &[MatchRecord<'_>]) -> Result<(), Broken> {
    let mut value = Vec::new();
    for row in matches.chunks(ROW_MATCHES) {
        if let (Some(first), Some(last)) = (row.first(), row.last()) {
            let key = keys::kept(client, first.offset, last.offset);
            seal(Table::Kept, &key, &row, &mut value);
            rows.insert(&*key, &*value)?;
        }
    }
    Ok(())
}

/// The matches in a row of the table.
pub(super) fn read_row<'a>(key: &[u8], value: &'a [u8]) -> Result<Vec<MatchRecord<'a>>, &'static str> {
    unseal(Table::Kept, key, value)
}
