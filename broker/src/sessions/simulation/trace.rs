//! The trace of a run.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _};

/// The last steps, and a hash of all.
#[derive(Default)]
pub(super) struct Trace {
    pub(super) is_printed: bool,
    pub(super) count: u64,
    pub(super) last: VecDeque<String>,
    pub(super) hash: DefaultHasher,
    pub(super) deliveries_count: u64,
    pub(super) crashes_count: u64,
}

/// Steps that a failure prints.
const TOLD: usize = 40;

impl Trace {
    pub(super) fn add(&mut self, line: String) {
        self.count += 1;
        line.hash(&mut self.hash);
        if self.is_printed {
            println!("{}: {line}", self.count);
        }
        if self.last.len() == TOLD {
            self.last.pop_front();
        }
        self.last.push_back(format!("{}: {line}", self.count));
    }
}
