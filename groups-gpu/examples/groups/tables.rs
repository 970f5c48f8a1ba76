//! The tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use groups::network::{Domains, Network};
use groups_gpu::Kernels;

use crate::engines::Engines;
use crate::folder::{assignments, instances};
use crate::measure::{self, Measured, TIMED};
use crate::worlds::{self, Named};

/// A network that was measured.
struct Row {
    name: String,
    variables: usize,
    constraints: usize,
    nodes: usize,
    edges: u64,
    measured: Measured,
}

/// What is timed and stands in the second table of a section.
const COLUMNS: [usize; 8] = [0, 1, 2, 5, 6, 7, 8, 11];

fn median(us: &[f64]) -> f64 {
    let mut us = us.to_vec();
    us.sort_by(f64::total_cmp);
    us[us.len() / 2]
}

/// The median, and half the way from the least to the most in percent of it.
fn cell(us: &[f64]) -> String {
    let [least, most] = [f64::min, f64::max].map(|by| us.iter().copied().reduce(by).unwrap_or_default());
    let median = median(us);
    let digits = if median < 100.0 { 1 } else { 0 };
    format!("{median:.digits$} ±{:.0}%", 50.0 * (most - least) / median)
}

fn row(engines: &mut Engines, (name, network): Named) -> Row {
    let measured = measure::network(engines, &name, &network);
    let pairs = |scope: [u32; 2]| scope.map(|x| u64::from(network.size(x))).iter().product::<u64>();
    eprintln!("{name}");
    Row {
        variables: network.variables_count(),
        constraints: network.constraints_count(),
        nodes: network.nodes_count(),
        edges: network.constraints().iter().map(|constraint| pairs(constraint.scope)).sum(),
        name,
        measured,
    }
}

/// Deletions of each loop, as in the paper's Table 16.
fn deletions(deleted: &[u32]) -> String {
    let mut text = String::new();
    for (idx, count) in deleted.iter().take(8).enumerate() {
        // A text that is written to does not fail.
        let _ = write!(text, "{}{count}", if idx == 0 { "" } else { " " });
    }
    if deleted.len() > 8 { text + " .." } else { text }
}

fn table(title: &str, rows: &[Row]) {
    println!("\n## {title}\n");
    println!("Sizes, and the transfers and the making of the models (the paper's Table 15), µs.\n");
    println!(
        "| network | variables | constraints | nodes | edges | upload | BuildNE | download | upload of bits |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for Row { name, variables, constraints, nodes, edges, measured } in rows {
        let cells = [3, 4, 9, 10].map(|at| cell(&measured.us[at]));
        println!("| {name} | {variables} | {constraints} | {nodes} | {edges} | {} |", cells.join(" | "));
    }
    println!(
        "\nArc consistency (Tables 16 and 17), µs. *bits* has the start on its way there and what is left on its way back; *ac4gpu* and *ac4gpu+* begin with a model; *by the host* they are to the letter, and else the device ends them.\n"
    );
    println!(
        "| network | deletions a loop | loops | rounds | consistent | {} | ac4 / ac4gpu | ac4 / ac4gpu+ | ac4 / bits | with lists / bits | ac3bit+rm / bits |",
        COLUMNS.map(|at| TIMED[at]).join(" | ")
    );
    println!("|---|---|---:|---:|---|{}", "---:|".repeat(COLUMNS.len() + 5));
    for Row { name, measured: Measured { us, loops, rounds }, .. } in rows {
        let cells = COLUMNS.map(|at| cell(&us[at]));
        let ratio = |a: usize, b: usize| {
            let ratio = median(&us[a]) / median(&us[b]);
            if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
        };
        println!(
            "| {name} | {} | {} | {rounds} | {} | {} | {} | {} | {} | {} | {} |",
            deletions(&loops.deleted),
            loops.deleted.len(),
            if loops.is_consistent { "yes" } else { "no" },
            cells.join(" | "),
            ratio(0, 5),
            ratio(0, 6),
            ratio(0, 11),
            ratio(1, 11),
            ratio(2, 11),
        );
    }
}

/// Measures and prints all.
pub(crate) fn print(kernels: &Kernels, folder: &Path, csv: Option<&Path>) {
    let is_host = kernels.device().is_host();
    println!("# Arc consistency on {}\n", kernels.device().name());
    let mut engines = Engines::new(kernels);
    let networks: BTreeMap<String, Network> =
        instances(folder).into_iter().map(|(mut fields, network)| (fields.swap_remove(0), network)).collect();
    let mut lines = String::from("section,network,timed,round,us\n");
    let sections: [(&str, Box<dyn Iterator<Item = Named>>); 4] = [
        ("Instances", Box::new(networks.iter().map(|(name, network)| (short(name), network.clone())))),
        ("Classes of Table 17", Box::new(worlds::classes())),
        ("Large networks of model B", Box::new(worlds::large(is_host))),
        (
            "Dominoes",
            Box::new([(10, 10), (30, 30), (100, 20)].into_iter().map(|(n, d)| worlds::dominoes(n, d))),
        ),
    ];
    for (title, worlds) in sections {
        let rows: Vec<_> = worlds.map(|named| row(&mut engines, named)).collect();
        table(title, &rows);
        for Row { name, measured, .. } in &rows {
            for (timed, us) in TIMED.iter().zip(&measured.us) {
                for (round, us) in us.iter().enumerate() {
                    let _ = writeln!(lines, "{title},{name},{timed},{round},{us:.3}");
                }
            }
        }
    }
    println!("\n## All assignments of each instance, µs of one\n");
    println!(
        "| instance | assignments | ac4 with its lists made | ac3bit+rm | bits one by one | bits at once | with lists / at once | ac3bit+rm / at once |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    let mut totals = [0.0; 4];
    for (name, assigned) in assignments(folder, &networks) {
        let starts: Vec<Domains> = assigned.iter().map(|assigned| assigned.start.clone()).collect();
        let removed: Vec<_> = assigned.iter().map(|assigned| assigned.removed).collect();
        let us = measure::assignments(&mut engines, &networks[&name], &starts, &removed);
        let ratio = |which: usize| median(&us[which]) / median(&us[3]);
        totals.iter_mut().zip(&us).for_each(|(total, us)| *total += median(us) * starts.len() as f64 / 1e3);
        let cells: Vec<_> = us.iter().map(|us| cell(us)).collect();
        println!(
            "| {} | {} | {} | {:.2} | {:.2} |",
            short(&name),
            starts.len(),
            cells.join(" | "),
            ratio(0),
            ratio(1)
        );
    }
    let [ac4, ac3bit, one, at_once] = totals;
    println!(
        "\nAll of them in ms: ac4 with its lists made {ac4:.1}, ac3bit+rm {ac3bit:.1}, bits one by one {one:.1}, bits at once {at_once:.1}."
    );
    if let Some(csv) = csv {
        std::fs::write(csv, lines).expect("the table can be written");
    }
}

/// The name of an instance without its endings.
fn short(name: &str) -> String {
    name.trim_end_matches(".xml").trim_end_matches("_X2").to_owned()
}
