//! Reading everything back: the tables, and over them the log in the order of its rows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::Arc;

use redb::{ReadTransaction, ReadableTable as _, ReadableTableMetadata as _};

use super::batch::Batch;
use super::error::StoreError;
use super::fold::Bodies;
use super::format::{LOG, LogRow, Meta};
use super::kept::read_row;
use super::keys::{self, NO_KEY, Table};
use super::records::{
    BodyRecord, LiveRecord, MatchRecord, StandingRecord, StoredDecisions, StoredFinding, StoredFrontier,
    StoredLive, StoredMatch, StoredPosition, StoredPush, StoredSession, StoredStanding, StoredState, unseal,
};
use super::window::{Changes, Point, Window};
use crate::model::delivery::SubscriptionIds;
use crate::model::record::{BodyId, Dropped, StoredBody};

/// The data that were found on disk.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) clients: Vec<RecoveredClient>,
    pub(crate) live: Vec<RecoveredLive>,
    /// Older live events of some of these objects. A shard may not have come to the newer one, and then tells exits with these.
    pub(crate) overtaken: Vec<RecoveredLive>,
    /// When the broker is known to have run last, in Unix milliseconds, by a time that was not in doubt: what a commit said, or when
    /// the last event came of those whose texts are there.
    pub(crate) latest_ms: Option<u64>,
    /// By what clients are dealt out among shards.
    pub(crate) dealing: u64,
    /// How far each shard has read the stream of events of the cluster.
    pub(crate) frontiers: Vec<(u32, StoredFrontier)>,
    /// The last finding of each situation that it brought, by the shard and the situation's client.
    pub(crate) findings: Vec<(u32, Arc<str>, StoredFinding)>,
    /// Whether something of a deleted client is still in the file.
    pub(super) owes_wipe: bool,
}

/// A client. Some have nothing but a position, or a session without a subscription.
#[derive(Debug)]
pub(crate) struct RecoveredClient {
    pub(crate) name: Arc<str>,
    pub(crate) session: Option<StoredSession>,
    /// To what all of it is confined.
    pub(crate) confinement: Option<Arc<str>>,
    pub(crate) position: Option<StoredPosition>,
    pub(crate) push: Option<StoredPush>,
    /// The state of a situation, with the version of its document.
    pub(crate) state: Option<(Arc<str>, StoredState)>,
    /// What it did since, with the version of its document.
    pub(crate) decisions: Option<(Arc<str>, StoredDecisions)>,
    /// Subscriptions, in the order of their ids.
    pub(crate) subscriptions: Vec<RecoveredSubscription>,
    /// Kept matches, in the order of their offsets.
    pub(crate) kept: Vec<RecoveredMatch>,
}

/// A subscription.
#[derive(Debug)]
pub(crate) struct RecoveredSubscription {
    pub(crate) id: Arc<str>,
    pub(crate) text: Arc<str>,
    pub(crate) standings: Vec<(Arc<str>, StoredStanding)>,
}

/// A body. All that refer to it share it.
#[derive(Clone, Debug)]
pub(crate) struct RecoveredBody {
    pub(crate) text: Arc<str>,
    pub(crate) received_ms: u64,
    pub(crate) stored: Arc<StoredBody>,
}

/// A kept match.
#[derive(Debug)]
pub(crate) struct RecoveredMatch {
    pub(crate) kept: StoredMatch,
    pub(crate) body: RecoveredBody,
}

/// A live event.
#[derive(Debug)]
pub(crate) struct RecoveredLive {
    pub(crate) live: StoredLive,
    pub(crate) body: RecoveredBody,
}

/// Everything in a store as it stands there; what refers to what has not been looked at.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) clients: Vec<ClientContents>,
    pub(super) live: Vec<StoredLive>,
    pub(super) bodies: HashMap<BodyId, (Arc<str>, u64)>,
    pub(super) log: LogState,
    pub(super) references: Bodies,
    latest_ms: Option<u64>,
    dealing: u64,
    frontiers: Vec<(u32, StoredFrontier)>,
    findings: Vec<(u32, Arc<str>, StoredFinding)>,
    owes_wipe: bool,
    ids: HashMap<Arc<str>, usize, foldhash::fast::RandomState>,
    /// Names of the last kept match, as they are written and as they were read.
    names: Option<(Box<str>, SubscriptionIds)>,
}

/// A client's part of them.
#[derive(Debug)]
pub(super) struct ClientContents {
    pub(super) name: Arc<str>,
    pub(super) session: Option<StoredSession>,
    pub(super) confinement: Option<Arc<str>>,
    pub(super) position: Option<StoredPosition>,
    pub(super) push: Option<StoredPush>,
    pub(super) state: Option<(Arc<str>, StoredState)>,
    pub(super) decisions: Option<(Arc<str>, StoredDecisions)>,
    pub(super) subscriptions: Vec<RecoveredSubscription>,
    pub(super) kept: Vec<StoredMatch>,
    /// Subscription and object of standings whose subscription there is not.
    pub(super) loose: Vec<(Box<str>, Box<str>)>,
}

/// Records that are removed with the first commit, for nobody has them any more.
#[derive(Debug, Default)]
pub(super) struct Cleanup {
    pub(super) batch: Batch,
    /// Records among it that refer to something that is not there. Neither a kill nor a loss of power leaves such ones, for what
    /// refers to something is committed with it or behind it, and goes with it or before; a check calls them damaged.
    pub(super) dangling_count: u64,
}

/// The part of the log that is not in the tables yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogState {
    /// The number of the last commit.
    pub(super) last: u64,
    /// The number of the last commit that is in the tables.
    pub(super) folded: u64,
    pub(super) bytes: u64,
    pub(super) next_body: u64,
}

/// Told of everything that is not as it was written; an error ends the reading.
pub(super) type Fault<'a> = dyn FnMut(String) -> Result<(), StoreError> + 'a;
/// Told of rows read, and of how many there are.
pub(super) type Tick<'a> = dyn FnMut(u64, u64) + 'a;

/// Reads all of a store.
pub(super) fn read(
    txn: &ReadTransaction,
    meta: &Meta,
    path: &Path,
    tick: &mut Tick<'_>,
    fault: &mut Fault<'_>,
) -> Result<Contents, StoreError> {
    let of = |error: redb::Error| StoreError::of("read", path, error);
    let mut contents = Contents { latest_ms: meta.believed_ms, dealing: meta.dealing, ..Contents::default() };
    let mut counts = [0; Table::ALL.len()];
    for table in Table::ALL {
        let rows = txn.open_table(table.rows()).map_err(|error| of(error.into()))?;
        counts[table as usize] = rows.len().map_err(|error| of(error.into()))?;
    }
    let total = counts.iter().sum();
    let (log, window) = read_log(txn, meta, path, fault)?;
    contents.log = log;
    let mut done = 0;
    for table in Table::ALL {
        let rows = txn.open_table(table.rows()).map_err(|error| of(error.into()))?;
        let mut puts = puts_of(window.of(table)).peekable();
        for row in rows.iter().map_err(|error| of(error.into()))? {
            let (key, value) = row.map_err(|error| of(error.into()))?;
            let (key, value) = (key.value(), value.value());
            while let Some((new, put)) = puts.next_if(|(new, _)| **new < *key) {
                contents.take_in(table, new, put, fault)?;
            }
            if table == Table::Kept {
                if let Err(what) = contents.kept_row(key, value, &window) {
                    fault(say(table, key, what))?;
                }
            } else {
                contents.count_in(table, key, value, fault)?;
                if window.of(table).keeps(key) {
                    contents.take_in(table, key, value, fault)?;
                }
            }
            done += 1;
            if done % 4_096 == 0 {
                tick(done, total);
            }
        }
        for (new, put) in puts {
            contents.take_in(table, new, put, fault)?;
        }
    }
    for (client, new) in window.kept.new_matches() {
        if let Err(what) = contents.keep(client, new) {
            fault(format!("offset {} of client {client:?} in the log {what}", new.offset))?;
        }
    }
    contents.put_in_order();
    tick(done, total);
    Ok(contents)
}

fn puts_of(changes: &Changes) -> impl Iterator<Item = (&[u8], &[u8])> {
    changes.points.iter().filter_map(|(key, point)| match point {
        Point::Put(value) => Some((&**key, &**value)),
        Point::Remove => None,
    })
}

/// The number of the last commit.
pub(super) fn last_commit(txn: &ReadTransaction, meta: &Meta) -> Result<u64, redb::Error> {
    let log = txn.open_table(LOG)?;
    let last = log.last()?.map_or(0, |(number, _)| number.value());
    Ok(last.max(meta.folded.number))
}

fn read_log(
    txn: &ReadTransaction,
    meta: &Meta,
    path: &Path,
    fault: &mut Fault<'_>,
) -> Result<(LogState, Window), StoreError> {
    let of = |error: redb::Error| StoreError::of("read", path, error);
    let mut window = Window::default();
    let folded = meta.folded.number;
    let mut state = LogState { last: folded, folded, bytes: 0, next_body: meta.folded.next_body };
    let log = txn.open_table(LOG).map_err(|error| of(error.into()))?;
    let mut next = None;
    for row in log.iter().map_err(|error| of(error.into()))? {
        let (number, row) = row.map_err(|error| of(error.into()))?;
        let (number, row) = (number.value(), row.value());
        // The first rows may have gone already, of those that are in the tables.
        let is_next = next.map_or(number <= folded.saturating_add(1), |next| number == next);
        if !is_next {
            fault(format!("commits before number {number} are not there"))?;
        }
        match LogRow::unseal(number, row) {
            Ok(read) => {
                state.next_body = state.next_body.max(read.next_body);
                if let Err(what) = window.take_in(read.ops) {
                    fault(format!("commit {number} {what}"))?;
                }
            }
            Err(what) => fault(format!("commit {number} {what}"))?,
        }
        next = Some(number.saturating_add(1));
        state.last = state.last.max(number);
        state.bytes += row.len() as u64;
    }
    if state.last == u64::MAX {
        fault(format!("there is no number for a commit after {}", state.last))?;
    }
    Ok((state, window))
}

impl Contents {
    /// Counts what a row in a table refers to, whether it still counts or not.
    fn count_in(
        &mut self,
        table: Table,
        key: &[u8],
        value: &[u8],
        fault: &mut Fault<'_>,
    ) -> Result<(), StoreError> {
        match body_of(table, key, value) {
            Ok(Some(body)) => self.references.refer(body),
            Ok(None) => {}
            Err(what) => fault(say(table, key, what))?,
        }
        if table == Table::Bodies
            && let Some(body) = keys::number(key)
        {
            self.references.stored(body);
        }
        Ok(())
    }

    pub(super) fn take_in(
        &mut self,
        table: Table,
        key: &[u8],
        value: &[u8],
        fault: &mut Fault<'_>,
    ) -> Result<(), StoreError> {
        match self.decode(table, key, value) {
            Ok(()) => Ok(()),
            Err(what) => fault(say(table, key, what)),
        }
    }

    fn decode(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
        match table {
            Table::Subscriptions => {
                let (client, id) = owned(key)?;
                let text: &str = unseal(table, key, value)?;
                let (id, text) = (text_of(id)?, text.into());
                let client = self.client(client);
                if id.is_empty() {
                    client.confinement = Some(text);
                } else {
                    let (id, standings) = (id.into(), Vec::new());
                    client.subscriptions.push(RecoveredSubscription { id, text, standings });
                }
            }
            Table::Positions => self.client(owned(key)?.0).position = Some(unseal(table, key, value)?),
            Table::Sessions => self.client(owned(key)?.0).session = Some(unseal(table, key, value)?),
            Table::Push => self.client(owned(key)?.0).push = Some(unseal(table, key, value)?),
            Table::States => {
                let (client, version) = owned(key)?;
                if let Some(version) = keys::of_decisions(version) {
                    let decisions = (text_of(version)?.into(), unseal(table, key, value)?);
                    self.client(client).decisions = Some(decisions);
                } else {
                    let state = (text_of(version)?.into(), unseal(table, key, value)?);
                    self.client(client).state = Some(state);
                }
            }
            Table::Kept => return Err("is a change of its own"),
            Table::Standings => {
                let (client, rest) = owned(key)?;
                let (subscription, object) = keys::split(rest).ok_or(NO_KEY)?;
                let object = text_of(object)?;
                let record: StandingRecord = unseal(table, key, value)?;
                let standing = record.read().ok_or(NO_VALUE)?;
                let client = self.client(client);
                let found = client.subscriptions.binary_search_by(|one| (*one.id).cmp(subscription));
                match found {
                    Ok(index) => client.subscriptions[index].standings.push((object.into(), standing)),
                    Err(_) => client.loose.push((subscription.into(), object.into())),
                }
            }
            Table::Live => {
                let (object, sequence) = keys::split_live(key).ok_or(NO_KEY)?;
                let record: LiveRecord<'_> = unseal(table, key, value)?;
                self.live.push(record.under(object, sequence));
            }
            Table::Bodies => {
                // The last number is given to none, so that there is one after each.
                let id = keys::number(key).filter(|id| *id < u64::MAX).ok_or(NO_KEY)?;
                let BodyRecord { text, received_ms } = unseal(table, key, value)?;
                self.latest_ms = self.latest_ms.max(Some(received_ms));
                self.bodies.insert(BodyId(id), (text.into(), received_ms));
                self.log.next_body = self.log.next_body.max(id + 1);
            }
            Table::Frontiers => {
                let shard = keys::shard_of(key).ok_or(NO_KEY)?;
                self.frontiers.push((shard, unseal(table, key, value)?));
            }
            Table::Findings => {
                let (shard, client) = keys::of_finding(key).ok_or(NO_KEY)?;
                self.findings.push((shard, client.into(), unseal(table, key, value)?));
            }
            Table::Wipe => {
                unseal::<()>(table, key, value)?;
                self.owes_wipe = true;
            }
        }
        Ok(())
    }

    /// Takes in what is still kept of a row.
    fn kept_row(&mut self, key: &[u8], value: &[u8], window: &Window) -> Result<(), &'static str> {
        let (client, _, _) = keys::split_kept(key).ok_or(NO_KEY)?;
        let changes = window.kept.of(client);
        for one in read_row(key, value)? {
            self.references.refer(one.matched.body);
            if changes.is_none_or(|changes| changes.keeps(one.offset)) {
                self.keep(client, one)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, client: &str, record: MatchRecord<'_>) -> Result<(), &'static str> {
        // Mostly the same as of the one before, which then share them.
        let same = self.names.take().filter(|(written, _)| **written == *record.subscriptions);
        let (written, names) = same.unwrap_or_else(|| (record.subscriptions.into(), record.names()));
        let kept = record.read(names.clone()).ok_or(NO_VALUE)?;
        self.names = Some((written, names));
        self.client(client).kept.push(kept);
        Ok(())
    }

    /// Sorts the kept matches of each client, since those from the log may belong between those from the table. Moves each
    /// session to its last match: the session's own record does not repeat that offset.
    fn put_in_order(&mut self) {
        for ClientContents { kept, session, .. } in &mut self.clients {
            kept.sort_by_key(|one| one.offset);
            if let (Some(session), Some(last)) = (session, kept.last()) {
                session.offset = session.offset.max(last.offset);
            }
        }
    }

    /// Gives all sessions new epochs, and says what of it has to be written.
    pub(super) fn begin_epochs(&mut self) -> Batch {
        begin_epochs(self.clients.iter_mut().map(|client| (&*client.name, client.session.as_mut())))
    }

    fn client(&mut self, name: &str) -> &mut ClientContents {
        let index = match self.ids.get(name) {
            Some(index) => *index,
            None => {
                let (index, name) = (self.clients.len(), Arc::<str>::from(name));
                self.ids.insert(Arc::clone(&name), index);
                self.clients.push(ClientContents::new(name));
                index
            }
        };
        &mut self.clients[index]
    }

    /// Puts handles to the bodies, and leaves out what refers to a body that is not there, or to a subscription.
    ///
    /// The newest of the live events of an object is live. Older ones are nothing special: the record of one goes when the
    /// last shard has let go of it, some time after the newer one's was put.
    pub(super) fn recover(self, dropped: &Arc<Dropped>) -> (Recovered, Cleanup) {
        let Self { clients, live, bodies, latest_ms, dealing, frontiers, findings, owes_wipe, .. } = self;
        let handle = |(id, (text, received_ms))| {
            let stored = StoredBody::new(id, true, dropped);
            (id, RecoveredBody { text, received_ms, stored })
        };
        // Of those that nobody takes the last handle goes here.
        let bodies: HashMap<_, _> = bodies.into_iter().map(handle).collect();
        let mut cleanup = Cleanup::default();
        let mut newest: HashMap<Arc<str>, RecoveredLive> = HashMap::new();
        let mut overtaken = Vec::new();
        for live in live {
            let Some(body) = bodies.get(&live.body) else {
                cleanup.batch.remove_live(&live.object, live.sequence);
                cleanup.dangling_count += 1;
                continue;
            };
            let found = RecoveredLive { live, body: body.clone() };
            overtaken.push(match newest.entry(Arc::clone(&found.live.object)) {
                Entry::Vacant(entry) => {
                    entry.insert(found);
                    continue;
                }
                Entry::Occupied(mut entry) if entry.get().live.sequence < found.live.sequence => {
                    entry.insert(found)
                }
                Entry::Occupied(_) => found,
            });
        }
        let mut live: Vec<_> = newest.into_values().collect();
        live.sort_unstable_by_key(|one| one.live.sequence);
        overtaken.sort_unstable_by_key(|one| one.live.sequence);
        let clients = clients.into_iter().map(|client| client.recover(&bodies, &mut cleanup)).collect();
        (Recovered { clients, live, overtaken, latest_ms, dealing, frontiers, findings, owes_wipe }, cleanup)
    }
}

impl Recovered {
    /// Gives all sessions new epochs, and says what of it has to be written. The stream of events is read from its beginning, for nobody knows
    /// any more what of it was read.
    pub(super) fn begin_epochs(&mut self) -> Batch {
        self.frontiers.clear();
        let mut batch =
            begin_epochs(self.clients.iter_mut().map(|client| (&*client.name, client.session.as_mut())));
        batch.remove_frontiers();
        batch
    }
}

fn begin_epochs<'a>(clients: impl Iterator<Item = (&'a str, Option<&'a mut StoredSession>)>) -> Batch {
    let mut batch = Batch::default();
    for (name, session) in clients {
        if let Some(session) = session {
            session.epoch = StoredSession::new_epoch();
            batch.put_session(name, session);
        }
    }
    batch
}

impl ClientContents {
    fn new(name: Arc<str>) -> Self {
        let (subscriptions, kept, loose) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            name,
            session: None,
            confinement: None,
            position: None,
            push: None,
            state: None,
            decisions: None,
            subscriptions,
            kept,
            loose,
        }
    }

    fn recover(self, bodies: &HashMap<BodyId, RecoveredBody>, cleanup: &mut Cleanup) -> RecoveredClient {
        let Self { name, session, confinement, position, push, state, decisions, subscriptions, kept, loose } =
            self;
        cleanup.dangling_count += loose.len() as u64;
        for (subscription, object) in loose {
            cleanup.batch.remove_standing(&name, &subscription, &object);
        }
        let with_body = |kept: StoredMatch| match bodies.get(&kept.body) {
            Some(body) => Some(RecoveredMatch { kept, body: body.clone() }),
            None => {
                cleanup.batch.forget_kept(&name, kept.offset..=kept.offset);
                cleanup.dangling_count += 1;
                None
            }
        };
        let kept = kept.into_iter().filter_map(with_body).collect();
        RecoveredClient { name, session, confinement, position, push, state, decisions, subscriptions, kept }
    }
}

const NO_VALUE: &str = "says something that there is not";

fn owned(key: &[u8]) -> Result<(&str, &[u8]), &'static str> {
    keys::split(key).ok_or(NO_KEY)
}

fn text_of(bytes: &[u8]) -> Result<&str, &'static str> {
    std::str::from_utf8(bytes).map_err(|_| NO_KEY)
}

/// Describes the fault of a row. Of clients it gives the name, never the position.
fn say(table: Table, key: &[u8], what: &str) -> String {
    let key = match table {
        Table::Bodies => keys::number(key).map_or_else(|| "?".to_owned(), |number| number.to_string()),
        Table::Kept => keys::split_kept(key)
            .map_or_else(|| "?".to_owned(), |(client, first, last)| format!("{client:?} {first} to {last}")),
        Table::Subscriptions
        | Table::Positions
        | Table::Sessions
        | Table::Standings
        | Table::Live
        | Table::Wipe
        | Table::Push
        | Table::States
        | Table::Frontiers
        | Table::Findings => {
            format!("{:?}", String::from_utf8_lossy(key))
        }
    };
    format!("the record {key} of table {} {what}", table.name())
}

/// The body that a row refers to; those of kept matches refer to several.
pub(super) fn body_of(table: Table, key: &[u8], value: &[u8]) -> Result<Option<u64>, &'static str> {
    match table {
        Table::Live => unseal(table, key, value).map(|live: LiveRecord<'_>| Some(live.body)),
        Table::Subscriptions
        | Table::Positions
        | Table::Sessions
        | Table::Kept
        | Table::Standings
        | Table::Bodies
        | Table::Wipe
        | Table::Push
        | Table::States
        | Table::Frontiers
        | Table::Findings => Ok(None),
    }
}
