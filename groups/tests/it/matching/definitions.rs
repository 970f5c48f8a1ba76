//! All faults of a definition are reported at once.

use groups::matching::{CONDITIONS_MAX, Definition, Fault, Part, ROLES_MAX};
use matcher::World;

/// The faults of a definition as text.
fn faults(roles: &[&str], conditions: &[&str], order: Option<&str>) -> Vec<(Part, String)> {
    match Definition::new(World::Planar, roles, conditions, order, 10) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.into_iter().map(|fault| (fault.part, fault.to_string())).collect(),
    }
}

#[test]
fn a_definition_without_faults_is_read() {
    let conditions = ["DISTANCE(taxi, rider) <= 800", "taxi.seats >= rider.party", "taxi.free = TRUE"];
    assert_eq!(faults(&["taxi", "rider"], &conditions, Some("DISTANCE(taxi, rider)")), []);
    assert_eq!(faults(&["taxi"], &[], None), []);
}

#[test]
fn all_faults_are_told_with_their_places() {
    let conditions = ["1 = 1", "a.x = b.x", "a.x + b.x = c.x", "d.x = 1", "a.x <"];
    let found = faults(&["a", "b", "c", "b"], &conditions, Some("e.x"));
    let expected = [
        (Part::Role(3), "there are two roles 'b'"),
        (Part::Where(0), "the condition reads no role, it has to read one or two"),
        (Part::Where(2), "the condition reads a, b, c, at most two roles are allowed"),
        (Part::Where(3), "there is no variable 'd', at column 1"),
        (Part::Where(4), "expected a value, found the end, at column 6"),
        (Part::Order, "there is no variable 'e', at column 1"),
    ];
    let places: Vec<_> = found.iter().map(|(part, _)| *part).collect();
    assert_eq!(places, expected.map(|(part, _)| part));
    for ((_, found), (_, expected)) in
        found.iter().zip(expected).filter(|((part, _), _)| *part != Part::Where(4))
    {
        assert!(found.starts_with(expected), "{found}, not {expected}");
    }
}

#[test]
fn there_are_some_roles_and_not_too_many_of_anything() {
    assert_eq!(faults(&[], &[], None), [(Part::Roles, Fault::NoRole.to_string())]);
    let names: Vec<_> = (0..=ROLES_MAX).map(|role| format!("r{role}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let conditions = vec!["r0.x = 1"; CONDITIONS_MAX + 1];
    let parts: Vec<_> = faults(&names, &conditions, None).into_iter().map(|(part, _)| part).collect();
    assert_eq!(parts, [Part::Roles, Part::Conditions]);
}
