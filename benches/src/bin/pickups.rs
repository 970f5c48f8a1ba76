//! What moves cost where taxis and riders are matched. See `benches/README.md`.
#![forbid(unsafe_code)]

use clap::Parser;
use matcher::World;

use benches::engines::process::{machine, profile};
use benches::engines::report::{digits, thousands};
use benches::pickups::{Setting, Town};

/// Moves everybody in towns once a second, holds the groups against all pairs after each round, and prints a Markdown table.
#[derive(Debug, Parser)]
struct Args {
    /// A tenth of everybody and of the area, for a look.
    #[arg(long)]
    quick: bool,
    /// Rounds of each row.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Seconds that pass in a round.
    #[arg(long, default_value_t = 3)]
    seconds: u16,
    /// Seed of the towns.
    #[arg(long, default_value_t = 2012)]
    seed: u64,
}

const TOWN: Setting =
    Setting { world: World::Planar, taxis: 10_000, riders: 10_000, stands: 0, side_m: 40_000.0, limit: 100 };

/// Somebody does something, as often as makes a round.
type Round = fn(&mut Town, &Args, &mut Vec<u64>) -> anyhow::Result<()>;

const ROWS: [(&str, Setting, Round); 6] = [
    ("plane, moves", TOWN, moves),
    ("globe, moves", Setting { world: World::Geodetic, ..TOWN }, moves),
    ("globe, with 2,000 stands, moves", Setting { world: World::Geodetic, stands: 2_000, ..TOWN }, moves),
    ("plane, limit 1, moves", Setting { limit: 1, ..TOWN }, moves),
    ("plane, the first rider is served", TOWN, serves),
    ("plane, limit 1, the first rider is served", Setting { limit: 1, ..TOWN }, serves),
];

fn moves(town: &mut Town, args: &Args, took_ns: &mut Vec<u64>) -> anyhow::Result<()> {
    (0..args.seconds).try_for_each(|_| town.second(took_ns))
}

fn serves(town: &mut Town, args: &Args, took_ns: &mut Vec<u64>) -> anyhow::Result<()> {
    (0..1_000 * args.seconds).try_for_each(|_| town.serve(took_ns))
}

/// Median, 99 of 100, the most, and the mean of a round, in microseconds.
fn figures(took_ns: &mut [u64]) -> [f64; 4] {
    took_ns.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a bench are far below 2^52")]
    let us = |ns: u64| ns as f64 / 1_000.0;
    let count = took_ns.len();
    let mean = us(took_ns.iter().sum()) / us(1_000 * count as u64);
    [us(took_ns[count / 2]), us(took_ns[count * 99 / 100]), us(took_ns[count - 1]), mean]
}

/// The median of the rounds, and their spread.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let [least, median, most] = [0, values.len() / 2, values.len() - 1].map(|place| digits(values[place]));
    format!("{median} ({least} to {most})")
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    println!("{}; one thread; build profile {}; {} rounds\n", machine(), profile(), args.rounds);
    println!("| what | median us | p99 us | max us | mean us | told a move | pairs that fit | MB |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (what, mut setting, round) in ROWS {
        if args.quick {
            (setting.taxis, setting.riders) = (setting.taxis / 10, setting.riders / 10);
            (setting.stands, setting.side_m) = (setting.stands / 10, setting.side_m / 10_f64.sqrt());
        }
        let mut town = Town::new(setting, args.seed)?;
        let mut rounds = Vec::new();
        let (mut pairs, mut moves_count) = (0, 0);
        for _ in 0..args.rounds {
            let mut took_ns = Vec::new();
            round(&mut town, &args, &mut took_ns)?;
            moves_count += took_ns.len();
            rounds.push(figures(&mut took_ns));
            pairs = town.check()?;
        }
        let [median, p99, max, mean] =
            [0, 1, 2, 3].map(|figure| spread(rounds.iter().map(|round| round[figure]).collect()));
        #[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
        let (told, megabytes) = (town.take_told() as f64 / moves_count as f64, town.bytes() as f64 / 1e6);
        println!(
            "| {what} | {median} | {p99} | {max} | {mean} | {} | {} | {} |",
            digits(told),
            thousands(pairs as u64),
            digits(megabytes)
        );
    }
    Ok(())
}
