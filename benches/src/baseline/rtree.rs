//! An R*-tree over the circles of all filters: what the paper compares with, in its `rstar` form.

use std::ops::ControlFlow;

use rstar::{AABB, PointDistance, RStarInsertionStrategy, RTree, RTreeObject, RTreeParams};

use super::{Circle, Contents, Prepared};

/// The node size that queries of the default workload are fastest with, out of 6, 12, 16, 24, 32 and 64; see
/// `engines --tune`.
pub const NODE_SIZE: usize = 32;

/// Parameters of a tree with nodes of up to `MAX` entries, in the proportions that the R*-tree's authors
/// advise: at least 40 % full, 30 % reinserted.
#[derive(Debug)]
pub struct Nodes<const MAX: usize>;

impl<const MAX: usize> RTreeParams for Nodes<MAX> {
    const MIN_SIZE: usize = MAX * 2 / 5;
    const MAX_SIZE: usize = MAX;
    const REINSERTION_COUNT: usize = MAX * 3 / 10;
    type DefaultInsertionStrategy = RStarInsertionStrategy;
}

/// A filter's circle in the tree.
#[derive(Clone, Copy, Debug)]
struct Entry {
    circle: Circle,
    filter: u32,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.filter == other.filter
    }
}

impl RTreeObject for Entry {
    type Envelope = AABB<[f64; 2]>;

    fn envelope(&self) -> Self::Envelope {
        let ([x, y], radius_m) = (self.circle.centre, self.circle.radius_m);
        AABB::from_corners([x - radius_m, y - radius_m], [x + radius_m, y + radius_m])
    }
}

impl PointDistance for Entry {
    fn distance_2(&self, point: &[f64; 2]) -> f64 {
        let outside = (squared_distance(&self.circle.centre, point).sqrt() - self.circle.radius_m).max(0.0);
        outside * outside
    }

    fn contains_point(&self, point: &[f64; 2]) -> bool {
        squared_distance(&self.circle.centre, point) <= self.circle.radius_m * self.circle.radius_m
    }
}

fn squared_distance(a: &[f64; 2], b: &[f64; 2]) -> f64 {
    let (dx, dy) = (a[0] - b[0], a[1] - b[1]);
    dx * dx + dy * dy
}

/// The tree. Each filter is an entry of its own, also where a client's filters coincide, as in the paper.
#[derive(Debug)]
pub struct Circles<const MAX: usize = NODE_SIZE> {
    tree: RTree<Entry, Nodes<MAX>>,
}

impl<const MAX: usize> Circles<MAX> {
    /// Loads all circles at once, which makes better trees than inserting them. A filter is its index.
    ///
    /// # Panics
    /// With more than 2^32 circles.
    #[must_use]
    pub fn new(circles: &[Circle]) -> Self {
        let filters = 0..u32::try_from(circles.len()).expect("filters have 32-bit numbers");
        let entries = circles.iter().zip(filters).map(|(circle, filter)| Entry { circle: *circle, filter });
        Self { tree: RTree::bulk_load_with_params(entries.collect()) }
    }

    /// Calls `visit` for each filter whose circle holds the point.
    pub fn visit(&self, point: [f64; 2], mut visit: impl FnMut(u32)) {
        let flow: ControlFlow<()> = self.tree.locate_all_at_point_int(point, |entry| {
            visit(entry.filter);
            ControlFlow::Continue(())
        });
        debug_assert!(flow.is_continue(), "the visitor never stops");
    }

    /// Moves a filter's circle; an R*-tree removes and inserts. Says whether it was there.
    pub fn relocate(&mut self, filter: u32, from: Circle, to: Circle) -> bool {
        let found = self.tree.remove(&Entry { circle: from, filter }).is_some();
        self.tree.insert(Entry { circle: to, filter });
        found
    }
}

/// Checks the content of what the tree finds.
#[derive(Debug)]
pub struct Survivors<'a> {
    contents: &'a Contents,
    filters_per_subscription: u32,
    /// The event's value by name, NaN where it has none: no interval holds that.
    values: Vec<f64>,
}

impl<'a> Survivors<'a> {
    /// For filters of these contents.
    #[must_use]
    pub fn new(contents: &'a Contents, names_count: usize, filters_per_subscription: u32) -> Self {
        Self { contents, filters_per_subscription, values: vec![f64::NAN; names_count] }
    }

    /// Replaces `found` by the subscriptions, ascending and each once, that the event satisfies.
    pub fn find(&mut self, circles: &Circles, event: &Prepared, found: &mut Vec<u32>) {
        for (name, value) in &event.values {
            self.values[*name as usize] = *value;
        }
        found.clear();
        circles.visit(event.at, |filter| {
            let mut intervals = self.contents.of(filter as usize).iter();
            let satisfied = intervals.all(|interval| {
                let value = self.values[interval.name as usize];
                interval.low <= value && value <= interval.high
            });
            if satisfied {
                found.push(filter / self.filters_per_subscription);
            }
        });
        for (name, _) in &event.values {
            self.values[*name as usize] = f64::NAN;
        }
        found.sort_unstable();
        found.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_where_it_is_and_not_where_it_was() {
        let circle = |x: f64| Circle { centre: [x, 0.0], radius_m: 5.0 };
        let mut circles: Circles = Circles::new(&[circle(0.0), circle(3.0), circle(100.0)]);
        let at = |circles: &Circles, point| {
            let mut found = Vec::new();
            circles.visit(point, |filter| found.push(filter));
            found.sort_unstable();
            found
        };
        assert_eq!(at(&circles, [0.0, 5.0]), [0]);
        assert_eq!(at(&circles, [2.0, 0.0]), [0, 1]);
        // Inside of the first one's box, outside of its circle.
        assert_eq!(at(&circles, [4.5, 4.5]), [1]);
        assert!(circles.relocate(0, circle(0.0), circle(103.0)));
        assert_eq!(at(&circles, [2.0, 0.0]), [1]);
        assert_eq!(at(&circles, [101.0, 0.0]), [0, 2]);
        assert!(!circles.relocate(7, circle(0.0), circle(1.0)));
    }
}
