//! Arc consistency that is kept while candidates come, move and leave.
//!
//! A candidate is *consistent* if it has a consistent partner in each role that shares a condition with its own. Of the sets of which this can
//! be said the largest is meant, for candidates may hold each other up in circles. As in AC4 (Mohr and Henderson, "Arc and path consistency
//! revisited", 1986) each candidate counts its consistent partners in each role, so that a loss costs only the counts of those that had it
//! as a partner.
//!
//! AC4 takes away and never gives back. What a change gives back is found in two steps:
//!
//! 1. Candidates that came or gained a partner and are not consistent are *taken to be*, and so are, in turn, their partners that are not.
//!    Candidates with a role in which they have no partner at all are left out, for they cannot be.
//! 2. Candidates without a consistent partner in some role are taken away again until there is none, as in AC4.
//!
//! The second step ends with the largest consistent set within the candidates that it begins with: in any such set none is the first to
//! lose the last partner. It begins with enough. Let G be the largest consistent set after the change, C the one before it, and K the
//! candidates in G that are neither in C nor taken to be by the first step. None of K gained a partner, or it would be among the first of
//! that step, and none has a partner that the step reached, or it would be reached, too. So the partners in G of K are in C or in K, and
//! they were partners before. Then K and C together were consistent before the change. As C was the largest such set, K is empty.
//!
//! Cost: partners of those that are taken to be or taken away; at worst all pairs twice, where a large part holds itself up but for one
//! partner that comes and goes.

use matcher::predicate::index::Slot;

use super::candidates::Candidates;

impl Candidates {
    /// Brings consistency in step with the partners.
    pub(super) fn settle(&mut self) {
        while let Some((role, slot)) = self.gained.pop() {
            let pool = &mut self.pools[role];
            let may_be = pool.fits(slot) && pool.links(slot).iter().all(|link| !link.partners.is_empty());
            if may_be && !pool.is_consistent(slot) {
                pool.is_consistent[slot as usize] = true;
                pool.consistent += 1;
                self.lost.push((role, slot));
                self.tell_partners(role, slot, true);
            }
        }
        while let Some((role, slot)) = self.lost.pop() {
            let pool = &mut self.pools[role];
            let stays = pool.fits(slot) && pool.links(slot).iter().all(|link| link.consistent > 0);
            if !stays && pool.is_consistent(slot) {
                pool.is_consistent[slot as usize] = false;
                pool.consistent -= 1;
                self.tell_partners(role, slot, false);
            }
        }
    }

    /// Counts a candidate with its partners, or does so no more.
    fn tell_partners(&mut self, role: usize, slot: Slot, is_consistent: bool) {
        for (idx, arm) in self.plan.roles[role].arms.iter().enumerate() {
            let partners = std::mem::take(&mut self.pools[role].link_mut(slot, idx).partners);
            let other = &mut self.pools[arm.other];
            for &partner in &partners {
                let was_consistent = other.is_consistent(partner);
                let link = other.link_mut(partner, arm.back);
                if is_consistent {
                    link.consistent += 1;
                    if !was_consistent {
                        self.gained.push((arm.other, partner));
                    }
                } else {
                    link.consistent -= 1;
                    if link.consistent == 0 && was_consistent {
                        self.lost.push((arm.other, partner));
                    }
                }
            }
            self.pools[role].link_mut(slot, idx).partners = partners;
        }
    }
}
