//! What passes a bound is refused and says so.

use groups::matching::{Bounds, Matching, Overflow, RoleSet};
use matcher::World;

use super::world::{Written, at};

fn matching(bounds: Bounds) -> Matching {
    let written = Written {
        world: World::Planar,
        roles: 2,
        conditions: vec!["DISTANCE(taxi, rider) <= 10".to_owned()],
        order: Some("DISTANCE(taxi, rider)".to_owned()),
        limit: 3,
    };
    Matching::new(written.definition(), bounds)
}

const TAXI: RoleSet = RoleSet::EMPTY.with(0);
const RIDER: RoleSet = RoleSet::EMPTY.with(1);

#[test]
fn candidates_are_bounded_by_roles() {
    let mut matching = matching(Bounds { candidates_max: 2, ..Bounds::default() });
    matching.put("t", TAXI.with(1), at([0.0, 0.0], &[])).expect("two");
    let refused = matching.put("r", RIDER, at([0.0, 0.0], &[]));
    assert_eq!(refused, Err(Overflow::Candidates { max: 2 }));
    assert_eq!(matching.why("r"), []);
    matching.put("t", TAXI, at([0.0, 0.0], &[])).expect("one");
    assert_eq!(matching.put("r", RIDER, at([0.0, 0.0], &[])).expect("two").len(), 1);
}

#[test]
fn pairs_are_bounded() {
    let mut matching = matching(Bounds { pairs_max: 4, ..Bounds::default() });
    for number in 0..4 {
        matching.put(&format!("t{number}"), TAXI, at([0.0, 0.0], &[])).expect("no pair");
    }
    matching.put("r0", RIDER, at([1.0, 0.0], &[])).expect("four pairs");
    let groups = matching.groups();
    assert_eq!(matching.put("r1", RIDER, at([2.0, 0.0], &[])), Err(Overflow::Pairs { max: 4 }));
    assert_eq!(matching.groups(), groups);
    matching.put("r1", RIDER, at([20.0, 0.0], &[])).expect("no more pairs");
    assert_eq!(matching.put("r1", RIDER, at([9.0, 0.0], &[])), Err(Overflow::Pairs { max: 4 }));
    matching.put("r0", RIDER, at([20.0, 0.0], &[])).expect("no pairs");
    assert_eq!(matching.put("r1", RIDER, at([9.0, 0.0], &[])).expect("four pairs").len(), 3);
}

#[test]
fn looks_are_bounded() {
    let mut matching = matching(Bounds { looks_max: 8, ..Bounds::default() });
    for number in 0..8 {
        matching.put(&format!("t{number}"), TAXI, at([0.0, 0.0], &[])).expect("nobody to look at");
    }
    // Eight to find the pairs, and some to find the groups.
    assert_eq!(matching.put("r", RIDER, at([1.0, 0.0], &[])), Err(Overflow::Looks { max: 8 }));
    assert_eq!((matching.groups(), matching.counts()[0].consistent), (Vec::new(), 0));
    matching.remove("t7").expect("no group");
    assert!(matching.put("r", RIDER, at([100.0, 0.0], &[])).expect("nobody is near").is_empty());
}
