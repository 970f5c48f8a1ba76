//! Positions of clients, and the subscriptions of each client.

use super::NONE;
use super::slab::Slab;
use crate::geo::Position;

/// Subscriptions and clients by number; each subscription has the numbers of its records, one for each conjunction
/// of each filter, whatever an engine takes those for. Beside each client there is what the engine keeps for it.
#[derive(Debug, Default)]
pub struct Roster<C = ()> {
    subscriptions: Slab<Held>,
    subscriptions_count: usize,
    clients: Slab<Client<C>>,
}

/// A subscription, in the list of its client's.
#[derive(Debug)]
struct Held {
    installed: bool,
    client: u32,
    records: Vec<u32>,
    previous: u32,
    next: u32,
}

impl Default for Held {
    fn default() -> Self {
        Self { installed: false, client: NONE, records: Vec::new(), previous: NONE, next: NONE }
    }
}

#[derive(Clone, Copy, Debug)]
struct Client<C> {
    position: Option<Position>,
    first_subscription: u32,
    payload: C,
}

impl<C: Default> Default for Client<C> {
    fn default() -> Self {
        Self { position: None, first_subscription: NONE, payload: C::default() }
    }
}

impl<C: Default> Roster<C> {
    /// Nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many subscriptions there are.
    #[must_use]
    pub fn subscriptions_count(&self) -> usize {
        self.subscriptions_count
    }

    /// Whether there is such a subscription.
    #[must_use]
    pub fn is_installed(&self, subscription: u32) -> bool {
        self.subscriptions.get(subscription).is_some_and(|held| held.installed)
    }

    /// Adds a subscription without records. There is none of that number.
    pub fn enter(&mut self, subscription: u32, client: u32) {
        self.subscriptions.grow_to(subscription);
        self.clients.grow_to(client);
        let next = std::mem::replace(&mut self.clients[client].first_subscription, subscription);
        if next != NONE {
            self.subscriptions[next].previous = subscription;
        }
        self.subscriptions[subscription] =
            Held { installed: true, client, records: Vec::new(), previous: NONE, next };
        self.subscriptions_count += 1;
    }

    /// Takes a subscription out and answers its client and its records.
    pub fn leave(&mut self, subscription: u32) -> (u32, Vec<u32>) {
        let held = std::mem::take(&mut self.subscriptions[subscription]);
        match held.previous {
            NONE => self.clients[held.client].first_subscription = held.next,
            previous => self.subscriptions[previous].next = held.next,
        }
        if held.next != NONE {
            self.subscriptions[held.next].previous = held.previous;
        }
        self.subscriptions_count -= 1;
        (held.client, held.records)
    }

    /// The client that a subscription belongs to.
    #[inline]
    #[must_use]
    pub fn client(&self, subscription: u32) -> u32 {
        self.subscriptions[subscription].client
    }

    /// The records of a subscription.
    #[inline]
    #[must_use]
    pub fn records(&self, subscription: u32) -> &[u32] {
        &self.subscriptions[subscription].records
    }

    /// The records of a subscription, to add to them.
    pub fn records_mut(&mut self, subscription: u32) -> &mut Vec<u32> {
        &mut self.subscriptions[subscription].records
    }

    /// The records of all subscriptions of a client.
    pub fn records_of_client(&self, client: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.clients.get(client).map_or(NONE, |client| client.first_subscription);
        let some = |subscription| (subscription != NONE).then_some(subscription);
        std::iter::successors(some(first), move |subscription| some(self.subscriptions[*subscription].next))
            .flat_map(|subscription| self.records(subscription))
            .copied()
    }

    /// Position of a client.
    #[inline]
    #[must_use]
    pub fn position(&self, client: u32) -> Option<&Position> {
        self.clients.get(client)?.position.as_ref()
    }

    /// Tells where a client is now; answers where it was.
    pub fn set_position(&mut self, client: u32, position: Option<Position>) -> Option<Position> {
        self.clients.grow_to(client);
        std::mem::replace(&mut self.clients[client].position, position)
    }

    /// What the engine keeps for a client that has told a position or has had a subscription.
    #[inline]
    #[must_use]
    pub fn payload(&self, client: u32) -> &C {
        &self.clients[client].payload
    }

    /// What the engine keeps for such a client, to change it.
    #[inline]
    pub fn payload_mut(&mut self, client: u32) -> &mut C {
        &mut self.clients[client].payload
    }

    /// Bytes allocated, the lists of records aside.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.subscriptions.bytes() + self.clients.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_records_of_a_client_are_those_of_its_subscriptions() {
        let mut roster: Roster = Roster::new();
        for (subscription, client) in [(3, 1), (0, 1), (7, 2), (5, 1)] {
            roster.enter(subscription, client);
            roster.records_mut(subscription).extend([subscription * 10, subscription * 10 + 1]);
        }
        let of_client = |roster: &Roster, client| {
            let mut records: Vec<u32> = roster.records_of_client(client).collect();
            records.sort_unstable();
            records
        };
        assert_eq!(of_client(&roster, 1), [0, 1, 30, 31, 50, 51]);
        assert_eq!(roster.leave(0), (1, vec![0, 1]));
        assert_eq!(roster.leave(5), (1, vec![50, 51]));
        assert_eq!(of_client(&roster, 1), [30, 31]);
        assert_eq!(of_client(&roster, 2), [70, 71]);
        assert_eq!(of_client(&roster, 9), [0; 0]);
        assert!(roster.is_installed(3) && !roster.is_installed(0) && !roster.is_installed(1_000));
        assert_eq!(roster.subscriptions_count(), 2);
    }
}
