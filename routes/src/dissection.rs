//! An order of the nodes by nested dissection: small sets of nodes that part the streets come last.
//!
//! The parts are found by inertial flow: along each of four directions the first quarter of the nodes are sources and the last quarter sinks,
//! and the least cut between them is a maximum flow's.
//!
//! Source: Schild and Sommer, "On balanced separators in road networks", SEA 2015.

use std::cmp::Reverse;
use std::collections::VecDeque;

use crate::graph::{Graph, NONE, number};

/// Parts that are not parted further.
const SMALL: usize = 6;

/// Orders of the nodes. In both a node comes after all that it parts.
pub(crate) struct Order {
    /// As they are contracted: part by part, so that what is near is near in memory.
    pub(crate) contracted: Vec<u32>,
    /// What parts the whole comes last, before it what parts the halves, and so on.
    pub(crate) importance: Vec<u32>,
}

/// Orders the nodes.
///
/// Shape: where each node is, in units that are alike along both axes.
/// Cost: about nodes times the size of the cuts times the depth of the parts.
pub(crate) fn order(graph: &Graph, places: &[[f64; 2]]) -> Order {
    let mut dissection = Dissection {
        graph,
        places,
        part: vec![0; graph.nodes_count()],
        local: vec![0; graph.nodes_count()],
        parts: 0,
    };
    let mut contracted = Vec::with_capacity(graph.nodes_count());
    // How many times the whole was parted before each node was reached.
    let mut depths = vec![0; graph.nodes_count()];
    let mut parts = vec![((0..number(graph.nodes_count())).collect::<Vec<_>>(), 0)];
    while let Some((nodes, depth)) = parts.pop() {
        let [reached, one, other] =
            if nodes.len() <= SMALL { [nodes, Vec::new(), Vec::new()] } else { dissection.part(nodes) };
        reached.iter().for_each(|node| depths[*node as usize] = depth);
        contracted.extend(reached);
        parts.extend([one, other].into_iter().filter(|part| !part.is_empty()).map(|part| (part, depth + 1)));
    }
    contracted.reverse();
    let mut importance = contracted.clone();
    importance.sort_by_key(|node| Reverse(depths[*node as usize]));
    Order { contracted, importance }
}

struct Dissection<'a> {
    graph: &'a Graph,
    places: &'a [[f64; 2]],
    /// The part that each node is in, and its number there.
    part: Vec<u32>,
    local: Vec<u32>,
    parts: u32,
}

/// A cut: which nodes are on the side of the sources, and how many edges it cuts.
struct Cut {
    is_source_side: Vec<bool>,
    size: usize,
}

impl Dissection<'_> {
    /// Parts nodes into those that part them, and two sides without an arc between them.
    fn part(&mut self, nodes: Vec<u32>) -> [Vec<u32>; 3] {
        self.parts += 1;
        for (local, node) in (0..).zip(&nodes) {
            self.part[*node as usize] = self.parts;
            self.local[*node as usize] = local;
        }
        let links = self.links(&nodes);
        let along = |[a, b]: [f64; 2]| {
            nodes
                .iter()
                .map(|node| self.places[*node as usize])
                .map(|[x, y]| a * x + b * y)
                .collect::<Vec<_>>()
        };
        let directions = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]];
        let cuts = directions.into_iter().map(|direction| cut(&links, &along(direction)));
        let cut = cuts.min_by_key(|cut| (cut.size, cut.imbalance())).expect("there are directions");
        // The ends of the cut edges on the side that has fewer of them.
        let mut ends = [Vec::new(), Vec::new()];
        for (node, links) in links.iter().enumerate() {
            let side = cut.is_source_side[node];
            if links.iter().any(|(other, _)| cut.is_source_side[*other as usize] != side) {
                ends[usize::from(side)].push(node);
            }
        }
        let separators = if ends[0].len() <= ends[1].len() { &ends[0] } else { &ends[1] };
        let mut is_separator = vec![false; nodes.len()];
        separators.iter().for_each(|local| is_separator[*local] = true);
        let mut parts = [Vec::new(), Vec::new(), Vec::new()];
        for (local, node) in nodes.into_iter().enumerate() {
            let part = if is_separator[local] { 0 } else { 1 + usize::from(cut.is_source_side[local]) };
            parts[part].push(node);
        }
        parts
    }

    /// The neighbours of each node within the part, with the number that each edge has at its other end.
    fn links(&self, nodes: &[u32]) -> Vec<Vec<(u32, u32)>> {
        let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
        for (local, node) in (0..).zip(nodes) {
            for arc in self.graph.out(*node) {
                let other = self.graph.head(arc) as usize;
                if self.part[other] == self.parts && self.local[other] != local {
                    neighbours[local as usize].push(self.local[other]);
                    neighbours[self.local[other] as usize].push(local);
                }
            }
        }
        for neighbours in &mut neighbours {
            neighbours.sort_unstable();
            neighbours.dedup();
        }
        let place = |of: usize, node: u32| {
            number(neighbours[of].binary_search(&node).expect("neighbours are so on both sides"))
        };
        let link = |(node, others): (usize, &Vec<u32>)| {
            others.iter().map(|other| (*other, place(*other as usize, number(node)))).collect()
        };
        neighbours.iter().enumerate().map(link).collect()
    }
}

impl Cut {
    fn imbalance(&self) -> usize {
        let sources = self.is_source_side.iter().filter(|is_source_side| **is_source_side).count();
        sources.abs_diff(self.is_source_side.len() - sources)
    }
}

/// The least cut between the first and the last quarter of the nodes along a direction.
///
/// Source: Edmonds and Karp's shortest augmenting paths (1972); cuts of streets are small, so that there are few of them.
fn cut(links: &[Vec<(u32, u32)>], along: &[f64]) -> Cut {
    let mut order: Vec<u32> = (0..number(links.len())).collect();
    order.sort_unstable_by(|a, b| along[*a as usize].total_cmp(&along[*b as usize]).then(a.cmp(b)));
    let ends = links.len().div_ceil(4);
    let mut is_sink = vec![false; links.len()];
    order[links.len() - ends..].iter().for_each(|node| is_sink[*node as usize] = true);
    let sources = &order[..ends];
    // What flows along each edge from this end: -1, 0 or 1.
    let mut flow: Vec<Vec<i8>> = links.iter().map(|links| vec![0; links.len()]).collect();
    let mut size = 0;
    loop {
        // By which edge each node is reached.
        let mut by = vec![None; links.len()];
        let mut is_reached = vec![false; links.len()];
        let mut queue: VecDeque<u32> = sources.iter().copied().collect();
        sources.iter().for_each(|node| is_reached[*node as usize] = true);
        let mut end = NONE;
        'search: while let Some(node) = queue.pop_front() {
            for (edge, (other, _)) in links[node as usize].iter().enumerate() {
                let other_at = *other as usize;
                if is_reached[other_at] || flow[node as usize][edge] > 0 {
                    continue;
                }
                is_reached[other_at] = true;
                by[other_at] = Some((node, edge));
                if is_sink[other_at] {
                    end = *other;
                    break 'search;
                }
                queue.push_back(*other);
            }
        }
        if end == NONE {
            return Cut { is_source_side: is_reached, size };
        }
        size += 1;
        while let Some((node, edge)) = by[end as usize] {
            let (other, back) = links[node as usize][edge];
            flow[node as usize][edge] += 1;
            flow[other as usize][back as usize] -= 1;
            end = node;
        }
    }
}
