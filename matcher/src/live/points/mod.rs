//! Points in space that come, go, and are found by where they are.
//!
//! An octree that forks only where points part (a compressed one): a fork's box is some aligned cube, and a bucket
//! of up to 32 points hangs wherever there are no more. A coming or going point touches one leaf, seldom its parent;
//! a circle costs what it holds and a few leaves along its border, whatever else is in the world.

mod key;
mod regions;
mod search;
mod store;
#[cfg(test)]
mod tests;

pub(super) use key::{KEY_BYTES, Key};
pub(super) use regions::{Part, Region};
use store::{LEAF_LEN, Leaf, Link, MERGE_LEN, Node, Store, Target};

/// Points under small numbers: of the unit sphere or of the plane, as in [`crate::geo::Position::point`], with no
/// coordinate beyond 2^30.
#[derive(Debug, Default)]
pub struct Points {
    root: Link,
    nodes: Store<Node>,
    leaves: Store<Leaf>,
    len: usize,
}

/// Where a link is kept.
#[derive(Clone, Copy, Debug)]
enum Place {
    Root,
    Child(u32, usize),
}

impl Points {
    /// No points.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.nodes.bytes() + self.leaves.bytes()
    }

    /// Takes a point in under a number that is not in use.
    ///
    /// # Panics
    /// When some thirty points have been put in at one place under one number.
    pub fn insert(&mut self, id: u32, point: [f64; 3]) {
        let key = Key::new(id, &point);
        let mut place = Place::Root;
        self.len += 1;
        loop {
            match self.link(place).target() {
                Target::Nothing => {
                    let leaf = self.new_leaf();
                    *self.link_mut(place) = Link::leaf(leaf);
                }
                Target::Leaf(leaf) if self.leaves[leaf].is_full() => self.split(place, leaf),
                Target::Leaf(leaf) => return self.leaves[leaf].push(id, point),
                Target::Node(index) => {
                    let node = &mut self.nodes[index];
                    match node.key.parting(&key) {
                        Some(height) if height > node.height => self.fork_above(place, index, height),
                        Some(_) | None => {
                            node.len += 1;
                            place = Place::Child(index, key.digit(node.height));
                        }
                    }
                }
            }
        }
    }

    /// Takes a point out that is where it was put in; says whether it was there.
    pub fn remove(&mut self, id: u32, point: &[f64; 3]) -> bool {
        let key = Key::new(id, point);
        let Some((place, above, leaf)) = self.find(&key) else { return false };
        let Some(index) = self.leaves[leaf].position(id, point) else { return false };
        self.leaves[leaf].swap_remove(index);
        self.len -= 1;
        let mut link = self.root;
        while let Target::Node(index) = link.target() {
            let node = &mut self.nodes[index];
            node.len -= 1;
            link = node.children[key.digit(node.height)];
        }
        match place {
            // Of the nodes on the way only the last can have become small: one above it holds another point at least.
            Place::Child(node, _) if self.nodes[node].len <= MERGE_LEN => self.merge(above, node),
            Place::Root | Place::Child(..) if self.leaves[leaf].ids().is_empty() => {
                self.leaves.release(leaf);
                *self.link_mut(place) = Link::NOTHING;
                if let Place::Child(node, _) = place {
                    self.bypass(above, node);
                }
            }
            Place::Root | Place::Child(..) => {}
        }
        true
    }

    /// The leaf in which a key would be, where that leaf hangs, and where its parent does.
    fn find(&self, key: &Key) -> Option<(Place, Place, u32)> {
        let (mut place, mut above) = (Place::Root, Place::Root);
        loop {
            match self.link(place).target() {
                Target::Nothing => return None,
                Target::Leaf(leaf) => return Some((place, above, leaf)),
                Target::Node(index) => {
                    (above, place) = (place, Place::Child(index, key.digit(self.nodes[index].height)));
                }
            }
        }
    }

    #[inline]
    fn link(&self, place: Place) -> Link {
        match place {
            Place::Root => self.root,
            Place::Child(node, digit) => self.nodes[node].children[digit],
        }
    }

    fn link_mut(&mut self, place: Place) -> &mut Link {
        match place {
            Place::Root => &mut self.root,
            Place::Child(node, digit) => &mut self.nodes[node].children[digit],
        }
    }

    fn new_leaf(&mut self) -> u32 {
        let leaf = self.leaves.allocate();
        self.leaves[leaf].clear();
        leaf
    }

    fn new_node(&mut self, node: Node) -> Link {
        let index = self.nodes.allocate();
        self.nodes[index] = node;
        Link::node(index)
    }

    /// Puts a node in the place of a full leaf, and its points into leaves below, the first of which is this one.
    fn split(&mut self, place: Place, leaf: u32) {
        let full = self.leaves[leaf];
        let mut keys = [Key::default(); LEAF_LEN];
        for (key, (id, point)) in keys.iter_mut().zip(full.iter()) {
            *key = Key::new(id, &point);
        }
        let height = keys.iter().filter_map(|key| keys[0].parting(key)).max();
        let height = height.expect("points at one place differ in their numbers");
        let len = u32::try_from(LEAF_LEN).expect("a leaf is small");
        let mut node = Node { key: keys[0], height, len, ..Node::default() };
        node.children[keys[0].digit(height)] = Link::leaf(leaf);
        self.leaves[leaf].clear();
        for (key, (id, point)) in keys.iter().zip(full.iter()) {
            let child = &mut node.children[key.digit(height)];
            if *child == Link::NOTHING {
                *child = Link::leaf(self.new_leaf());
            }
            if let Target::Leaf(leaf) = child.target() {
                self.leaves[leaf].push(id, point);
            }
        }
        *self.link_mut(place) = self.new_node(node);
    }

    /// Puts a node in the place of another that becomes its child; the caller adds a second one.
    fn fork_above(&mut self, place: Place, index: u32, height: u32) {
        let Node { key, len, .. } = self.nodes[index];
        let mut node = Node { key, height, len, ..Node::default() };
        node.children[key.digit(height)] = Link::node(index);
        *self.link_mut(place) = self.new_node(node);
    }

    /// Makes one leaf of a node that has become small. Its children are leaves, for a node holds more.
    fn merge(&mut self, place: Place, node: u32) {
        let mut merged = None;
        for child in self.nodes[node].children {
            let Target::Leaf(leaf) = child.target() else { continue };
            let Some(into) = merged else {
                merged = Some(leaf);
                continue;
            };
            let from = self.leaves[leaf];
            from.iter().for_each(|(id, point)| self.leaves[into].push(id, point));
            self.leaves.release(leaf);
        }
        self.nodes.release(node);
        *self.link_mut(place) = merged.map_or(Link::NOTHING, Link::leaf);
    }

    /// Puts a node's child in its place when it is the only one.
    fn bypass(&mut self, place: Place, node: u32) {
        let mut children = self.nodes[node].children.into_iter().filter(|child| *child != Link::NOTHING);
        if let (Some(only), None) = (children.next(), children.next()) {
            self.nodes.release(node);
            *self.link_mut(place) = only;
        }
    }
}
