//! The host's side of a share's table: which filter each entry is, where its constraints lie, and which entries follow
//! which client.

use kernels::gpu::NONE;
use matcher::compiled::slab::Slab;

use super::arena::Arena;
use crate::numbering::Numbering;

/// A share's filters and clients by numbers of its own without gaps, and what its device does not know of them yet.
#[derive(Debug)]
pub(super) struct Entries {
    /// By the numbers of `filters`.
    entries: Slab<Entry>,
    filters: Numbering,
    /// By the numbers of `client_ids`.
    clients: Slab<Client>,
    client_ids: Numbering,
    arena: Arena,
    live: usize,
    changes: Changes,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    live: bool,
    /// More than its link has changed.
    changed: bool,
    /// It is in the list of changes.
    listed: bool,
    constraints_len: u8,
    constraints_start: u32,
    /// The client whose list it is in, the entries before and behind it there.
    client: u32,
    previous: u32,
    next: u32,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            live: false,
            changed: false,
            listed: false,
            constraints_len: 0,
            constraints_start: 0,
            client: NONE,
            previous: NONE,
            next: NONE,
        }
    }
}

/// A client whose filters follow it, with the list of their entries.
#[derive(Clone, Copy, Debug)]
struct Client {
    head: u32,
    following: u32,
    head_listed: bool,
    /// Where its move was listed last; it may have been settled since.
    moved_at: u32,
}

impl Default for Client {
    fn default() -> Self {
        Self { head: NONE, following: 0, head_listed: false, moved_at: NONE }
    }
}

/// Changes that the device is to be told.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Entries whose record or link has changed, each once.
    pub(super) entries: Vec<u32>,
    /// Clients whose lists begin elsewhere, each once.
    pub(super) heads: Vec<u32>,
    /// Clients that have moved, each once.
    pub(super) moved: Vec<Moved>,
}

/// A client that has moved. All that a flush needs lies here: tables as long as there are clients are in no cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moved {
    pub(super) client: u32,
    /// How many entries follow it.
    pub(super) following: u32,
    /// Where it is now; not a number when nowhere.
    pub(super) position: [f32; 3],
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.heads.is_empty() && self.moved.is_empty()
    }
}

impl Entries {
    pub(super) fn new() -> Self {
        Self {
            entries: Slab::new(),
            filters: Numbering::new(),
            clients: Slab::new(),
            client_ids: Numbering::new(),
            arena: Arena::default(),
            live: 0,
            changes: Changes::default(),
        }
    }

    /// Whether this number of further constraints is sure to have numbers.
    pub(super) fn has_room(&self, constraints: usize) -> bool {
        self.arena.has_room(constraints)
    }

    /// Adds a filter with `constraints_len` constraints, for which there is room, in the list of a client if it follows
    /// that.
    pub(super) fn enter(&mut self, filter: u32, constraints_len: usize, client: Option<u32>) {
        let constraints_start = self.arena.acquire(constraints_len).expect("room was asked for");
        let number = self.filters.enter(filter);
        self.entries.grow_to(number);
        self.live += 1;
        let entry = &mut self.entries[number];
        *entry = Entry {
            live: true,
            listed: entry.listed,
            constraints_len: u8::try_from(constraints_len).expect("a conjunction has 32 constraints at most"),
            constraints_start,
            ..Entry::default()
        };
        if let Some(client) = client {
            let client = self.client_ids.enter(client);
            self.clients.grow_to(client);
            let next = self.clients[client].head;
            (self.entries[number].client, self.entries[number].next) = (client, next);
            if next != NONE {
                self.entries[next].previous = number;
            }
            self.clients[client].following += 1;
            if let Some(moved) = self.move_of(client) {
                moved.following += 1;
            }
            self.set_head(client, number);
        }
        self.list(number, true);
    }

    /// Takes a filter out.
    pub(super) fn leave(&mut self, filter: u32) {
        let Some(number) = self.filters.leave(filter) else { return };
        let Entry { constraints_start, constraints_len, client, previous, next, .. } = self.entries[number];
        self.arena.release(constraints_start, constraints_len.into());
        self.live -= 1;
        if client != NONE {
            self.clients[client].following -= 1;
            if let Some(moved) = self.move_of(client) {
                moved.following -= 1;
            }
            if next != NONE {
                self.entries[next].previous = previous;
            }
            if previous == NONE {
                self.set_head(client, next);
            } else {
                self.entries[previous].next = next;
                self.list(previous, false);
            }
        }
        self.entries[number] = Entry { listed: self.entries[number].listed, ..Entry::default() };
        self.list(number, true);
    }

    /// A client has moved there; not a number when nowhere.
    pub(super) fn moved(&mut self, client: u32, position: [f32; 3]) {
        let Some(client) = self.client_ids.number(client) else { return };
        if let Some(moved) = self.move_of(client) {
            moved.position = position;
            return;
        }
        let Client { following, moved_at, .. } = &mut self.clients[client];
        if *following > 0 {
            // There are fewer clients than numbers.
            *moved_at = u32::try_from(self.changes.moved.len()).unwrap_or(NONE);
            self.changes.moved.push(Moved { client, following: *following, position });
        }
    }

    /// The move of a client that is listed.
    fn move_of(&mut self, client: u32) -> Option<&mut Moved> {
        let at = self.clients[client].moved_at;
        self.changes.moved.get_mut(at as usize).filter(|moved| moved.client == client)
    }

    /// Changes that the device does not know yet.
    pub(super) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The device knows all changes.
    pub(super) fn settle(&mut self) {
        for number in self.changes.entries.drain(..) {
            let entry = &mut self.entries[number];
            (entry.listed, entry.changed) = (false, false);
        }
        for client in self.changes.heads.drain(..) {
            self.clients[client].head_listed = false;
        }
        self.changes.moved.clear();
    }

    /// The filter that an entry is.
    pub(super) fn filter(&self, number: u32) -> u32 {
        self.filters.id(number)
    }

    pub(super) fn is_live(&self, number: u32) -> bool {
        self.entries[number].live
    }

    pub(super) fn is_changed(&self, number: u32) -> bool {
        self.entries[number].changed
    }

    pub(super) fn next(&self, number: u32) -> u32 {
        self.entries[number].next
    }

    pub(super) fn constraints_start(&self, number: u32) -> u32 {
        self.entries[number].constraints_start
    }

    pub(super) fn constraints_len(&self, number: u32) -> u32 {
        self.entries[number].constraints_len.into()
    }

    pub(super) fn head(&self, client: u32) -> u32 {
        self.clients[client].head
    }

    /// One past the largest number of an entry, of a client with a list, and of a constraint.
    pub(super) fn ends(&self) -> (usize, usize, usize) {
        (self.filters.len(), self.client_ids.len(), self.arena.end())
    }

    /// How many entries there are.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Bytes of the host's memory.
    pub(super) fn bytes(&self) -> usize {
        self.entries.bytes()
            + self.filters.bytes()
            + self.clients.bytes()
            + self.client_ids.bytes()
            + self.arena.bytes()
    }

    fn set_head(&mut self, client: u32, head: u32) {
        let held = &mut self.clients[client];
        held.head = head;
        if !held.head_listed {
            held.head_listed = true;
            self.changes.heads.push(client);
        }
    }

    fn list(&mut self, number: u32, changed: bool) {
        let entry = &mut self.entries[number];
        entry.changed |= changed;
        if !entry.listed {
            entry.listed = true;
            self.changes.entries.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_of(entries: &Entries, client: u32) -> u32 {
        entries.client_ids.number(client).unwrap()
    }

    /// Filters that follow a client.
    fn list_of(entries: &Entries, client: u32) -> Vec<u32> {
        let some = |number| (number != NONE).then_some(number);
        let numbers = std::iter::successors(some(entries.head(number_of(entries, client))), |number| {
            some(entries.next(*number))
        });
        let mut list: Vec<u32> = numbers.map(|number| entries.filter(number)).collect();
        list.sort_unstable();
        list
    }

    #[test]
    fn lists_of_clients_hold_the_filters_that_follow_them() {
        let mut entries = Entries::new();
        for (filter, client) in [(10, Some(5)), (11, Some(5)), (92, None), (13, Some(5)), (14, Some(7))] {
            entries.enter(filter, 2, client);
        }
        assert_eq!(
            (list_of(&entries, 5), entries.clients[number_of(&entries, 5)].following),
            (vec![10, 11, 13], 3)
        );
        assert_eq!(entries.ends(), (5, 2, 10), "numbers have no gaps");
        entries.settle();
        assert!(entries.changes().is_empty());
        for (gone, left) in [(11, vec![10, 13]), (13, vec![10]), (10, vec![])] {
            entries.leave(gone);
            assert_eq!(list_of(&entries, 5), left);
        }
        assert_eq!(list_of(&entries, 7), [14]);
        entries.moved(5, [1.0; 3]);
        entries.moved(7, [2.0; 3]);
        entries.moved(7, [3.0; 3]);
        entries.enter(16, 0, Some(7));
        let client = number_of(&entries, 7);
        let Changes { entries: listed, moved, .. } = entries.changes();
        let expected = Moved { client, following: 2, position: [3.0; 3] };
        assert_eq!(*moved, [expected], "nobody follows the other");
        let mut once = listed.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), listed.len(), "each once");
        entries.leave(16);
        assert_eq!(entries.changes().moved, [Moved { following: 1, ..expected }]);
        assert_eq!(entries.live(), 2);
        entries.settle();
        entries.moved(7, [4.0; 3]);
        assert_eq!(entries.changes().moved, [Moved { client, following: 1, position: [4.0; 3] }]);
        entries.enter(15, 2, Some(5));
        assert_eq!((list_of(&entries, 5), entries.ends()), (vec![15], (5, 2, 10)), "numbers are used again");
    }
}
