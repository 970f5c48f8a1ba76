//! Networks that are larger than the instances.

use groups::network::{Builder, Network, Table};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::index::sample;

/// A network with its name.
pub(crate) type Named = (String, Network);

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("small")
}

/// Model B: so many constraints over different pairs of variables, each of which refuses the same share of pairs of values.
pub(crate) fn model_b(variables: usize, size: usize, constraints: usize, tightness: f64) -> Named {
    let random = &mut SmallRng::seed_from_u64(1);
    let mut builder = Builder::default();
    let values: Vec<_> = (0..i64::from(number(size))).collect();
    let domain = builder.domain(&values).expect("small");
    let all: Vec<_> =
        (0..variables).map(|idx| builder.variable(&format!("x{idx}"), domain).expect("small")).collect();
    let pairs: Vec<_> = (0..variables).flat_map(|y| (0..y).map(move |x| [x, y])).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
    let refused = (tightness * (size * size) as f64).round() as usize;
    for pair in sample(random, pairs.len(), constraints) {
        let tuples = sample(random, size * size, refused);
        let tuples: Vec<_> = tuples.into_iter().map(|at| [number(at / size), number(at % size)]).collect();
        let relation = builder.relation([domain; 2], Table::Conflicts, &tuples).expect("within the bounds");
        builder.constraint(pairs[pair].map(|x| all[x]), relation).expect("within the bounds");
    }
    (format!("{variables}-{size}-{constraints}-{tightness:.4}"), builder.build())
}

/// The tightness at which about this share of all values has no support in some constraint.
fn tightness(variables: usize, size: usize, constraints: usize, share: f64) -> f64 {
    let counters_of_a_value = 2.0 * constraints as f64 / variables as f64;
    (share / counters_of_a_value).powf(1.0 / size as f64)
}

/// The classes of the paper's Table 17, by tightness: the benchmark library's ⟨40, d, e, t⟩.
pub(crate) fn classes() -> impl Iterator<Item = Named> {
    let classes = [
        (8, 753, 0.1),
        (11, 414, 0.2),
        (16, 250, 0.35),
        (25, 180, 0.5),
        (40, 135, 0.65),
        (80, 103, 0.8),
        (180, 84, 0.9),
    ];
    classes.into_iter().map(|(size, constraints, tightness)| model_b(40, size, constraints, tightness))
}

/// Large networks, up to the most pairs that a network may have, each from nothing to remove to values that go in several loops.
pub(crate) fn large(is_small: bool) -> impl Iterator<Item = Named> {
    let classes = [
        (50, 50, 500),
        (100, 100, 1_000),
        (500, 50, 13_400),
        (200, 100, 3_350),
        (100, 250, 536),
        (50, 500, 134),
    ];
    let classes = classes.into_iter().take(if is_small { 1 } else { classes.len() });
    classes.flat_map(|(variables, size, constraints)| {
        let tight = [0.001, 0.02, 0.1, 0.3].map(|share| tightness(variables, size, constraints, share));
        [0.5].into_iter().chain(tight).map(move |t| model_b(variables, size, constraints, t))
    })
}

/// Dominoes: all variables equal along a chain, and the last one more than the first or both the largest. One value goes after another.
pub(crate) fn dominoes(variables: usize, size: usize) -> Named {
    let mut builder = Builder::default();
    let values: Vec<_> = (0..i64::from(number(size))).collect();
    let domain = builder.domain(&values).expect("small");
    let all: Vec<_> =
        (0..variables).map(|idx| builder.variable(&format!("x{idx}"), domain).expect("small")).collect();
    let same: Vec<_> = (0..number(size)).map(|value| [value; 2]).collect();
    let last = number(size) - 1;
    let more: Vec<_> = (0..last).map(|value| [value, value + 1]).chain([[last; 2]]).collect();
    let [same, more] =
        [same, more].map(|tuples| builder.relation([domain; 2], Table::Supports, &tuples).expect("small"));
    for pair in all.windows(2) {
        builder.constraint([pair[0], pair[1]], same).expect("small");
    }
    builder.constraint([all[0], all[variables - 1]], more).expect("small");
    (format!("dominoes-{variables}-{size}"), builder.build())
}
