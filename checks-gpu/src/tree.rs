//! The runtime tree of an evaluation: where the copies of each c-unit are in memory.

use kernels::checks as k;

use crate::compile::Unit;

/// Units as the device gets them, with the sizes of this evaluation.
pub(crate) struct Tree {
    pub(crate) units: Vec<k::Unit>,
    /// Nodes in all.
    pub(crate) size: usize,
}

impl Tree {
    /// Lays the tree out for sets of these sizes; `None` where it has more than `max` nodes.
    pub(crate) fn new(units: &[Unit], counts: &[usize], max: usize) -> Option<Self> {
        let count_of = |unit: &Unit, at: usize| counts[unit.fixed.nodes[at].first as usize] as u64;
        // Equation 2, `branchSize`, of the root of each unit.
        let mut sizes = vec![0_u64; units.len()];
        for (number, unit) in units.iter().enumerate().rev() {
            let below = unit.below.iter().map(|&(at, below)| count_of(unit, at).saturating_mul(sizes[below]));
            sizes[number] = below.fold(u64::from(unit.fixed.nodes_count), u64::saturating_add);
        }
        let size = usize::try_from(sizes[0]).ok().filter(|size| *size <= max)?;
        let mut laid: Vec<k::Unit> = units.iter().map(|unit| unit.fixed).collect();
        laid[0].copies = 1;
        // All that follows is within `size` where there are copies, and without a use where there are none.
        #[expect(clippy::cast_possible_truncation, reason = "as it says above")]
        for (number, unit) in units.iter().enumerate() {
            let mut origin = u64::from(unit.fixed.nodes_count);
            for &(at, below) in &unit.below {
                let count = count_of(unit, at);
                let own = laid[number];
                let node = &mut laid[number].nodes[at];
                (node.count, node.origin, node.stride) = (count as u32, origin as u32, sizes[below] as u32);
                let lower = &mut laid[below];
                let depth = own.depth as usize;
                lower.count[..depth].copy_from_slice(&own.count[..depth]);
                lower.stride[..depth].copy_from_slice(&own.stride[..depth]);
                (lower.count[depth], lower.stride[depth]) = (count as u32, sizes[below] as u32);
                lower.origin = own.origin.wrapping_add(origin as u32);
                // Algorithm 3, `ComputeCCopyNum`.
                lower.copies = if own.copies == 0 || count == 0 { 0 } else { own.copies * count as u32 };
                origin = origin.saturating_add(count.saturating_mul(sizes[below]));
            }
        }
        Some(Self { units: laid, size })
    }

    /// Branches of a copy by the depth of their variables, and the place of its root: Algorithm 4, as the device does it.
    pub(crate) fn place(&self, unit: usize, mut copy: u32) -> (Vec<u32>, u32) {
        let unit = &self.units[unit];
        let depth = unit.depth as usize;
        let mut branches = vec![0; depth];
        let mut place = unit.origin;
        for at in (0..depth).rev() {
            branches[at] = copy % unit.count[at];
            copy /= unit.count[at];
            place += branches[at] * unit.stride[at];
        }
        (branches, place)
    }
}
