//! How the time of a fact grows with the store.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use plotters::style::RGBColor;
use rules::{Program, Session, Setting, Value};

use super::{Report, Scale, spread};
use crate::engines::report::digits;
use crate::paper::plot::{Curve, CurvePoint, Figure, Look, Marker, Panel, write};

/// Microseconds a fact in a store of a size: least, median, most.
pub(super) struct Grown {
    facts: i64,
    us: [f64; 3],
}

/// Facts of two kinds that are joined by an argument: half of them wait for the other half.
pub(super) fn measure(scale: &Scale, report: &mut Report) -> anyhow::Result<Vec<Grown>> {
    report.line("\n| facts | us a fact | spread | us a constraint, written | read | bytes |");
    report.line("| ---: | ---: | --- | ---: | ---: | ---: |");
    let text = ":- chr_constraint paid/2. order(O, C), payment(O, A) <=> paid(C, A).";
    let program = Program::new(text).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
    let mut grown = Vec::new();
    for facts in [1_000_i64, 10_000, 100_000, 1_000_000] {
        let facts = if scale.is_quick { facts / 20 } else { facts };
        let (mut us, mut written, mut read, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for _ in 0..scale.rounds {
            let round = round(&program, facts)?;
            us.push(us_each(round.took, facts));
            written.push(us_each(round.written, facts / 2));
            read.push(us_each(round.read, facts / 2));
            bytes = round.bytes;
        }
        let us = spread(&mut us);
        report.line(&format!(
            "| {facts} | {} | {} to {} | {} | {} | {bytes} |",
            digits(us[1]),
            digits(us[0]),
            digits(us[2]),
            digits(spread(&mut written)[1]),
            digits(spread(&mut read)[1]),
        ));
        grown.push(Grown { facts, us });
    }
    Ok(grown)
}

struct Round {
    took: Duration,
    written: Duration,
    read: Duration,
    bytes: usize,
}

fn round(program: &std::sync::Arc<Program>, facts: i64) -> anyhow::Result<Round> {
    let mut session = Session::new(program, Setting::default());
    let kind = |session: &Session, name| session.kind(name, 2).context("it is a constraint");
    let [order, payment, paid] =
        [kind(&session, "order")?, kind(&session, "payment")?, kind(&session, "paid")?];
    let (half, mut taken, mut origin) = (facts / 2, 0, 0);
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
    let snapshot = session.snapshot();
    let written = began.elapsed();
    let began = Instant::now();
    let mut session = Session::restore(program, Setting::default(), &snapshot)?;
    let read = began.elapsed();
    let began = Instant::now();
    for number in 0..half {
        add(&mut session, payment, number)?;
        taken += session.take(paid).len();
    }
    let took = waiting + began.elapsed();
    ensure!(i64::try_from(taken)? == half && session.count() == 0, "{taken} of {half} were paid");
    Ok(Round { took, written, read, bytes: snapshot.len() })
}

#[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
fn us_each(time: Duration, count: i64) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

/// Draws `growth.svg` into a folder.
pub(super) fn draw(grown: &[Grown], folder: &Path) -> anyhow::Result<()> {
    #[expect(clippy::cast_precision_loss, reason = "a million")]
    let point = |one: &Grown| CurvePoint {
        x: (one.facts as f64).log10(),
        y: one.us[1],
        spread: (one.us[0], one.us[2]),
    };
    let look = Look { colour: RGBColor(0, 114, 178), marker: Marker::Disc, dashes: None };
    let curve = Curve {
        label: "a fact that joins by an argument".to_owned(),
        look,
        points: grown.iter().map(point).collect(),
    };
    let figure = Figure {
        title: "How the time of a fact grows with the store".to_owned(),
        x_label: "facts, as a power of ten".to_owned(),
        y_label: "µs a fact".to_owned(),
        y_log: false,
        panels: vec![Panel { title: String::new(), curves: vec![curve] }],
    };
    write(&figure, folder, "growth")
}
