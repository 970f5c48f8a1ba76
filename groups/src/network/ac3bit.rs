//! AC3bit+rm, see [`super::Algorithm::Ac3Bit`]: a propagator that can be taken back, for search as well.
//!
//! Changed variables wait in a queue, and each revises its neighbours. Three things are added to the paper's algorithm:
//!
//! - A revision that cannot remove anything is left out: every value has had at least as many supports as the emptiest row that has
//!   any, and the changed variable has lost fewer values than that. (Boussemart, Hemery and Lecoutre, "Revision ordering heuristics for
//!   the constraint satisfaction problem", 2004.) Values with empty rows are removed at the beginning.
//! - Where the changed variable has fewer values than its neighbour, the union of their rows is made instead of testing each value.
//! - Rows of one word need no residue.

use super::{Arc, Domains, Network, Outcome, bits, number};

pub(super) fn enforce(network: &Network, domains: &Domains) -> Outcome {
    let mut propagator = Propagator::new(network, domains);
    match propagator.begin() {
        Ok(loops) => Outcome { domains: Some(Domains { words: propagator.words }), loops },
        Err(WipeOut { loops, .. }) => Outcome { domains: None, loops },
    }
}

/// A variable has no value left.
#[derive(Clone, Copy, Debug)]
pub(super) struct WipeOut {
    /// The constraint that removed the last one; `None` if it had none to begin with.
    pub(super) constraint: Option<u32>,
    loops: u64,
}

pub(super) struct Propagator<'a> {
    network: &'a Network,
    words: Vec<u64>,
    sizes: Vec<u32>,
    /// Where the residues of each arc begin, and for each value of the neighbour the word in which its last support was found. Both
    /// are empty where all rows are one word.
    residues_at: Vec<u32>,
    residues: Vec<u32>,
    /// The variables that have lost values since they revised their neighbours.
    queue: Vec<u32>,
    is_queued: Vec<bool>,
    /// Words as they were before each change, and how large the variable was.
    trail: Vec<Change>,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    variable: u32,
    size: u32,
    at: u32,
    word: u64,
}

impl<'a> Propagator<'a> {
    pub(super) fn new(network: &'a Network, domains: &Domains) -> Self {
        let words: Vec<_> =
            domains.words.iter().zip(network.unbarred()).map(|(left, ok)| left & ok).collect();
        let variables_count = network.variables_count();
        let (mut residues_at, mut residues_count) = (Vec::new(), 0);
        if network.matrices().iter().any(|matrix| matrix.halves.iter().any(|half| half.row_words > 1)) {
            for arc in (0..number(variables_count)).flat_map(|variable| network.arcs(variable)) {
                residues_at.push(number(residues_count));
                residues_count += if arc.half.row_words > 1 { network.size(arc.other) as usize } else { 0 };
            }
        }
        Self {
            network,
            words,
            sizes: vec![0; variables_count],
            residues_at,
            residues: vec![0; residues_count],
            queue: Vec::new(),
            is_queued: vec![false; variables_count],
            trail: Vec::new(),
        }
    }

    /// Propagates everything for the first time; returns how often it went over the queue, this first time included.
    pub(super) fn begin(&mut self) -> Result<u64, WipeOut> {
        let network = self.network;
        for constraint in network.constraints() {
            for (half, variable) in network.matrix(constraint).halves.into_iter().zip(constraint.scope) {
                let own = network.words(variable);
                let filled = half.filled_at as usize;
                let filled = &network.rows()[filled..filled + own.len()];
                for (word, filled) in self.words[own].iter_mut().zip(filled) {
                    *word &= filled;
                }
            }
        }
        for variable in 0..number(network.variables_count()) {
            let size = self.words[network.words(variable)].iter().map(|word| word.count_ones()).sum();
            self.sizes[variable as usize] = size;
            if size == 0 {
                return Err(WipeOut { constraint: None, loops: 1 });
            }
            if size < network.size(variable) {
                self.put(variable);
            }
        }
        match self.propagate() {
            Ok(loops) => Ok(loops + 1),
            Err(WipeOut { constraint, loops }) => Err(WipeOut { constraint, loops: loops + 1 }),
        }
    }

    fn put(&mut self, variable: u32) {
        if !std::mem::replace(&mut self.is_queued[variable as usize], true) {
            self.queue.push(variable);
        }
    }

    /// Propagates all changes; returns how often it went over the queue. After a wipe-out nothing is queued.
    pub(super) fn propagate(&mut self) -> Result<u64, WipeOut> {
        let (mut loops, mut next) = (0, 0);
        while next < self.queue.len() {
            loops += 1;
            let end = self.queue.len();
            while next < end {
                let variable = self.queue[next];
                self.is_queued[variable as usize] = false;
                if let Err(constraint) = self.revise_neighbours(variable) {
                    self.forget();
                    return Err(WipeOut { constraint: Some(constraint), loops });
                }
                next += 1;
            }
        }
        self.queue.clear();
        Ok(loops)
    }

    /// Queues nothing any longer.
    pub(super) fn forget(&mut self) {
        for variable in self.queue.drain(..) {
            self.is_queued[variable as usize] = false;
        }
    }

    /// Removes from all neighbours the values without a support at a variable. Fails with the constraint that emptied a neighbour.
    fn revise_neighbours(&mut self, variable: u32) -> Result<(), u32> {
        let network = self.network;
        let own = network.words(variable);
        let lost = network.size(variable) - self.sizes[variable as usize];
        for (idx, arc) in network.arcs(variable).iter().enumerate() {
            if lost < arc.half.least {
                continue;
            }
            let is_left = if self.sizes[variable as usize] < self.sizes[arc.other as usize] {
                self.revise_by_union(arc, own.clone())
            } else if arc.half.row_words == 1 {
                self.revise_by_word(arc, own.start)
            } else {
                self.revise_by_residues(arc, own.clone(), network.first_arc(variable) + idx)
            };
            if !is_left {
                return Err(arc.constraint);
            }
        }
        Ok(())
    }

    /// Intersects a neighbour with the union of the rows of a variable's values; returns whether values are left.
    fn revise_by_union(&mut self, arc: &Arc, own: std::ops::Range<usize>) -> bool {
        let network = self.network;
        let row_words = arc.own_half.row_words as usize;
        for (idx, at) in network.words(arc.other).enumerate() {
            let left = self.words[at];
            let first = arc.own_half.rows_at as usize + idx;
            let mut supported = 0;
            for value in bits(&self.words[own.clone()]) {
                supported |= network.rows()[first + value as usize * row_words];
                if supported & left == left {
                    break;
                }
            }
            if supported & left != left && !self.keep(arc.other, at, supported) {
                return false;
            }
        }
        true
    }

    /// Tests each value of a neighbour of a variable that is one word; returns whether values are left.
    fn revise_by_word(&mut self, arc: &Arc, own: usize) -> bool {
        let (network, supports) = (self.network, self.words[own]);
        let mut first = arc.half.rows_at as usize;
        for at in network.words(arc.other) {
            let mut kept = self.words[at];
            for value in bits(&[kept]) {
                let is_supported = network.rows()[first + value as usize] & supports != 0;
                kept &= !(u64::from(!is_supported) << value);
            }
            if kept != self.words[at] && !self.keep(arc.other, at, kept) {
                return false;
            }
            first += 64;
        }
        true
    }

    /// Tests each value of a neighbour, first where its last support was; returns whether values are left.
    fn revise_by_residues(&mut self, arc: &Arc, own: std::ops::Range<usize>, arc_idx: usize) -> bool {
        let network = self.network;
        let residues = self.residues_at[arc_idx] as usize;
        let mut first = 0;
        for at in network.words(arc.other) {
            let mut kept = self.words[at];
            for value in bits(&[kept]) {
                let row = network.row(arc.half, first + value);
                let left = &self.words[own.clone()];
                let residue = &mut self.residues[residues + (first + value) as usize];
                if row[*residue as usize] & left[*residue as usize] == 0 {
                    match row.iter().zip(left).position(|(supports, left)| supports & left != 0) {
                        Some(word) => *residue = number(word),
                        None => kept &= !(1 << value),
                    }
                }
            }
            if kept != self.words[at] && !self.keep(arc.other, at, kept) {
                return false;
            }
            first += 64;
        }
        true
    }

    /// Intersects a word of a variable with `kept`, and queues the variable; returns whether values are left.
    fn keep(&mut self, variable: u32, at: usize, kept: u64) -> bool {
        let word = self.words[at];
        let size = self.sizes[variable as usize];
        self.trail.push(Change { variable, size, at: number(at), word });
        self.words[at] = word & kept;
        self.sizes[variable as usize] = size - (word & !kept).count_ones();
        self.put(variable);
        self.sizes[variable as usize] > 0
    }

    /// How many values a variable has left.
    pub(super) fn size(&self, variable: u32) -> u32 {
        self.sizes[variable as usize]
    }

    /// The first value that a variable has left.
    pub(super) fn first(&self, variable: u32) -> Option<u32> {
        bits(&self.words[self.network.words(variable)]).next()
    }

    /// Removes all values of a variable but one that it has.
    pub(super) fn assign(&mut self, variable: u32, value: u32) {
        for (word, at) in (0_u32..).zip(self.network.words(variable)) {
            let kept = if word == value / 64 { 1 << (value % 64) } else { 0 };
            if self.words[at] & !kept != 0 {
                self.keep(variable, at, kept);
            }
        }
    }

    /// Removes a value that a variable has; returns whether it has another one.
    pub(super) fn remove(&mut self, variable: u32, value: u32) -> bool {
        let at = self.network.words(variable).start + value as usize / 64;
        self.keep(variable, at, !(1 << (value % 64)))
    }

    /// The present state, for [`Propagator::undo`].
    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Goes back to a state; nothing may be queued.
    pub(super) fn undo(&mut self, mark: usize) {
        for Change { variable, size, at, word } in self.trail.drain(mark..).rev() {
            self.words[at as usize] = word;
            self.sizes[variable as usize] = size;
        }
    }
}
