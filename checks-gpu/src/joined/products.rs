//! Links of several quantifiers that are joined, each with each: the processor makes them of the entries that the device found.

use std::collections::HashMap;

use checks::engine::incremental::outline::Matrix;
use checks::{Check, Slot};
use kernels::checks::ABSENT;
use kernels::checks_joined::Entry;
use matcher::condition::expression::Truth;

use super::program::{Program, may_link};

/// What the device found: entries of each node, and their words.
pub(super) struct Found {
    pub(super) entries: Vec<Vec<Entry>>,
    /// Around which entries some event satisfies each node, and where its own entries are true.
    pub(super) any: Vec<Vec<u64>>,
    pub(super) words: Vec<Vec<u64>>,
    pub(super) chunks: usize,
}

/// What links bind, and the states in which they are there.
type Links = Vec<(Vec<(usize, Slot)>, u64)>;

/// Makes links of a chunk.
struct Products<'a> {
    check: &'a Check,
    program: &'a Program,
    found: &'a Found,
    /// Entries of each node by the entry around them.
    inside: &'a [HashMap<u32, Vec<u32>>],
    chunk: usize,
    links_max: usize,
}

/// The links that came or went, as the device tells them; `None` where one part has more than `links_max`.
pub(super) fn told(check: &Check, program: &Program, found: &Found, links_max: usize) -> Option<Vec<u64>> {
    let variables = check.variables().len();
    let inside: Vec<_> = found
        .entries
        .iter()
        .map(|entries| {
            let mut inside: HashMap<u32, Vec<u32>> = HashMap::new();
            for (at, entry) in (0..).zip(entries) {
                inside.entry(entry.parent).or_default().push(at);
            }
            inside
        })
        .collect();
    let mut told = Vec::new();
    for chunk in 0..found.chunks {
        let products = Products { check, program, found, inside: &inside, chunk, links_max };
        let root = found.words[program.root()][chunk];
        let links = products.links(&program.outline.root, program.root(), 0)?;
        let alone = (Vec::new(), !states(&links));
        let mut merged: HashMap<Vec<(usize, Slot)>, u64> = HashMap::new();
        for (mut link, states) in links.into_iter().chain([alone]) {
            // Several ways may have found one.
            link.sort_unstable();
            *merged.entry(link).or_default() |= states & root;
        }
        for (link, states) in merged {
            if (states ^ states >> 1) << 1 == 0 {
                continue;
            }
            let mut slots = vec![ABSENT; variables.next_multiple_of(2)];
            link.iter().for_each(|(variable, slot)| slots[*variable] = *slot);
            told.extend([states, chunk as u64]);
            told.extend_from_slice(bytemuck::cast_slice(&slots));
        }
    }
    Some(told)
}

/// The states in which there are some.
fn states(links: &Links) -> u64 {
    links.iter().fold(0, |all, (_, states)| all | states)
}

impl Products<'_> {
    /// The links of a node's matrix, or of a part, around one of its entries. Where the part is not true they mean nothing.
    fn links(&self, matrix: &Matrix, node: usize, entry: u32) -> Option<Links> {
        let nodes = &self.program.outline.nodes;
        let mut links = Links::new();
        match matrix {
            _ if !may_link(nodes, matrix) => {}
            Matrix::Leaf { .. } => {}
            Matrix::Some { node: inner, .. } => {
                let variable = nodes[*inner].variable;
                for &at in self.inside[*inner].get(&entry).into_iter().flatten() {
                    let word = self.found.words[*inner][at as usize * self.found.chunks + self.chunk];
                    if word == 0 {
                        continue;
                    }
                    let own = (variable, self.found.entries[*inner][at as usize].slot);
                    let below = self.links(&nodes[*inner].matrix, *inner, at)?;
                    let alone = (Vec::new(), !states(&below));
                    for (mut link, states) in below.into_iter().chain([alone]) {
                        link.push(own);
                        links.extend((states & word != 0).then_some((link, states & word)));
                    }
                    self.check_bound(links.len())?;
                }
            }
            Matrix::All(parts) => {
                for part in parts {
                    let more = self.links(part, node, entry)?;
                    links = self.product(links, more)?;
                }
            }
            Matrix::Any(parts) => {
                for part in parts.iter().filter(|part| may_link(nodes, part)) {
                    let value = self.value(part, node, entry);
                    let more = self.links(part, node, entry)?;
                    let more = more.into_iter().map(|(link, states)| (link, states & value));
                    links.extend(more.filter(|(_, states)| *states != 0));
                    self.check_bound(links.len())?;
                }
            }
        }
        Some(links)
    }

    /// Every union of one link of each, in the states in which both are there; where one has none, the other's.
    fn product(&self, left: Links, right: Links) -> Option<Links> {
        self.check_bound(left.len().saturating_mul(right.len()))?;
        let [without_left, without_right] = [!states(&left), !states(&right)];
        let mut links = Links::new();
        for (a, of_a) in &left {
            for (b, of_b) in right.iter().filter(|(_, of_b)| of_a & of_b != 0) {
                links.push(([a.as_slice(), b].concat(), of_a & of_b));
            }
        }
        let alone = |links: Links, without: u64| {
            links.into_iter().map(move |(link, states)| (link, states & without))
        };
        let alone = alone(left, without_right).chain(alone(right, without_left));
        links.extend(alone.filter(|(_, states)| *states != 0));
        Some(links)
    }

    fn check_bound(&self, links: usize) -> Option<()> {
        (links <= self.links_max).then_some(())
    }

    /// The states in which a part of a node's matrix is true around one of its entries.
    fn value(&self, matrix: &Matrix, node: usize, entry: u32) -> u64 {
        match matrix {
            Matrix::Leaf { leaf, holds } => {
                let bit = self.program.nodes[node].leaves.iter().position(|other| other == leaf);
                let is = match bit {
                    Some(bit) => self.found.entries[node][entry as usize].leaves >> bit & 1 == 1,
                    None => self.check.predicate(*leaf).truth(&[]) == Truth::True,
                };
                if is == *holds { !0 } else { 0 }
            }
            Matrix::Some { node: inner, holds } => {
                let outer = self.program.nodes[*inner].outer;
                let (mut node, mut entry) = (node, entry);
                while node != outer {
                    entry = self.found.entries[node][entry as usize].parent;
                    node = self.program.nodes[node].outer;
                }
                let any = self.found.any[*inner][entry as usize * self.found.chunks + self.chunk];
                if *holds { any } else { !any }
            }
            Matrix::All(parts) => parts.iter().fold(!0, |all, part| all & self.value(part, node, entry)),
            Matrix::Any(parts) => parts.iter().fold(0, |any, part| any | self.value(part, node, entry)),
        }
    }
}
