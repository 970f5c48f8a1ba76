//! Random programs whose answers do not depend on the order in which rules are applied.

use std::fmt::Write as _;

use device::{Device, Fault};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rules::{Answer, Goal, Setting};
use rules_gpu::{Error, Kernels, run};

/// The processor's answer.
fn expected(program: &str, goal: &str) -> Answer {
    let goal = Goal::new(program, goal).unwrap_or_else(|wrong| panic!("{wrong:?}\n{program}"));
    rules::run(&goal, Setting::default()).unwrap_or_else(|error| panic!("{error}\n{program}"))
}

#[track_caller]
fn check(kernels: &Kernels, program: &str, goal: &str) -> usize {
    let expected = expected(program, goal);
    let found = run(program, goal, kernels, &Setting::default());
    let found = found.unwrap_or_else(|error| panic!("{error}\n{program}\n{goal}"));
    let found = (found.is_success, found.store, found.bindings);
    let count = expected.store.len();
    assert_eq!(found, (expected.is_success, expected.store, expected.bindings), "{program}\n{goal}");
    count
}

fn facts(kinds: impl Iterator<Item = String>) -> String {
    kinds.collect::<Vec<_>>().join(", ")
}

/// A least fixed point: relations without duplicates, to which rules add.
fn fixed_point(random: &mut SmallRng) -> (String, String) {
    let arities: Vec<usize> = (0..4).map(|_| random.random_range(1..=3)).collect();
    let values: &[&str] = if random.random_bool(0.5) {
        &["0", "1", "2", "3", "4"]
    } else {
        &["0", "0.0", "-1", "a", "'B c'", "2.5"]
    };
    let is_whole = values.len() == 5;
    let mut program = String::new();
    let list = |letter: &str, count: usize| {
        (0..count).map(|idx| format!("{letter}{idx}")).collect::<Vec<_>>().join(",")
    };
    for (relation, arity) in arities.iter().enumerate() {
        let arguments = list("V", *arity);
        writeln!(program, "p{relation}({arguments}) \\ p{relation}({arguments}) <=> true.").expect("a text");
    }
    for _ in 0..random.random_range(1..=4) {
        let heads = random.random_range(1..=3);
        let mut used = Vec::new();
        let body: Vec<_> = (0..heads)
            .map(|_| {
                let relation = random.random_range(0..arities.len());
                let arguments: Vec<_> = (0..arities[relation])
                    .map(|_| match random.random_range(0..8) {
                        0 => (*values.choose(random).expect("some")).to_owned(),
                        1 => "_".to_owned(),
                        _ => {
                            let variable = format!("X{}", random.random_range(0..4));
                            used.push(variable.clone());
                            variable
                        }
                    })
                    .collect();
                format!("p{relation}({})", arguments.join(","))
            })
            .collect();
        let term = |random: &mut SmallRng| used.choose(random).map_or_else(|| "1".to_owned(), Clone::clone);
        let guard = match random.random_range(0..5) {
            0 => format!("{} \\== {} | ", term(random), term(random)),
            1 => format!("( {} == {} ; {} \\== 1 ) | ", term(random), term(random), term(random)),
            2 if is_whole => format!("S is {} + 2 * {}, S mod 3 =\\= 1 | ", term(random), term(random)),
            3 if is_whole => format!("\\+ {} > max({}, 2) | ", term(random), term(random)),
            _ => String::new(),
        };
        let relation = random.random_range(0..arities.len());
        let head: Vec<_> = (0..arities[relation]).map(|_| term(random)).collect();
        writeln!(program, "{} ==> {guard}p{relation}({}).", body.join(", "), head.join(",")).expect("a text");
    }
    let goal = facts((0..random.random_range(5..30)).map(|_| {
        let relation = random.random_range(0..arities.len());
        let arguments: Vec<_> =
            (0..arities[relation]).map(|_| *values.choose(random).expect("some")).collect();
        format!("p{relation}({})", arguments.join(","))
    }));
    (program, goal)
}

/// A sum of some kind, by key.
fn fold(random: &mut SmallRng) -> (String, String) {
    let function =
        ["A + B", "max(A, B)", "min(A, B)", "A xor B", "A /\\ B", "A \\/ B"].choose(random).expect("some");
    let program = format!("s(K, A), s(K, B) <=> C is {function}, s(K, C).");
    let keys = random.random_range(1..6);
    let goal = facts(
        (0..random.random_range(1..60))
            .map(|_| format!("s({}, {})", random.random_range(0..keys), random.random_range(-50..50))),
    );
    (program, goal)
}

/// Best paths, by several measures.
fn paths(random: &mut SmallRng) -> (String, String) {
    let (better, sum) =
        *[("=<", "X + Y"), ("=<", "max(X, Y)"), (">=", "min(X, Y)")].choose(random).expect("some");
    let weight = if random.random_bool(0.5) { "" } else { ".5" };
    let program = format!(
        "d(A, B, X) \\ d(A, B, Y) <=> X {better} Y | true.
         e(A, B, X) ==> d(A, B, X).
         d(A, B, X), e(B, C, Y) ==> A \\== C | Z is {sum}, d(A, C, Z)."
    );
    let nodes = random.random_range(2..9);
    let goal = facts((0..random.random_range(1..30)).map(|_| {
        let mut node = || random.random_range(0..nodes);
        let (from, to) = (node(), node());
        format!("e({from}, {to}, {}{weight})", random.random_range(1..40))
    }));
    (program, goal)
}

/// A program and a goal of some kind.
fn any(seed: u64) -> (String, String) {
    let mut random = SmallRng::seed_from_u64(seed);
    match seed % 4 {
        0 => fold(&mut random),
        1 => paths(&mut random),
        _ => fixed_point(&mut random),
    }
}

/// A compiler takes a second for each, so they are few.
#[test]
fn random_programs_that_are_compiled_have_the_processors_answers() {
    let kernels = crate::kernels().compiling_from(0);
    for seed in 300..308 {
        let (program, goal) = any(seed);
        check(&kernels, &program, &goal);
    }
}

/// As many as `NEARCAST_RULES_RUNS` says: a sanitizer takes a hundred times as long for each, so other tests are shorter then.
fn asked_runs() -> Option<u64> {
    std::env::var("NEARCAST_RULES_RUNS").ok().and_then(|runs| runs.parse().ok())
}

#[test]
fn random_confluent_programs_have_the_processors_answers() {
    let runs = asked_runs().unwrap_or(300);
    let kernels = crate::kernels();
    let mut stored = 0;
    for seed in 0..runs {
        let (program, goal) = any(seed);
        stored += check(&kernels, &program, &goal) as u64;
    }
    println!("{runs} programs left {stored} constraints");
    assert!(stored > 10 * runs, "{stored}");
}

#[test]
fn a_run_repeats_itself() {
    let kernels = crate::kernels();
    // Its answer depends on the order; ours is the same each time.
    let program = "p(X), p(Y) <=> Z is 2 * X - Y, p(Z).";
    let goal = facts((0..200).map(|number| format!("p({number})")));
    let answers: Vec<_> = (0..3)
        .map(|_| run(program, &goal, &kernels, &Setting::default()).expect("it has an answer"))
        .collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(answers[0].store.len(), 1);
}

#[test]
fn stores_that_outgrow_their_room_are_moved() {
    let kernels = crate::kernels();
    // In the short form too there are more than 1,024 of everything, which is the least room.
    let (nodes, changes, depth) = if asked_runs().is_some() { (36, 600, 10) } else { (60, 5_000, 11) };
    let goal = facts((0..nodes).map(|node| format!("e({node}, {}, 1)", (node + 1) % nodes)));
    let program = "d(A, B, X) \\ d(A, B, Y) <=> X =< Y | true.
        e(A, B, X) ==> d(A, B, X).
        d(A, B, X), e(B, C, Y) ==> Z is X + Y, d(A, C, Z).";
    assert_eq!(check(&kernels, program, &goal), nodes + nodes * nodes);
    // Each constraint is replaced many times.
    let program = "c(N, X) <=> N > 0 | M is N - 1, Y is X + N, c(M, Y).";
    check(&kernels, program, &format!("c({changes}, 0), c({}, 0), c(3, 7)", changes - 1));
    // Three at a time, and twice as many in each round.
    let program = "t(N) <=> N > 0 | M is N - 1, t(M), t(M), u(N). u(N) \\ u(N) <=> true. t(0) <=> z(1). z(A), z(B) <=> C is A + B, z(C).";
    check(&kernels, program, &format!("t({depth})"));
}

#[test]
fn goals_that_fail_or_have_no_value_are_told_as_by_the_processor() {
    let kernels = crate::kernels();
    let program = "
        never @ p(X), q(X) <=> fail.
        equal @ p(X), r(Y) ==> X = Y.
        wide @ w(X) <=> Y is X * X, p(Y).
        zero @ z(X) <=> 1 // X > 0 | true.";
    for goal in ["p(1), q(1)", "p(1), q(2)", "p(1), r(1)", "p(1), r(1.0)", "w(3)", "z(1)"] {
        check(&kernels, program, goal);
    }
    for goal in ["w(5000000000)", "w(a)", "z(0)"] {
        let expected = Goal::new(program, goal).map(|goal| rules::run(&goal, Setting::default()));
        let found = run(program, goal, &kernels, &Setting::default());
        match (expected, found) {
            (
                Ok(Err(rules::Error::Type { .. })),
                Err(Error::Rules { error: rules::Error::Type { .. }, .. }),
            ) => {}
            (Ok(Err(expected)), Err(Error::Rules { error, .. })) => assert_eq!(error, expected, "{goal}"),
            others => panic!("{goal}: {others:?}"),
        }
    }
    let bounds = rules::Bounds { steps: 100, ..rules::Bounds::default() };
    let setting = Setting { bounds, ..Setting::default() };
    let endless = run("p(X) <=> Y is X + 1, p(Y).", "p(0)", &kernels, &setting);
    assert!(matches!(endless, Err(Error::Rules { error: rules::Error::Steps(100), .. })), "{endless:?}");
}

#[test]
fn rules_that_no_device_takes_are_told_with_their_place() {
    let kernels = crate::kernels();
    for (program, goal, told) in [
        ("p(X) <=> q(f(X)).", "p(1)", "rule 1: line 1, column 10: a device does not take q/1 in a body"),
        (
            "p(X) <=> true.\nfar @ p(X) ==> sin(X) > 0 | p(X).",
            "p(1)",
            "rule far: line 2, column 16: a device has no function sin/1",
        ),
        ("p(X) <=> p(Y).", "p(1)", "rule 1: line 1, column 12: a variable has no value there"),
        ("p([]) <=> true.", "p(X)", "goal: line 1, column 3: a variable has no value there"),
        (
            "p([H|T]) <=> true.",
            "p(1)",
            "rule 1: line 1, column 3: a device takes numbers and atoms, and no lists",
        ),
        ("p(X) <=> true.", "p(1) ; p(2)", "goal: line 1, column 1: a goal of a device has constraints alone"),
    ] {
        let found = run(program, goal, &kernels, &Setting::default()).expect_err("it is refused").to_string();
        assert!(found.starts_with(told), "{program}: {found}");
    }
}

#[test]
fn a_device_that_fails_is_told() {
    for fault in [Fault::OutOfMemory, Fault::LaunchFailed, Fault::DeviceLost] {
        let device = Device::host(1 << 24);
        let kernels = Kernels::load(&device).expect("the device takes them");
        device.inject(fault, 5);
        let found = run("p(X) \\ p(Y) <=> X =< Y | true.", "p(1), p(2)", &kernels, &Setting::default());
        assert!(matches!(found, Err(Error::Driver(_))), "{found:?}");
    }
}

/// Numbers at the edges of 64 bits and of floats, by all functions that a device has: a value, or an error here and there.
#[test]
fn numbers_are_calculated_as_on_the_processor() {
    const NUMBERS: [&str; 14] = [
        "0",
        "1",
        "-1",
        "3",
        "-7",
        "63",
        "64",
        "-64",
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775807 - 1",
        "0.0",
        "-0.0",
        "9007199254740992.0",
    ];
    const FUNCTIONS: [&str; 17] = [
        "A + B",
        "A - B",
        "A * B",
        "A / B",
        "A // B",
        "A div B",
        "A mod B",
        "A rem B",
        "A << B",
        "A >> B",
        "min(A, B)",
        "max(A, B)",
        "A /\\ B",
        "A \\/ B",
        "A xor B",
        "abs(A) + sign(B)",
        "-(A) - B",
    ];
    let kernels = crate::kernels();
    let mut values = 0;
    let step = if asked_runs().is_some() { 9 } else { 1 };
    let functions = FUNCTIONS.map(|function| format!("C is {function}"));
    let comparisons = ["<", "=<", "=:=", "=\\="].map(|sign| format!("A {sign} B, C = true"));
    for test in functions.into_iter().chain(comparisons) {
        for (x, y) in NUMBERS.iter().flat_map(|x| NUMBERS.map(|y| (*x, y))).step_by(step) {
            let program = format!(
                ":- chr_constraint go/0, value/1.\ngo <=> A is {x}, B is {y}, {test} | value(C).\ngo <=> true."
            );
            let goal = Goal::new(&program, "go").unwrap_or_else(|wrong| panic!("{wrong:?}\n{program}"));
            let found = run(&program, "go", &kernels, &Setting::default());
            match (rules::run(&goal, Setting::default()), found) {
                (Ok(expected), Ok(found)) => {
                    assert_eq!(found.store, expected.store, "{program}");
                    values += 1;
                }
                (Err(_), Err(_)) => {}
                (expected, found) => panic!("{expected:?}, {found:?}\n{program}"),
            }
        }
    }
    println!("{values} expressions have a value, the others an error");
    assert!(values > 1_000 / step, "{values} values");
}
