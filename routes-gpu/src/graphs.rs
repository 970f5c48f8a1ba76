//! Graphs on a device, packed into the paper's arrays V, E and W, with what their arcs cost and landmarks for A*.

use device::{Device, Staged, Stream};
use kernels::routes::{BLOCK, Query};
use routes::{Cost, Costed, Graph, Landmarks, UNREACHABLE};

use crate::error::{Error, number};
use crate::launchers::Tables;

/// How graphs are searched. It changes how long that takes, and not the costs of the routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Landmarks of each graph, for the bounds of A*: two searches on the processor each when graphs are loaded, and 16 bytes a node. With none, nodes are relaxed in
    /// the order of their costs.
    pub landmarks: usize,
    /// A node is relaxed while its key is above the least one by no more than this number of mean arcs cost. With few there are more
    /// rounds, with many more nodes are relaxed again.
    pub slack_arcs: u32,
}

impl Default for Tuning {
    /// In Liechtenstein more slack makes no fewer rounds, and more work (`examples/tunings`).
    fn default() -> Self {
        Self { landmarks: 8, slack_arcs: 4 }
    }
}

/// Graphs on a device.
#[derive(Debug)]
pub(crate) struct Graphs {
    parts: Vec<Part>,
    tuning: Tuning,
    pub(crate) tables: Tables,
}

/// What the host has of a graph.
#[derive(Debug)]
struct Part {
    graph: Graph,
    costs: Vec<Cost>,
    /// The costs with which landmarks were chosen: bounds hold as long as no arc costs less.
    least: Vec<Cost>,
    landmarks: u32,
    landmarks_at: u64,
    are_bounds_sound: bool,
    slack: Cost,
    first_node: u32,
    first_arc: usize,
}

impl Graphs {
    pub(crate) fn new(device: &Device) -> Result<Self, Error> {
        let tables = Tables {
            nodes: 0,
            arcs: 0,
            first: Staged::new(device)?,
            heads: Staged::new(device)?,
            weights: Staged::new(device)?,
            landmarks: Staged::new(device)?,
        };
        Ok(Self { parts: Vec::new(), tuning: Tuning::default(), tables })
    }

    pub(crate) fn load(
        &mut self,
        stream: &Stream,
        graphs: &[Costed<'_>],
        tuning: Tuning,
    ) -> Result<(), Error> {
        self.parts.clear();
        self.tuning = tuning;
        let (mut first, mut heads, mut weights, mut landmarks) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut parts = Vec::with_capacity(graphs.len());
        for Costed { graph, costs } in graphs {
            assert_eq!(costs.len(), graph.arcs_count(), "a cost for each arc");
            let (first_node, first_arc) = (number(first.len(), "nodes")?, heads.len());
            let arcs = number(heads.len() + graph.arcs_count(), "arcs")?;
            let nodes = 0..number(graph.nodes_count(), "nodes")?;
            let offset = arcs - number(graph.arcs_count(), "arcs")?;
            first.extend(nodes.clone().map(|node| offset + graph.out(node).start));
            first.push(arcs);
            heads.extend((0..arcs - offset).map(|arc| graph.head(arc)));
            weights.extend_from_slice(costs);
            let landmarks_at = landmarks.len() as u64;
            let chosen = Landmarks::new(graph, costs, tuning.landmarks);
            let of_landmarks: Vec<_> = chosen.costs().collect();
            landmarks.extend(
                nodes.flat_map(|node| of_landmarks.iter().flatten().map(move |costs| costs[node as usize])),
            );
            parts.push(Part {
                graph: (*graph).clone(),
                costs: costs.to_vec(),
                least: costs.to_vec(),
                landmarks: number(of_landmarks.len(), "landmarks")?,
                landmarks_at,
                are_bounds_sound: are_sums_exact(costs),
                slack: slack(costs, tuning),
                first_node,
                first_arc,
            });
        }
        number(first.len(), "nodes")?;
        let tables = &mut self.tables;
        (tables.nodes, tables.arcs) = (first.len(), heads.len());
        tables.first.send(stream, &first)?;
        tables.heads.send(stream, &heads)?;
        tables.weights.send(stream, &weights)?;
        tables.landmarks.send(stream, &landmarks)?;
        self.parts = parts;
        Ok(())
    }

    pub(crate) fn set_costs(&mut self, stream: &Stream, graph: usize, costs: &[Cost]) -> Result<(), Error> {
        let part = &mut self.parts[graph];
        assert_eq!(costs.len(), part.costs.len(), "a cost for each arc");
        self.tables.weights.send_at(stream, part.first_arc, costs)?;
        part.costs.copy_from_slice(costs);
        part.are_bounds_sound =
            are_sums_exact(&part.least) && part.least.iter().zip(costs).all(|(least, cost)| least <= cost);
        part.slack = slack(costs, self.tuning);
        Ok(())
    }

    /// The graph of a number, with what its arcs cost.
    pub(crate) fn costed(&self, graph: usize) -> Costed<'_> {
        let part = &self.parts[graph];
        Costed { graph: &part.graph, costs: &part.costs }
    }

    /// Blocks of a query.
    pub(crate) fn blocks(&self, graph: usize) -> usize {
        self.parts[graph].graph.nodes_count().div_ceil(BLOCK as usize)
    }

    /// A query that begins at a block.
    pub(crate) fn query(
        &self,
        (graph, [from, to]): (usize, [u32; 2]),
        first_block: u32,
    ) -> Result<Query, Error> {
        let part = &self.parts[graph];
        let nodes = number(part.graph.nodes_count(), "nodes")?;
        assert!(from < nodes && to < nodes, "the ends are nodes of the graph");
        Ok(Query {
            nodes,
            first_node: part.first_node,
            from,
            to,
            first_block,
            blocks: nodes.div_ceil(BLOCK),
            landmarks: if part.are_bounds_sound { part.landmarks } else { 0 },
            unused: 0,
            landmarks_at: part.landmarks_at,
            slack: part.slack,
        })
    }
}

/// Whether no route costs more than can be counted, so that a landmark's `UNREACHABLE` means that there is no route.
fn are_sums_exact(costs: &[Cost]) -> bool {
    usable(costs).try_fold(0, Cost::checked_add).is_some_and(|sum| sum < UNREACHABLE)
}

/// The cost of a number of mean arcs.
fn slack(costs: &[Cost], tuning: Tuning) -> Cost {
    let sum: u128 = usable(costs).map(u128::from).sum();
    let count = usable(costs).count().max(1) as u128;
    Cost::try_from(sum * u128::from(tuning.slack_arcs) / count).unwrap_or(UNREACHABLE)
}

fn usable(costs: &[Cost]) -> impl Iterator<Item = Cost> {
    costs.iter().copied().filter(|cost| *cost != UNREACHABLE)
}
