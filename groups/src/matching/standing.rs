//! Why a candidate is in a group or in none.

use super::candidates::{Candidates, Id};
use super::definition::{Cast, ROLES_MAX};
use super::plan::Arm;
use super::{Left, Partners, Standing};

impl Candidates {
    /// How an object stands in one of its roles.
    pub(super) fn standing(&self, id: Id, role: usize) -> Standing {
        let object = self.objects.get(id);
        let mut cast: Cast<'_> = [None; ROLES_MAX];
        cast[role] = Some(object.subject(id));
        let own = self.plan.roles[role].own.iter().copied();
        let mut failed: Vec<_> = own.filter(|idx| !self.definition.conditions[*idx].holds(&cast)).collect();
        failed.sort_unstable();
        Standing {
            role,
            failed,
            is_consistent: self.pools[role].is_consistent(object.slots[role]),
            partners: self.plan.roles[role].arms.iter().map(|arm| self.partners(id, arm, cast)).collect(),
        }
    }

    fn partners<'a>(&'a self, id: Id, arm: &Arm, mut cast: Cast<'a>) -> Partners {
        let pool = &self.pools[arm.other];
        let own = &self.plan.roles[arm.other].own;
        let conditions = own.iter().chain(&arm.conditions);
        let mut left: Vec<_> =
            conditions.map(|condition| Left { condition: *condition, alone: 0, together: 0 }).collect();
        left.sort_unstable_by_key(|left| left.condition);
        let (mut candidates, mut fitting, mut consistent) = (0, 0, 0);
        for slot in pool.occupied() {
            let other = pool.object(slot);
            if other == id {
                continue;
            }
            candidates += 1;
            cast[arm.other] = Some(self.objects.get(other).subject(other));
            let mut fits = true;
            for Left { condition, alone, together } in &mut left {
                let one = &self.definition.conditions[*condition];
                let holds = if own.contains(condition) { one.holds(&cast) } else { one.joins(&cast) };
                *alone += usize::from(holds);
                fits &= holds;
                *together += usize::from(fits);
            }
            fitting += usize::from(fits);
            consistent += usize::from(fits && pool.is_consistent(slot));
        }
        Partners { role: arm.other, candidates, left, fitting, consistent }
    }
}
