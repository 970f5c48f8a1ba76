//! The host's side of the table: where the constraints of each entry lie, and which entries follow which client.

use kernels::gpu::NONE;
use matcher::compiled::slab::Slab;

use super::arena::Arena;
use crate::numbering::Numbering;

/// Entries and clients by number, and what a device does not know of them yet.
#[derive(Debug)]
pub(super) struct Entries {
    entries: Slab<Entry>,
    /// By the numbers of `numbering`.
    clients: Slab<Client>,
    numbering: Numbering,
    arena: Arena,
    entries_end: usize,
    live: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    live: bool,
    /// More than its link has changed.
    changed: bool,
    /// The shard in whose list of changes it is.
    listed: u32,
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
            listed: NONE,
            constraints_len: 0,
            constraints_start: 0,
            client: NONE,
            previous: NONE,
            next: NONE,
        }
    }
}

/// Whose entries follow.
#[derive(Clone, Copy, Debug)]
struct Client {
    head: u32,
    following: u32,
    head_listed: bool,
    moved_listed: bool,
}

impl Default for Client {
    fn default() -> Self {
        Self { head: NONE, following: 0, head_listed: false, moved_listed: false }
    }
}

/// What a shard is to be told.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) shard: u32,
    /// Entries whose record or link has changed, each once unless it has been another shard's in between.
    pub(super) entries: Vec<u32>,
    /// Clients whose lists begin elsewhere, each once, by numbers without gaps.
    pub(super) heads: Vec<u32>,
    /// Clients that have moved, each once, by the same numbers.
    pub(super) moved: Vec<u32>,
}

impl Changes {
    pub(super) fn new(shard: u32) -> Self {
        Self { shard, entries: Vec::new(), heads: Vec::new(), moved: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.heads.is_empty() && self.moved.is_empty()
    }
}

impl Entries {
    pub(super) fn new() -> Self {
        Self {
            entries: Slab::new(),
            clients: Slab::new(),
            numbering: Numbering::new(),
            arena: Arena::default(),
            entries_end: 0,
            live: 0,
        }
    }

    /// Adds an entry with so many constraints, in the list of a client if it follows that.
    pub(super) fn enter(
        &mut self,
        number: u32,
        constraints_len: usize,
        client: Option<u32>,
        changes: &mut Changes,
    ) {
        // Fewer than 2^30 entries of 32 constraints could use the numbers up; memory ends long before.
        let constraints_start = self.arena.acquire(constraints_len).expect("constraints have 32-bit numbers");
        self.entries.grow_to(number);
        self.entries_end = self.entries_end.max(number as usize + 1);
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
            let client = self.numbering.enter(client);
            self.clients.grow_to(client);
            let next = self.clients[client].head;
            (self.entries[number].client, self.entries[number].next) = (client, next);
            if next != NONE {
                self.entries[next].previous = number;
            }
            self.clients[client].following += 1;
            self.set_head(client, number, changes);
        }
        self.list(number, true, changes);
    }

    /// Takes an entry out.
    pub(super) fn leave(&mut self, number: u32, changes: &mut Changes) {
        let Entry { constraints_start, constraints_len, client, previous, next, .. } = self.entries[number];
        self.arena.release(constraints_start, constraints_len.into());
        self.live -= 1;
        if client != NONE {
            self.clients[client].following -= 1;
            if next != NONE {
                self.entries[next].previous = previous;
            }
            if previous == NONE {
                self.set_head(client, next, changes);
            } else {
                self.entries[previous].next = next;
                self.list(previous, false, changes);
            }
        }
        self.entries[number] = Entry { listed: self.entries[number].listed, ..Entry::default() };
        self.list(number, true, changes);
    }

    /// A client has moved.
    pub(super) fn moved(&mut self, client: u32, changes: &mut Changes) {
        let Some(client) = self.numbering.number(client) else { return };
        let Client { following, moved_listed, .. } = self.clients[client];
        if following > 0 && !moved_listed {
            self.clients[client].moved_listed = true;
            changes.moved.push(client);
        }
    }

    /// The device knows these changes.
    pub(super) fn settle(&mut self, changes: &mut Changes) {
        for number in changes.entries.drain(..) {
            let entry = &mut self.entries[number];
            (entry.listed, entry.changed) = (NONE, false);
        }
        for client in changes.heads.drain(..) {
            self.clients[client].head_listed = false;
        }
        for client in changes.moved.drain(..) {
            self.clients[client].moved_listed = false;
        }
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

    /// How many entries follow a client.
    pub(super) fn following(&self, client: u32) -> u32 {
        self.clients[client].following
    }

    /// The id of a client in a list of changes.
    pub(super) fn client_id(&self, client: u32) -> u32 {
        self.numbering.id(client)
    }

    /// One past the largest number of an entry, of a client with a list, and of a constraint.
    pub(super) fn ends(&self) -> (usize, usize, usize) {
        (self.entries_end, self.numbering.len(), self.arena.end())
    }

    /// How many entries there are.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Bytes of the host's memory.
    pub(super) fn bytes(&self) -> usize {
        self.entries.bytes() + self.clients.bytes() + self.numbering.bytes() + self.arena.bytes()
    }

    fn set_head(&mut self, client: u32, head: u32, changes: &mut Changes) {
        let held = &mut self.clients[client];
        held.head = head;
        if !held.head_listed {
            held.head_listed = true;
            changes.heads.push(client);
        }
    }

    fn list(&mut self, number: u32, changed: bool, changes: &mut Changes) {
        let entry = &mut self.entries[number];
        entry.changed |= changed;
        if entry.listed != changes.shard {
            entry.listed = changes.shard;
            changes.entries.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_of(entries: &Entries, client: u32) -> u32 {
        entries.numbering.number(client).unwrap()
    }

    fn list_of(entries: &Entries, client: u32) -> Vec<u32> {
        let some = |number| (number != NONE).then_some(number);
        let mut list: Vec<u32> =
            std::iter::successors(some(entries.head(number_of(entries, client))), |number| {
                some(entries.next(*number))
            })
            .collect();
        list.sort_unstable();
        list
    }

    #[test]
    fn lists_of_clients_hold_the_entries_that_follow_them() {
        let (mut entries, mut changes) = (Entries::new(), Changes::new(0));
        for (number, client) in [(0, Some(5)), (1, Some(5)), (2, None), (3, Some(5)), (4, Some(7))] {
            entries.enter(number, 2, client, &mut changes);
        }
        assert_eq!((list_of(&entries, 5), entries.following(number_of(&entries, 5))), (vec![0, 1, 3], 3));
        entries.settle(&mut changes);
        assert!(changes.is_empty());
        for (gone, left) in [(1, vec![0, 3]), (3, vec![0]), (0, vec![])] {
            entries.leave(gone, &mut changes);
            assert_eq!(list_of(&entries, 5), left);
        }
        assert_eq!(list_of(&entries, 7), [4]);
        entries.moved(5, &mut changes);
        entries.moved(7, &mut changes);
        entries.moved(7, &mut changes);
        assert_eq!(changes.moved, [number_of(&entries, 7)], "nobody follows the other");
        let mut listed = changes.entries.clone();
        listed.sort_unstable();
        listed.dedup();
        assert_eq!(listed.len(), changes.entries.len(), "each once");
        assert_eq!(entries.live(), 2);
    }
}
