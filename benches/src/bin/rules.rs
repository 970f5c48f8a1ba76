//! What rules cost, beside SWI-Prolog's CHR. See `benches/README.md`.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Parser;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rules::{Goal, Program, Session, Setting, Value, run};

use benches::engines::process::{machine, profile};
use benches::engines::report::digits;

/// Runs programs by the engine and by SWI-Prolog in turns, compares the stores that they end with, and prints a Markdown table; then
/// how the time of a fact grows with the store.
#[derive(Debug, Parser)]
struct Args {
    /// A twentieth of the size, for a look.
    #[arg(long)]
    quick: bool,
    /// Runs of each program.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Folder of the programs.
    #[arg(long, value_name = "FOLDER", default_value = "../shared/data/chr")]
    data: PathBuf,
}

/// A program, how large its goal is, and the constraints of that.
struct Case {
    name: &'static str,
    file: &'static str,
    size: i64,
    goal: fn(i64, &mut StdRng) -> Vec<String>,
    /// Whether the store has no variables, so that it can be compared as text.
    is_ground: bool,
}

const CASES: [Case; 13] = [
    Case { name: "gcd", file: "programs/gcd.chr", size: 40_000, goal: gcd, is_ground: true },
    Case {
        name: "primes",
        file: "programs/primes.chr",
        size: 4_000,
        goal: |n, _| vec![format!("candidate({n})")],
        is_ground: true,
    },
    Case {
        name: "fib, upwards",
        file: "programs/fib_up.chr",
        size: 90,
        goal: |n, _| vec![format!("upto({n})")],
        is_ground: true,
    },
    Case {
        name: "fib, with a memory",
        file: "programs/fib_memo.chr",
        size: 90,
        goal: |n, _| vec![format!("fib({n},X)")],
        is_ground: true,
    },
    Case {
        name: "leq, a circle",
        file: "programs/leq.chr",
        size: 60,
        goal: |n, _| (0..n).map(|i| format!("leq(X{i},X{})", (i + 1) % n)).collect(),
        is_ground: false,
    },
    Case {
        name: "union_find",
        file: "programs/union_find.chr",
        size: 2_000,
        goal: union_find,
        is_ground: true,
    },
    Case {
        name: "reach",
        file: "programs/reach.chr",
        size: 60,
        goal: |n, random| arcs(n, 3 * n, random, |from, to, _| format!("edge({from},{to})")),
        is_ground: true,
    },
    Case { name: "sssp", file: "programs/sssp.chr", size: 300, goal: sssp, is_ground: true },
    Case {
        name: "apsp",
        file: "programs/apsp.chr",
        size: 25,
        goal: |n, random| arcs(n, 3 * n, random, |from, to, length| format!("arc({from},{to},{length})")),
        is_ground: true,
    },
    Case {
        name: "tak, with a memory",
        file: "programs/tak_memo.chr",
        size: 18,
        goal: |n, _| vec![format!("tak({n},12,6,A)")],
        is_ground: true,
    },
    Case { name: "ram", file: "programs/ram.chr", size: 20_000, goal: ram, is_ground: true },
    Case {
        name: "bench_fulladder",
        file: "swi-bsd/bench_fulladder.chr",
        size: 600,
        goal: |n, _| vec![format!("main({n})")],
        is_ground: false,
    },
    Case {
        name: "bench_wfs",
        file: "swi-bsd/bench_wfs.chr",
        size: 100,
        goal: |n, _| vec![format!("main({n})")],
        is_ground: false,
    },
];

fn gcd(size: i64, random: &mut StdRng) -> Vec<String> {
    (0..size).map(|_| format!("gcd({})", 6 * random.random_range(1..1_000_000_000_i64))).collect()
}

fn arcs(nodes: i64, count: i64, random: &mut StdRng, text: impl Fn(i64, i64, i64) -> String) -> Vec<String> {
    let mut arc =
        || text(random.random_range(0..nodes), random.random_range(0..nodes), random.random_range(1..100));
    (0..count).map(|_| arc()).collect()
}

fn sssp(nodes: i64, random: &mut StdRng) -> Vec<String> {
    let mut goal = arcs(nodes, 4 * nodes, random, |from, to, length| format!("arc({from},{to},{length})"));
    goal.push("dist(0,0)".to_owned());
    goal
}

fn union_find(size: i64, random: &mut StdRng) -> Vec<String> {
    let makes = (0..size).map(|number| format!("make({number})"));
    let mut unions = || format!("union({},{})", random.random_range(0..size), random.random_range(0..size));
    makes.chain((0..size).map(|_| unions())).collect()
}

/// Adds up by counting down.
fn ram(size: i64, _: &mut StdRng) -> Vec<String> {
    [
        "ins(0,jz,5,1)",
        "ins(1,add,3,0)",
        "ins(2,sub,1,2)",
        "ins(3,jmp,0,0)",
        "ins(5,hlt,0,0)",
        "mem(0,3)",
        "mem(2,1)",
        "mem(3,0)",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([format!("mem(1,{size})"), "pc(0)".to_owned()])
    .collect()
}

/// Seconds, and what is left in the store.
type Ran = (f64, Vec<String>);

fn by_engine(program: &str, goal: &[String]) -> anyhow::Result<Ran> {
    let goal = Goal::new(program, &goal.join(", ")).map_err(|wrong| anyhow::anyhow!("{wrong:?}"))?;
    let began = Instant::now();
    let answer = run(&goal, Setting::default())?;
    let seconds = began.elapsed().as_secs_f64();
    ensure!(answer.is_success, "the goal failed");
    Ok((seconds, answer.store))
}

/// Runs a goal in a process of SWI-Prolog. Loading is not counted.
fn by_swi(folder: &Path, file: &Path, program: &str, goal: &[String]) -> anyhow::Result<Ran> {
    let text = format!("goals([{}]).\n", goal.join(",\n"));
    let own = folder.join("goal.pl");
    let of_module = program.contains(":- module(");
    let load = if of_module {
        format!(":- use_module('{}').\ncputime(T) :- statistics(cputime, T).\n", file.display())
    } else {
        program.to_owned()
    };
    let show = if of_module { "true" } else { "forall(current_chr_constraint(C), (writeq(C), nl))" };
    let main = format!(
        "{load}\n{text}:- initialization((goals(Gs), statistics(cputime, A), ( maplist(call, Gs) -> true ; halt(2) ), statistics(cputime, B), T is B - A, \
         format(\"seconds ~w~n\", [T]), {show}, halt), main).\n"
    );
    std::fs::write(&own, main)?;
    let output =
        Command::new("swipl").arg("--stack-limit=8g").arg("-q").arg(&own).output().context("swipl")?;
    let told = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "swipl: {}", String::from_utf8_lossy(&output.stderr));
    let (mut seconds, mut store) = (None, Vec::new());
    for line in told.lines() {
        match line.strip_prefix("seconds ") {
            Some(time) => seconds = Some(time.parse()?),
            None if seconds.is_some() => store.push(line.to_owned()),
            None => {}
        }
    }
    store.sort_unstable();
    Ok((seconds.context("swipl told no time")?, store))
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let version = Command::new("swipl").arg("--version").output().ok();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!(
        "{}; one thread; build profile {}; {}\n",
        machine(),
        profile(),
        version.as_deref().unwrap_or("no SWI-Prolog here (package swi-prolog), so that nothing is compared")
    );
    println!("| program | size | ms | spread | SWI, ms | spread | times as fast |");
    println!("| --- | ---: | ---: | --- | ---: | --- | ---: |");
    let folder = tempfile::tempdir()?;
    let mut ratios = Vec::new();
    for case in &CASES {
        let size = if args.quick { (case.size / 20).max(10) } else { case.size };
        let file = args
            .data
            .join(case.file)
            .canonicalize()
            .with_context(|| format!("{} is not there", case.file))?;
        let program = std::fs::read_to_string(&file)?;
        let goal = (case.goal)(size, &mut StdRng::seed_from_u64(1));
        let (mut own, mut swi) = (Vec::new(), Vec::new());
        for _ in 0..args.rounds {
            let (seconds, store) = by_engine(&program, &goal).with_context(|| case.name)?;
            own.push(seconds * 1e3);
            if version.is_some() {
                let (seconds, expected) =
                    by_swi(folder.path(), &file, &program, &goal).with_context(|| case.name)?;
                ensure!(!case.is_ground || store == expected, "{}: the stores differ", case.name);
                swi.push(seconds * 1e3);
            }
        }
        let mut row = format!("| {} | {size} | {}", case.name, digits(median(&mut own)));
        write!(row, " | {} to {}", digits(own[0]), digits(own[own.len() - 1]))?;
        if swi.is_empty() {
            row.push_str(" | | |");
        } else {
            let ratio = median(&mut swi) / median(&mut own);
            ratios.push(ratio);
            write!(
                row,
                " | {} | {} to {} | {}",
                digits(swi[swi.len() / 2]),
                digits(swi[0]),
                digits(swi[swi.len() - 1]),
                digits(ratio)
            )?;
        }
        println!("{row} |");
    }
    if !ratios.is_empty() {
        println!("\nMedian of the ratios: {}", digits(median(&mut ratios)));
    }
    growth(args.quick)
}

/// Facts of two kinds that are joined by an argument: half of them wait for the other half.
fn growth(is_quick: bool) -> anyhow::Result<()> {
    println!("\n| facts | us a fact | us a constraint, written | read | bytes |");
    println!("| ---: | ---: | ---: | ---: | ---: |");
    let text = ":- chr_constraint paid/2. order(O, C), payment(O, A) <=> paid(C, A).";
    let program = Program::new(text).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
    for count in [1_000_i64, 10_000, 100_000, 1_000_000] {
        let count = if is_quick { count / 20 } else { count };
        let mut session = Session::new(&program, Setting::default());
        let kind = |session: &Session, name| session.kind(name, 2).context("it is a constraint");
        let [order, payment, paid] =
            [kind(&session, "order")?, kind(&session, "payment")?, kind(&session, "paid")?];
        let (half, mut taken, mut origin) = (count / 2, 0, 0);
        let mut add = |session: &mut Session, kind, number: i64| {
            origin += 1;
            session.add(kind, &[Value::Int(number * 7_919 % 1_000_003), Value::Int(number)], origin)
        };
        let began = Instant::now();
        for number in 0..half {
            add(&mut session, order, number)?;
        }
        let waiting = began.elapsed();
        let began = Instant::now();
        let bytes = session.snapshot();
        let written = began.elapsed();
        let began = Instant::now();
        let mut session = Session::restore(&program, Setting::default(), &bytes)?;
        let read = began.elapsed();
        let began = Instant::now();
        for number in 0..half {
            add(&mut session, payment, number)?;
            taken += session.take(paid).len();
        }
        let took = waiting + began.elapsed();
        ensure!(i64::try_from(taken)? == half && session.count() == 0, "{taken} of {half} were paid");
        #[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
        let us_each = |time: std::time::Duration, count: i64| digits(time.as_secs_f64() * 1e6 / count as f64);
        println!(
            "| {count} | {} | {} | {} | {} |",
            us_each(took, count),
            us_each(written, half),
            us_each(read, half),
            bytes.len()
        );
    }
    Ok(())
}
