//! In which order the variables of a node are bound, and how the events of each are found.

use matcher::predicate::index::{Index, IndexJoin, Key, Probe, of_predicates};

use super::normal::{Matrix, Node, Normal};
use crate::check::Check;
use crate::formula::Clock;

/// A leaf that has to be true, or has not to be.
pub(super) type Literal = (usize, bool);

/// How assignments of a node are found from those variables that are bound already.
#[derive(Debug)]
pub(super) struct Plan {
    /// Leaves that speak of what is bound from the beginning.
    pub(super) literals: Vec<Literal>,
    pub(super) steps: Vec<Step>,
    /// Steps after which all variables but the node's own are bound.
    pub(super) ready: usize,
}

/// Binds one variable.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) depth: usize,
    pub(super) set: usize,
    pub(super) access: Access,
    /// Leaves that can be evaluated from here on.
    pub(super) literals: Vec<Literal>,
}

/// Where the events of a variable are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// All events of its set.
    Scan,
    /// Events that an index has for the event of another variable.
    Probe {
        /// The index.
        index: usize,
        /// Depth of the other variable.
        from: usize,
        /// What of its event is looked up.
        probe: Probe,
    },
}

/// An index of a set.
#[derive(Debug)]
pub(super) struct OfSet {
    pub(super) set: usize,
    pub(super) index: Index,
}

/// Plans of a node for variables that are bound: several where the matrix has alternatives. Together they find every assignment that
/// makes the matrix true.
#[derive(Debug)]
pub(super) struct Plans {
    bound: Vec<usize>,
    pub(super) plans: Vec<Plan>,
}

/// A node's plans.
#[derive(Debug)]
pub(super) struct Way {
    starts: Vec<Plans>,
    /// What is left to evaluate where the leaves of a plan hold.
    pub(super) rest: Matrix,
}

impl Way {
    /// The plans for variables that are bound.
    pub(super) fn from(&self, bound: &[usize]) -> &[Plan] {
        let found = self.starts.iter().find(|plans| plans.bound == bound);
        &found.expect("a node has plans for each way in which it is entered").plans
    }
}

/// Alternatives up to which a matrix is taken apart.
const ALTERNATIVES_MAX: usize = 16;

/// Makes the plans of all nodes, and the indices that they need.
pub(super) fn ways(check: &Check, normal: &Normal) -> (Vec<Way>, Vec<OfSet>) {
    let mut indices = Vec::new();
    let ways = normal.nodes.iter().map(|node| way(check, normal, node, &mut indices)).collect();
    (ways, indices)
}

fn way(check: &Check, normal: &Normal, node: &Node, indices: &mut Vec<OfSet>) -> Way {
    let mut starts: Vec<Vec<usize>> = node.depths.iter().map(|&depth| vec![depth]).collect();
    starts.extend(node.children.iter().map(|&child| normal.nodes[child].free().to_vec()));
    if !node.is_linked {
        starts.push(node.free().to_vec());
    }
    starts.sort_unstable();
    starts.dedup();

    let planners = Planners::new(check, node);
    let plans_from = |bound: Vec<usize>| Plans { plans: planners.plans(&bound, indices), bound };
    let starts = starts.into_iter().map(plans_from).collect();
    Way { starts, rest: rest(&node.matrix) }
}

/// Planners of a node: one for what always has to hold, and one for each alternative.
pub(super) struct Planners<'a> {
    common: Planner<'a>,
    alternatives: Vec<Planner<'a>>,
}

impl<'a> Planners<'a> {
    pub(super) fn new(check: &'a Check, node: &'a Node) -> Self {
        let planner = |literals: &[Literal]| Planner::new(check, node, literals);
        let alternatives = alternatives(&node.matrix);
        Self {
            common: planner(&common(&node.matrix)),
            alternatives: alternatives.iter().map(|literals| planner(literals)).collect(),
        }
    }

    /// The plans for variables that are bound.
    pub(super) fn plans(&self, bound: &[usize], indices: &mut Vec<OfSet>) -> Vec<Plan> {
        // Where one alternative has to look at everything, the others would find nothing that it does not.
        let scans = |planner: &Planner<'_>| planner.plan(bound, &mut Vec::new()).scans();
        let least = scans(&self.common);
        if self.alternatives.len() > 1 && self.alternatives.iter().all(|planner| scans(planner) < least) {
            self.alternatives.iter().map(|planner| planner.plan(bound, indices)).collect()
        } else {
            vec![self.common.plan(bound, indices)]
        }
    }
}

/// The leaves that hold wherever a matrix does.
fn common(matrix: &Matrix) -> Vec<Literal> {
    match matrix {
        Matrix::Leaf { leaf, holds } => vec![(*leaf, *holds)],
        Matrix::All(parts) => parts
            .iter()
            .filter_map(|part| match part {
                Matrix::Leaf { leaf, holds } => Some((*leaf, *holds)),
                Matrix::Some { .. } | Matrix::All(_) | Matrix::Any(_) => None,
            })
            .collect(),
        Matrix::Some { .. } | Matrix::Any(_) => Vec::new(),
    }
}

/// What a matrix is besides these leaves.
fn rest(matrix: &Matrix) -> Matrix {
    match matrix {
        Matrix::Leaf { .. } => Matrix::All(Vec::new()),
        Matrix::All(parts) => {
            let is_more = |part: &&Matrix| !matches!(part, Matrix::Leaf { .. });
            Matrix::All(parts.iter().filter(is_more).cloned().collect())
        }
        Matrix::Some { .. } | Matrix::Any(_) => matrix.clone(),
    }
}

/// Lists of leaves of which one holds as a whole wherever the matrix does.
fn alternatives(matrix: &Matrix) -> Vec<Vec<Literal>> {
    match matrix {
        Matrix::Leaf { leaf, holds } => vec![vec![(*leaf, *holds)]],
        Matrix::Some { .. } => vec![Vec::new()],
        Matrix::Any(parts) => parts.iter().flat_map(alternatives).collect(),
        Matrix::All(parts) => parts.iter().fold(vec![Vec::new()], |before, part| {
            let more = alternatives(part);
            if before.len() * more.len() > ALTERNATIVES_MAX {
                return before;
            }
            before.iter().flat_map(|a| more.iter().map(move |b| [a.as_slice(), b].concat())).collect()
        }),
    }
}

/// Plans for leaves that hold together.
struct Planner<'a> {
    check: &'a Check,
    node: &'a Node,
    /// The cheapest first.
    literals: Vec<Literal>,
    joins: Vec<IndexJoin>,
}

impl Plan {
    fn scans(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.access, Access::Scan)).count()
    }
}

impl<'a> Planner<'a> {
    fn new(check: &'a Check, node: &'a Node, literals: &[Literal]) -> Self {
        let mut literals = literals.to_vec();
        literals.sort_by_key(|(leaf, _)| check.leaves[*leaf].predicate.cost());
        literals.dedup();
        let apart_ms = |a: usize, b: usize| apart_ms(check, node, a, b);
        let leaves = literals.iter().map(|(leaf, holds)| (&check.leaves[*leaf].predicate, *holds));
        let joins = of_predicates(check.world, leaves, apart_ms);
        Self { check, node, literals, joins }
    }

    fn plan(&self, bound: &[usize], indices: &mut Vec<OfSet>) -> Plan {
        let mut bound = bound.to_vec();
        let mut is_used = vec![false; self.literals.len()];
        let literals = self.literals_of(&bound, &mut is_used);
        let is_ready = |bound: &[usize]| self.node.free().iter().all(|depth| bound.contains(depth));
        let mut ready = is_ready(&bound).then_some(0);
        let mut steps = Vec::new();
        while let Some((depth, set, access)) = self.next(&bound, indices) {
            bound.push(depth);
            steps.push(Step { depth, set, access, literals: self.literals_of(&bound, &mut is_used) });
            if ready.is_none() && is_ready(&bound) {
                ready = Some(steps.len());
            }
        }
        Plan { literals, ready: ready.expect("all variables are bound"), steps }
    }

    fn literals_of(&self, bound: &[usize], is_used: &mut [bool]) -> Vec<Literal> {
        let mut found = Vec::new();
        for (literal, is_used) in self.literals.iter().zip(is_used) {
            let is_bound = self.check.leaves[literal.0].depths.iter().all(|depth| bound.contains(depth));
            if is_bound && !*is_used {
                *is_used = true;
                found.push(*literal);
            }
        }
        found
    }

    /// The variable whose events are found best from those that are bound; the node's own last of equals.
    fn next(&self, bound: &[usize], indices: &mut Vec<OfSet>) -> Option<(usize, usize, Access)> {
        let left = self.node.depths.iter().zip(&self.node.sets).filter(|(depth, _)| !bound.contains(depth));
        let best = left.map(|(&depth, &set)| {
            let lookups = bound.iter().flat_map(|&from| {
                let found = self.joins.iter().filter_map(move |join| join.lookup(from, depth));
                found.map(move |lookup| (from, lookup))
            });
            let lookup = lookups.min_by_key(|(_, lookup)| lookup.rank);
            let rank = lookup.as_ref().map_or(usize::MAX, |(_, lookup)| lookup.rank);
            (rank, depth, set, lookup)
        });
        let (_, depth, set, lookup) = best.min_by_key(|(rank, depth, ..)| (*rank, *depth))?;
        let access = lookup.map_or(Access::Scan, |(from, lookup)| {
            let index = index(indices, set, lookup.key);
            Access::Probe { index, from, probe: lookup.probe }
        });
        Some((depth, set, access))
    }
}

/// The index of a set by a key, made if there is none.
fn index(indices: &mut Vec<OfSet>, set: usize, key: Key) -> usize {
    let known = indices.iter().position(|known| known.set == set && *known.index.key() == key);
    known.unwrap_or_else(|| {
        indices.push(OfSet { set, index: Index::new(key) });
        indices.len() - 1
    })
}

/// How far apart the times of two variables' events can be while sets hold both. With the clock of arrivals they may have any times.
fn apart_ms(check: &Check, node: &Node, a: usize, b: usize) -> f64 {
    let for_ms = |depth: usize| {
        let position = node.depths.iter().position(|other| *other == depth);
        position.map_or(i64::MAX, |position| check.sets[node.sets[position]].for_ms)
    };
    match check.clock {
        Clock::Arrival => f64::INFINITY,
        #[expect(clippy::cast_precision_loss, reason = "durations are bounded")]
        Clock::Event => for_ms(a).max(for_ms(b)) as f64,
    }
}

/// Events that a look-up is taken to find.
const FOUND: f64 = 8.0;

/// About how many comparisons one event costs that comes into every set.
pub(crate) fn cost_of_change(check: &Check, events: &impl Fn(usize) -> f64) -> f64 {
    let normal = Normal::of(check);
    let (ways, _) = ways(check, &normal);
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let of_literals = |literals: &[Literal]| -> f64 {
        literals.iter().map(|(leaf, _)| check.leaves[*leaf].predicate.cost() as f64).sum()
    };
    let of_plan = |plan: &Plan| {
        let mut branches = 1.0;
        let mut cost = of_literals(&plan.literals);
        for step in &plan.steps {
            let set = events(step.set);
            branches *= match step.access {
                Access::Scan => set,
                Access::Probe { .. } => set.min(FOUND),
            };
            // A leaf is cheap; to come to it is not free.
            cost += branches * (1.0 + of_literals(&step.literals));
        }
        cost
    };
    let of_way = |way: &Way| way.starts.iter().flat_map(|plans| &plans.plans).map(of_plan).sum::<f64>();
    ways.iter().map(of_way).sum()
}
