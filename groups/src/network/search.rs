//! Search for a solution.

use super::ac3bit::{Propagator, WipeOut};
use super::{Domains, Network, number};

/// Wipe-outs until the first restart.
const RESTART_AFTER: u64 = 100;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The place of each variable's value.
    Solution(Vec<usize>),
    /// There is no solution.
    Nothing,
    /// It was stopped before it knew.
    Stopped,
}

/// Looks for a solution among the values that are left: maintains arc consistency, by AC3bit+rm.
///
/// It branches on the variable with the least domain for its weight, in two ways: a value, or the others. A constraint's weight grows
/// with each wipe-out. It begins anew after 100 of them, and then each time after half as many again. At most `nodes_max` values are
/// tried.
///
/// Source: Boussemart, Hemery, Lecoutre and Sais, "Boosting systematic search by weighting constraints", ECAI 2004 (dom/wdeg).
#[must_use]
pub fn search(network: &Network, domains: &Domains, nodes_max: u64) -> Found {
    let mut propagator = Propagator::new(network, domains);
    if propagator.begin().is_err() {
        return Found::Nothing;
    }
    let mut weights = vec![1_u64; network.constraints_count()];
    let mut tried = Vec::new();
    let (mut nodes, mut wipe_outs, mut restart_after) = (0, 0, RESTART_AFTER);
    loop {
        let Some(variable) = pick(network, &propagator, &weights) else {
            let first = |variable| propagator.first(variable).map_or(0, |place| place as usize);
            return Found::Solution((0..number(network.variables_count())).map(first).collect());
        };
        let Some(value) = propagator.first(variable) else { return Found::Nothing };
        if nodes == nodes_max {
            return Found::Stopped;
        }
        nodes += 1;
        tried.push((propagator.mark(), variable, value));
        propagator.assign(variable, value);
        while let Err(WipeOut { constraint, .. }) = propagator.propagate() {
            if let Some(constraint) = constraint {
                weights[constraint as usize] += 1;
            }
            wipe_outs += 1;
            loop {
                let Some((mark, variable, value)) = tried.pop() else { return Found::Nothing };
                propagator.undo(mark);
                if propagator.remove(variable, value) {
                    break;
                }
                propagator.forget();
            }
        }
        if wipe_outs >= restart_after {
            (wipe_outs, restart_after) = (0, restart_after + restart_after / 2);
            if let Some((mark, ..)) = tried.first() {
                propagator.undo(*mark);
                tried.clear();
            }
        }
    }
}

/// The variable to branch on; `None` if no two that stand in a constraint have several values: then any of those will do.
fn pick(network: &Network, propagator: &Propagator<'_>, weights: &[u64]) -> Option<u32> {
    let mut best = None::<(u64, u64, u32)>;
    for variable in 0..number(network.variables_count()) {
        let size = u64::from(propagator.size(variable));
        if size < 2 {
            continue;
        }
        let open = network.arcs(variable).iter().filter(|arc| propagator.size(arc.other) > 1);
        let weight = open.map(|arc| weights[arc.constraint as usize]).sum::<u64>();
        let is_better = best.is_none_or(|(best_size, best_weight, _)| {
            u128::from(size) * u128::from(best_weight) < u128::from(best_size) * u128::from(weight)
        });
        if is_better {
            best = Some((size, weight, variable));
        }
    }
    best.filter(|(_, weight, _)| *weight > 0).map(|(.., variable)| variable)
}
