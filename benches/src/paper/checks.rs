//! Engines that stay where they are, in races and checks.

use std::cell::RefCell;

use matcher::engine::{Engine, MatchError, MatchRows};
use matcher::fixtures::workload::Workload;

use super::field::Field;
use super::figures::Figures;
use super::matching::Ladder;
use super::plan::Who;
use crate::baseline::Prepared;
use crate::baseline::rtree::Circles;
use crate::engines::contender::{Contender, Finds, TreeOnly};
use crate::engines::oracle::check;
use crate::engines::race::{Entrant, Events};

/// Something that failed during a race, where nobody can return it.
pub type Failure = RefCell<Option<MatchError>>;

/// An engine that stays where it is and gets events one by one.
pub struct Borrowed<'a> {
    engine: &'a mut dyn Engine,
    rows: MatchRows,
    failure: &'a Failure,
}

impl<'a> Borrowed<'a> {
    /// Wraps a filled engine.
    pub fn new(engine: &'a mut dyn Engine, failure: &'a Failure) -> Self {
        Self { engine, rows: MatchRows::new(), failure }
    }
}

impl Contender for Borrowed<'_> {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn finds(&self) -> Finds {
        Finds::Subscriptions
    }

    fn find(&mut self, event: &Prepared) {
        self.rows.clear();
        if let Err(error) = self.engine.match_batch(&[&event.event], &mut self.rows) {
            *self.failure.borrow_mut() = Some(error);
        }
    }

    fn answer(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        Box::new(self.rows.iter().flatten().map(|id| id.0))
    }
}

/// Compares everybody with brute force on the first `count` events, the clients being where they are now; the tree
/// as well, if there is one.
///
/// # Errors
/// The first wrong answer, or what an engine fails with.
pub fn check_now(
    panel: &'static str,
    field: &mut Field,
    workload: &Workload,
    (ladder, count): (&Ladder, usize),
    tree: Option<&Circles>,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let (size, oracle, failure) = (field.subscriptions(), field.oracle(workload), Failure::default());
    let all = &ladder.all().timed;
    let events = Events { warm_up: Vec::new(), timed: all[..count.min(all.len())].to_vec() };
    {
        let mut entrants: Vec<_> = field
            .engines()
            .into_iter()
            .map(|engine| Entrant::new(engine.name(), Borrowed::new(engine, &failure), &events))
            .collect();
        if let Some(tree) = tree {
            entrants.push(Entrant::new(Who::Rtree.label(), TreeOnly::new(tree), &events));
        }
        let checked = check(&oracle, &mut entrants, events.timed.len())?;
        figures.checked(panel, size, checked, events.timed.len());
    }
    failure.into_inner().map_or(Ok(()), |error| Err(error.into()))
}
