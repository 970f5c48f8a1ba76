//! Shapes of formulas: the families of GAIN's Table 1.

use checks::Formula;
use rand::rngs::SmallRng;

use crate::world;

/// A family of shapes of GAIN's Table 1: height, number of quantifiers, whether they are nested, and nodes in the tree.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    height: usize,
    quantifiers: usize,
    nested: bool,
    nodes: std::ops::RangeInclusive<usize>,
    /// Bounds of the difference between c-units in nodes.
    difference: std::ops::RangeInclusive<usize>,
}

const ANY: std::ops::RangeInclusive<usize> = 0..=usize::MAX;

pub(crate) const FAMILIES: [Family; 11] = [
    Family { name: "A", height: 2, quantifiers: 1, nested: false, nodes: ANY, difference: ANY },
    Family { name: "B", height: 4, quantifiers: 1, nested: false, nodes: 0..=5, difference: ANY },
    Family { name: "C", height: 4, quantifiers: 1, nested: false, nodes: 6..=usize::MAX, difference: ANY },
    Family { name: "D", height: 4, quantifiers: 2, nested: true, nodes: ANY, difference: ANY },
    Family { name: "E", height: 4, quantifiers: 2, nested: false, nodes: ANY, difference: ANY },
    Family { name: "F", height: 6, quantifiers: 1, nested: false, nodes: 0..=10, difference: ANY },
    Family { name: "G", height: 6, quantifiers: 1, nested: false, nodes: 20..=usize::MAX, difference: ANY },
    Family { name: "H", height: 6, quantifiers: 2, nested: true, nodes: ANY, difference: 0..=3 },
    Family { name: "I", height: 6, quantifiers: 2, nested: true, nodes: ANY, difference: 7..=usize::MAX },
    Family { name: "J", height: 6, quantifiers: 2, nested: false, nodes: ANY, difference: 0..=3 },
    Family { name: "K", height: 6, quantifiers: 2, nested: false, nodes: ANY, difference: 7..=usize::MAX },
];

/// What Table 1 says of a formula.
#[derive(Default)]
struct Shape {
    height: usize,
    nodes: usize,
    quantifiers: usize,
    nested: bool,
    /// Nodes of each c-unit: a part up to its quantifiers, whose inner formulas are units of their own.
    units: Vec<usize>,
}

impl Shape {
    fn of(formula: &Formula) -> Self {
        let mut shape = Self { units: vec![0], ..Self::default() };
        shape.count(formula, 1, 0, false);
        shape
    }

    fn count(&mut self, formula: &Formula, level: usize, unit: usize, is_quantified: bool) {
        self.height = self.height.max(level);
        self.nodes += 1;
        self.units[unit] += 1;
        match formula {
            Formula::Leaf(_) => {}
            Formula::Forall(quantified) | Formula::Exists(quantified) => {
                self.quantifiers += 1;
                self.nested |= is_quantified;
                self.units.push(0);
                self.count(&quantified.that, level + 1, self.units.len() - 1, true);
            }
            Formula::And(parts) | Formula::Or(parts) => {
                parts.iter().for_each(|part| self.count(part, level + 1, unit, is_quantified));
            }
            Formula::Implies(premise, conclusion) => {
                self.count(premise, level + 1, unit, is_quantified);
                self.count(conclusion, level + 1, unit, is_quantified);
            }
            Formula::Not(inner) => self.count(inner, level + 1, unit, is_quantified),
        }
    }

    fn is_in(&self, family: &Family) -> bool {
        let difference = self.units.iter().max().unwrap_or(&0) - self.units.iter().min().unwrap_or(&0);
        self.height == family.height
            && self.quantifiers == family.quantifiers
            && self.nested == family.nested
            && family.nodes.contains(&self.nodes)
            && family.difference.contains(&difference)
    }
}

/// A formula of a family whose connectives join two parts, as GAIN's do.
pub(crate) fn shaped(random: &mut SmallRng, family: &Family) -> Formula {
    loop {
        let formula = world::Growing::new(random, family.quantifiers).formula(family.height - 1, true);
        if Shape::of(&formula).is_in(family) {
            return formula;
        }
    }
}
