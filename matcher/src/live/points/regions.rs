//! Parts of the tree that are named by what they hold, and so are good for a search that lets the tree change now and then.

use super::Points;
use super::key::{DIGITS, Key};
use super::store::Target;

/// All points whose keys have their first digits in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) struct Region {
    /// The least key.
    key: Key,
    /// How many of the last digits may be any.
    free: u32,
}

/// A part of a region.
pub(in crate::live) enum Part {
    Region(Region),
    Point(u32, Key),
}

impl Region {
    /// The region of all points.
    pub(in crate::live) fn all() -> Self {
        Self { key: Key::default(), free: DIGITS }
    }

    pub(in crate::live) fn least(&self) -> Key {
        self.key
    }

    pub(in crate::live) fn greatest(&self) -> Key {
        self.key.greatest(self.free)
    }

    /// The box of all its points, from the least to the largest coordinates.
    pub(in crate::live) fn extent(&self) -> [[f64; 3]; 2] {
        self.key.extent(self.free)
    }

    fn holds(&self, key: &Key) -> bool {
        key.least(self.free) == self.key
    }
}

impl Points {
    /// Calls `found` for the parts of a region in which there are points: all points that it has now are in one of them.
    pub(in crate::live) fn open(&self, region: &Region, mut found: impl FnMut(Part)) {
        let mut link = self.root;
        loop {
            match link.target() {
                Target::Nothing => return,
                Target::Leaf(leaf) => {
                    let keys = self.leaves[leaf].iter().map(|(id, point)| (id, Key::new(id, &point)));
                    keys.filter(|(_, key)| region.holds(key))
                        .for_each(|(id, key)| found(Part::Point(id, key)));
                    return;
                }
                Target::Node(index) => {
                    let node = &self.nodes[index];
                    let parting = node.key.parting(&region.key);
                    if parting.is_some_and(|height| height > node.height && height >= region.free) {
                        return;
                    }
                    if node.height >= region.free {
                        link = node.children[region.key.digit(node.height)];
                        continue;
                    }
                    for digit in (0..8).filter(|digit| node.children[*digit].target() != Target::Nothing) {
                        let key = node.key.child(node.height, digit);
                        found(Part::Region(Region { key, free: node.height }));
                    }
                    return;
                }
            }
        }
    }
}
