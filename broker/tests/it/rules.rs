//! Rules on the command line.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{dry_run, run_to_end};

fn run(program: &str, arguments: &[&str]) -> Result<Value, String> {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("p.chr"), program).expect("written");
    let arguments = [&["rules", "run", "p.chr"], arguments].concat();
    dry_run(&arguments, folder.path())
}

#[test]
fn a_goal_ends_with_what_rules_leave() {
    let gcd = "gcd(0) <=> true.\ngcd(N) \\ gcd(M) <=> N =< M | L is M mod N, gcd(L).";
    let expected = json!({"outcome": "success", "store": ["gcd(3)"], "bindings": {}, "seconds": null, "applications": 3});
    assert_eq!(run(gcd, &["--goal", "gcd(9), gcd(6)"]), Ok(expected));
    let leq = "leq(X,X) <=> true.\nleq(X,Y), leq(Y,X) <=> X = Y.\nleq(X,Y) ==> seen('a b', X, [Y|_]).\nseen(_,_,_) ==> true.";
    let expected = json!({
        "outcome": "success", "store": ["leq(A,B)", "seen('a b',A,[B|_1])"], "bindings": {"A": "A", "B": "B"}, "seconds": null, "applications": 2,
    });
    assert_eq!(run(leq, &["--goal", "leq(A,B)", "--bindings"]), Ok(expected));
    let failed = json!({"outcome": "fail", "store": [], "bindings": {}, "seconds": null, "applications": 1});
    assert_eq!(run("a(X) <=> X > 1, fail.", &["--goal", "a(2)"]), Ok(failed));
    // Rome and Milan.
    let far = ":- chr_constraint at/2, apart/1.\nat(X,Y), at(V,W) <=> D is truncate(distance(X,Y,V,W) / 1000), apart(D).";
    let answer = run(far, &["--goal", "at(12.5,41.9), at(9.19,45.46)"]).expect("an answer");
    assert_eq!(answer["store"], json!(["apart(476)"]));
}

#[test]
fn the_engine_of_devices_takes_numbers_and_atoms() {
    // Without a device the processor does it, and says so.
    let sum = "item(K, A), item(K, B) <=> C is A + B, item(K, C).";
    let answer = run(sum, &["--goal", "item(a, 1), item(b, 7), item(a, 2.5)", "--engine", "gpu"]);
    assert_eq!(answer.expect("an answer")["store"], json!(["item(a,3.5)", "item(b,7)"]));
    let refused = run("go @ p(X) <=> q([X]).\nq(_) <=> true.", &["--goal", "p(1)", "--engine", "gpu"]);
    let refused = refused.expect_err("lists");
    assert!(refused.contains("p.chr: rule go: line 1, column 17: a device takes numbers"), "{refused}");
}

#[test]
fn a_program_is_translated_to_cuda() {
    let translate = |program: &str| {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("p.chr"), program).expect("written");
        run_to_end(&["rules", "translate", "p.chr"], &[], folder.path())
    };
    let output = translate("min(A) \\ min(B) <=> A =< B | true.");
    let source = String::from_utf8(output.stdout).expect("a text");
    assert!(
        output.status.success() && source.contains("__global__ void fire_r0(") && !source.contains(" min(")
    );
    let output = translate("a(X) ==> a(X).");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(
        String::from_utf8(output.stderr)
            .expect("a text")
            .contains("rule 1: line 1, column 1: it removes nothing")
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let told =
        run("a(X) <=> b(X.\nc(X) ==> d(X)\n\ne(1) <=> true.", &["--goal", "a(1)"]).expect_err("faults");
    assert!(
        told.contains("p.chr: line 1, column 13: ") && told.contains("p.chr: line 4, column 1: "),
        "{told}"
    );
    assert!(
        run("a(1) <=> true.", &["--goal", "a(1"]).expect_err("a fault").contains("goal: line 1, column 4: ")
    );
    let endless = run("a(X) <=> Y is X + 1, a(Y).", &["--goal", "a(1)", "--steps", "1000"]);
    assert!(endless.expect_err("too many").contains("more than 1000 steps"));
    let doubled = run(
        "g(0, _) <=> true.\ng(N, T) <=> M is N - 1, g(M, f(T, T)).",
        &["--goal", "g(60, A)", "--steps", "1000"],
    );
    assert!(
        doubled
            .expect_err("too large")
            .contains("more than 1000000 constraints, or 16 times as many words of terms")
    );
    assert!(
        run("a(X) <=> Y is X + _, a(Y).", &["--goal", "a(1)"])
            .expect_err("an error")
            .contains("has no value")
    );
    let told =
        run("jam(X) <=> X > 1 | jams(X).\njam(1) ==> b(1).", &["--goal", "jam(0)"]).expect_err("faults");
    assert!(
        told.contains("p.chr: line 1, column 20: jams/1 is defined nowhere: did you mean jam/1?")
            && told.contains("p.chr: line 2, column 12: b/1 is defined nowhere"),
        "{told}"
    );
}
