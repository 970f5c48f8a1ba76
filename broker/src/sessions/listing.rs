//! The clients of a shard for those who run the broker: how they are connected and how far behind.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use matcher::geo::Position;
use matcher::subscription::ClientId;
use tokio::sync::oneshot;
use wire::ClientFigures;

use super::{Client, Payer, Sessions};
use crate::budget::Kind;
use crate::model::{clock, tenant};
use crate::outbox::Close;

/// A place in the order of the listing: the client that is furthest behind comes first, then those for whom most is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank<N> {
    behind: Reverse<u64>,
    kept: Reverse<u64>,
    name: N,
}

/// Bytes of a standing in memory, as measured with 50 subscriptions over 10,000 live objects.
pub(super) const MEMBER_BYTES: u64 = 206;

/// The close that a client's connections get when an operator disconnects it.
const DISCONNECTED: Close = Close::new(1008, "disconnected by an operator");

impl Rank<String> {
    /// Reads a rank from the text that [`text`](Self::text) wrote.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let mut number = || Some(Reverse(parts.next()?.parse().ok()?));
        Some(Self { behind: number()?, kept: number()?, name: parts.next()?.to_owned() })
    }

    /// The first `limit` clients of several pages that begin behind the same place, with the place behind them if there are more.
    pub(crate) fn first(pages: impl IntoIterator<Item = wire::Clients>, limit: usize) -> wire::Clients {
        let (mut clients, mut is_all) = (Vec::new(), true);
        for page in pages {
            is_all &= page.next.is_none();
            clients.extend(page.clients);
        }
        clients.sort_by_cached_key(Self::of);
        is_all &= clients.len() <= limit;
        clients.truncate(limit);
        let next = clients.last().filter(|_| !is_all).map(|last| Self::of(last).text());
        wire::Clients { clients, next }
    }

    fn of(figures: &ClientFigures) -> Self {
        Self {
            behind: Reverse(figures.behind),
            kept: Reverse(figures.kept_matches),
            name: tenant::inside(figures.tenant.as_deref().unwrap_or_default(), &figures.client).into_owned(),
        }
    }

    fn text(&self) -> String {
        format!("{}:{}:{}", self.behind.0, self.kept.0, self.name)
    }
}

impl<N: std::ops::Deref<Target = str>> Rank<N> {
    fn borrowed(&self) -> Rank<&str> {
        Rank { behind: self.behind, kept: self.kept, name: &self.name }
    }
}

impl Rank<&str> {
    /// Returns the rank with the shared name in place of the borrowed one.
    fn owned(&self, name: &Arc<str>) -> Rank<Arc<str>> {
        Rank { behind: self.behind, kept: self.kept, name: Arc::clone(name) }
    }
}

/// Clients that one slice of a listing looks at: some tenths of a millisecond.
const LOOKS: usize = 2_048;

/// Listings that take turns. Others wait for one of these to end: they are one a connection at most.
const LISTINGS: usize = 8;

/// A listing that is under way.
pub(super) struct Listing {
    after: Option<Rank<String>>,
    limit: usize,
    payer: Arc<str>,
    reply: oneshot::Sender<Vec<ClientFigures>>,
    /// The first of those that were looked at.
    first: BinaryHeap<(Rank<Arc<str>>, u32)>,
    /// From this number on none was.
    next: u32,
}

impl Client {
    fn rank(&self) -> Rank<&str> {
        Rank { behind: Reverse(self.behind()), kept: Reverse(self.kept_count() as u64), name: &self.name }
    }

    /// How far the slowest connection is behind: deliveries that wait for it, or offsets of a durable session.
    fn behind(&self) -> u64 {
        self.readers.iter().map(|reader| reader.behind()).max().unwrap_or(0)
    }

    /// Bytes that are held for the client, by kind, where `waiting` bytes wait for its connections, and `members` are of its
    /// standings. Outboxes and trackers count those themselves.
    fn held(&self, waiting: u64, members: u64) -> BTreeMap<String, u64> {
        // Answers wait there, too, and are a kind of their own.
        let answers = self.account.as_ref().map_or(0, |account| account.bytes(Kind::Answers));
        let of_kind = |kind: Kind| match (kind, &self.account) {
            (Kind::Outbox, _) => waiting.saturating_sub(answers),
            (Kind::Members, _) => members,
            (_, Some(account)) => account.bytes(kind),
            (_, None) => 0,
        };
        let held = Kind::ALL.map(|kind| (kind.name().to_owned(), of_kind(kind)));
        held.into_iter().filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// Its figures, where the rank says how far behind it is: that changes all the time.
    fn figures(&self, rank: &Rank<&str>, members: usize, position: Option<Position>) -> ClientFigures {
        let waiting = self.readers.iter().map(|reader| reader.waiting());
        let (frames, bytes) = waiting.fold((0, 0), |(frames, bytes), one| (frames + one.0, bytes + one.1));
        let silence = self.readers.iter().map(|reader| reader.silence()).min();
        let as_ms = |silence: Duration| u64::try_from(silence.as_millis()).unwrap_or(u64::MAX);
        let held = self.held(bytes as u64, members as u64 * MEMBER_BYTES);
        let (tenant, client) = tenant::split(&self.name);
        ClientFigures {
            client: client.to_owned(),
            tenant: Some(tenant.to_owned()).filter(|tenant| !tenant.is_empty()),
            connections: self.readers.len() as u64,
            subscriptions: self.subscriptions.len() as u64,
            durable: self.durable.is_some(),
            behind: rank.behind.0,
            waiting_frames: frames as u64,
            waiting_bytes: bytes as u64,
            kept_matches: rank.kept.0,
            held_bytes: held.values().sum(),
            held,
            engine_ms: self.costs.total_ms(),
            silence_ms: silence.map(as_ms),
            position: position.map(|position| [position.x(), position.y()]),
        }
    }
}

impl Sessions {
    /// Begins to list the first clients behind a place, `limit` at most, in order. Cost: a look at every client, and at each of its
    /// connections, in slices between which other commands are carried out. Where many are under way, it waits.
    pub(crate) fn list_clients(
        &mut self,
        after: Option<Rank<String>>,
        limit: usize,
        payer: Arc<str>,
        reply: oneshot::Sender<Vec<ClientFigures>>,
    ) {
        let first = BinaryHeap::new();
        self.listings.push_back(Listing { after, limit, payer, reply, first, next: 0 });
    }

    /// Whether there is more to list.
    pub(super) fn is_listing(&self) -> bool {
        !self.listings.is_empty()
    }

    /// Goes on with a listing, if one is under way, for about so long as others can wait. They take turns.
    pub(crate) fn list_some(&mut self) {
        let Some(mut listing) = self.listings.pop_front() else { return };
        if listing.reply.is_closed() {
            return;
        }
        let began = clock::now();
        self.paid_by(Payer::Name(Arc::clone(&listing.payer)));
        let is_over = !self.look(&mut listing);
        if is_over {
            let ranked = listing.first.into_sorted_vec().into_iter();
            let figures = |(rank, number): (Rank<Arc<str>>, u32)| {
                let position = self.tracker.fix(ClientId(number)).and_then(|fix| self.shown(fix));
                // By now it may be another one's number.
                let client = self.clients.get(number).filter(|client| client.name == rank.name)?;
                let members = self.tracker.members_of(ClientId(number));
                Some(client.figures(&rank.borrowed(), members, position))
            };
            // Whoever asked may be gone.
            let _ = listing.reply.send(ranked.filter_map(figures).collect());
        } else {
            self.listings.insert(self.listings.len().min(LISTINGS - 1), listing);
        }
        self.charge(clock::now().saturating_duration_since(began), Duration::ZERO);
    }

    /// Looks at some more clients; says whether there were any.
    fn look(&self, listing: &mut Listing) -> bool {
        let Some(clients) = self.clients.numbered(listing.next, LOOKS) else { return false };
        for (number, client) in clients {
            let rank = client.rank();
            if listing.after.as_ref().is_some_and(|after| rank <= after.borrowed()) {
                continue;
            }
            if listing.first.len() == listing.limit {
                if listing.first.peek().is_some_and(|(last, _)| rank >= last.borrowed()) {
                    continue;
                }
                listing.first.pop();
            }
            listing.first.push((rank.owned(&client.name), number));
        }
        listing.next = listing.next.saturating_add(u32::try_from(LOOKS).unwrap_or(u32::MAX));
        true
    }

    /// Ends the connections of a client, without what waits for them, and the subscriptions that end with them: whether a
    /// connection still answers or not, nothing of it is left here.
    pub(crate) fn disconnect(&mut self, name: &str) {
        let Some(client) = self.ids.get(name).and_then(|id| self.clients.get(*id)) else { return };
        let is_durable = client.durable.is_some();
        let mut connections = Vec::new();
        for reader in &client.readers {
            let lost = reader.abandon(DISCONNECTED);
            // Of a durable session it stays kept.
            if !is_durable {
                self.metrics.dropped.add(lost);
            }
            connections.push(reader.connection);
        }
        for connection in connections {
            self.detach(name, connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_whatever_the_name() {
        for name in ["car", "a:b:c", ":", "7:7:x"] {
            let rank = Rank { behind: Reverse(3), kept: Reverse(u64::MAX), name: name.to_owned() };
            assert_eq!(Rank::read(&rank.text()), Some(rank));
        }
        for text in ["", "3", "3:4", "x:4:car", "-1:4:car", ":4:car"] {
            assert_eq!(Rank::read(text), None, "{text}");
        }
    }
}
