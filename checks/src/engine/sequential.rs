//! The engine `sequential` (Seq-C): the whole formula anew at each evaluation, on one thread. It defines the right answer.

use std::sync::Arc;

use super::recursion::{self, Recursion, Told};
use super::{Engine, Evaluation};
use crate::check::Check;
use crate::links::{Bounds, Link, Overflow};
use crate::sets::Sets;

/// The oracle.
#[derive(Debug)]
pub struct Sequential {
    check: Arc<Check>,
    told: Told,
}

impl Sequential {
    /// An engine that has told nothing.
    #[must_use]
    pub fn new(check: Arc<Check>, bounds: Bounds) -> Self {
        Self { check, told: Told::new(bounds) }
    }

    /// Goes on from what another engine found over the same sets: the links of a violation, `None` where there is none.
    pub fn adopt(&mut self, links: Option<impl Iterator<Item = Link>>) -> Evaluation {
        let Some(links) = links else {
            self.told.links.clear();
            return Evaluation::default();
        };
        recursion::told(&mut self.told.links, links)
    }

    /// Goes on from what another engine found that was told and that is gone since the evaluation before.
    pub fn follow(&mut self, told: &[Link], gone: &[Link]) {
        for link in gone {
            self.told.links.remove(link);
        }
        self.told.links.extend(told.iter().cloned());
    }
}

impl Engine for Sequential {
    fn name(&self) -> &'static str {
        "sequential"
    }

    fn evaluate(&mut self, sets: &Sets) -> Result<Evaluation, Overflow> {
        let links_max = self.told.bounds.links_max;
        Recursion { check: &self.check, sets, links_max, threads: None, splitting_from: 0 }
            .evaluate(&mut self.told.links)
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
