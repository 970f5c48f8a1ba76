//! AC4, see [`super::Algorithm::Ac4`].

use super::{Constraint, Domains, Network, Outcome, bits, number};

/// A run: the values that are left, and all deleted values in order.
struct Run<'a> {
    network: &'a Network,
    words: Vec<u64>,
    sizes: Vec<u32>,
    deleted: Vec<(u32, u32)>,
}

/// The lists of AC4: for each relation and each value of either side, the values that it supports. They depend on the network alone, so
/// that they can be kept from one run to the next.
#[derive(Clone, Debug)]
pub struct Ac4Lists {
    lists: Vec<u32>,
    /// Where each list begins, by the numbers of the counts of rows, and an end.
    lists_at: Vec<u32>,
}

impl Ac4Lists {
    /// Makes the lists: as much time and memory as the relations have tuples, twice.
    #[must_use]
    pub fn new(network: &Network) -> Self {
        let counts = network.counts();
        let mut lists_at = Vec::with_capacity(counts.len() + 1);
        let mut lists = Vec::with_capacity(counts.iter().map(|count| *count as usize).sum());
        lists_at.push(0);
        for half in network.matrices().iter().flat_map(|matrix| matrix.halves) {
            for value in 0..half.values_count {
                lists.extend(bits(network.row(half, value)));
                lists_at.push(number(lists.len()));
            }
        }
        Self { lists, lists_at }
    }

    fn list(&self, idx: u32) -> &[u32] {
        &self.lists[self.lists_at[idx as usize] as usize..self.lists_at[idx as usize + 1] as usize]
    }

    /// Removes all values without a support, as [`super::Algorithm::enforce`] does.
    ///
    /// # Panics
    /// Perhaps, if the lists are those of another network.
    #[must_use]
    pub fn enforce(&self, network: &Network, domains: &Domains) -> Outcome {
        enforce(network, domains, self)
    }
}

fn enforce(network: &Network, domains: &Domains, lists: &Ac4Lists) -> Outcome {
    let words: Vec<_> = domains.words.iter().zip(network.unbarred()).map(|(left, ok)| left & ok).collect();
    let variables = 0..number(network.variables_count());
    let size = |variable| words[network.words(variable)].iter().map(|word| word.count_ones()).sum();
    let sizes: Vec<u32> = variables.map(size).collect();
    if sizes.contains(&0) {
        return Outcome { domains: None, loops: 1 };
    }
    // A constraint has a counter for each value of the one variable, then of the other.
    let slots = |constraint: &Constraint| constraint.scope.map(|variable| network.size(variable) as usize);
    let mut counters = Vec::with_capacity(network.constraints().iter().flat_map(slots).sum());
    let mut counters_at = Vec::with_capacity(2 * network.constraints().len());
    for constraint in network.constraints() {
        for side in [0, 1] {
            counters_at.push(counters.len());
            count(network, &words, &sizes, constraint, side, &mut counters);
        }
    }
    let mut run = Run { network, words, sizes, deleted: Vec::new() };
    for (idx, constraint) in network.constraints().iter().enumerate() {
        for (side, variable) in constraint.scope.into_iter().enumerate() {
            let begin = counters_at[2 * idx + side];
            for value in 0..network.size(variable) {
                if counters[begin + value as usize] == 0 && !run.delete(variable, value) {
                    return Outcome { domains: None, loops: 1 };
                }
            }
        }
    }
    let (mut loops, mut done) = (1, 0);
    while done < run.deleted.len() {
        loops += 1;
        let end = run.deleted.len();
        while done < end {
            let (variable, value) = run.deleted[done];
            for arc in network.arcs(variable) {
                let begin = counters_at[2 * arc.constraint as usize + 1 - arc.side as usize];
                for supported in lists.list(arc.own_half.counts_at + value) {
                    let counter = &mut counters[begin + *supported as usize];
                    *counter -= 1;
                    if *counter == 0 && !run.delete(arc.other, *supported) {
                        return Outcome { domains: None, loops };
                    }
                }
            }
            done += 1;
        }
    }
    Outcome { domains: Some(Domains { words: run.words }), loops }
}

/// Counts the supports of each value at a side of a constraint.
fn count(
    network: &Network,
    words: &[u64],
    sizes: &[u32],
    constraint: &Constraint,
    side: usize,
    counters: &mut Vec<u32>,
) {
    let half = network.matrix(constraint).halves[side];
    let (own, other) = (constraint.scope[side], constraint.scope[1 - side]);
    let size = network.size(own);
    if sizes[other as usize] == network.size(other) {
        let begin = half.counts_at as usize;
        counters.extend_from_slice(&network.counts()[begin..begin + size as usize]);
        return;
    }
    let other = &words[network.words(other)];
    counters.extend((0..size).map(|value| {
        let row = network.row(half, value).iter().zip(other);
        row.map(|(supports, left)| (supports & left).count_ones()).sum::<u32>()
    }));
}

impl Run<'_> {
    /// Deletes a value, if it is left; returns whether others are.
    fn delete(&mut self, variable: u32, value: u32) -> bool {
        let word = &mut self.words[self.network.words(variable).start + value as usize / 64];
        let bit = 1 << (value % 64);
        if *word & bit != 0 {
            *word &= !bit;
            self.sizes[variable as usize] -= 1;
            self.deleted.push((variable, value));
        }
        self.sizes[variable as usize] > 0
    }
}
