//! From which facts constraints follow, and by which rules.

use hashbrown::HashTable;

use super::{index, store};

/// Most origins that a constraint has. Of more the newest are kept.
pub const ORIGINS_MAX: usize = 16;

/// Causes: a rule, and origins in ascending order. Equal ones are one, and a cause is known by the place of its first word.
#[derive(Clone, Debug)]
pub(crate) struct Causes {
    /// A word for each cause, with the rule, counted from 1, and the number of origins; then these.
    words: Vec<u64>,
    /// Causes with their hashes, so that a table that grows does not read them all.
    known: HashTable<(u64, u32)>,
    merged: Vec<u64>,
}

impl Default for Causes {
    fn default() -> Self {
        Self { words: vec![0], known: HashTable::new(), merged: Vec::new() }
    }
}

impl Causes {
    /// The cause of what has none.
    pub(super) const NONE: u32 = 0;

    pub(super) fn words(&self) -> usize {
        self.words.len() - 1
    }

    pub(super) fn origins(&self, cause: u32) -> &[u64] {
        &self.words[cause as usize + 1..][..self.count(cause)]
    }

    /// The rule; none where the cause is a fact that came.
    pub(super) fn rule(&self, cause: u32) -> Option<u32> {
        u32::try_from(self.words[cause as usize] >> 32).ok()?.checked_sub(1)
    }

    fn count(&self, cause: u32) -> usize {
        (self.words[cause as usize] & 0xFF) as usize
    }

    /// The cause of a fact.
    pub(super) fn fact(&mut self, origin: u64) -> u32 {
        self.intern(None, &[origin])
    }

    /// The cause of what a rule adds: the origins of its heads, and that of the fact at hand.
    pub(super) fn follow(&mut self, rule: u32, heads: impl Iterator<Item = u32>, origin: u64) -> u32 {
        let mut merged = std::mem::take(&mut self.merged);
        merged.push(origin);
        for head in heads {
            merged.extend_from_slice(self.origins(head));
        }
        merged.sort_unstable();
        merged.dedup();
        let cause = self.intern(Some(rule), &merged[merged.len().saturating_sub(ORIGINS_MAX)..]);
        merged.clear();
        self.merged = merged;
        cause
    }

    pub(super) fn intern(&mut self, rule: Option<u32>, origins: &[u64]) -> u32 {
        let first = rule.map_or(0, |rule| u64::from(rule) + 1) << 32 | origins.len() as u64;
        if first == 0 {
            return Self::NONE;
        }
        let hash = origins.iter().fold(store::mix(0, first), |state, word| store::mix(state, *word));
        let entry = |words: &[u64], at: u32| {
            let at = at as usize;
            at..=at + (words[at] & 0xFF) as usize
        };
        let words = &self.words;
        let is_it = |(known, at): &(u64, u32)| {
            let entry = &words[entry(words, *at)];
            *known == hash && entry[0] == first && entry[1..] == *origins
        };
        if let Some((_, cause)) = self.known.find(hash, is_it) {
            return *cause;
        }
        let cause = index(self.words.len());
        self.words.push(first);
        self.words.extend_from_slice(origins);
        self.known.insert_unique(hash, (hash, cause), |(hash, _)| *hash);
        cause
    }

    /// Whether all of these, in ascending order, are causes.
    pub(super) fn are_known(&self, causes: &[u32]) -> bool {
        let (mut causes, mut at) = (causes, 0);
        while let Some((cause, behind)) = causes.split_first()
            && at < self.words.len()
        {
            if *cause as usize == at {
                causes = behind;
            }
            at += 1 + (self.words[at] & 0xFF) as usize;
        }
        causes.is_empty()
    }

    /// All words, for a snapshot.
    pub(super) fn all(&self) -> &[u64] {
        &self.words[1..]
    }
}
