//! The values that are left.

use sha2::{Digest as _, Sha256};

use super::builder::full;
use super::{Network, bits, number};

/// The values that are left of each variable: bits, in words of the variable's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domains {
    pub(crate) words: Vec<u64>,
}

impl Domains {
    /// All values.
    #[must_use]
    pub fn new(network: &Network) -> Self {
        let variables = 0..number(network.variables_count());
        Self { words: variables.flat_map(|variable| full(network.size(variable))).collect() }
    }

    /// The values of these words, of which each variable has its own: [`Network::words`].
    ///
    /// # Panics
    /// If there are more or fewer words than the network has.
    #[must_use]
    pub fn of_words(network: &Network, words: Vec<u64>) -> Self {
        assert_eq!(words.len(), network.unbarred().len(), "the words of the network");
        Self { words }
    }

    /// The words: a bit for each value, by its place.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Leaves one value of a variable, if it was left.
    ///
    /// # Panics
    /// If there is no such variable, or no such place in its domain.
    pub fn assign(&mut self, network: &Network, variable: usize, place: usize) {
        let variable = number(variable);
        assert!(place < network.size(variable) as usize, "a place in the domain");
        for (idx, word) in self.words[network.words(variable)].iter_mut().enumerate() {
            *word &= if idx == place / 64 { 1 << (place % 64) } else { 0 };
        }
    }

    /// Takes a value from a variable.
    ///
    /// # Panics
    /// If there is no such variable, or no such place in its domain.
    pub fn remove(&mut self, network: &Network, variable: usize, place: usize) {
        let variable = number(variable);
        assert!(place < network.size(variable) as usize, "a place in the domain");
        self.words[network.words(variable)][place / 64] &= !(1 << (place % 64));
    }

    /// Whether a value of a variable is left.
    ///
    /// # Panics
    /// If there is no such variable, or no such place in its domain.
    #[must_use]
    pub fn has(&self, network: &Network, variable: usize, place: usize) -> bool {
        self.words[network.words(number(variable))][place / 64] >> (place % 64) & 1 != 0
    }

    /// The places of the values that are left of a variable.
    ///
    /// # Panics
    /// If there is no such variable.
    pub fn places(&self, network: &Network, variable: usize) -> impl Iterator<Item = usize> + '_ {
        bits(&self.words[network.words(number(variable))]).map(|place| place as usize)
    }

    /// How many values of the network are not left.
    #[must_use]
    pub fn removed(&self, network: &Network) -> usize {
        network.nodes_count() - self.words.iter().map(|word| word.count_ones() as usize).sum::<usize>()
    }

    /// The first 16 hexadecimal digits of the SHA-256 of the values that are left, as `name=value,value;name=..`: variables and values in the
    /// network's order.
    #[must_use]
    pub fn closure(&self, network: &Network) -> String {
        let mut text = String::new();
        for variable in 0..network.variables_count() {
            if variable > 0 {
                text.push(';');
            }
            text.push_str(network.name(variable));
            let values = network.values(variable);
            for (idx, place) in self.places(network, variable).enumerate() {
                text.push(if idx == 0 { '=' } else { ',' });
                text.push_str(&values[place].to_string());
            }
        }
        Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}
