//! Networks of binary constraints, and algorithms that make them arc consistent.
//!
//! A [`Network`] is made by a [`Builder`], or read from XCSP3 by [`xcsp::read`]. [`Algorithm::enforce`] removes the values that no
//! constraint allows, [`singleton`] removes more, and [`search()`] finds a solution. All begin with [`Domains`], which may have been
//! restricted.
//!
//! All algorithms are given the rows of bits that a network has, and how many bits each row has.
//!
//! ```
//! use groups::network::{Algorithm, Builder, Domains, Table};
//!
//! # fn main() -> Result<(), groups::network::TooLarge> {
//! let mut builder = Builder::default();
//! let digits = builder.domain(&[1, 2, 3])?;
//! let [x, y] = [builder.variable("x", digits)?, builder.variable("y", digits)?];
//! let less = builder.relation([digits; 2], Table::Supports, &[[0, 1], [0, 2], [1, 2]])?;
//! builder.constraint([x, y], less)?;
//! let network = builder.build();
//! let closed = Algorithm::Ac3Bit.enforce(&network, &Domains::new(&network));
//! assert_eq!(closed.domains.unwrap().removed(&network), 2);
//! # Ok(())
//! # }
//! ```

mod ac3bit;
mod ac4;
mod builder;
mod consistency;
mod domains;
pub mod ne;
mod search;
pub mod xcsp;

pub use ac4::Ac4Lists;
pub use builder::{
    Builder, CONSTRAINTS_MAX, Domain, PAIRS_MAX, Relation, Table, TooLarge, VALUES_MAX, Variable,
};
pub use consistency::{Algorithm, Outcome, singleton};
pub use domains::Domains;
pub use search::{Found, search};

/// Variables with finite domains, and binary constraints between them.
///
/// Variables, values and constraints have numbers, from 0 in the order in which they were given. A *value* of a variable is its place in
/// the domain, and all values of all variables are numbered through as *nodes*. A relation is a matrix of bits, once with a row for
/// each value of the first variable and once with a row for each value of the second; constraints may share it.
///
/// Two constraints over one pair of variables stay two: a value needs a support in each, which may be another one in each. A constraint
/// of a variable with itself speaks of one value alone, as a unary one does: both bar values.
#[derive(Clone, Debug, Default)]
pub struct Network {
    names: Vec<Box<str>>,
    /// The domain of each variable.
    domain_of: Vec<u32>,
    /// Where the values of each domain begin, and an end.
    values_at: Vec<u32>,
    values: Vec<i64>,
    /// The places of each domain's values, by ascending value.
    ascending: Vec<u32>,
    /// The first node of each variable, and an end.
    nodes_at: Vec<u32>,
    /// The first word of each variable in [`Domains`], and an end.
    words_at: Vec<u32>,
    /// As bits of [`Domains`]: the values that no constraint bars by itself.
    unbarred: Vec<u64>,
    constraints: Vec<Constraint>,
    matrices: Vec<Matrix>,
    rows: Vec<u64>,
    /// How many bits each row has.
    counts: Vec<u32>,
    /// Where the arcs of each variable begin, and an end.
    arcs_at: Vec<u32>,
    arcs: Vec<Arc>,
}

/// A constraint between two different variables.
#[derive(Clone, Copy, Debug)]
pub struct Constraint {
    /// The variables.
    pub scope: [u32; 2],
    /// The matrix of the relation.
    pub matrix: u32,
}

/// A relation as bits.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    /// For each side its half.
    pub halves: [Half; 2],
}

/// The rows of a relation for one side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Half {
    /// How many rows there are: the values of this side.
    pub(crate) values_count: u32,
    /// The first word of the first row, in `rows`.
    pub rows_at: u32,
    /// Words of a row: the other side's values, 64 to a word.
    pub row_words: u32,
    /// The count of the first row, in `counts`.
    pub(crate) counts_at: u32,
    /// The least count that is not zero; zero where all are.
    pub least: u32,
    /// The first word of the bits of the rows that are not empty, in `rows`.
    pub filled_at: u32,
}

/// A constraint as one of its variables has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arc {
    /// The constraint.
    pub(crate) constraint: u32,
    /// The side at which the variable stands.
    pub(crate) side: u8,
    /// The variable at the other side.
    pub other: u32,
    /// The rows of the other variable's values: bits of this one's.
    pub half: Half,
    /// The rows of this variable's values: bits of the other's.
    pub own_half: Half,
}

impl Network {
    /// How many variables there are.
    #[must_use]
    pub fn variables_count(&self) -> usize {
        self.names.len()
    }

    /// How many values all variables have together.
    #[must_use]
    pub fn nodes_count(&self) -> usize {
        self.nodes_at.last().map_or(0, |end| *end as usize)
    }

    /// How many constraints there are between two different variables.
    #[must_use]
    pub fn constraints_count(&self) -> usize {
        self.constraints.len()
    }

    /// The name of a variable.
    ///
    /// # Panics
    /// If there is no such variable.
    #[must_use]
    pub fn name(&self, variable: usize) -> &str {
        &self.names[variable]
    }

    /// The variable of a name. Takes time with the number of variables.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| **other == *name)
    }

    /// The values of a variable, as its domain has them.
    ///
    /// # Panics
    /// If there is no such variable.
    #[must_use]
    pub fn values(&self, variable: usize) -> &[i64] {
        &self.values[self.values_of(self.domain_of[variable])]
    }

    /// The place of a value in the domain of a variable. Takes time with the logarithm of the domain.
    ///
    /// # Panics
    /// If there is no such variable.
    #[must_use]
    pub fn place(&self, variable: usize, value: i64) -> Option<usize> {
        self.place_in(self.domain_of[variable], value).map(|place| place as usize)
    }

    fn values_of(&self, domain: u32) -> std::ops::Range<usize> {
        let domain = domain as usize;
        self.values_at[domain] as usize..self.values_at[domain + 1] as usize
    }

    fn place_in(&self, domain: u32, value: i64) -> Option<u32> {
        let range = self.values_of(domain);
        let (values, ascending) = (&self.values[range.clone()], &self.ascending[range]);
        let found = ascending.binary_search_by_key(&value, |place| values[*place as usize]);
        found.ok().map(|idx| ascending[idx])
    }

    fn domain_size(&self, domain: u32) -> u32 {
        self.values_at[domain as usize + 1] - self.values_at[domain as usize]
    }

    /// How many values a variable has.
    ///
    /// # Panics
    /// If there is no such variable.
    #[must_use]
    pub fn size(&self, variable: u32) -> u32 {
        self.nodes_at[variable as usize + 1] - self.nodes_at[variable as usize]
    }

    /// The node of a variable's first value.
    pub(crate) fn first_node(&self, variable: u32) -> u32 {
        self.nodes_at[variable as usize]
    }

    /// The words of a variable in [`Domains`].
    ///
    /// # Panics
    /// If there is no such variable.
    #[must_use]
    pub fn words(&self, variable: u32) -> std::ops::Range<usize> {
        self.words_at[variable as usize] as usize..self.words_at[variable as usize + 1] as usize
    }

    /// All constraints between two different variables.
    #[must_use]
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// The relation of a constraint of this network.
    #[must_use]
    pub fn matrix(&self, constraint: &Constraint) -> Matrix {
        self.matrices[constraint.matrix as usize]
    }

    /// All relations.
    pub(crate) fn matrices(&self) -> &[Matrix] {
        &self.matrices
    }

    /// The constraints of a variable.
    ///
    /// # Panics
    /// If there is no such variable.
    #[must_use]
    pub fn arcs(&self, variable: u32) -> &[Arc] {
        &self.arcs[self.arcs_at[variable as usize] as usize..self.arcs_at[variable as usize + 1] as usize]
    }

    /// Where the constraints of a variable begin among those of all.
    pub(crate) fn first_arc(&self, variable: u32) -> usize {
        self.arcs_at[variable as usize] as usize
    }

    /// The rows of all relations.
    #[must_use]
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// A row of a relation: the supports of a value.
    pub(crate) fn row(&self, half: Half, value: u32) -> &[u64] {
        let begin = half.rows_at as usize + value as usize * half.row_words as usize;
        &self.rows[begin..begin + half.row_words as usize]
    }

    /// How many bits the rows have.
    pub(crate) fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// The values that no constraint bars by itself, as bits of [`Domains`].
    #[must_use]
    pub fn unbarred(&self) -> &[u64] {
        &self.unbarred
    }
}

/// A count of parts of a network, each of which is bounded far below 2^32.
fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a network is bounded")
}

/// The numbers of the bits that are set.
pub(crate) fn bits(words: &[u64]) -> impl Iterator<Item = u32> + '_ {
    words.iter().zip((0_u32..).step_by(64)).flat_map(|(word, first)| {
        let mut left = *word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(first + bit)
        })
    })
}
