//! The instances that lie beside the project, with the expected results of arc consistency.

use std::collections::BTreeMap;

use groups::network::Domains;
use groups_gpu::Method;

use crate::engines::Engines;
use crate::folder::{Assigned, assignments, folder, instances};
use crate::random::asked_runs;
use crate::{is_on_device, is_soak, kernels};

/// Of so many assignments, one is given to the algorithms of the paper where the processor is the device: each needs a model.
const STEP: usize = 50;

#[test]
fn every_instance_is_left_as_expected() {
    let Some(folder) = folder() else { return };
    let mut engines = Engines::new(&kernels());
    for (fields, network) in instances(&folder) {
        let removed: usize = fields[9].parse().expect("a count");
        let expected = (removed, fields[10].clone());
        let all = Domains::new(&network);
        let told = |left: Option<Domains>| {
            let left = left.expect("all are consistent");
            (left.removed(&network), left.closure(&network))
        };
        for method in [Method::Ac4Gpu, Method::Ac4GpuPlus] {
            let outcome = engines.letter.enforce(&network, &all, method).expect("a run");
            assert_eq!(told(outcome.domains), expected, "{} {method:?}", fields[0]);
        }
        engines.load(&network);
        let left = engines.check(&network, &all).unwrap_or_else(|what| panic!("{}: {what}", fields[0]));
        assert_eq!(told(left), expected, "{}", fields[0]);
    }
}

#[test]
fn every_assignment_is_left_as_expected() {
    let Some(folder) = folder() else { return };
    let networks: BTreeMap<_, _> = instances(&folder)
        .into_iter()
        .map(|(mut fields, network)| (fields.swap_remove(0), network))
        .collect();
    let mut engines = Engines::new(&kernels());
    let (mut seen, mut wipe_outs) = (0, 0);
    let few = asked_runs().map_or(usize::MAX, |runs| usize::try_from(runs).unwrap_or(usize::MAX));
    for (file, mut assigned) in assignments(&folder, &networks) {
        // Of each instance.
        assigned.truncate(few);
        let network = &networks[&file];
        engines.load(network);
        let starts: Vec<_> = assigned.iter().map(|assigned| assigned.start.clone()).collect();
        let outcomes = engines.bits.enforce_all(network, &starts).expect("a batch");
        assert_eq!(outcomes.len(), starts.len());
        for (outcome, Assigned { line, start, removed }) in outcomes.into_iter().zip(assigned) {
            assert_eq!(outcome.domains.as_ref().map(|left| left.removed(network)), removed, "{line}");
            if is_on_device() || is_soak() || seen % STEP == 0 {
                let left = engines.check(network, &start).unwrap_or_else(|what| panic!("{line}: {what}"));
                assert_eq!(left, outcome.domains, "{line}");
            }
            seen += 1;
            wipe_outs += usize::from(removed.is_none());
        }
    }
    println!("{seen} assignments, {wipe_outs} of them inconsistent");
    assert!(few < usize::MAX || (seen, wipe_outs) == (9_075, 1_589), "{seen}, {wipe_outs}");
}
