//! The paper's programs on the processor, by the paper's scheme and by ours, as a table: `cargo run --release --example rules -- [SECONDS [RUNS [PROGRAM [ENGINE]]]]`.
//!
//! A cell is the median of RUNS (3) runs in milliseconds, with the least and the most of them; after that, for ours, the median of the rounds alone,
//! without copies. The compiler has run before. After a run of more than SECONDS (2) an engine has only that run, and is given no larger sizes.
//! Ours is run interpreted and compiled. All answers are checked. "wrong" counts wrong answers out of ten runs of the paper's scheme as it was
//! published, without claims. With PROGRAM only
//! that is run, and with ENGINE only engines whose names begin so.

use std::time::{Duration, Instant};

use device::Device;
use rules::{Bounds, Session, Setting};
use rules_gpu::{Fact, Form, Kernels, Letter, Program, Value, letter, run_facts};

/// A program, its goal by size, and what is left in the end.
struct Case {
    name: &'static str,
    text: &'static str,
    sizes: &'static [i64],
    /// Arguments of the constraints, all of one kind.
    goal: fn(i64) -> Vec<Vec<i64>>,
    left: fn(i64) -> Vec<Vec<i64>>,
}

const CASES: [Case; 4] = [
    Case {
        name: "minimum",
        text: ":- chr_constraint min(+int). min(A) \\ min(B) <=> A =< B | true.",
        sizes: &[1 << 10, 1 << 13, 1 << 16, 1 << 20],
        goal: |size| (0..size).map(|number| vec![(number * 7_919 + 3) % 1_000_003]).collect(),
        left: |size| {
            let least = (0..size).map(|number| (number * 7_919 + 3) % 1_000_003).min();
            vec![least.into_iter().collect()]
        },
    },
    Case {
        name: "gcd",
        text: ":- chr_constraint gcd(+int). gcd(0) <=> true. gcd(N) \\ gcd(M) <=> 0 < N, N =< M | L is M mod N, gcd(L).",
        sizes: &[1 << 10, 1 << 13, 1 << 16, 1 << 20],
        goal: |size| (1..=size).map(|number| vec![12 * ((number * 7_919) % 1_000_003)]).collect(),
        left: |_| vec![vec![12]],
    },
    Case {
        name: "primes",
        text: ":- chr_constraint prime(+int). prime(I) \\ prime(J) <=> J mod I =:= 0 | true.",
        sizes: &[1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18],
        goal: |size| (2..size).map(|number| vec![number]).collect(),
        left: |size| {
            let is_prime = |number: &i64| (2..).take_while(|by| by * by <= *number).all(|by| number % by != 0);
            (2..size).filter(is_prime).map(|number| vec![number]).collect()
        },
    },
    Case {
        name: "Floyd-Warshall",
        text: ":- chr_constraint edge(+int, +int, +int).
            edge(I, K, D1), edge(K, J, D2) \\ edge(I, J, D3) <=> D3 > D1 + D2 | D4 is D1 + D2, edge(I, J, D4).",
        sizes: &[8, 16, 32, 64, 128, 256, 512, 1_024],
        goal: edges,
        left: |size| {
            let nodes = usize::try_from(size).expect("it is small");
            let mut lengths: Vec<i64> = edges(size).iter().map(|edge| edge[2]).collect();
            for via in 0..nodes {
                for from in 0..nodes {
                    for to in 0..nodes {
                        let around = lengths[from * nodes + via] + lengths[via * nodes + to];
                        lengths[from * nodes + to] = lengths[from * nodes + to].min(around);
                    }
                }
            }
            let mut left = edges(size);
            left.iter_mut().zip(lengths).for_each(|(edge, length)| edge[2] = length);
            left
        },
    },
];

/// A whole graph with some short ways.
fn edges(nodes: i64) -> Vec<Vec<i64>> {
    let length = |from: i64, to: i64| match (to - from).rem_euclid(nodes) {
        0 => 0,
        1 => 1 + from % 5,
        apart => 10 + (from * 31 + to * 17) % 97 * apart,
    };
    (0..nodes).flat_map(|from| (0..nodes).map(move |to| vec![from, to, length(from, to)])).collect()
}

/// How a goal was run: what is left, how long it took, and how long the rounds did.
type Ran = (Vec<Vec<i64>>, Duration, Option<Duration>);

/// How a goal is run.
type Run<'a> = Box<dyn Fn(&Case, &[Vec<i64>]) -> Ran + 'a>;

fn on_processor(case: &Case, goal: &[Vec<i64>]) -> Ran {
    let program = rules::Program::new(case.text).expect("it is read");
    let (name, arity) =
        program.constraints().next().map(|(name, arity)| (name.to_owned(), arity)).expect("one");
    let began = Instant::now();
    let mut session = Session::new(&program, setting());
    let kind = session.kind(&name, arity).expect("it is there");
    for (arguments, origin) in goal.iter().zip(1..) {
        let values: Vec<_> = arguments.iter().map(|number| rules::Value::Int(*number)).collect();
        session.add(kind, &values, origin).expect("no errors").expect("no failures");
    }
    let left = session.take(kind);
    let took = began.elapsed();
    let number =
        |value: &rules::Value| if let rules::Value::Int(number) = value { *number } else { i64::MIN };
    (left.iter().map(|taken| taken.arguments.iter().map(number).collect()).collect(), took, None)
}

fn setting() -> Setting {
    Setting {
        bounds: Bounds { words: 1 << 30, constraints: 1 << 28, ..Bounds::default() },
        ..Setting::default()
    }
}

fn on_device(case: &Case, goal: &[Vec<i64>], kernels: &Kernels, by: Option<Letter>) -> Ran {
    let program = Program::new(case.text).expect("it is read");
    let facts: Vec<Fact> = goal
        .iter()
        .map(|arguments| (0, arguments.iter().map(|number| Value::Int(*number)).collect()))
        .collect();
    let began = Instant::now();
    let outcome = match by {
        Some(settings) => letter(&program, &facts, kernels, settings, &setting()),
        None => run_facts(&program, &facts, kernels, &setting()),
    };
    let took = began.elapsed();
    let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    if let Form::Interpreted { reason } = &outcome.form
        && &**reason != "the goal is small"
    {
        eprintln!("{}: {reason}", case.name);
    }
    eprintln!(
        "{} {}: {} rounds in {:?}, {} applications, {took:?}",
        case.name,
        goal.len(),
        outcome.rounds,
        outcome.rounds_took,
        outcome.applications
    );
    let left = outcome.store.iter().map(|(_, arguments)| arguments.iter().map(number).collect()).collect();
    (left, took, by.is_none().then_some(outcome.rounds_took))
}

fn number(value: &Value) -> i64 {
    if let Value::Int(number) = value { *number } else { i64::MIN }
}

fn is_right(case: &Case, size: i64, mut left: Vec<Vec<i64>>) -> bool {
    let mut expected = (case.left)(size);
    expected.sort_unstable();
    left.sort_unstable();
    left == expected
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2.0);
    let runs: usize = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(3);
    let device = Device::all().and_then(|devices| Kernels::load(&devices[0]));
    let kernels = device.as_ref().map_err(|error| println!("without a device: {error}")).ok();
    let compiling = kernels.map(|kernels| kernels.clone().compiling_from(0));
    let interpreting = kernels.map(|kernels| kernels.clone().compiling_from(usize::MAX));
    let mut engines: Vec<(&str, Run<'_>)> = vec![("processor", Box::new(on_processor))];
    if let (Some(compiling), Some(interpreting)) = (&compiling, &interpreting) {
        println!("on {}", compiling.device().name());
        let by = |kernels, settings| -> Run<'_> {
            Box::new(move |case, goal| on_device(case, goal, kernels, settings))
        };
        engines.push(("letter", by(compiling, Some(Letter::default()))));
        engines
            .push(("letter, both loops", by(compiling, Some(Letter { pairs: true, ..Letter::default() }))));
        engines.push(("ours, interpreted", by(interpreting, None)));
        engines.push(("ours, compiled", by(compiling, None)));
    }
    let [program, engine] = [3, 4].map(|at| std::env::args().nth(at));
    engines.retain(|(name, _)| engine.as_ref().is_none_or(|engine| name.starts_with(engine)));
    println!(
        "| program | size | {} | wrong |",
        engines.iter().map(|(name, _)| format!("{name}, ms")).collect::<Vec<_>>().join(" | ")
    );
    println!("|---|---:|{}---:|", "---:|".repeat(engines.len()));
    for case in CASES.iter().filter(|case| program.as_ref().is_none_or(|program| case.name == program)) {
        let mut is_slow = vec![false; engines.len()];
        for &size in case.sizes {
            let goal = (case.goal)(size);
            let mut cells = Vec::new();
            for (is_slow, (name, run)) in is_slow.iter_mut().zip(&engines) {
                if *is_slow {
                    cells.push("–".to_owned());
                    continue;
                }
                if Some(&size) == case.sizes.first() {
                    // The compiler's time is counted apart.
                    let began = Instant::now();
                    run(case, &goal);
                    eprintln!("{} {name}: the first run took {:?}", case.name, began.elapsed());
                }
                let (mut times, mut rounds) = (Vec::new(), Vec::new());
                for _ in 0..runs {
                    let (left, took, rounds_took) = run(case, &goal);
                    assert!(is_right(case, size, left), "{} {size}, {name}: a wrong answer", case.name);
                    times.push(took);
                    rounds.extend(rounds_took);
                    if took.as_secs_f64() > seconds {
                        *is_slow = true;
                        break;
                    }
                }
                let ms = |times: &mut Vec<Duration>, at: fn(usize) -> usize| {
                    times.sort_unstable();
                    times.get(at(times.len())).map(|took| format!("{:.2}", took.as_secs_f64() * 1e3))
                };
                let spread = [|count| count / 2, |_| 0, |count| count - 1]
                    .map(|at| ms(&mut times, at).expect("a run"));
                let rounds =
                    ms(&mut rounds, |count| count / 2).map_or_else(String::new, |ms| format!("; {ms}"));
                cells.push(format!("{} ({} to {}){rounds}", spread[0], spread[1], spread[2]));
            }
            // The scheme as it was published may go on for ever: then its bound on applications ends it.
            let wrong = kernels
                .filter(|_| engine.is_none() && case.sizes[..2].contains(&size))
                .map(|kernels| as_published(case, size, &goal, kernels));
            println!(
                "| {} | {size} | {} | {} |",
                case.name,
                cells.join(" | "),
                wrong.map_or("–".to_owned(), |wrong| wrong.to_string())
            );
        }
    }
}

/// Wrong answers out of ten.
fn as_published(case: &Case, size: i64, goal: &[Vec<i64>], kernels: &Kernels) -> usize {
    let program = Program::new(case.text).expect("it is read");
    let facts: Vec<Fact> = goal
        .iter()
        .map(|arguments| (0, arguments.iter().map(|number| Value::Int(*number)).collect()))
        .collect();
    let bounds = Bounds { steps: 1 << 32, ..Bounds::default() };
    let settings = Letter { claims: false, ..Letter::default() };
    let is_wrong = |_: &u32| {
        let outcome = letter(&program, &facts, kernels, settings, &Setting { bounds, ..Setting::default() });
        outcome.map_or(true, |outcome| {
            let left = outcome.store.iter().map(|(_, arguments)| arguments.iter().map(number).collect());
            !is_right(case, size, left.collect())
        })
    };
    (0..10).filter(is_wrong).count()
}
