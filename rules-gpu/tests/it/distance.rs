//! `distance/4` in guards: on the same side as the processor's, or left to it.

use std::f64::consts::PI;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use rules::{Goal, Setting};
use rules_gpu::{Error, Kernels, run};

/// The great circle as the broker measures it, in the same steps.
fn great_circle_m(from: [f64; 2], to: [f64; 2]) -> f64 {
    const RADIUS_M: f64 = 6_371_008.8;
    if [from, to].iter().any(|[lon, lat]| !(lon.abs() <= 180.0 && lat.abs() <= 90.0)) {
        return f64::INFINITY;
    }
    let cosine = |lat: f64| if lat.abs() == 90.0 { 0.0 } else { lat.to_radians().cos() };
    let half_lat = (to[1] - from[1]).to_radians() / 2.0;
    let apart = (to[0] - from[0]).abs();
    let half_lon = (if apart > 180.0 { 360.0 - apart } else { apart }).to_radians() / 2.0;
    let cosines = cosine(from[1]) * cosine(to[1]);
    let h = half_lat.sin().powi(2) + cosines * half_lon.sin().powi(2);
    if h <= 0.5 {
        return 2.0 * RADIUS_M * h.sqrt().asin();
    }
    let half_lat = (to[1] + from[1]).to_radians() / 2.0;
    let half_lon = (180.0 - apart).to_radians() / 2.0;
    let h = half_lat.sin().powi(2) + cosines * half_lon.sin().powi(2);
    RADIUS_M * (PI - 2.0 * h.min(0.5).sqrt().asin())
}

fn setting() -> Setting {
    Setting { distance: great_circle_m, ..Setting::default() }
}

/// The three taxis of a jam, as the contract has them, and each place's nearest neighbour.
const JAM: &str = "slow(T,X,Y,A) \\ slow(T,_,_,B) <=> A >= B | true.
    slow(T1,X1,Y1,_), slow(T2,X2,Y2,_), slow(T3,X3,Y3,_) ==> T1 < T2, T2 < T3, distance(X1,Y1,X2,Y2) < 80, distance(X1,Y1,X3,Y3) < 80 | jam(X1,Y1).
    jam(X,Y) \\ jam(X,Y) <=> true.";
const NEAREST: &str = "at(A, X, Y), at(B, V, W) ==> A \\== B | pair(A, X, Y, B, V, W).
    pair(A, X, Y, _, V, W) \\ pair(A, X, Y, _, P, Q) <=> distance(X, Y, V, W) < distance(X, Y, P, Q) | true.";

#[track_caller]
fn check(kernels: &Kernels, program: &str, goal: &str) {
    let expected = rules::run(&Goal::new(program, goal).expect("it is read"), setting()).expect("an answer");
    let found = run(program, goal, kernels, &setting()).unwrap_or_else(|error| panic!("{error}: {goal}"));
    assert_eq!(found.store, expected.store, "{goal}");
}

#[test]
fn guards_with_distances_hold_as_on_the_processor() {
    let kernels = crate::kernels();
    let mut random = SmallRng::seed_from_u64(28);
    let mut goals = Vec::new();
    // Near one another in a town, across the antimeridian, at a pole, and all over the globe.
    for (lon, lat, spread) in
        [(-8.61, 41.15, 0.002), (179.9995, -17.0, 0.002), (0.0, 89.999, 0.001), (0.0, 0.0, 90.0)]
    {
        let place = |random: &mut SmallRng| {
            let lon = (lon + random.random_range(-spread..spread) * 2.0 + 540.0) % 360.0 - 180.0;
            (lon, lat + random.random_range(-spread..=spread))
        };
        let slow = (0..40)
            .map(|taxi| (taxi, place(&mut random)))
            .map(|(taxi, (lon, lat))| format!("slow({taxi},{lon:?},{lat:?},{taxi})"));
        goals.push((JAM, slow.collect::<Vec<_>>().join(", ")));
        let at = (0..12)
            .map(|object| (object, place(&mut random)))
            .map(|(object, (lon, lat))| format!("at({object},{lon:?},{lat:?})"));
        goals.push((NEAREST, at.collect::<Vec<_>>().join(", ")));
    }
    goals.push((JAM, "slow(1,5,50,1), slow(2,5,50,1), slow(3,5,50,1)".to_owned()));
    for (program, goal) in goals {
        check(&kernels, program, &goal);
    }
}

#[test]
fn compiled_guards_have_the_same_distances() {
    let kernels = crate::kernels().compiling_from(0);
    check(
        &kernels,
        JAM,
        "slow(1,-8.61,41.15,1), slow(2,-8.6102,41.1501,1), slow(3,-8.6099,41.1502,1), slow(4,-8.7,41.15,1)",
    );
}

#[test]
fn what_is_too_near_to_tell_is_left_to_the_processor() {
    let kernels = crate::kernels();
    let [from, to] = [[13.4, 52.5], [13.41, 52.51]];
    let metres = great_circle_m(from, to);
    let program = |bound: f64| format!("close @ p(X,Y), q(V,W) <=> distance(X,Y,V,W) < {bound:?} | true.");
    let goal = "p(13.4,52.5), q(13.41,52.51)";
    for bound in [metres, metres.next_up(), metres.next_down()] {
        let found = run(&program(bound), goal, &kernels, &setting()).expect_err("nobody knows");
        assert!(matches!(&found, Error::TooNear { rule } if rule == "close"), "{found:?}");
    }
    for bound in [metres * (1.0 - 1e-12), metres * (1.0 + 1e-12)] {
        check(&kernels, &program(bound), goal);
    }
    // One and the same place is at no distance, beyond doubt.
    check(&kernels, &program(0.0), "p(1.5,2.5), q(1.5,2.5)");
    check(&kernels, &program(0.0), "p(180,-5), q(-180,-5)");
}

#[test]
fn distances_that_a_device_does_not_have_are_refused() {
    let kernels = crate::kernels();
    let refused = |program: &str, goal: &str, setting: &Setting| {
        run(program, goal, &kernels, setting).expect_err("it is refused").to_string()
    };
    for program in [
        "p(X,Y) <=> D is distance(X,Y,0,0), q(D).",
        "p(X,Y) <=> distance(X,Y,0,0) / 2 < 40 | true.",
        "p(X,Y) <=> D is distance(X,Y,0,0), D < 80 | true.",
    ] {
        let told = refused(program, "p(1,2)", &setting());
        assert!(
            told.contains("a device takes distance/4 only as a side of a comparison in a guard"),
            "{told}"
        );
    }
    // The setting's own default is the plane's.
    let told = refused("p(X,Y) <=> distance(X,Y,0,0) < 80 | true.", "p(1,2)", &Setting::default());
    assert!(told.contains("along great circles alone"), "{told}");
    // What is no place is infinitely far, which is no number.
    let far = "p(X,Y) <=> distance(X,Y,0,0) < 80 | true.";
    let expected =
        rules::run(&Goal::new(far, "p(200,0)").expect("it is read"), setting()).expect_err("no number");
    let found = run(far, "p(200,0)", &kernels, &setting()).expect_err("no number");
    assert!(matches!(&found, Error::Rules { error, .. } if *error == expected), "{found:?}");
}
