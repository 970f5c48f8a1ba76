//! The errors of receivers have the distributions that they are said to have.

use loadgen::noise::{Noise, Settings};
use matcher::geo::World;

const NONE: Settings = Settings {
    bias_m: 0.0,
    jitter_m: 0.0,
    correlation_s: 20.0,
    jumps_per_h: 0.0,
    jump_m: 0.0,
    jump_mean_s: 8.0,
};

/// Mean and standard deviation.
fn moments(numbers: &[f64]) -> (f64, f64) {
    let count = f64::from(u32::try_from(numbers.len()).expect("few"));
    let mean = numbers.iter().sum::<f64>() / count;
    (mean, (numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count).sqrt())
}

#[test]
fn a_bias_is_normal_and_stays() {
    for seed in 0..5 {
        let mut noise = Noise::new(10_000, Settings { bias_m: 5.0, ..NONE }, seed).expect("settings");
        let before = (0..10_000).map(|receiver| noise.error_m(receiver, 1.0)).collect::<Vec<_>>();
        for axis in 0..2 {
            let (mean, deviation) = moments(&before.iter().map(|error| error[axis]).collect::<Vec<_>>());
            // Five standard errors: 5 / sqrt(10,000) and 5 / sqrt(20,000).
            assert!(mean.abs() < 0.25 && (deviation - 5.0).abs() < 0.18, "seed {seed}: {mean} {deviation}");
        }
        let after = (0..10_000).map(|receiver| noise.error_m(receiver, 1000.0)).collect::<Vec<_>>();
        assert_eq!(before, after);
    }
}

#[test]
fn jitter_comes_and_goes_as_its_correlation_says() {
    for (seed, every_s) in [(1, 1.0), (2, 5.0), (3, 30.0)] {
        let mut noise = Noise::new(20_000, Settings { jitter_m: 4.0, ..NONE }, seed).expect("settings");
        let mut at =
            |now_s| (0..20_000).map(|receiver| noise.error_m(receiver, now_s)[0]).collect::<Vec<_>>();
        let (before, after) = (at(100.0), at(100.0 + every_s));
        let ((_, spread_before), (_, spread_after)) = (moments(&before), moments(&after));
        let products = before.iter().zip(&after).map(|(a, b)| a * b).collect::<Vec<_>>();
        let correlation = moments(&products).0 / (spread_before * spread_after);
        assert!(
            (spread_before - 4.0).abs() < 0.1 && (spread_after - 4.0).abs() < 0.1,
            "{spread_before} {spread_after}"
        );
        assert!((correlation - (-every_s / 20.0_f64).exp()).abs() < 0.04, "after {every_s} s: {correlation}");
    }
}

#[test]
fn jumps_are_as_many_as_long_and_as_far_as_said() {
    let settings = Settings { jumps_per_h: 6.0, jump_m: 200.0, jump_mean_s: 60.0, ..NONE };
    let mut noise = Noise::new(500, settings, 9).expect("settings");
    let (mut asked, mut away, mut jumps) = (0_u32, 0_u32, Vec::new());
    let mut was = vec![[0.0; 2]; 500];
    for second in 1..=7200 {
        for receiver in 0..500_u32 {
            let error = noise.error_m(receiver, f64::from(second));
            let was = &mut was[receiver as usize];
            assert_eq!(noise.is_away(receiver), error != [0.0; 2]);
            if error != [0.0; 2] && error != *was {
                jumps.push(error[0].hypot(error[1]));
            }
            asked += 1;
            away += u32::from(error != [0.0; 2]);
            *was = error;
        }
    }
    assert!(jumps.iter().all(|far_m| (100.0..=300.0).contains(far_m)));
    let (mean_m, deviation_m) = moments(&jumps);
    assert!(
        (mean_m - 200.0).abs() < 5.0 && (deviation_m - 200.0 / 12.0_f64.sqrt()).abs() < 4.0,
        "{mean_m} {deviation_m}"
    );
    // 600 s there and 60 s away.
    let share = f64::from(away) / f64::from(asked);
    assert!((share - 60.0 / 660.0).abs() < 0.01, "{share}");
    let hours = 500.0 * 2.0;
    let found_per_h = f64::from(u32::try_from(jumps.len()).expect("few")) / hours;
    // In each 660 s one; those shorter than a second may go unseen.
    assert!((found_per_h - 3600.0 / 660.0).abs() < 0.4, "{found_per_h}");
}

#[test]
fn a_seed_gives_the_same_errors_and_another_gives_others() {
    let errors = |seed| {
        let mut noise = Noise::new(50, Settings::default(), seed).expect("settings");
        (0..2000_u32).map(|nth| noise.error_m(nth % 50, f64::from(nth))).collect::<Vec<_>>()
    };
    assert_eq!(errors(1), errors(1));
    assert_ne!(errors(1), errors(2));
}

#[test]
fn what_is_told_is_as_far_from_the_truth_as_the_error() {
    for truth in [[9.5, 47.1], [-71.3, -29.9], [179.999_99, 0.0], [-179.999_99, 60.0], [0.0, 89.0]] {
        let settings = Settings { bias_m: 100.0, jitter_m: 20.0, ..NONE };
        let mut noise = Noise::new(200, settings, 4).expect("settings");
        for receiver in 0..200 {
            let told = noise.told(World::Geodetic, receiver, 10.0, truth);
            let error_m = noise.error_m(receiver, 10.0);
            let place = |at: [f64; 2]| World::Geodetic.position(&at).expect("on the Earth");
            let far_m = World::Geodetic.distance_m(&place(truth), &place(told));
            let said_m = error_m[0].hypot(error_m[1]);
            assert!((far_m - said_m).abs() < 0.01 * said_m, "{truth:?} {told:?}: {far_m} and {said_m}");
        }
    }
    let mut noise = Noise::new(1, Settings { bias_m: 10.0, ..NONE }, 4).expect("settings");
    let (told, error_m) = (noise.told(World::Planar, 0, 0.0, [5.0, 6.0]), noise.error_m(0, 0.0));
    assert_eq!(told, [5.0 + error_m[0], 6.0 + error_m[1]]);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for settings in [
        Settings { bias_m: -1.0, ..NONE },
        Settings { jitter_m: f64::NAN, ..NONE },
        Settings { correlation_s: 0.0, ..NONE },
        Settings { jumps_per_h: f64::INFINITY, ..NONE },
    ] {
        let problem = Noise::new(1, settings, 0).expect_err("a fault").to_string();
        assert!(problem.contains("is not within"), "{problem}");
    }
}
