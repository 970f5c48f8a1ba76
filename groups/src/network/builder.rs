//! How a network is made.

use std::collections::{HashMap, HashSet};

use super::{Arc, Constraint, Half, Matrix, Network, number};

/// Most values of all variables together, and of all domains together.
pub const VALUES_MAX: usize = 1 << 22;

/// Most constraints.
pub const CONSTRAINTS_MAX: usize = 1 << 22;

/// Most pairs of values, of all constraints together and of all relations together: an algorithm of the N-E model has an edge of 17
/// bytes for each.
pub const PAIRS_MAX: usize = 1 << 25;

/// A domain of a [`Builder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Domain(u32);

/// A variable of a [`Builder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variable(u32);

/// A relation of a [`Builder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Relation(u32);

/// The meaning of a relation's tuples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// The tuples are the allowed pairs.
    Supports,
    /// The tuples are the refused pairs.
    Conflicts,
}

/// A network would have too many parts of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {max} {parts}")]
pub struct TooLarge {
    /// The most that there may be.
    pub max: usize,
    /// The name of the parts that are too many.
    pub parts: &'static str,
}

/// Makes a [`Network`].
#[derive(Debug)]
pub struct Builder {
    network: Network,
    domains: HashMap<Box<[i64]>, Domain>,
    /// The domains of each relation.
    sides: Vec<[Domain; 2]>,
    nodes_count: usize,
    relation_pairs: usize,
    constraint_pairs: usize,
    constraints_count: usize,
    /// Values that a constraint of one variable bars.
    barred: Vec<(u32, u32)>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            network: Network { values_at: vec![0], ..Network::default() },
            domains: HashMap::new(),
            sides: Vec::new(),
            nodes_count: 0,
            relation_pairs: 0,
            constraint_pairs: 0,
            constraints_count: 0,
            barred: Vec::new(),
        }
    }
}

fn bounded(count: usize, max: usize, parts: &'static str) -> Result<usize, TooLarge> {
    if count > max { Err(TooLarge { max, parts }) } else { Ok(count) }
}

impl Builder {
    /// Adds a domain; equal ones are one. A value that comes again is not taken again.
    ///
    /// # Errors
    /// [`TooLarge`] past [`VALUES_MAX`] values of all domains.
    pub fn domain(&mut self, values: &[i64]) -> Result<Domain, TooLarge> {
        if let Some(domain) = self.domains.get(values) {
            return Ok(*domain);
        }
        let network = &mut self.network;
        bounded(network.values.len() + values.len(), VALUES_MAX, "values")?;
        let mut ascending: Vec<_> = (0..number(values.len())).collect();
        ascending.sort_by_key(|place| values[*place as usize]);
        if ascending.windows(2).any(|pair| values[pair[0] as usize] == values[pair[1] as usize]) {
            let mut seen = HashSet::new();
            let different: Vec<_> = values.iter().copied().filter(|value| seen.insert(*value)).collect();
            return self.domain(&different);
        }
        network.values.extend(values);
        network.ascending.extend(ascending);
        network.values_at.push(number(network.values.len()));
        let domain = Domain(number(network.values_at.len() - 2));
        self.domains.insert(values.into(), domain);
        Ok(domain)
    }

    /// Adds a variable.
    ///
    /// # Errors
    /// [`TooLarge`] past [`VALUES_MAX`] variables, or values of all variables.
    pub fn variable(&mut self, name: &str, domain: Domain) -> Result<Variable, TooLarge> {
        let size = self.network.domain_size(domain.0) as usize;
        bounded(self.network.names.len() + 1, VALUES_MAX, "variables")?;
        self.nodes_count = bounded(self.nodes_count + size, VALUES_MAX, "values of variables")?;
        self.network.names.push(name.into());
        self.network.domain_of.push(domain.0);
        Ok(Variable(number(self.network.names.len() - 1)))
    }

    /// Adds a relation between the values of two domains, by their places. Tuples may come again.
    ///
    /// # Errors
    /// [`TooLarge`] past [`PAIRS_MAX`] pairs of values in all relations, or [`CONSTRAINTS_MAX`] relations.
    ///
    /// # Panics
    /// If a place is outside its domain.
    pub fn relation(
        &mut self,
        [first, second]: [Domain; 2],
        table: Table,
        tuples: &[[u32; 2]],
    ) -> Result<Relation, TooLarge> {
        let sizes = [first, second].map(|domain| self.network.domain_size(domain.0));
        bounded(self.sides.len() + 1, CONSTRAINTS_MAX, "relations")?;
        self.relation_pairs =
            bounded(self.relation_pairs + pairs(sizes), PAIRS_MAX, "pairs of values in relations")?;
        let halves = [self.half(sizes, table), self.half([sizes[1], sizes[0]], table)];
        for &[a, b] in tuples {
            assert!(a < sizes[0] && b < sizes[1], "a tuple is outside the domains");
            for (half, row, bit) in [(halves[0], a, b), (halves[1], b, a)] {
                let word = half.rows_at as usize + row as usize * half.row_words as usize + bit as usize / 64;
                let mask = 1 << (bit % 64);
                match table {
                    Table::Supports => self.network.rows[word] |= mask,
                    Table::Conflicts => self.network.rows[word] &= !mask,
                }
            }
        }
        let halves = halves.map(|half| self.count(half));
        self.network.matrices.push(Matrix { halves });
        self.sides.push([first, second]);
        Ok(Relation(number(self.sides.len() - 1)))
    }

    /// Adds the rows of one side, without tuples.
    fn half(&mut self, [own, other]: [u32; 2], table: Table) -> Half {
        let Network { rows, counts, .. } = &mut self.network;
        let (rows_at, row_words) = (number(rows.len()), other.div_ceil(64));
        for _ in 0..own {
            match table {
                Table::Supports => rows.extend((0..row_words).map(|_| 0)),
                Table::Conflicts => rows.extend(full(other)),
            }
        }
        let filled_at = number(rows.len());
        rows.extend((0..own.div_ceil(64)).map(|_| 0));
        let counts_at = number(counts.len());
        counts.extend((0..own).map(|_| 0));
        Half { values_count: own, rows_at, row_words, counts_at, least: 0, filled_at }
    }

    /// Counts the tuples of each row.
    fn count(&mut self, half: Half) -> Half {
        let mut least = 0;
        for value in 0..half.values_count {
            let count = self.network.row(half, value).iter().map(|word| word.count_ones()).sum();
            self.network.counts[(half.counts_at + value) as usize] = count;
            if count > 0 {
                self.network.rows[(half.filled_at + value / 64) as usize] |= 1 << (value % 64);
                least = if least == 0 { count } else { least.min(count) };
            }
        }
        Half { least, ..half }
    }

    /// Adds a constraint. One of a variable with itself bars the values that the relation does not have with themselves.
    ///
    /// # Errors
    /// [`TooLarge`] past [`CONSTRAINTS_MAX`] constraints, or [`PAIRS_MAX`] pairs of values in all of them.
    ///
    /// # Panics
    /// If the relation is between other domains than those of the variables.
    pub fn constraint(&mut self, [first, second]: [Variable; 2], relation: Relation) -> Result<(), TooLarge> {
        let scope = [first.0, second.0];
        let domains = scope.map(|variable| Domain(self.network.domain_of[variable as usize]));
        assert_eq!(domains, self.sides[relation.0 as usize], "the domains of the relation");
        let sizes = domains.map(|domain| self.network.domain_size(domain.0));
        bounded(self.constraints_count + 1, CONSTRAINTS_MAX, "constraints")?;
        self.constraint_pairs =
            bounded(self.constraint_pairs + pairs(sizes), PAIRS_MAX, "pairs of values in constraints")?;
        self.constraints_count += 1;
        let constraint = Constraint { scope, matrix: relation.0 };
        if first != second {
            self.network.constraints.push(constraint);
            return Ok(());
        }
        let half = self.network.matrix(&constraint).halves[0];
        for value in 0..sizes[0] {
            let row = self.network.row(half, value);
            if row[value as usize / 64] >> (value % 64) & 1 == 0 {
                self.barred.push((first.0, value));
            }
        }
        Ok(())
    }

    /// Adds a constraint of one variable, by the places of values.
    ///
    /// # Errors
    /// [`TooLarge`] past [`CONSTRAINTS_MAX`] constraints, or [`PAIRS_MAX`] values in those.
    ///
    /// # Panics
    /// If a place is outside the domain.
    pub fn unary(&mut self, variable: Variable, table: Table, places: &[u32]) -> Result<(), TooLarge> {
        let size = self.network.domain_size(self.domain_of(variable).0);
        bounded(self.constraints_count + 1, CONSTRAINTS_MAX, "constraints")?;
        self.constraint_pairs =
            bounded(self.constraint_pairs + size as usize, PAIRS_MAX, "pairs of values in constraints")?;
        self.constraints_count += 1;
        let mut is_barred = vec![table == Table::Supports; size as usize];
        for place in places {
            is_barred[*place as usize] = table == Table::Conflicts;
        }
        self.barred
            .extend((0..size).filter(|value| is_barred[*value as usize]).map(|value| (variable.0, value)));
        Ok(())
    }

    /// The place of a value in a domain.
    #[must_use]
    pub fn place(&self, domain: Domain, value: i64) -> Option<u32> {
        self.network.place_in(domain.0, value)
    }

    /// The domain of a variable.
    #[must_use]
    pub fn domain_of(&self, variable: Variable) -> Domain {
        Domain(self.network.domain_of[variable.0 as usize])
    }

    /// The network of all that was added.
    #[must_use]
    pub fn build(self) -> Network {
        let Self { mut network, barred, .. } = self;
        let sizes: Vec<_> = network.domain_of.iter().map(|domain| network.domain_size(*domain)).collect();
        network.nodes_at = ends(sizes.iter().copied());
        network.words_at = ends(sizes.iter().map(|size| size.div_ceil(64)));
        network.unbarred = sizes.iter().flat_map(|size| full(*size)).collect();
        for (variable, value) in barred {
            let word = network.words_at[variable as usize] + value / 64;
            network.unbarred[word as usize] &= !(1 << (value % 64));
        }
        let mut degrees = vec![0; sizes.len()];
        for variable in network.constraints.iter().flat_map(|constraint| constraint.scope) {
            degrees[variable as usize] += 1;
        }
        network.arcs_at = ends(degrees.into_iter());
        let mut places: Vec<_> = network.arcs_at.iter().map(|begin| *begin as usize).collect();
        let blank = Arc::default();
        network.arcs = vec![blank; 2 * network.constraints.len()];
        for (idx, constraint) in (0..).zip(&network.constraints) {
            let [half, other_half] = network.matrices[constraint.matrix as usize].halves;
            let [first, second] = constraint.scope;
            for (side, own, other, half, own_half) in
                [(0, first, second, other_half, half), (1, second, first, half, other_half)]
            {
                let place = &mut places[own as usize];
                network.arcs[*place] = Arc { constraint: idx, side, other, half, own_half };
                *place += 1;
            }
        }
        network
    }
}

/// How many pairs a relation between domains of these sizes counts for; an empty one counts as well.
fn pairs(sizes: [u32; 2]) -> usize {
    sizes.map(|size| size.max(1) as usize).iter().product()
}

/// The words of a set that has all of its values.
pub(super) fn full(size: u32) -> impl Iterator<Item = u64> {
    (0..size.div_ceil(64)).map(move |word| u64::MAX >> (64 - (size - word * 64).min(64)))
}

/// Where each part begins, and an end: an exclusive scan.
fn ends(sizes: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut end = 0;
    let scanned = sizes.map(|size| {
        end += size;
        end
    });
    std::iter::once(0).chain(scanned).collect()
}
