//! What does a condition cost on its way in: read, brought to normal form, written?
#![forbid(unsafe_code)]

use std::fmt::{self, Display};

use divan::{Bencher, black_box};
use matcher::condition::Condition;
use matcher::condition::text;

/// Conditions as users write them, from the shortest to one that normal form multiplies.
const CONDITIONS: [Sample; 3] = [
    Sample { name: "one comparison", text: "speed > 50", conjunctions: 1 },
    Sample {
        name: "five constraints",
        text: "\"line\" IN ('M1', 'M2', 'M5') AND delay BETWEEN 3 AND 30 AND CASEI(operator) = CASEI('atm') \
               AND note LIKE 'works%' AND cancelled = FALSE",
        conjunctions: 1,
    },
    Sample {
        name: "and of ors",
        text: "NOT (kind = 'bus' OR kind = 'tram') AND (speed > 50 OR delay > 5 OR full = TRUE) \
               AND (hour < 9 OR hour BETWEEN 17 AND 19) AND (zone = 1 OR zone = 2)",
        conjunctions: 12,
    },
];

#[derive(Clone, Copy)]
struct Sample {
    name: &'static str,
    text: &'static str,
    /// Of its normal form.
    conjunctions: usize,
}

impl Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

fn main() {
    divan::main();
}

#[divan::bench(args = CONDITIONS)]
fn read(bencher: Bencher<'_, '_>, sample: Sample) {
    bencher.bench_local(|| text::parse(black_box(sample.text)).expect("samples are conditions"));
}

#[divan::bench(args = CONDITIONS)]
fn normalise(bencher: Bencher<'_, '_>, sample: Sample) {
    let expression = text::parse(sample.text).expect("samples are conditions");
    let condition = Condition::new(expression.clone()).expect("samples are small");
    assert_eq!(condition.normal().conjunctions().len(), sample.conjunctions, "{sample}");
    bencher.with_inputs(|| expression.clone()).bench_local_values(Condition::new);
}

/// The normal form as CQL2 text.
#[divan::bench(args = CONDITIONS)]
fn write(bencher: Bencher<'_, '_>, sample: Sample) {
    let condition = Condition::parse(sample.text).expect("samples are conditions");
    let again = Condition::parse(&condition.normal().to_string()).expect("what is written can be read");
    assert_eq!(again.normal(), condition.normal(), "{sample}");
    bencher.bench_local(|| black_box(condition.normal()).to_string());
}
