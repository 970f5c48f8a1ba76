//! From streets as they were read to a [`Network`], in order.

use matcher::geo::World;

use crate::StreetsError;
use crate::network::{Census, Class, NONE, Network};

/// The most nodes, arcs, points: indexes are 32 bits wide, and the largest stands for none.
const MAX: usize = (u32::MAX - 1) as usize;

/// A place where streets meet or end.
#[derive(Clone, Debug)]
pub(crate) struct DraftNode {
    pub(crate) id: i64,
    pub(crate) at: [f64; 2],
    pub(crate) has_signals: bool,
}

/// A street between two nodes.
#[derive(Clone, Debug)]
pub(crate) struct DraftEdge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// None: as long as the shape.
    pub(crate) length_m: Option<f64>,
    /// Both ends included.
    pub(crate) shape: Vec<[f64; 2]>,
    /// Limit and lanes from `from` to `to`; none where nobody may drive so.
    pub(crate) forward: Option<Lane>,
    /// And back.
    pub(crate) backward: Option<Lane>,
    pub(crate) class: Class,
    pub(crate) name: u32,
}

/// One direction of a street.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub(crate) limit_ms: f32,
    pub(crate) lanes: u8,
}

/// Streets as they were read.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) world: World,
    pub(crate) nodes: Vec<DraftNode>,
    pub(crate) edges: Vec<DraftEdge>,
    pub(crate) names: Vec<String>,
    pub(crate) census: Census,
}

/// An arc on its way into the network.
struct Arc<'a> {
    edge: &'a DraftEdge,
    from: u32,
    to: u32,
    lane: Lane,
    is_backward: bool,
}

impl Draft {
    /// The network, or its largest strongly connected part alone; none where no arc is left.
    pub(crate) fn into_network(mut self, is_cut: bool) -> Result<Option<Network>, StreetsError> {
        check_count("nodes", self.nodes.len())?;
        check_count("arcs", self.edges.len() * 2)?;
        check_count("points", 2 * self.edges.iter().map(|edge| edge.shape.len()).sum::<usize>())?;
        let mut arcs = self.edges.iter().flat_map(arcs_of).collect::<Vec<_>>();
        let ends = arcs.iter().map(|arc| (arc.from, arc.to)).collect::<Vec<_>>();
        let is_kept =
            if is_cut { largest_part(self.nodes.len(), &ends) } else { vec![true; self.nodes.len()] };
        self.census.nodes = self.nodes.len();
        self.census.arcs = arcs.len();
        let (world, all_count) = (self.world, arcs.len());
        let all_m = arcs.iter().map(|arc| arc.edge.long_m(world)).sum::<f64>();
        arcs.retain(|arc| is_kept[arc.from as usize] && is_kept[arc.to as usize]);
        self.census.arcs_cut = all_count - arcs.len();
        self.census.length_cut_m = all_m - arcs.iter().map(|arc| arc.edge.long_m(world)).sum::<f64>();
        // A stable sort: both directions of an edge that ends where it begins stay side by side.
        arcs.sort_by_key(|arc| arc.from);
        if arcs.is_empty() {
            return Ok(None);
        }
        let mut number = vec![NONE; self.nodes.len()];
        let mut kept = 0;
        for (node, number) in number.iter_mut().enumerate().filter(|(node, _)| is_kept[*node]) {
            debug_assert!(node < MAX, "counted above");
            *number = kept;
            kept += 1;
        }
        self.census.nodes_cut = self.nodes.len() - kept as usize;
        Ok(Some(fill(&self, &arcs, &number, &is_kept)))
    }
}

impl DraftEdge {
    /// How long it is, in metres, at least a millimetre.
    fn long_m(&self, world: World) -> f64 {
        self.length_m.unwrap_or_else(|| along_m(world, &self.shape).last().copied().unwrap_or(0.0)).max(0.001)
    }
}

fn check_count(what: &'static str, count: usize) -> Result<(), StreetsError> {
    if count > MAX { Err(StreetsError::TooLarge { what, max: MAX }) } else { Ok(()) }
}

fn arcs_of(edge: &DraftEdge) -> impl Iterator<Item = Arc<'_>> {
    let forward =
        edge.forward.map(|lane| Arc { edge, from: edge.from, to: edge.to, lane, is_backward: false });
    let backward =
        edge.backward.map(|lane| Arc { edge, from: edge.to, to: edge.from, lane, is_backward: true });
    forward.into_iter().chain(backward)
}

fn fill(draft: &Draft, arcs: &[Arc<'_>], number: &[u32], is_kept: &[bool]) -> Network {
    let nodes = draft.nodes.iter().zip(is_kept).filter(|(_, is_kept)| **is_kept).map(|(node, _)| node);
    let nodes = nodes.collect::<Vec<_>>();
    let (froms, tos): (Vec<u32>, Vec<u32>) =
        arcs.iter().map(|arc| (number[arc.from as usize], number[arc.to as usize])).unzip();
    let (out_start, _) = by_node(nodes.len(), &froms);
    let (in_start, in_arcs) = by_node(nodes.len(), &tos);
    let mut shape_start = vec![0];
    let (mut shape, mut shape_along_m) = (Vec::new(), Vec::new());
    for arc in arcs {
        let mut points = arc.edge.shape.clone();
        if arc.is_backward {
            points.reverse();
        }
        let mut along = along_m(draft.world, &points);
        let (drawn_m, long_m) = (along[along.len() - 1], arc.edge.long_m(draft.world));
        let scale = if drawn_m > 0.0 { long_m / drawn_m } else { 0.0 };
        along.iter_mut().for_each(|at_m| *at_m *= scale);
        if let Some(last) = along.last_mut() {
            *last = long_m;
        }
        shape.append(&mut points);
        shape_along_m.append(&mut along);
        shape_start.push(index(shape.len()));
    }
    Network {
        world: draft.world,
        census: draft.census.clone(),
        node_id: nodes.iter().map(|node| node.id).collect(),
        node_at: nodes.iter().map(|node| node.at).collect(),
        node_has_signals: nodes.iter().map(|node| node.has_signals).collect(),
        arc_length_m: arcs.iter().map(|arc| arc.edge.long_m(draft.world)).collect(),
        arc_limit_ms: arcs.iter().map(|arc| arc.lane.limit_ms).collect(),
        arc_lanes: arcs.iter().map(|arc| arc.lane.lanes).collect(),
        arc_class: arcs.iter().map(|arc| arc.edge.class).collect(),
        arc_reverse: reverses(arcs),
        arc_name: arcs.iter().map(|arc| arc.edge.name).collect(),
        arc_from: froms,
        arc_to: tos,
        out_start,
        in_start,
        in_arcs,
        shape_start,
        shape,
        shape_along_m,
        names: draft.names.clone(),
    }
}

/// For each arc the one that comes from the same edge.
fn reverses(arcs: &[Arc<'_>]) -> Vec<u32> {
    let mut reverse = vec![NONE; arcs.len()];
    let mut by_edge =
        arcs.iter().enumerate().map(|(at, arc)| (std::ptr::from_ref(arc.edge), at)).collect::<Vec<_>>();
    by_edge.sort_unstable();
    for pair in by_edge.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        reverse[pair[0].1] = index(pair[1].1);
        reverse[pair[1].1] = index(pair[0].1);
    }
    reverse
}

/// Arcs by one of their ends, ascending within each: where each node's begin, and the arcs.
fn by_node(nodes_count: usize, ends: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut start = vec![0; nodes_count + 1];
    for end in ends {
        start[*end as usize + 1] += 1;
    }
    for node in 0..nodes_count {
        start[node + 1] += start[node];
    }
    let mut next = start.clone();
    let mut arcs = vec![0; ends.len()];
    for (arc, end) in ends.iter().enumerate() {
        let slot = &mut next[*end as usize];
        arcs[*slot as usize] = index(arc);
        *slot += 1;
    }
    (start, arcs)
}

/// How far along each point of a line is, in metres.
pub(crate) fn along_m(world: World, shape: &[[f64; 2]]) -> Vec<f64> {
    let mut sum_m = 0.0;
    let mut along = Vec::with_capacity(shape.len());
    for (at, point) in shape.iter().enumerate() {
        let ends = at
            .checked_sub(1)
            .and_then(|before| world.position(&shape[before]).ok().zip(world.position(point).ok()));
        sum_m += ends.map_or(0.0, |(begin, end)| world.distance_m(&begin, &end));
        along.push(sum_m);
    }
    along
}

/// Which nodes belong to the largest strongly connected part (the first of these where two are as large).
///
/// Source: S. R. Kosaraju's two passes, after A. Aho, J. Hopcroft, J. Ullman, Data Structures and Algorithms, 1983, section 6.7:
/// nodes in the order in which a depth-first search leaves them, then, latest first, who reaches each. Stacks of our own, for
/// streets are long.
fn largest_part(nodes_count: usize, ends: &[(u32, u32)]) -> Vec<bool> {
    let (froms, tos): (Vec<u32>, Vec<u32>) = ends.iter().copied().unzip();
    let (out_start, out_arcs) = by_node(nodes_count, &froms);
    let (in_start, in_arcs) = by_node(nodes_count, &tos);
    let mut left = Vec::with_capacity(nodes_count);
    let mut is_seen = vec![false; nodes_count];
    for root in 0..nodes_count {
        let mut stack = Vec::new();
        if !std::mem::replace(&mut is_seen[root], true) {
            stack.push((root, out_start[root]));
        }
        while let Some((node, next)) = stack.last_mut() {
            if *next == out_start[*node + 1] {
                left.push(*node);
                stack.pop();
                continue;
            }
            let to = tos[out_arcs[*next as usize] as usize] as usize;
            *next += 1;
            if !std::mem::replace(&mut is_seen[to], true) {
                stack.push((to, out_start[to]));
            }
        }
    }
    let mut part = vec![NONE; nodes_count];
    let mut sizes = Vec::new();
    for root in left.into_iter().rev() {
        if part[root] != NONE {
            continue;
        }
        let this = index(sizes.len());
        let mut size = 0_usize;
        let mut stack = vec![root];
        part[root] = this;
        while let Some(node) = stack.pop() {
            size += 1;
            for arc in &in_arcs[in_start[node] as usize..in_start[node + 1] as usize] {
                let from = froms[*arc as usize] as usize;
                if part[from] == NONE {
                    part[from] = this;
                    stack.push(from);
                }
            }
        }
        sizes.push(size);
    }
    let largest = (0..sizes.len()).rev().max_by_key(|part| sizes[*part]).map_or(NONE, index);
    part.into_iter().map(|part| part == largest).collect()
}

/// A count that was checked against [`MAX`].
#[expect(clippy::cast_possible_truncation, reason = "`into_network` refuses what does not fit")]
fn index(count: usize) -> u32 {
    count as u32
}
