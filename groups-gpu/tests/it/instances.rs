//! The instances that lie beside the project, with the expected results of arc consistency.

use std::collections::BTreeMap;

use groups::network::{Domains, Network};
use groups_gpu::Method;

use crate::folder::{folder, instances, unpacked};
use crate::{Engines, is_on_device, is_soak, kernels};

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
        engines.check_letter(&network, &all, &fields[0]);
        assert_eq!(told(engines.check_bits(&network, &all, &fields[0])), expected, "{}", fields[0]);
    }
}

/// Assignments of a network, each with how many values it removes if it is consistent.
type Assigned = (Vec<Domains>, Vec<Option<usize>>);

#[test]
fn every_assignment_is_left_as_expected() {
    let Some(folder) = folder() else { return };
    let networks: BTreeMap<String, Network> = instances(&folder)
        .into_iter()
        .map(|(mut fields, network)| (fields.swap_remove(0), network))
        .collect();
    let mut assigned: BTreeMap<&str, Assigned> = BTreeMap::new();
    let text = unpacked(&folder.join("expected_ac_after_assignment.csv.gz"));
    for line in text.lines().skip(1) {
        let fields: Vec<_> = line.split(',').collect();
        let [file, name, value, ac, removed] = fields[..] else { panic!("{line}") };
        let (file, network) = networks.get_key_value(file).expect("an instance");
        let variable = network.variable(name).expect("a variable");
        let place = network.place(variable, value.parse().expect("a number")).expect("a value");
        let mut start = Domains::new(network);
        start.assign(network, variable, place);
        let (starts, expected) = assigned.entry(file).or_default();
        starts.push(start);
        expected.push((ac == "consistent").then(|| removed.parse().expect("a count")));
    }
    let mut engines = Engines::new(&kernels());
    let (mut seen, mut wipe_outs) = (0, 0);
    for (file, (starts, expected)) in assigned {
        let network = &networks[file];
        engines.load(network);
        let outcomes = engines.bits.enforce_all(network, &starts).expect("a batch");
        assert_eq!(outcomes.len(), starts.len());
        for ((outcome, start), expected) in outcomes.into_iter().zip(&starts).zip(expected) {
            let of = format!("{file}, assignment {seen}");
            assert_eq!(outcome.domains.as_ref().map(|left| left.removed(network)), expected, "{of}");
            if is_on_device() || is_soak() || seen % STEP == 0 {
                assert_eq!(engines.check_bits(network, start, &of), outcome.domains, "{of}");
                engines.check_letter(network, start, &of);
            }
            seen += 1;
            wipe_outs += usize::from(expected.is_none());
        }
    }
    assert_eq!((seen, wipe_outs), (9_075, 1_589));
}
