//! The common interface of all algorithms, and singleton arc consistency on top of them.

use super::{Ac4Lists, Domains, Network, ac3bit, ne};

/// An algorithm that makes a network arc consistent. All leave the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// AC4: counters of supports, and for each value a list of the values that it supports.
    ///
    /// Source: Mohr and Henderson, "Arc and path consistency revisited", Artificial Intelligence 28 (1986). The lists are those of the
    /// relations, which constraints share; [`Ac4Lists`] can be kept.
    Ac4,
    /// AC3bit+rm: supports as bits, tested a word at a time, and where the last one was found.
    ///
    /// Source: Lecoutre and Vion, "Enforcing arc consistency using bitwise operations", Constraint Programming Letters 2 (2008).
    Ac3Bit,
    /// AC4GPU over the N-E model, one step after another on the processor.
    ///
    /// Source: Li, Li and Li, "A constraint network model and parallel arc consistency algorithms based on GPU", Journal of Computer
    /// Research and Development 54 (2017), Algorithm 3.
    Ac4Gpu,
    /// AC4GPU+, which counts once and then keeps the counters; in the same place, Algorithm 4.
    Ac4GpuPlus,
}

/// The result of an algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The values that are left; `None` if a variable has none.
    pub domains: Option<Domains>,
    /// How many loops the algorithm ran, the last, idle one included. AC4 and the algorithms of the N-E model remove in each loop the values
    /// that the loop before left without support, and so run equally many.
    pub loops: u64,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ac4, Self::Ac3Bit, Self::Ac4Gpu, Self::Ac4GpuPlus];

    /// Removes all values without a support in some constraint, beginning with those that are left.
    ///
    /// Cost: with e constraints and d values of a variable, O(e·d²) time for [`Algorithm::Ac4`], O(e·d³/64) for
    /// [`Algorithm::Ac3Bit`], and O(e·d²) for each loop of the others.
    #[must_use]
    pub fn enforce(self, network: &Network, domains: &Domains) -> Outcome {
        match self {
            Self::Ac4 => Ac4Lists::new(network).enforce(network, domains),
            Self::Ac3Bit => ac3bit::enforce(network, domains),
            Self::Ac4Gpu => ne::Model::build(network, domains).ac4gpu().of(network),
            Self::Ac4GpuPlus => ne::Model::build(network, domains).ac4gpu_plus().of(network),
        }
    }
}

/// Removes all values with which, assigned, the network cannot be made arc consistent. `loops` are those over all values.
///
/// Source: Debruyne and Bessière, "Some practicable filtering techniques for the constraint satisfaction problem", IJCAI 1997 (SAC1).
/// Cost: O(n·d) times arc consistency for each loop.
#[must_use]
pub fn singleton(network: &Network, domains: &Domains, algorithm: Algorithm) -> Outcome {
    let mut left = algorithm.enforce(network, domains).domains;
    let mut loops = 0;
    loop {
        loops += 1;
        let mut is_idle = true;
        for variable in 0..network.variables_count() {
            for place in 0..network.values(variable).len() {
                let Some(domains) = &mut left else { return Outcome { domains: None, loops } };
                if !domains.has(network, variable, place) {
                    continue;
                }
                let mut assigned = domains.clone();
                assigned.assign(network, variable, place);
                if algorithm.enforce(network, &assigned).domains.is_none() {
                    domains.remove(network, variable, place);
                    left = algorithm.enforce(network, domains).domains;
                    is_idle = false;
                }
            }
        }
        if is_idle {
            return Outcome { domains: left, loops };
        }
    }
}
