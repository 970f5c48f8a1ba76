//! Entries in the order in which they are written, each of which can be taken out at no more cost than the first.

use crate::model::delivery::Entry;

/// A list of entries, linked, in one allocation. It has room for as many as there once were.
pub(super) struct Queue {
    nodes: Vec<Node>,
    first: Option<Spot>,
    last: Option<Spot>,
    free: Vec<Spot>,
}

/// Where an entry is, for as long as it is there.
pub(super) type Spot = usize;

struct Node {
    entry: Option<Entry>,
    before: Option<Spot>,
    after: Option<Spot>,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { nodes: Vec::new(), first: None, last: None, free: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// How many there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.nodes.capacity()
    }

    pub(super) fn first(&self) -> Option<Spot> {
        self.first
    }

    pub(super) fn last(&self) -> Option<Spot> {
        self.last
    }

    pub(super) fn before(&self, spot: Spot) -> Option<Spot> {
        self.nodes[spot].before
    }

    pub(super) fn after(&self, spot: Spot) -> Option<Spot> {
        self.nodes[spot].after
    }

    pub(super) fn get(&self, spot: Spot) -> Option<&Entry> {
        self.nodes[spot].entry.as_ref()
    }

    /// Puts another entry in the place of one.
    pub(super) fn replace(&mut self, spot: Spot, entry: Entry) {
        self.nodes[spot].entry = Some(entry);
    }

    /// Puts an entry at the end.
    pub(super) fn push(&mut self, entry: Entry) -> Spot {
        let spot = self.put(Node { entry: Some(entry), before: self.last, after: None });
        self.link(self.last, Some(spot));
        self.last = Some(spot);
        spot
    }

    /// Puts an entry before another.
    pub(super) fn insert_before(&mut self, next: Spot, entry: Entry) -> Spot {
        let before = self.before(next);
        let spot = self.put(Node { entry: Some(entry), before, after: Some(next) });
        self.link(before, Some(spot));
        self.nodes[next].before = Some(spot);
        spot
    }

    fn put(&mut self, node: Node) -> Spot {
        match self.free.pop() {
            Some(spot) => {
                self.nodes[spot] = node;
                spot
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        }
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, spot: Spot) -> Option<Entry> {
        let node = &mut self.nodes[spot];
        let (entry, before, after) = (node.entry.take(), node.before, node.after);
        self.link(before, after);
        if after.is_none() {
            self.last = before;
        }
        self.free.push(spot);
        entry
    }

    /// Iterates over the entries in order, from the first to the last; `iter_back` goes the other way.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        std::iter::successors(self.first, |spot| self.after(*spot)).filter_map(|spot| self.get(spot))
    }

    pub(super) fn iter_back(&self) -> impl Iterator<Item = &Entry> {
        std::iter::successors(self.last, |spot| self.before(*spot)).filter_map(|spot| self.get(spot))
    }

    fn link(&mut self, before: Option<Spot>, after: Option<Spot>) {
        match before {
            Some(before) => self.nodes[before].after = after,
            None => self.first = after,
        }
        if let Some(after) = after {
            self.nodes[after].before = before;
        }
    }
}
