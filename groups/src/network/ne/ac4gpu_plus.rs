//! Algorithm 4, AC4GPU+: counted once, and then kept.

use super::{Model, Run};

/// A node that may lose its last support in two constraints at once (the paper's Fig. 3) is deleted once: a slot takes it only if it is
/// still there, which in a kernel is an exchange.
struct Deletions<'a> {
    slots_node: &'a [u32],
    x: &'a [u32],
    e: &'a mut [u8],
    domain: &'a mut [u32],
}

impl Deletions<'_> {
    /// Deletes the nodes that a counter says have no support. How many, or `None` as soon as a variable has none left.
    fn delete(&mut self, counter: &[u32]) -> Option<usize> {
        let mut deleted = 0;
        for (counter, node) in counter.iter().zip(self.slots_node) {
            let node = *node as usize;
            if *counter == 0 && std::mem::take(&mut self.e[node]) == 1 {
                deleted += 1;
                let domain = &mut self.domain[self.x[node] as usize];
                *domain -= 1;
                if *domain == 0 {
                    return None;
                }
            }
        }
        Some(deleted)
    }
}

impl Model {
    /// The counters of each edge, `m0` and `m1`.
    fn counters_of_edges(&self) -> (Vec<u32>, Vec<u32>) {
        let edges_count = self.edges.s.len();
        let (mut m0, mut m1) = (vec![0; edges_count], vec![0; edges_count]);
        for (constraint, edges) in self.edges_at.windows(2).enumerate() {
            let slot = self.slots_at[constraint];
            for edge in edges[0] as usize..edges[1] as usize {
                // The slots of x0's values begin the constraint, those of x1's end it.
                let v0 = self.nodes.v[self.edges.node0[edge] as usize];
                let v1 = self.nodes.v[self.edges.node1[edge] as usize];
                let x0 = self.nodes.x[self.edges.node0[edge] as usize] as usize;
                let size0 = self.nodes_at[x0 + 1] - self.nodes_at[x0];
                (m0[edge], m1[edge]) = (slot + v0, slot + size0 + v1);
            }
        }
        (m0, m1)
    }

    /// Makes the model arc consistent: counts the supports once, deletes the nodes without, and then in each loop takes the edges of deleted
    /// nodes from the counters, until a loop deletes nothing. Takes time with the edges for each loop.
    #[must_use]
    pub fn ac4gpu_plus(mut self) -> Run {
        let (m0, m1) = self.counters_of_edges();
        let mut counter = vec![0; self.slots.node.len()];
        self.reduce_edges(&mut counter);
        let mut domain = vec![0; self.nodes_at.len() - 1];
        self.reduce_nodes(&mut domain);
        let mut loops = 1;
        if domain.contains(&0) {
            return Run { nodes: self.nodes, is_consistent: false, loops };
        }
        loop {
            let mut deletions = Deletions {
                slots_node: &self.slots.node,
                x: &self.nodes.x,
                e: &mut self.nodes.e,
                domain: &mut domain,
            };
            let is_consistent = match deletions.delete(&counter) {
                None => false,
                Some(0) => true,
                Some(_) => {
                    loops += 1;
                    self.decrement(&m0, &m1, &mut counter);
                    continue;
                }
            };
            return Run { nodes: self.nodes, is_consistent, loops };
        }
    }

    /// Clears the edges of deleted nodes, and takes each from its two counters.
    fn decrement(&mut self, m0: &[u32], m1: &[u32], counter: &mut [u32]) {
        for (edge, s) in self.edges.s.iter_mut().enumerate() {
            let node0 = self.edges.node0[edge] as usize;
            let node1 = self.edges.node1[edge] as usize;
            if *s == 1 && self.nodes.e[node0] & self.nodes.e[node1] == 0 {
                *s = 0;
                counter[m0[edge] as usize] -= 1;
                counter[m1[edge] as usize] -= 1;
            }
        }
    }
}
