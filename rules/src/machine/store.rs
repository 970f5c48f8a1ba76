//! Constraints that are there, and indexes over them.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::Heap;
use crate::code::ConstraintKind;
use crate::term::Term;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;
/// In the place of the next slot: the constraint is not in the index.
const APART: u32 = u32::MAX - 1;

/// What has become of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is active, and not yet where others find it.
    New,
    Stored,
    Dead,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    previous: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Suspension {
    /// Counted over all kinds.
    pub(super) id: u64,
    /// What it follows from.
    pub(super) cause: u32,
    pub(super) state: State,
    /// Whether it had variables when it came, so that it can be woken.
    pub(super) is_reactive: bool,
}

/// The newest constraint of each bucket of an index.
#[derive(Debug)]
enum Buckets {
    /// The index is the list of all.
    One(u32),
    /// With a seed of the process: what publishers send must not choose its place in the table, where no look is counted.
    ByHash(HashMap<u64, u32, RandomState>),
}

impl Buckets {
    fn new(mask: u64) -> Self {
        if mask == 0 { Self::One(NONE) } else { Self::ByHash(HashMap::default()) }
    }

    fn first(&self, hash: u64) -> u32 {
        match self {
            Self::One(first) => *first,
            Self::ByHash(firsts) => firsts.get(&hash).copied().unwrap_or(NONE),
        }
    }

    /// Makes a slot the first one, or a bucket empty. Returns the one before.
    fn replace(&mut self, hash: u64, slot: u32) -> u32 {
        match self {
            Self::One(first) => std::mem::replace(first, slot),
            Self::ByHash(firsts) if slot == NONE => firsts.remove(&hash).unwrap_or(NONE),
            Self::ByHash(firsts) => firsts.insert(hash, slot).unwrap_or(NONE),
        }
    }
}

/// The constraints of a kind, in slots.
#[derive(Debug)]
pub(super) struct Constraints {
    arity: usize,
    indexes: Box<[u64]>,
    pub(super) suspensions: Vec<Suspension>,
    arguments: Vec<Term>,
    links: Vec<Link>,
    buckets: Box<[Buckets]>,
    free: Vec<u32>,
    /// The youngest that was ever stored.
    youngest: u64,
    /// How many are stored.
    pub(super) stored_count: usize,
    /// Dead ones whose slots may still be known to somebody.
    pub(super) dead: Vec<u32>,
    /// How many of these, from the first one on, a variable may know.
    pub(super) watched_count: usize,
}

impl Constraints {
    pub(super) fn new(kind: &ConstraintKind) -> Self {
        Self {
            arity: kind.arity,
            indexes: kind.indexes.clone().into(),
            suspensions: Vec::new(),
            arguments: Vec::new(),
            links: Vec::new(),
            buckets: kind.indexes.iter().map(|mask| Buckets::new(*mask)).collect(),
            free: Vec::new(),
            youngest: 0,
            stored_count: 0,
            dead: Vec::new(),
            watched_count: 0,
        }
    }

    pub(super) fn arguments(&self, slot: u32) -> &[Term] {
        let begin = slot as usize * self.arity;
        &self.arguments[begin..begin + self.arity]
    }

    pub(super) fn arguments_mut(&mut self, slot: u32) -> &mut [Term] {
        let begin = slot as usize * self.arity;
        &mut self.arguments[begin..begin + self.arity]
    }

    pub(super) fn is_stored(&self, slot: u32) -> bool {
        self.suspensions[slot as usize].state == State::Stored
    }

    /// The slots of those that are stored.
    pub(super) fn stored(&self) -> impl Iterator<Item = u32> {
        let all = self.suspensions.iter().zip(0..);
        all.filter(|(suspension, _)| suspension.state == State::Stored).map(|(_, slot)| slot)
    }

    pub(super) fn create(&mut self, id: u64, arguments: &[Term], is_reactive: bool, cause: u32) -> u32 {
        let suspension = Suspension { id, cause, state: State::New, is_reactive };
        if let Some(slot) = self.free.pop() {
            self.suspensions[slot as usize] = suspension;
            self.arguments_mut(slot).copy_from_slice(arguments);
            return slot;
        }
        let slot = u32::try_from(self.suspensions.len()).expect("a bound keeps slots below 2^32");
        self.suspensions.push(suspension);
        self.arguments.extend_from_slice(arguments);
        self.links.extend(self.indexes.iter().map(|_| Link { next: APART, previous: NONE }));
        slot
    }

    /// Gives a slot back that nobody knows.
    pub(super) fn release(&mut self, slot: u32) {
        let count = self.indexes.len();
        self.links[slot as usize * count..(slot as usize + 1) * count]
            .fill(Link { next: APART, previous: NONE });
        self.free.push(slot);
    }

    /// Gives back the slots of the dead that had no variables. Only between steps, when no search stands at them.
    pub(super) fn release_dead(&mut self) {
        for idx in self.watched_count..self.dead.len() {
            let slot = self.dead[idx];
            if self.suspensions[slot as usize].is_reactive {
                self.dead[self.watched_count] = slot;
                self.watched_count += 1;
            } else {
                self.release(slot);
            }
        }
        self.dead.truncate(self.watched_count);
    }

    fn link(&mut self, slot: u32, index: usize) -> &mut Link {
        let count = self.indexes.len();
        &mut self.links[slot as usize * count + index]
    }

    pub(super) fn next(&self, slot: u32, index: usize) -> u32 {
        match self.links[slot as usize * self.indexes.len() + index].next {
            APART => NONE,
            next => next,
        }
    }

    /// About how many bytes those that are stored take: words, links and their places in tables.
    pub(super) fn bytes(&self) -> usize {
        let links = self.indexes.len() * (size_of::<Link>() + 16);
        self.stored_count * (size_of::<Suspension>() + self.arity * size_of::<Term>() + links)
    }

    /// What a search that stands at a slot may come to next.
    pub(super) fn nexts(&self, slot: u32) -> impl Iterator<Item = u32> {
        (0..self.indexes.len()).map(move |index| self.next(slot, index)).filter(|next| *next != NONE)
    }

    /// The hash of what an index asks; none where that has variables.
    fn hash(&self, heap: &Heap, slot: u32, index: usize, known: Option<&mut Known>) -> Option<u64> {
        let mask = self.indexes[index];
        if mask == 0 {
            return Some(0);
        }
        let asked = self.arguments(slot).iter().enumerate().filter(|(idx, _)| mask >> idx & 1 == 1);
        hash(heap, asked.map(|(_, argument)| *argument), known)
    }

    /// The newest constraint of a bucket.
    pub(super) fn first(&self, index: usize, hash: u64) -> u32 {
        self.buckets[index].first(hash)
    }

    /// Puts a constraint where others find it.
    pub(super) fn insert(&mut self, heap: &Heap, slot: u32, mut known: Option<&mut Known>) {
        let suspension = &mut self.suspensions[slot as usize];
        suspension.state = State::Stored;
        self.stored_count += 1;
        if suspension.id < self.youngest {
            return self.insert_late(heap, slot, |_| {});
        }
        self.youngest = suspension.id;
        for index in 0..self.indexes.len() {
            if let Some(hash) = self.hash(heap, slot, index, known.as_deref_mut()) {
                let first = self.buckets[index].replace(hash, slot);
                *self.link(slot, index) = Link { next: first, previous: NONE };
                if first != NONE {
                    self.link(first, index).previous = slot;
                }
            }
        }
    }

    /// Takes a constraint out. Its links stay, so that those that came to it find on.
    pub(super) fn remove(&mut self, heap: &Heap, slot: u32) {
        self.stored_count -= 1;
        for index in 0..self.indexes.len() {
            let link = *self.link(slot, index);
            if link.next != APART {
                self.unlink(heap, slot, index, link);
            }
        }
    }

    /// Joins what is on both sides of a constraint in an index.
    fn unlink(&mut self, heap: &Heap, slot: u32, index: usize, Link { next, previous }: Link) {
        if next != NONE {
            self.link(next, index).previous = previous;
        }
        if previous != NONE {
            self.link(previous, index).next = next;
        } else if let Some(hash) = self.hash(heap, slot, index, None) {
            self.buckets[index].replace(hash, next);
        }
    }

    /// Undoes a removal, of all that were the last one first.
    pub(super) fn restore(&mut self, heap: &Heap, slot: u32) {
        self.stored_count += 1;
        for index in (0..self.indexes.len()).rev() {
            let Link { next, previous } = *self.link(slot, index);
            if next == APART {
                continue;
            }
            if next != NONE {
                self.link(next, index).previous = slot;
            }
            if previous != NONE {
                self.link(previous, index).next = slot;
            } else if let Some(hash) = self.hash(heap, slot, index, None) {
                self.buckets[index].replace(hash, slot);
            }
        }
    }

    /// Takes a constraint out of the indexes as if it had never been there.
    pub(super) fn withdraw(&mut self, heap: &Heap, slot: u32) {
        self.remove(heap, slot);
        for index in 0..self.indexes.len() {
            *self.link(slot, index) = Link { next: APART, previous: NONE };
        }
    }

    /// Puts a stored constraint into those indexes for which its variables have values now, and names each index to `inserted`.
    pub(super) fn insert_late(&mut self, heap: &Heap, slot: u32, mut inserted: impl FnMut(usize)) {
        let id = self.suspensions[slot as usize].id;
        for index in 0..self.indexes.len() {
            if self.link(slot, index).next != APART {
                continue;
            }
            let Some(hash) = self.hash(heap, slot, index, None) else { continue };
            // Buckets are in the order of age, the newest first.
            let (mut previous, mut next) = (NONE, self.first(index, hash));
            while next != NONE && self.suspensions[next as usize].id > id {
                (previous, next) = (next, self.next(next, index));
            }
            *self.link(slot, index) = Link { next, previous };
            if next != NONE {
                self.link(next, index).previous = slot;
            }
            if previous == NONE {
                self.buckets[index].replace(hash, slot);
            } else {
                self.link(previous, index).next = slot;
            }
            inserted(index);
        }
    }

    /// Undoes that a constraint came late into an index.
    pub(super) fn remove_late(&mut self, heap: &Heap, slot: u32, index: usize) {
        let link = std::mem::replace(self.link(slot, index), Link { next: APART, previous: NONE });
        self.unlink(heap, slot, index, link);
    }
}

/// Hashes of compounds without variables that are known already, while no cell changes. A term that has another one twice is walked
/// through once with them, and as if it were a tree without.
pub(super) type Known = HashMap<u32, u64, RandomState>;

/// The hash of terms without variables; none where there is one.
pub(super) fn hash(
    heap: &Heap,
    terms: impl Iterator<Item = Term>,
    mut known: Option<&mut Known>,
) -> Option<u64> {
    let mut state = 0;
    for term in terms {
        let own = match heap.resolve(term) {
            Term::Compound(at) => compound(heap, at, known.as_deref_mut())?,
            term => simple(term)?,
        };
        state = mix(state, own);
    }
    Some(state)
}

fn compound(heap: &Heap, at: u32, mut known: Option<&mut Known>) -> Option<u64> {
    let begin = |at: u32| {
        let (name, arity) = heap.functor(at);
        (at, 0, mix(0, u64::from(name.0) << 32 | arity as u64))
    };
    let find = |known: &Option<&mut Known>, at: u32| known.as_ref().and_then(|known| known.get(&at).copied());
    if let Some(hash) = find(&known, at) {
        return Some(hash);
    }
    // Compounds that are begun, each with its next argument and the hash of those before.
    let mut open: Vec<(u32, usize, u64)> = vec![begin(at)];
    loop {
        let (at, idx, state) = open.last_mut()?;
        let Some(argument) = heap.arguments(*at).nth(*idx) else {
            let (at, _, hash) = open.pop()?;
            if let Some(known) = &mut known {
                known.insert(at, hash);
            }
            match open.last_mut() {
                Some((_, _, state)) => *state = mix(*state, hash),
                None => return Some(hash),
            }
            continue;
        };
        *idx += 1;
        match heap.resolve(argument) {
            Term::Compound(inner) => match find(&known, inner) {
                Some(hash) => *state = mix(*state, hash),
                None => open.push(begin(inner)),
            },
            term => *state = mix(*state, simple(term)?),
        }
    }
}

fn simple(term: Term) -> Option<u64> {
    match term {
        Term::Int(number) => Some(number.cast_unsigned()),
        Term::Float(number) => Some(number.to_bits() ^ 1),
        Term::Atom(name) => Some(!u64::from(name.0)),
        _ => None,
    }
}

pub(super) fn mix(state: u64, value: u64) -> u64 {
    (state.rotate_left(23) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::Atom;

    /// A term that has another one twice, to a depth.
    fn shared(heap: &mut Heap, levels: usize) -> Term {
        (0..levels).fold(Term::Int(7), |inner, _| heap.compound(Atom::DOT, &[inner, inner]))
    }

    #[test]
    fn what_is_known_changes_no_hash_and_ends_walks_through_shared_terms() {
        let mut heap = Heap::default();
        let mut known = Known::default();
        let (small, large) = (shared(&mut heap, 10), shared(&mut heap, 60));
        for terms in [[small, Term::Int(3)], [small, small]] {
            let plain = hash(&heap, terms.into_iter(), None);
            assert!(plain.is_some() && plain == hash(&heap, terms.into_iter(), Some(&mut known)));
        }
        assert!(hash(&heap, std::iter::once(large), Some(&mut known)).is_some());
        assert_eq!(known.len(), 70);
        let open = heap.fresh();
        let open = heap.compound(Atom::DOT, &[large, open]);
        assert_eq!(hash(&heap, std::iter::once(open), Some(&mut known)), None);
    }
}
