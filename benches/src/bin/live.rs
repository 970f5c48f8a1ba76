//! What moves cost among live events. See `benches/README.md`.
#![forbid(unsafe_code)]

use clap::Parser;

use benches::engines::process::{Stopwatch, machine, profile};
use benches::engines::report::{digits, thousands};
use benches::live::{Size, Town};

/// Times moves of subscribers and of objects in towns of one density, checks what is known against brute force and prints
/// a Markdown table.
#[derive(Debug, Parser)]
struct Args {
    /// A hundredth of the size, for a look.
    #[arg(long)]
    quick: bool,
    /// Turns of each kind of move.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Seed of the towns.
    #[arg(long, default_value_t = 2012)]
    seed: u64,
}

/// Live events and subscribers.
const SIZES: [(u32, u32); 5] =
    [(20_000, 100_000), (200_000, 10_000), (200_000, 100_000), (200_000, 1_000_000), (1_000_000, 100_000)];
/// Moves of a turn.
const MOVES: u32 = 100_000;
/// Subscriptions that are compared with all live events after the turns.
const CHECKED: u32 = 300;

/// Somebody moves.
type Move = fn(&mut Town);

/// Kinds of moves.
const KINDS: [(&str, Move); 3] = [
    ("subscriber, 10 m", Town::move_subscriber),
    ("subscriber, anywhere", Town::transport_subscriber),
    ("object, 10 m", Town::move_object),
];

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let scale = if args.quick { 100 } else { 1 };
    println!("{}; one thread; build profile {}\n", machine(), profile());
    println!("| live events | subscribers | who moves | us a move | spread | moves a second | told a move |");
    println!("| ---: | ---: | --- | ---: | ---: | ---: | ---: |");
    for (live, subscribers) in SIZES {
        let size = Size { live: live / scale, subscribers: subscribers / scale };
        let mut town = Town::new(size, args.seed)?;
        for (kind, carry_out) in KINDS {
            row(&args, size, &mut town, kind, carry_out);
        }
        let inside = town.check(CHECKED)?;
        eprintln!("{size:?}: {CHECKED} subscriptions know what brute force says ({inside} events inside)");
    }
    Ok(())
}

fn row(args: &Args, size: Size, town: &mut Town, kind: &str, carry_out: Move) {
    let mut times_us = Vec::new();
    let moves = if args.quick { MOVES / 100 } else { MOVES };
    town.take_told();
    for _ in 0..args.rounds {
        let watch = Stopwatch::start();
        for _ in 0..moves {
            carry_out(town);
        }
        times_us.push(watch.stop().as_secs_f64() * 1e6 / f64::from(moves));
    }
    times_us.sort_by(f64::total_cmp);
    let median = times_us[times_us.len() / 2];
    #[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
    let told = town.take_told() as f64 / f64::from(moves) / f64::from(args.rounds);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of moves in a second"
    )]
    let a_second = (1e6 / median) as u64;
    println!(
        "| {} | {} | {kind} | {} | {} to {} | {} | {told:.2} |",
        thousands(u64::from(size.live)),
        thousands(u64::from(size.subscribers)),
        digits(median),
        digits(times_us[0]),
        digits(times_us[times_us.len() - 1]),
        thousands(a_second),
    );
}
