//! Names that are called and are defined nowhere.

use rules::{Goal, Program, Wrong};

/// All that is wrong with a program that is to be run, a line each.
fn faults(program: &str) -> String {
    let Wrong::Program(faults) = Goal::new(program, "true, nothing").unwrap_err() else { unreachable!() };
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

#[test]
fn all_are_told_with_their_places_and_what_they_probably_mean() {
    let program = "slow(T, _) \\ slow(T, _) <=> true.\n\
                   slow(T, X), slow(U, Y) ==> T \\== U, nearby(X, Y) | (true ; jamm(X), slow(T)), 7.\n\
                   jam(X) <=> lenght([X], _), findall(Y, whatever(Y), _).\n\
                   near_by(X, Y) :- X < Y, \\+ other.";
    // What is only a value, as in `findall/3`, may never be called.
    assert_eq!(
        faults(program),
        "line 2, column 37: nearby/2 is defined nowhere: did you mean near_by/2?\n\
         line 2, column 60: jamm/1 is defined nowhere: did you mean jam/1?\n\
         line 2, column 69: slow/1 is defined nowhere: did you mean slow/2?\n\
         line 2, column 79: this cannot be called\n\
         line 3, column 12: lenght/2 is defined nowhere: did you mean length/2?\n\
         line 4, column 28: other/0 is defined nowhere\n"
    );
}

#[test]
fn a_name_in_no_head_is_a_constraint_where_it_is_declared_or_asked_for() {
    let program = "a(X) ==> b(X).";
    assert_eq!(faults(program), "line 1, column 10: b/1 is defined nowhere\n");
    assert_eq!(Program::new(program).unwrap().unknown().len(), 1);
    assert!(Goal::new(&format!(":- chr_constraint a/1, b/1.\n{program}"), "a(1)").is_ok());
    assert!(Program::with_constraints(program, &[("b", None)]).unwrap().unknown().is_empty());
}

#[test]
fn a_goal_has_its_own_places() {
    let wrong = Goal::new("gcd(0) <=> true.\n\n", "gcd(9),\ngdc(6), 3").unwrap_err();
    let Wrong::Goal(faults) = wrong else { panic!("{wrong:?}") };
    let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "line 2, column 1: gdc/1 is defined nowhere: did you mean gcd/1?",
            "line 2, column 9: this cannot be called"
        ]
    );
}
