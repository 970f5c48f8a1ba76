//! How long routes take on a device by landmarks, slack and form: `tunings STREETS PAIRS.csv [--host]`.
//!
//! A line for each: landmarks, arcs of slack, form, rounds of the search that had most, seconds of all routes together, and of their costs
//! alone. Every cost is compared with that of a hierarchy on the processor.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use device::Device;
use routes::{Costed, Graph, Hierarchy, Memory, lengths_mm, places};
use routes_gpu::{Form, Kernels, Searcher, Tuning};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [streets, pairs, rest @ ..] = &*arguments else { return Err("STREETS PAIRS.csv [--host]".into()) };
    let network = streets::load(&PathBuf::from(streets))?;
    let nodes: HashMap<i64, u32> =
        (0..).take(network.nodes_count()).map(|node| (network.node_id(node), node)).collect();
    let mut queries = Vec::new();
    for row in csv::Reader::from_path(pairs)?.records() {
        let row = row?;
        let node = |column: usize| -> Result<u32, Box<dyn Error>> { Ok(nodes[&row[column].parse()?]) };
        queries.push((0, [node(0)?, node(1)?]));
    }
    let device = if rest.is_empty() { Device::all()?.swap_remove(0) } else { Device::host(1 << 32) };
    let (graph, costs) = (Graph::of(&network), lengths_mm(&network));
    let hierarchy = Hierarchy::new(&graph, &places(&network));
    let (metric, mut memory) = (hierarchy.customise(&costs), Memory::default());
    let began = Instant::now();
    let expected: Vec<_> =
        queries.iter().map(|(_, [from, to])| hierarchy.cost(&metric, *from, *to, &mut memory)).collect();
    println!("{}: {} pairs; hierarchy {:.6}", device.name(), queries.len(), began.elapsed().as_secs_f64());
    let mut searcher = Searcher::new(&Kernels::load(&device)?)?;
    for landmarks in [0, 4, 8, 16] {
        for slack_arcs in [0, 4, 16, 64, u32::MAX] {
            searcher.load(&[Costed { graph: &graph, costs: &costs }], Tuning { landmarks, slack_arcs })?;
            for form in [Form::Launches, Form::Composed] {
                searcher.costs(&queries, form)?;
                let began = Instant::now();
                assert_eq!(searcher.costs(&queries, form)?, expected);
                let costs_s = began.elapsed().as_secs_f64();
                let began = Instant::now();
                searcher.routes(&queries, form)?;
                let routes_s = began.elapsed().as_secs_f64();
                let rounds = searcher.rounds()?;
                println!("{landmarks} {slack_arcs} {form:?} {rounds} {routes_s:.6} {costs_s:.6}");
            }
        }
    }
    Ok(())
}
