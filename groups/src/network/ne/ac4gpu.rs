//! Algorithm 3, AC4GPU: everything is counted anew in each loop.

use super::{Model, Run};

impl Model {
    /// Makes the model arc consistent: counts the supports of each value in each constraint, deletes the nodes without, and then the
    /// edges of those, until no variable has fewer nodes than in the loop before. Takes time with the edges for each loop.
    #[must_use]
    pub fn ac4gpu(mut self) -> Run {
        let mut counter = vec![0; self.slots.node.len()];
        let mut domain = vec![0; self.nodes_at.len() - 1];
        self.reduce_nodes(&mut domain);
        let mut loops = 0;
        loop {
            loops += 1;
            self.reduce_edges(&mut counter);
            for (slot, counter) in counter.iter().enumerate() {
                if *counter == 0 {
                    self.nodes.e[self.slots.node[slot] as usize] = 0;
                }
            }
            self.clear_edges();
            let domain_before = domain.clone();
            self.reduce_nodes(&mut domain);
            if domain.contains(&0) {
                return Run { nodes: self.nodes, is_consistent: false, loops };
            }
            if domain == domain_before {
                return Run { nodes: self.nodes, is_consistent: true, loops };
            }
        }
    }

    /// Clears the edges of the nodes that are deleted.
    fn clear_edges(&mut self) {
        for (edge, s) in self.edges.s.iter_mut().enumerate() {
            let node0 = self.edges.node0[edge] as usize;
            let node1 = self.edges.node1[edge] as usize;
            *s &= self.nodes.e[node0] & self.nodes.e[node1];
        }
    }
}
