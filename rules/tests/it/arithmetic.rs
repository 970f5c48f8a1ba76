//! Numbers, as SWI-Prolog 9.0.4 answers. Where it goes beyond 64 bits an error is wanted here.

use rules::{Goal, Setting, run};

/// What a goal's variable `X` becomes, or the error that it ends with.
fn answer(goal: &str) -> String {
    let goal = Goal::new("", goal).unwrap_or_else(|wrong| panic!("{goal}: {wrong:?}"));
    match run(&goal, Setting::default()) {
        Ok(answer) if answer.is_success => {
            answer.bindings.into_iter().find(|(name, _)| name == "X").expect("the goal has an X").1
        }
        Ok(_) => "fail".to_owned(),
        Err(error) => error.to_string(),
    }
}

const BEYOND: &str = "a whole number is beyond 64 bits";
const BY_ZERO: &str = "a division by zero";
const UNDEFINED: &str = "a function has no value there";
const TOO_LARGE: &str = "a float is too large";

/// Expressions and their values, compiled and as terms.
#[test]
fn expressions_have_the_values_of_swi_prolog() {
    for (expression, wanted) in [
        ("max(1,1.0)", "1.0"),
        ("max(1.0,1)", "1.0"),
        ("min(1,1.0)", "1.0"),
        ("max(0,-0.0)", "0"),
        ("min(0,-0.0)", "-0.0"),
        ("max(-0.0,0.0)", "0.0"),
        ("max(9007199254740993,9007199254740992.0)", "9.007199254740992e+15"),
        ("max(nan,1)", "1"),
        ("min(1,nan)", "1"),
        ("max(inf,3)", "1.0Inf"),
        ("max(inf,inf)", TOO_LARGE),
        ("2 ** -1", "0.5"),
        ("2 ^ -1", "0.5"),
        ("-3 ^ -3", "-0.037037037037037035"),
        ("2 ** -1100", "0.0"),
        ("0 ** -1", BY_ZERO),
        ("0.0 ** -1", BY_ZERO),
        ("0 ** 2.5", "0"),
        ("2.5 ** 0", "1"),
        ("1 ** 2.5", "1"),
        ("1.0 ** 2.5", "1.0"),
        ("-1 ** 9223372036854775807", "-1"),
        ("-2 ** 63", "-9223372036854775808"),
        ("2 ** 63", BEYOND),
        ("-8 ** 0.5", UNDEFINED),
        ("1 << -1", "0"),
        ("-5 << -1", "-3"),
        ("1 >> -1", "2"),
        ("-1 >> -63", "-9223372036854775808"),
        ("1 << 63", BEYOND),
        ("0 << 100", "0"),
        ("-9223372036854775808 mod -1", "0"),
        ("-9223372036854775808 rem -1", "0"),
        ("-9223372036854775808 // -1", BEYOND),
        ("-9223372036854775808 / 1", "-9223372036854775808"),
        ("-0x8000000000000000", "-9223372036854775808"),
        ("1 mod 0", BY_ZERO),
        ("copysign(2,-0.0)", "-2"),
        ("copysign(2,3.0)", "2"),
        ("copysign(0,-1)", "0"),
        ("copysign(2.0,-1)", "-2.0"),
        ("inf", "1.0Inf"),
        ("-inf", "-1.0Inf"),
        ("nan", "1.5NaN"),
        ("-1.0Inf", "-1.0Inf"),
        ("1.5NaN", "1.5NaN"),
        ("inf + 1", TOO_LARGE),
        ("inf - inf", UNDEFINED),
        ("2 / inf", "0"),
        ("-2.0 / inf", "-0.0"),
        ("0 / 0.0", UNDEFINED),
        ("7.0 / 0", BY_ZERO),
        ("exp(-inf)", TOO_LARGE),
        ("float(inf)", TOO_LARGE),
        ("round(inf)", "1.0Inf"),
        ("sign(nan)", "1.5NaN"),
        ("log(0)", TOO_LARGE),
        ("log(-1)", UNDEFINED),
        ("float_fractional_part(-1.0)", "-0.0"),
        ("float_fractional_part(-inf)", "-0.0"),
        ("7.5 mod 2", "arithmetic: 7.5 is not a whole number"),
        ("nan mod 2", UNDEFINED),
        ("1 / 0 + sqrt(-1)", UNDEFINED),
        ("sqrt(-1) + 1 / 0", BY_ZERO),
        ("round(0.49999999999999994)", "0"),
        ("1e10", "10000000000.0"),
        ("2.5E-7", "2.5e-7"),
    ] {
        assert_eq!(answer(&format!("X is {expression}")), wanted, "{expression}");
        assert_eq!(
            answer(&format!("T = t({expression}), arg(1, T, E), X is E")),
            wanted,
            "{expression} as a term"
        );
    }
}

#[test]
fn comparisons_round_and_the_standard_order_does_not() {
    let sign = |goal: &str| answer(&format!("( {goal} -> X = yes ; X = no )"));
    for goal in [
        "9007199254740993 =:= 9007199254740992.0",
        "9007199254740993 @> 9007199254740992.0",
        "inf =:= inf",
        "1 < inf",
        "nan =\\= nan",
        "0 =:= -0.0",
        "-0.0 \\== 0.0",
    ] {
        assert_eq!(sign(goal), "yes", "{goal}");
    }
    for goal in ["nan =:= nan", "nan < 1", "nan >= 1", "9223372036854775807 < 9223372036854775808.0"] {
        assert_eq!(sign(goal), "no", "{goal}");
    }
    assert_eq!(
        answer("msort([a, 1.5NaN, 1.0Inf, 1, -1.0Inf, 1.0, 0.0, -0.0, 0], X)"),
        "[1.5NaN,-1.0Inf,-0.0,0.0,0,1.0,1,1.0Inf,a]"
    );
}

#[test]
fn succ_and_plus_have_the_errors_of_swi_prolog() {
    for (goal, wanted) in [
        ("succ(X, 0)", "fail"),
        ("succ(X, -1)", "succ/2: -1 is not a whole number from 0 on"),
        ("X = 3, succ(X, a)", "succ/2: a is not a whole number from 0 on"),
        ("succ(9223372036854775807, X)", BEYOND),
        ("plus(X, 2, 5)", "3"),
        ("plus(1, 2.5, X)", "plus/3: 2.5 is not a whole number"),
        ("plus(X, _, 3)", "plus/3: a variable has no value"),
        ("plus(9223372036854775807, 1, X)", BEYOND),
    ] {
        assert_eq!(answer(goal), wanted, "{goal}");
    }
}
