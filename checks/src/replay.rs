//! A dry run: what a check would have told of events that were recorded.

use std::collections::HashSet;
use std::hash::Hash;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::check::Check;
use crate::checker::Checker;
use crate::engine::Kind;
use crate::links::{Bounds, Overflow};
use crate::sets::Arrival;

/// What a dry run found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report<K> {
    /// Events that came into a set.
    pub evaluations: u64,
    /// Links in the order in which they were first told, each once: variables, by their place in [`Check::variables`], and events.
    pub links: Vec<Vec<(usize, K)>>,
    /// Different events in them.
    pub events_in_violation: usize,
}

impl<K> Report<K> {
    /// Different links in the whole run; one that came back counts once.
    #[must_use]
    pub fn violations(&self) -> usize {
        self.links.len()
    }
}

/// Holds recorded events against a check, in their order. `K` is what names an event: events with one name are one in the report.
///
/// # Errors
/// [`Overflow`]. A dry run does not go on with empty sets, since its figures would be wrong.
pub fn replay<K: Clone + Eq + Hash>(
    check: &Arc<Check>,
    kind: Kind,
    bounds: Bounds,
    events: impl IntoIterator<Item = (K, Arrival)>,
) -> Result<Report<K>, Overflow> {
    replay_with(&mut Checker::new(check.clone(), kind, bounds), events)
}

/// Does what [`replay`] does, with a checker that has seen nothing.
///
/// # Errors
/// [`Overflow`]
pub fn replay_with<K: Clone + Eq + Hash>(
    checker: &mut Checker<K>,
    events: impl IntoIterator<Item = (K, Arrival)>,
) -> Result<Report<K>, Overflow> {
    let mut seen: HashSet<Vec<(usize, K)>> = HashSet::new();
    let mut links = Vec::new();
    let mut result = Ok(());
    checker.take_all(events, |checker, taken| {
        let told = match taken {
            Ok(outcome) => outcome.map_or_else(Vec::new, |outcome| outcome.told),
            Err(overflow) => {
                result = Err(overflow);
                return ControlFlow::Break(());
            }
        };
        for link in &told {
            let named = link.bindings().iter().map(|binding| {
                let (_, key) = checker.event(binding).expect("what is told is in the sets");
                (binding.variable, key.clone())
            });
            let named: Vec<_> = named.collect();
            if seen.insert(named.clone()) {
                links.push(named);
            }
        }
        ControlFlow::Continue(())
    });
    result?;
    let events: HashSet<_> = links.iter().flatten().map(|(_, key)| key).collect();
    let events_in_violation = events.len();
    Ok(Report { evaluations: checker.evaluations(), links, events_in_violation })
}
