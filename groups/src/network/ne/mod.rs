//! The N-E model of a network and the algorithms over it, as flat loops over arrays: one pass of a loop is one thread of a kernel.
//!
//! Source: Li, Li and Li, "A constraint network model and parallel arc consistency algorithms based on GPU", Journal of Computer Research
//! and Development 54 (2017). Here they run one step after another on the processor. Two slips of the listings are mended, and the key of
//! a counter is another one:
//!
//! - Procedure 4 (`BuildEdges`) multiplies the block by |dom(x0)|. The edges of a value of x0 are as many as x1 has values, so that the
//!   stride has to be |dom(x1)|; the two are equal where the domains are.
//! - Line 3 of Algorithm 4 returns true where a counter is zero. It has to be where none is: then nothing has to be deleted.
//! - A counter is of a constraint, a side and a value, and not of `(xi, vi, xj)`: two constraints over the same variables count apart.
//!
//! Where the start is restricted, a node that is not left does not exist, and an edge to it is not satisfied, from the beginning.

mod ac4gpu;
mod ac4gpu_plus;

use super::{Domains, Network, Outcome, number};

/// All values of all variables: `⟨x, v, e⟩`.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// The variable.
    pub x: Vec<u32>,
    /// The place of the value in its domain.
    pub v: Vec<u32>,
    /// 1 if the value is left, else 0.
    pub e: Vec<u8>,
}

/// All pairs of values of all constraints: `⟨x0, v0, x1, v1, s⟩`, with the two nodes for variables and values.
#[derive(Clone, Debug, Default)]
pub struct Edges {
    /// The node of `(x0, v0)`.
    pub node0: Vec<u32>,
    /// The node of `(x1, v1)`.
    pub node1: Vec<u32>,
    /// 1 if the constraint allows the pair and both are left, else 0.
    pub s: Vec<u8>,
}

/// Where the counters come from: of each constraint first one for each value of x0, then one for each value of x1. The edges of a
/// counter are `count`, from `edge` on, `stride` apart.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    /// The node that is counted for.
    pub node: Vec<u32>,
    /// Its first edge.
    pub edge: Vec<u32>,
    /// From one of its edges to the next.
    pub stride: Vec<u32>,
    /// How many edges it has.
    pub count: Vec<u32>,
}

/// A network as nodes and edges.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The first node of each variable, and an end: `on`.
    pub nodes_at: Vec<u32>,
    /// The first edge of each constraint, and an end: `oe`.
    pub edges_at: Vec<u32>,
    /// The first slot of each constraint, and an end.
    pub slots_at: Vec<u32>,
    /// The nodes.
    pub nodes: Nodes,
    /// The edges.
    pub edges: Edges,
    /// The counters' places.
    pub slots: Slots,
}

/// The result of an algorithm over the model.
#[derive(Clone, Debug)]
pub struct Run {
    /// The nodes at the end.
    pub nodes: Nodes,
    /// Whether each variable has a node left.
    pub is_consistent: bool,
    /// The loops, the last included.
    pub loops: u64,
}

impl Run {
    /// The result in terms of the network that the model was built from.
    #[must_use]
    pub fn of(self, network: &Network) -> Outcome {
        let Self { nodes, is_consistent, loops } = self;
        let domains = is_consistent.then(|| {
            let mut words = vec![0; network.unbarred().len()];
            for ((x, v), e) in nodes.x.into_iter().zip(nodes.v).zip(nodes.e) {
                words[network.words(x).start + v as usize / 64] |= u64::from(e) << (v % 64);
            }
            Domains { words }
        });
        Outcome { domains, loops }
    }
}

/// Sums of what comes before, and of all: an exclusive scan and its end.
fn exclusive_scan(lengths: &[u32]) -> Vec<u32> {
    let mut sums = Vec::with_capacity(lengths.len() + 1);
    let mut sum = 0;
    for length in lengths {
        sums.push(sum);
        sum += length;
    }
    sums.push(sum);
    sums
}

impl Model {
    /// Algorithm 2, `BuildNE`: lengths, their scans, then nodes and edges. Takes time and memory with the pairs of values of all
    /// constraints, 17 bytes each with `m0` and `m1` of AC4GPU+.
    #[must_use]
    pub fn build(network: &Network, domains: &Domains) -> Self {
        let sizes: Vec<_> = (0..number(network.variables_count())).map(|x| network.size(x)).collect();
        let scopes = || network.constraints().iter().map(|c| c.scope.map(|x| sizes[x as usize]));
        let edges_length: Vec<_> = scopes().map(|[size0, size1]| size0 * size1).collect();
        let slots_length: Vec<_> = scopes().map(|[size0, size1]| size0 + size1).collect();
        let mut model = Self {
            nodes_at: exclusive_scan(&sizes),
            edges_at: exclusive_scan(&edges_length),
            slots_at: exclusive_scan(&slots_length),
            ..Self::default()
        };
        model.build_nodes(network, domains);
        model.build_edges(network);
        model.build_slots(network);
        model
    }

    /// Procedures 5 and 6, `BuildNodes`.
    fn build_nodes(&mut self, network: &Network, domains: &Domains) {
        let nodes_count = network.nodes_count();
        let Nodes { x: xs, v: vs, e: es } = &mut self.nodes;
        (*xs, *vs, *es) = (vec![0; nodes_count], vec![0; nodes_count], vec![0; nodes_count]);
        for x in 0..number(network.variables_count()) {
            let start_index = self.nodes_at[x as usize];
            let words = network.words(x);
            let (left, unbarred) = (&domains.words[words.clone()], &network.unbarred()[words]);
            for v in 0..network.size(x) {
                let index = (start_index + v) as usize;
                let (word, bit) = (v as usize / 64, v % 64);
                (xs[index], vs[index]) = (x, v);
                es[index] = u8::from((left[word] & unbarred[word]) >> bit & 1 != 0);
            }
        }
    }

    /// Procedures 3 and 4, `BuildEdges`, with the stride |dom(x1)|.
    fn build_edges(&mut self, network: &Network) {
        let edges_count = self.edges_at.last().map_or(0, |end| *end as usize);
        let Edges { node0, node1, s } = &mut self.edges;
        (*node0, *node1, *s) = (vec![0; edges_count], vec![0; edges_count], vec![0; edges_count]);
        for (c, constraint) in network.constraints().iter().enumerate() {
            let start_index = self.edges_at[c];
            let [x0, x1] = constraint.scope;
            let (on0, on1) = (network.first_node(x0), network.first_node(x1));
            let half = network.matrix(constraint).halves[0];
            let size1 = network.size(x1);
            for v0 in 0..network.size(x0) {
                let row = network.row(half, v0);
                let is_left0 = self.nodes.e[(on0 + v0) as usize];
                for v1 in 0..size1 {
                    let index = (start_index + v1 + size1 * v0) as usize;
                    let is_left1 = self.nodes.e[(on1 + v1) as usize];
                    let is_allowed = row[v1 as usize / 64] >> (v1 % 64) & 1 != 0;
                    (node0[index], node1[index]) = (on0 + v0, on1 + v1);
                    s[index] = u8::from(is_allowed) & is_left0 & is_left1;
                }
            }
        }
    }

    fn build_slots(&mut self, network: &Network) {
        let slots_count = self.slots_at.last().map_or(0, |end| *end as usize);
        let Slots { node, edge, stride, count } = &mut self.slots;
        for array in [&mut *node, &mut *edge, &mut *stride, &mut *count] {
            *array = vec![0; slots_count];
        }
        for (c, constraint) in network.constraints().iter().enumerate() {
            let [on0, on1] = constraint.scope.map(|x| network.first_node(x));
            let [size0, size1] = constraint.scope.map(|x| network.size(x));
            let (slot, first) = (self.slots_at[c], self.edges_at[c]);
            for v0 in 0..size0 {
                let index = (slot + v0) as usize;
                (node[index], edge[index], stride[index], count[index]) =
                    (on0 + v0, first + size1 * v0, 1, size1);
            }
            for v1 in 0..size1 {
                let index = (slot + size0 + v1) as usize;
                (node[index], edge[index], stride[index], count[index]) =
                    (on1 + v1, first + v1, size1, size0);
            }
        }
    }

    /// Reduces `s` by the keys `(x0, v0, c)` and `(x1, v1, c)`.
    fn reduce_edges(&self, counter: &mut [u32]) {
        let Slots { edge, stride, count, .. } = &self.slots;
        for (slot, counter) in counter.iter_mut().enumerate() {
            let edges = (edge[slot] as usize..).step_by(stride[slot] as usize).take(count[slot] as usize);
            *counter = edges.map(|edge| u32::from(self.edges.s[edge])).sum();
        }
    }

    /// Reduces `e` by the key `x`.
    fn reduce_nodes(&self, domain: &mut [u32]) {
        for (x, domain) in domain.iter_mut().enumerate() {
            let nodes = self.nodes_at[x] as usize..self.nodes_at[x + 1] as usize;
            *domain = self.nodes.e[nodes].iter().map(|e| u32::from(*e)).sum();
        }
    }
}
