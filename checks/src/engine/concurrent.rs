//! The engine `concurrent` (Con-C): the whole formula anew at each evaluation, its outermost quantifiers split over threads.
//!
//! Con-C (Xu, Liu, Cheung, Cao and Lv, "Towards context consistency by concurrent checking for Internetware applications", 2013) splits
//! *persistently balanced* nodes: those whose branches are alike whatever the sets hold. Here every quantifier is one, since no set
//! depends on a variable.

use std::num::NonZeroUsize;
use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::recursion::{Recursion, Told};
use super::{Engine, Evaluation};
use crate::check::Check;
use crate::links::{Bounds, Link, Overflow};
use crate::sets::Sets;

/// Recursion on several threads.
#[derive(Debug)]
pub struct Concurrent {
    check: Arc<Check>,
    told: Told,
    /// `None` where the system gives no threads: then this one does it alone.
    threads: Option<ThreadPool>,
    splitting_from: usize,
}

/// Evaluations of leaves below which a quantifier is not worth splitting: about twice what it takes to wake a thread.
const SPLITTING_FROM: usize = 512;

impl Concurrent {
    /// An engine with some threads of its own, which end with it.
    #[must_use]
    pub fn new(check: Arc<Check>, bounds: Bounds, threads: NonZeroUsize) -> Self {
        let threads = ThreadPoolBuilder::new()
            .num_threads(threads.get())
            .thread_name(|idx| format!("checks-{idx}"))
            .build()
            .ok();
        Self { check, told: Told::new(bounds), threads, splitting_from: SPLITTING_FROM }
    }

    /// Splits a quantifier from so many evaluations of leaves on.
    #[must_use]
    pub fn splitting_from(self, leaves: usize) -> Self {
        Self { splitting_from: leaves, ..self }
    }
}

impl Engine for Concurrent {
    fn name(&self) -> &'static str {
        "concurrent"
    }

    fn evaluate(&mut self, sets: &Sets) -> Result<Evaluation, Overflow> {
        let Self { check, told, threads, splitting_from } = self;
        let links_max = told.bounds.links_max;
        Recursion { check, sets, links_max, threads: threads.as_ref(), splitting_from: *splitting_from }
            .evaluate(&mut told.links)
    }

    fn links(&self, _sets: &Sets) -> Vec<Link> {
        self.told.all()
    }

    fn links_count(&self) -> usize {
        self.told.links.len()
    }

    fn clear(&mut self) {
        self.told.links.clear();
    }

    fn bytes(&self) -> usize {
        self.told.bytes()
    }
}
