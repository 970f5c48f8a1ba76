//! Checks: the experiments of GAIN with all engines, as CSV, plots and a report.

pub mod measure;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use plotters::style::RGBColor;

use crate::paper::plot::{Curve, CurvePoint, Figure, Look, Marker, Panel, write};
use measure::{Measuring, Row, Scale, csv};

/// Engines and how their curves look, in the order of legends.
const LOOKS: [(&str, Look); 11] = [
    ("Seq-C", look(RGBColor(213, 94, 0), Marker::Square, None)),
    ("Con-C", look(RGBColor(230, 159, 0), Marker::Triangle, None)),
    ("Con-C half", look(RGBColor(230, 159, 0), Marker::Cross, Some((6, 4)))),
    ("incremental", look(RGBColor(0, 114, 178), Marker::Disc, None)),
    ("GAIN", look(RGBColor(0, 158, 115), Marker::Diamond, None)),
    ("GAIN node", look(RGBColor(0, 158, 115), Marker::Cross, Some((6, 4)))),
    ("GAIN synchronous", look(RGBColor(0, 158, 115), Marker::Ring, Some((2, 4)))),
    ("GAIN unbuffered", look(RGBColor(86, 180, 233), Marker::Ring, Some((6, 4)))),
    ("gpu", look(RGBColor(204, 121, 167), Marker::Disc, None)),
    ("gpu 63 at once", look(RGBColor(0, 0, 0), Marker::Cross, Some((6, 4)))),
    ("gpu 1008 at once", look(RGBColor(0, 0, 0), Marker::Disc, None)),
];

const fn look(colour: RGBColor, marker: Marker, dashes: Option<(u32, u32)>) -> Look {
    Look { colour, marker, dashes }
}

/// Measures, and writes all of it into a folder.
///
/// # Errors
/// When files cannot be written, and without the taxis' reports.
pub fn run(folder: &Path, scale: Scale, from: &str) -> anyhow::Result<()> {
    let found = device::Device::all().and_then(|devices| checks_gpu::Kernels::load(&devices[0]));
    let place = match &found {
        Ok(kernels) => format!("GPU: {}", kernels.device().name()),
        Err(reason) => format!("The lines of the GPU are absent: {reason}"),
    };
    let measuring = Measuring::new(scale, found.as_ref().ok());
    let mut measuring = measuring.context("shared/data/shenzhen-taxi is not beside the project")?;
    measuring.all(|_| {});
    show(&measuring.rows, folder, &format!("{from}. {place}. {scale:?}"))
}

/// Writes figures, plots and the report into a folder.
///
/// # Errors
/// When a file cannot be written.
pub fn show(rows: &[Row], folder: &Path, from: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    for (stem, figure) in figures(rows) {
        write(&figure, folder, stem)?;
    }
    for (name, text) in [("gain.csv", csv(rows)), ("report.md", report(rows, from))] {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Reads figures that were measured elsewhere, as [`csv()`] wrote them.
///
/// # Errors
/// When the file cannot be read, or is another.
pub fn read(path: &Path) -> anyhow::Result<Vec<Row>> {
    let context = || format!("reading {}", path.display());
    let mut reader = ::csv::Reader::from_path(path).with_context(context)?;
    let rows = reader.deserialize().map(|row| {
        let (section, case, workload, engine, round, contexts, seconds, told) = row?;
        Ok(Row { section, case, workload, engine, round, contexts, seconds, told })
    });
    rows.collect::<Result<_, ::csv::Error>>().with_context(context)
}

/// Microseconds a context, over the turns: least, median, largest.
fn times<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<[f64; 3]> {
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let mut times: Vec<f64> = rows.map(|row| row.seconds * 1e6 / row.contexts.max(1) as f64).collect();
    times.sort_by(f64::total_cmp);
    Some([*times.first()?, times[times.len() / 2], *times.last()?])
}

fn of<'a>(rows: &'a [Row], section: &'a str, engine: &'a str) -> impl Iterator<Item = &'a Row> + Clone {
    rows.iter().filter(move |row| row.section == section && row.engine == engine)
}

/// A curve for each engine; `x` says where a figure lies.
fn curves<'a>(rows: &'a [Row], section: &'a str, x: impl Fn(&Row) -> Option<u32>) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (engine, look) in LOOKS {
        let mut by_x: BTreeMap<u32, Vec<&Row>> = BTreeMap::new();
        for row in of(rows, section, engine) {
            if let Some(x) = x(row) {
                by_x.entry(x).or_default().push(row);
            }
        }
        let point = |(x, rows): (u32, Vec<&Row>)| {
            let [least, median, largest] = times(rows.into_iter())?;
            Some(CurvePoint { x: x.into(), y: median, spread: (least, largest) })
        };
        let points: Vec<_> = by_x.into_iter().filter_map(point).collect();
        if !points.is_empty() {
            curves.push(Curve { label: engine.to_owned(), look, points });
        }
    }
    curves
}

fn percent(workload: &str) -> Option<u32> {
    Some(match workload {
        "light" => 6,
        "medium" => 25,
        "heavy" => 37,
        "extreme" => 100,
        _ => return None,
    })
}

/// Number of a family in Table 1, from 1 on.
fn family(row: &Row) -> Option<u32> {
    let letter = row.case.bytes().next()?;
    letter.is_ascii_uppercase().then(|| u32::from(letter - b'A') + 1)
}

fn figures(rows: &[Row]) -> Vec<(&'static str, Figure)> {
    let figure = |title: &str, x_label: &str, panels: Vec<Panel>| Figure {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: "µs a context".to_owned(),
        y_log: true,
        panels,
    };
    let in_service = "reports in service, %";
    let seven = curves(rows, "fig7", |row| percent(&row.workload));
    let structure =
        |families: &[u32]| curves(rows, "fig8-10", |row| family(row).filter(|it| families.contains(it)));
    let panel = |title: &str, curves| Panel { title: title.to_owned(), curves };
    let of_case = |section: &str, case: &str, x: fn(&str) -> Option<u32>| {
        let curves = curves(rows, section, |row| x(&row.workload).filter(|_| row.case == case));
        panel(&format!("constraint {case}"), curves)
    };
    let workload = |case| of_case("fig11", case, percent);
    let figures = vec![
        (
            "fig7",
            figure(
                "Fig. 7: granularity, transmission, buffering",
                in_service,
                vec![panel("twelve rules", seven)],
            ),
        ),
        (
            "fig8-10",
            figure(
                "Fig. 8 to 10: structure of constraints",
                "family of Table 1: 1 is A, 11 is K",
                vec![
                    panel("one quantifier: A, B, C, F, G", structure(&[1, 2, 3, 6, 7])),
                    panel("two: D, E, H, I, J, K", structure(&[4, 5, 8, 9, 10, 11])),
                ],
            ),
        ),
        ("fig11", figure("Fig. 11: workload", in_service, ["A*", "D*", "H*"].map(workload).to_vec())),
        (
            "fig12",
            figure(
                "Fig. 12: a day, made of one hour",
                "hour",
                vec![panel("twelve rules", curves(rows, "fig12", |row| row.workload.parse().ok()))],
            ),
        ),
        (
            "large",
            figure(
                "Past the paper: one evaluation over a large set",
                "events in the set",
                vec![panel("constraint H*", curves(rows, "large", |row| row.workload.parse().ok()))],
            ),
        ),
        (
            "batches",
            figure(
                "Past the paper: contexts evaluated several at once",
                in_service,
                ["12 rules", "A*", "D*", "H*"].map(|case| of_case("batches", case, percent)).to_vec(),
            ),
        ),
        (
            "dense",
            figure(
                "Past the paper: a thousand changes of large sets",
                "events in the set",
                ["D*", "H*"].map(|case| of_case("dense", case, |held| held.parse().ok())).to_vec(),
            ),
        ),
    ];
    let is_measured = |figure: &Figure| figure.panels.iter().any(|panel| !panel.curves.is_empty());
    figures.into_iter().filter(|(_, figure)| is_measured(figure)).collect()
}

fn report(rows: &[Row], from: &str) -> String {
    let mut text = format!(
        "# Checks: the experiments of GAIN\n\n{from}\n\nThe paper is \"GAIN: GPU-based constraint checking for context consistency\". `Seq-C` is the engine `sequential`, `Con-C` \
         `concurrent` on all processors and on half of them, `GAIN` the engine `gpu` with a thread for each copy, `gpu` with warps that share a quantifier. Times are \
         microseconds a context: median, least and largest in parentheses. Only the hour from 11 on is at hand; the other workloads put taxis in or out of \
         service until the share is the paper's, and the day lies on straight lines between its three shares. Links told and violations are the same for \
         all engines in every case, or the run ends.\n"
    );
    let sections = [
        ("fig7", "Fig. 7: factors"),
        ("fig8-10", "Fig. 8 to 10: structure"),
        ("fig11", "Fig. 11: workload"),
        ("fig12", "Fig. 12: day"),
        ("large", "Past the paper: one evaluation over a large set"),
        ("batches", "Past the paper: contexts evaluated several at once"),
        ("dense", "Past the paper: a thousand changes of large sets"),
    ];
    for (section, title) in sections.into_iter().filter(|(section, _)| !cases(rows, section).is_empty()) {
        table(&mut text, rows, section, title);
    }
    budget(&mut text, rows);
    text
}

fn head(text: &mut String, title: &str, engines: &[&str]) {
    let _ = write!(
        text,
        "\n## {title}\n\n| constraint | workload | {} |\n| --- | --- |{}\n",
        engines.join(" | "),
        " ---: |".repeat(engines.len())
    );
}

/// Cases of a section in the order in which they were measured.
fn cases<'a>(rows: &'a [Row], section: &str) -> Vec<(&'a str, &'a str)> {
    let mut cases = Vec::new();
    for row in rows.iter().filter(|row| row.section == section) {
        let case = (&*row.case, &*row.workload);
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

fn engines_of(rows: &[Row], section: &str) -> Vec<&'static str> {
    LOOKS
        .iter()
        .map(|(engine, _)| *engine)
        .filter(|engine| of(rows, section, engine).next().is_some())
        .collect()
}

fn table(text: &mut String, rows: &[Row], section: &str, title: &str) {
    let engines = engines_of(rows, section);
    head(text, title, &engines);
    for (case, workload) in cases(rows, section) {
        let _ = write!(text, "| {case} | {workload} |");
        for engine in &engines {
            let rows = of(rows, section, engine).filter(|row| row.case == case && row.workload == workload);
            match times(rows) {
                Some([least, median, largest]) => {
                    let _ = write!(text, " {median:.1} ({least:.1} to {largest:.1}) |");
                }
                None => text.push_str(" |"),
            }
        }
        text.push('\n');
    }
}

fn budget(text: &mut String, rows: &[Row]) {
    let engines = engines_of(rows, "table3");
    head(text, "Table 3: contexts processed, at their speed and faster", &engines);
    for (case, workload) in cases(rows, "table3") {
        let _ = write!(text, "| {case} | {workload} |");
        for engine in &engines {
            let row = of(rows, "table3", engine).find(|row| row.case == case && row.workload == workload);
            let _ = write!(text, " {} |", row.map_or(0, |row| row.contexts));
        }
        text.push('\n');
    }
}
