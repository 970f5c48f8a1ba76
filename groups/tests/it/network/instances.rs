//! The instances of XCSP3 that lie beside the project, with the expected results of arc consistency.

use std::collections::BTreeMap;

use groups::network::{Algorithm, Domains, Found, search, singleton};

use super::folder::{Assigned, assignments, folder, instance, instances};
use super::oracle;

#[test]
fn every_algorithm_leaves_of_every_instance_what_is_expected() {
    let Some(folder) = folder() else { return };
    let instances = instances(&folder);
    assert_eq!(instances.len(), 42);
    for (fields, network) in &instances {
        let number = |idx: usize| fields[idx].parse::<usize>().expect("a count");
        assert_eq!(
            [network.variables_count(), network.nodes_count(), network.constraints_count()],
            [number(1), number(3), number(4)],
            "{}",
            fields[0]
        );
        let all = Domains::new(network);
        let mut loops = Vec::new();
        for algorithm in Algorithm::ALL {
            let outcome = algorithm.enforce(network, &all);
            let left = outcome.domains.expect("all are consistent");
            assert_eq!(
                (left.removed(network), &left.closure(network)),
                (number(9), &fields[10]),
                "{} {algorithm:?}",
                fields[0]
            );
            if algorithm != Algorithm::Ac3Bit {
                loops.push(outcome.loops);
            }
        }
        assert!(loops.windows(2).all(|pair| pair[0] == pair[1]), "{}: {loops:?}", fields[0]);
    }
}

/// The algorithms that build a model for each assignment take a minute: they see each in the long form, else one of four.
#[test]
fn every_algorithm_leaves_of_every_assignment_what_is_expected() {
    let Some(folder) = folder() else { return };
    let networks: BTreeMap<_, _> = instances(&folder)
        .into_iter()
        .map(|(mut fields, network)| (fields.swap_remove(0), network))
        .collect();
    let (mut seen, mut wipe_outs) = (0, 0);
    for (file, assigned) in assignments(&folder, &networks) {
        let network = &networks[&file];
        for Assigned { line, start, removed } in assigned {
            let few = [Algorithm::Ac4, Algorithm::Ac3Bit];
            let is_full = crate::is_soak() || seen % 4 == 0;
            let mut closures = Vec::new();
            for &algorithm in if is_full { &Algorithm::ALL[..] } else { &few } {
                let left = algorithm.enforce(network, &start).domains;
                let found = left.as_ref().map(|left| left.removed(network));
                assert_eq!(found, removed, "{line} {algorithm:?}");
                closures.push(left);
            }
            assert!(closures.windows(2).all(|pair| pair[0] == pair[1]), "{line}");
            seen += 1;
            wipe_outs += usize::from(removed.is_none());
        }
    }
    assert_eq!((seen, wipe_outs), (9_075, 1_589));
}

/// A SAT solver says the same of each but the random ones, which take minutes and are searched in the long form.
#[test]
fn searches_of_instances_end_with_solutions_or_none() {
    let Some(folder) = folder() else { return };
    for (fields, network) in instances(&folder) {
        // Nothing has ended on this one yet.
        if fields[0].starts_with("Blackhole-4-07") || fields[0].starts_with("rand") && !crate::is_soak() {
            continue;
        }
        let with_solution = ["qwh", "composed-25-10", "rand-2-25-25-300-147-1"];
        let has_one = with_solution.iter().any(|name| fields[0].starts_with(name));
        match search(&network, &Domains::new(&network), 10_000_000) {
            Found::Solution(places) => {
                assert!(has_one && oracle::is_solution(&network, &places), "{}", fields[0]);
            }
            Found::Nothing => assert!(!has_one, "{} has a solution", fields[0]),
            Found::Stopped => panic!("{} was stopped", fields[0]),
        }
    }
}

#[test]
fn singleton_consistency_of_an_instance_is_the_same_on_all_algorithms() {
    let Some(folder) = folder() else { return };
    let network = instance(&folder, "Blackhole-4-04-0_X2.xml");
    let all = Domains::new(&network);
    let left = singleton(&network, &all, Algorithm::Ac3Bit).domains;
    assert_eq!(singleton(&network, &all, Algorithm::Ac4).domains, left);
    let consistent = Algorithm::Ac4.enforce(&network, &all).domains.expect("it is consistent");
    assert!(left.expect("it has a solution").removed(&network) >= consistent.removed(&network));
}
