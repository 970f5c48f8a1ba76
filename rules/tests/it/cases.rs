//! Programs with the stores that K.U.Leuven's CHR ends with.

use std::path::{Path, PathBuf};

use rules::{Goal, Setting, run};
use serde_json::Value;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/chr")
}

#[test]
fn all_cases_end_with_the_store_and_the_bindings_given() {
    let cases = std::fs::read_to_string(data().join("cases.jsonl")).unwrap();
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = |member: &str| case[member].as_str().unwrap();
        let program = std::fs::read_to_string(data().join("programs").join(text("program"))).unwrap();
        let goal = Goal::new(&program, text("goal")).unwrap();
        let answer = run(&goal, Setting::default());
        let Ok(answer) = answer else {
            wrong.push(format!("{}: {answer:?}", text("name")));
            continue;
        };
        let bindings: serde_json::Map<_, _> =
            answer.bindings.into_iter().map(|(name, value)| (name, value.into())).collect();
        let store = Value::from(answer.store);
        if answer.is_success != (text("outcome") == "success")
            || store != case["store"]
            || Value::Object(bindings.clone()) != case["bindings"]
        {
            wrong.push(format!(
                "{}: {} {store} {bindings:?} and not {} {}",
                text("name"),
                answer.is_success,
                case["store"],
                case["bindings"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_tests_of_swi_prolog_succeed() {
    for name in [
        "dense_int",
        "fibonacci",
        "leq",
        "passive_check",
        "passive_check2",
        "primes",
        "trigger_no_active_occurrence",
        "zebra",
    ] {
        let program = std::fs::read_to_string(data().join(format!("swi-bsd/test_{name}.chr"))).unwrap();
        let goal = Goal::new(&program, name).unwrap();
        let answer = run(&goal, Setting::default());
        assert!(answer.as_ref().is_ok_and(|answer| answer.is_success), "{name}: {answer:?}");
    }
}

#[test]
fn constraints_of_a_variable_are_woken_in_the_order_in_which_they_are_declared() {
    for (declared, first) in [("n/1, b/1, c/1", "b"), ("n/1, c/1, b/1", "c")] {
        let program =
            format!(":- chr_constraint {declared}.\nb(1) \\ n(0) <=> n(b).\nc(1) \\ n(0) <=> n(c).");
        for goal in
            ["n(0), c(X), b(X), X = 1", "n(0), b(X), c(X), X = P, P = 1", "n(0), b(P), c(X), X = P, P = 1"]
        {
            let answer = run(&Goal::new(&program, goal).unwrap(), Setting::default()).unwrap();
            assert_eq!(
                answer.store,
                ["b(1)".to_owned(), "c(1)".to_owned(), format!("n({first})")],
                "{declared}: {goal}"
            );
        }
    }
}

/// A constraint waits for the variables of what its own became as well.
#[test]
fn a_variable_within_a_value_wakes_what_waited_for_the_value() {
    let program = "k(f(a)) <=> true. j(T), j(T) <=> true.";
    for (goal, left) in [
        ("k(T), T = f(S), S = a", 0),
        ("j(T), j(f(f(a))), T = f(S), S = f(R), R = a", 0),
        ("j(f(f(a))), j(T), T = f(S), S = f(R), R = a", 0),
        ("k(T), T = f(S), S = b", 1),
        ("k(T), (T = f(S), S = a, fail ; T = f(R), R = b)", 1),
    ] {
        let goal = Goal::new(program, goal).unwrap();
        assert_eq!(run(&goal, Setting::default()).unwrap().store.len(), left);
    }
}

/// A variable that comes first within a term is that place of the term, also while constraints wait for it.
#[test]
fn a_variable_that_comes_first_within_a_term_is_a_variable() {
    let known = "f(X), k(Y,Z) ==> X > Z | r(X). o(X,g(Y)), f(Z) ==> Z > X, var(Y) | Y = Z. k(A,B) ==> nonvar(A) | s(A,B).";
    for (program, goal, store) in [
        (
            "f(X) ==> o(g(Y)), k(Y,a). o(g(Y)), k(Y,Z) ==> r(Z).",
            "f(1)",
            &["f(1)", "k(_1,a)", "o(g(_1))", "r(a)"][..],
        ),
        ("f(X) ==> o(g(Y)), o(g(Y)). o(G) \\ o(G) <=> true.", "f(1)", &["f(1)", "o(g(_1))"]),
        ("f(X) ==> o(g(Y)), o(g(Z)). o(G), o(H) ==> G = H.", "f(1)", &["f(1)", "o(g(_1))", "o(g(_1))"]),
        (
            "f(X) ==> o(g(Y,Y)). o(G) ==> copy_term(G, g(A,B)), A = 1, r(B).",
            "f(1)",
            &["f(1)", "o(g(_1,_1))", "r(1)"],
        ),
        ("f(X) ==> o(g(Y)). o(G) ==> term_variables(G, L), r(L).", "f(1)", &["f(1)", "o(g(_1))", "r([_1])"]),
        (
            &format!("f(X) ==> o(X,g(Y)), k(Y,X). {known}"),
            "f(1), f(2)",
            &["f(1)", "f(2)", "k(2,1)", "k(_1,2)", "o(1,g(2))", "o(2,g(_1))", "r(2)", "s(2,1)"],
        ),
    ] {
        let declared = format!(":- chr_constraint f/1, o/1, o/2, k/2, r/1, s/2. {program}");
        let answer = run(&Goal::new(&declared, goal).unwrap(), Setting::default()).unwrap();
        assert_eq!(answer.store, store, "{program}");
    }
}
