//! Small cases, written out.

use groups::matching::{Bounds, Left, Matching, Partners, RoleSet, Standing};
use matcher::World;

use super::world::{Written, at, shown};

const TAXI: RoleSet = RoleSet::EMPTY.with(0);
const RIDER: RoleSet = RoleSet::EMPTY.with(1);
const STAND: RoleSet = RoleSet::EMPTY.with(2);

fn matching(roles: usize, conditions: &[&str], order: Option<&str>, limit: usize) -> Matching {
    let conditions = conditions.iter().map(|text| (*text).to_owned()).collect();
    let order = order.map(str::to_owned);
    let written = Written { world: World::Planar, roles, conditions, order, limit };
    Matching::new(written.definition(), Bounds::default())
}

/// Puts an object on a line and compares the changes.
#[track_caller]
fn put(matching: &mut Matching, name: &str, roles: RoleSet, x: f64, expected: &[&str]) {
    let changes = matching.put(name, roles, at([x, 0.0], &[])).expect("few");
    assert_eq!(shown(&changes), expected, "{name} at {x}");
}

#[test]
fn a_pair_enters_stays_and_exits() {
    let mut pickup = matching(2, &["DISTANCE(taxi, rider) <= 800"], Some("DISTANCE(taxi, rider)"), 10);
    put(&mut pickup, "t", TAXI, 0.0, &[]);
    put(&mut pickup, "r", RIDER, 500.0, &["+t r"]);
    put(&mut pickup, "r", RIDER, 700.0, &[]);
    put(&mut pickup, "r", RIDER, 900.0, &["-t r"]);
    put(&mut pickup, "r", RIDER, 800.0, &["+t r"]);
    assert_eq!(shown(&pickup.remove("t").expect("few")), ["-t r"]);
    assert!(pickup.remove("t").expect("few").is_empty());
}

#[test]
fn behind_the_limit_is_an_exit_and_back_an_enter() {
    let mut pickup = matching(2, &["DISTANCE(taxi, rider) <= 800"], Some("DISTANCE(taxi, rider)"), 2);
    put(&mut pickup, "r", RIDER, 0.0, &[]);
    put(&mut pickup, "t1", TAXI, 300.0, &["+t1 r"]);
    put(&mut pickup, "t2", TAXI, 200.0, &["+t2 r"]);
    put(&mut pickup, "t3", TAXI, 100.0, &["-t1 r", "+t3 r"]);
    put(&mut pickup, "t3", TAXI, 150.0, &[]);
    put(&mut pickup, "t3", TAXI, 400.0, &["-t3 r", "+t1 r"]);
    // Equals are ranked by their names.
    put(&mut pickup, "t0", TAXI, 300.0, &["-t1 r", "+t0 r"]);
    put(&mut pickup, "r", RIDER, 2_000.0, &["-t2 r", "-t0 r"]);
}

#[test]
fn no_object_takes_two_roles_of_a_group() {
    let mut pickup = matching(2, &["DISTANCE(taxi, rider) <= 10"], None, 10);
    let both = TAXI.with(1);
    put(&mut pickup, "a", both, 0.0, &[]);
    assert_eq!(pickup.counts()[0].consistent, 0);
    put(&mut pickup, "b", both, 0.0, &["+a b", "+b a"]);
    put(&mut pickup, "b", TAXI, 0.0, &["-a b"]);
    put(&mut pickup, "b", RoleSet::EMPTY, 0.0, &["-b a"]);
}

#[test]
fn candidates_in_a_circle_hold_each_other_up_and_come_back() {
    let around =
        ["DISTANCE(taxi, rider) <= 10", "DISTANCE(rider, stand) <= 10", "DISTANCE(stand, taxi) <= 10"];
    let mut circle = matching(3, &around, None, 10);
    let consistent =
        |matching: &Matching| matching.counts().iter().map(|count| count.consistent).collect::<Vec<_>>();
    put(&mut circle, "t", TAXI, 0.0, &[]);
    put(&mut circle, "r", RIDER, 5.0, &[]);
    assert_eq!(consistent(&circle), [0, 0, 0]);
    put(&mut circle, "s", STAND, 10.0, &["+t r s"]);
    assert_eq!(consistent(&circle), [1, 1, 1]);
    put(&mut circle, "s", STAND, 12.0, &["-t r s"]);
    assert_eq!(consistent(&circle), [0, 0, 0]);
    put(&mut circle, "t", TAXI, 2.0, &["+t r s"]);
    assert_eq!(consistent(&circle), [1, 1, 1]);
}

#[test]
fn what_stands_in_the_way_is_told() {
    let conditions = ["DISTANCE(taxi, rider) <= 800", "taxi.seats >= rider.party", "rider.party < 9"];
    let mut pickup = matching(2, &conditions, None, 10);
    for (name, x, seats) in [("t1", 0.0, 2.0), ("t2", 100.0, 3.0), ("t3", 5_000.0, 8.0)] {
        pickup.put(name, TAXI, at([x, 0.0], &[("seats", seats)])).expect("few");
    }
    pickup.put("r7", RIDER, at([0.0, 0.0], &[("party", 4.0)])).expect("few");
    // Two taxis are near, one is large enough, and none is both.
    let left =
        vec![Left { condition: 0, alone: 2, together: 2 }, Left { condition: 1, alone: 1, together: 0 }];
    let partners = vec![Partners { role: 0, candidates: 3, left, fitting: 0, consistent: 0 }];
    let expected = Standing { role: 1, failed: Vec::new(), is_consistent: false, partners };
    assert_eq!(pickup.why("r7"), [expected]);
    pickup.put("r7", RIDER, at([0.0, 0.0], &[("party", 9.0)])).expect("few");
    assert_eq!(pickup.why("r7")[0].failed, [2]);
    let partners = &pickup.why("t1")[0].partners[0];
    assert_eq!(partners.candidates, 1);
    assert_eq!(
        partners.left.last(),
        Some(&Left { condition: 2, alone: 0, together: 0 }),
        "a rider that does not fit is nobody's partner"
    );
    assert_eq!(pickup.why("nobody"), []);
}
