//! An A-Tree: what a service in Rust would take for boolean expressions over attributes. Content only.
//!
//! Source: the `a-tree` crate, after Ji and Jacobsen, "A-Tree: a dynamic data structure for efficiently indexing
//! arbitrary boolean expressions", SIGMOD 2021.

use a_tree::{ATree, AttributeDefinition};
use anyhow::{anyhow, ensure};
use matcher::fixtures::workload::VALUE_MAX;

use super::{Contents, Interval, Prepared};
use crate::engines::contender::{Contender, Finds};

/// Filters that a tree is built of. Each insertion looks through all that were inserted before, so that building
/// takes time with the square: a quarter of a minute here, half a day for the 2.5 million of the default workload.
pub const FILTERS_MAX: usize = 50_000;

/// The tree.
#[derive(Debug)]
pub struct Tree {
    tree: ATree<u32>,
    /// By name.
    attributes: Vec<String>,
    /// Filters that any content satisfies; an expression has at least one constraint.
    unconstrained: Vec<u32>,
    found: Vec<u32>,
}

impl Tree {
    /// Inserts the filters of these contents.
    ///
    /// # Errors
    /// With more than [`FILTERS_MAX`] filters.
    pub fn new(contents: &Contents, names_count: usize) -> anyhow::Result<Self> {
        let filters_count = contents.filters_count();
        ensure!(
            filters_count <= FILTERS_MAX,
            "building takes time with the square of the filters, and {filters_count} are more than {FILTERS_MAX}"
        );
        let attributes: Vec<String> = (0..names_count).map(|name| format!("a{name}")).collect();
        let definitions: Vec<_> = attributes.iter().map(|name| AttributeDefinition::integer(name)).collect();
        let mut tree = ATree::new(&definitions).map_err(|error| anyhow!("{error}"))?;
        let mut unconstrained = Vec::new();
        for filter in 0..u32::try_from(filters_count)? {
            let expression = expression(contents.of(filter as usize));
            if expression.is_empty() {
                unconstrained.push(filter);
            } else {
                tree.insert(&filter, &expression).map_err(|error| anyhow!("{expression}: {error}"))?;
            }
        }
        Ok(Self { tree, attributes, unconstrained, found: Vec::new() })
    }
}

impl Contender for Tree {
    fn name(&self) -> &str {
        "a-tree"
    }

    fn finds(&self) -> Finds {
        Finds::FiltersByContent
    }

    /// # Panics
    /// When the event has a name that the contents had not.
    fn find(&mut self, event: &Prepared) {
        let mut builder = self.tree.make_event();
        for (name, value) in &event.values {
            let attribute = &self.attributes[*name as usize];
            builder.with_integer(attribute, ordered(*value)).expect("all attributes are integers");
        }
        let event = builder.build().expect("what is left is undefined");
        let report = self.tree.search(&event).expect("all attributes have the right type");
        self.found.clear();
        self.found.extend_from_slice(&self.unconstrained);
        self.found.extend(report.matches().iter().copied());
    }

    fn answer(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        Box::new(self.found.iter().copied())
    }
}

/// A conjunction of comparisons in the tree's language. The one that the fewest values satisfy comes first: the tree
/// looks at that one, and at the others only where it holds.
fn expression(intervals: &[Interval]) -> String {
    let ends = intervals.iter().flat_map(|interval| {
        let end = |operator: &str, number: f64| format!("a{} {operator} {}", interval.name, ordered(number));
        let at_least = interval.low.is_finite().then(|| (VALUE_MAX - interval.low, end(">=", interval.low)));
        let at_most = interval.high.is_finite().then(|| (interval.high, end("<=", interval.high)));
        [at_least, at_most].into_iter().flatten()
    });
    let mut ends: Vec<(f64, String)> = ends.collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ends: Vec<String> = ends.into_iter().map(|(_, end)| end).collect();
    ends.join(" and ")
}

/// An integer that is as much larger or smaller than another as the numbers are: the tree's own numbers are
/// decimals, which not every double is.
fn ordered(number: f64) -> i64 {
    // Negative zero is zero.
    let bits = (number + 0.0).to_bits().cast_signed();
    bits ^ ((bits >> 63) & i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_ordered_as_their_numbers() {
        let numbers = [f64::MIN, -1.5, -1.0, -f64::MIN_POSITIVE, 0.0, 1e-300, 0.1, 1.0, 999.9, f64::MAX];
        assert!(numbers.map(ordered).is_sorted_by(|a, b| a < b));
        assert_eq!(ordered(-0.0), ordered(0.0));
    }

    #[test]
    fn the_narrowest_comparison_comes_first() {
        let interval = |name, low, high| Interval { name, low, high };
        let intervals = [interval(0, f64::NEG_INFINITY, 500.0), interval(7, 200.0, 300.0)];
        let [low, high, half] = [200.0, 300.0, 500.0].map(ordered);
        assert_eq!(expression(&intervals), format!("a7 <= {high} and a0 <= {half} and a7 >= {low}"));
    }
}
