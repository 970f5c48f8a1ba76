//! Objects, the candidates that they are, and which of these support each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use matcher::predicate::Subject;
use matcher::predicate::index::{Hashed, Index, Probe, Slot};

use super::definition::{Cast, Definition, ROLES_MAX};
use super::plan::{Arm, Plan};
use super::{Bounds, Candidate, Overflow, RoleSet};

/// Number of an object, given out again after it was removed.
pub(super) type Id = u32;

/// A slot of no object.
const VACANT: Id = Id::MAX;

/// What a change may still do.
#[derive(Debug)]
pub(super) struct Budget {
    bounds: Bounds,
    looks: usize,
}

/// An object that is there.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) name: Arc<str>,
    pub(super) candidate: Candidate,
    pub(super) roles: RoleSet,
    /// Its slot in each of its roles.
    pub(super) slots: [Slot; ROLES_MAX],
    /// Groups that are kept and have it.
    pub(super) kept: u32,
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: Vec<Option<Object>>,
    free: Vec<Id>,
    by_name: HashMap<Arc<str>, Id, RandomState>,
}

/// The candidates of a role, by their slots.
#[derive(Debug)]
pub(super) struct Pool {
    objects: Vec<Id>,
    free: Vec<Slot>,
    /// Whether the conditions over the role alone hold. The others have no partners.
    fits: Vec<bool>,
    pub(super) is_consistent: Vec<bool>,
    /// One for each arm, slot by slot.
    links: Vec<Link>,
    arms: usize,
    indices: Vec<Index>,
    pub(super) by_name: BTreeMap<Arc<str>, Slot>,
    pub(super) consistent: usize,
}

/// Partners of a candidate in another role.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    /// Ascending.
    pub(super) partners: Vec<Slot>,
    /// How many of them are consistent.
    pub(super) consistent: u32,
}

/// Candidates of all roles.
#[derive(Debug)]
pub(super) struct Candidates {
    pub(super) definition: Arc<Definition>,
    pub(super) plan: Plan,
    pub(super) objects: Objects,
    pub(super) pools: Vec<Pool>,
    pub(super) count: usize,
    /// Pairs of partners.
    pairs: usize,
    /// Candidates that may be consistent from now on, and those that may be so no more.
    pub(super) gained: Vec<(usize, Slot)>,
    pub(super) lost: Vec<(usize, Slot)>,
    scratch: Scratch,
}

/// Memory that is used again.
#[derive(Debug, Default)]
struct Scratch {
    keys: [Vec<Hashed>; 2],
    partners: Vec<Slot>,
    came: Vec<Slot>,
    left: Vec<Slot>,
}

impl Budget {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, looks: 0 }
    }

    /// For what has been done before.
    pub(super) fn unbounded() -> Self {
        Self::new(Bounds::NONE)
    }

    pub(super) fn look(&mut self) -> Result<(), Overflow> {
        self.looks += 1;
        if self.looks > self.bounds.looks_max {
            return Err(Overflow::Looks { max: self.bounds.looks_max });
        }
        Ok(())
    }
}

impl Object {
    pub(super) fn subject(&self, id: Id) -> Subject<'_> {
        let Candidate { event, time_ms } = &self.candidate;
        Subject { event, time_ms: *time_ms, identity: u64::from(id) }
    }
}

impl Objects {
    pub(super) fn find(&self, name: &str) -> Option<Id> {
        self.by_name.get(name).copied()
    }

    pub(super) fn get(&self, id: Id) -> &Object {
        self.all[id as usize].as_ref().expect("an id is given back when nothing has it any more")
    }

    pub(super) fn get_mut(&mut self, id: Id) -> &mut Object {
        self.all[id as usize].as_mut().expect("an id is given back when nothing has it any more")
    }

    pub(super) fn name(&self, id: Id) -> &Arc<str> {
        &self.get(id).name
    }

    /// Adds an object without roles.
    pub(super) fn add(&mut self, name: &str, candidate: Candidate) -> Id {
        let name: Arc<str> = name.into();
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            Id::try_from(self.all.len() - 1).expect("four thousand million objects do not fit into memory")
        });
        self.by_name.insert(name.clone(), id);
        let object = Object { name, candidate, roles: RoleSet::EMPTY, slots: [0; ROLES_MAX], kept: 0 };
        self.all[id as usize] = Some(object);
        id
    }

    /// Forgets an object without roles.
    pub(super) fn remove(&mut self, id: Id) {
        if let Some(object) = self.all[id as usize].take() {
            self.by_name.remove(&object.name);
            self.free.push(id);
        }
    }

    fn bytes(&self) -> usize {
        let of_object =
            |object: &Object| 2 * size_of::<usize>() + object.name.len() + object.candidate.event.bytes();
        self.all.iter().flatten().map(of_object).sum::<usize>()
            + self.all.capacity() * size_of::<Option<Object>>()
            + self.free.capacity() * size_of::<Id>()
            + self.by_name.capacity() * size_of::<(Arc<str>, Id)>()
    }
}

impl Pool {
    pub(super) fn object(&self, slot: Slot) -> Id {
        self.objects[slot as usize]
    }

    pub(super) fn fits(&self, slot: Slot) -> bool {
        self.fits[slot as usize]
    }

    pub(super) fn is_consistent(&self, slot: Slot) -> bool {
        self.is_consistent[slot as usize]
    }

    pub(super) fn link(&self, slot: Slot, arm: usize) -> &Link {
        &self.links[slot as usize * self.arms + arm]
    }

    pub(super) fn link_mut(&mut self, slot: Slot, arm: usize) -> &mut Link {
        &mut self.links[slot as usize * self.arms + arm]
    }

    pub(super) fn links(&self, slot: Slot) -> &[Link] {
        &self.links[slot as usize * self.arms..][..self.arms]
    }

    /// Slots of those that fit.
    pub(super) fn occupied(&self) -> impl Iterator<Item = Slot> {
        (0..).zip(&self.objects).filter(|(_, id)| **id != VACANT).map(|(slot, _)| slot)
    }

    pub(super) fn fitting(&self) -> impl Iterator<Item = Slot> {
        (0..).zip(&self.fits).filter(|(_, fits)| **fits).map(|(slot, _)| slot)
    }

    fn add(&mut self, id: Id) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.objects.push(VACANT);
            self.fits.push(false);
            self.is_consistent.push(false);
            self.links.resize_with(self.links.len() + self.arms, Link::default);
            Slot::try_from(self.objects.len() - 1).expect("there are no more slots than objects")
        });
        self.objects[slot as usize] = id;
        slot
    }

    fn remove(&mut self, slot: Slot) {
        self.objects[slot as usize] = VACANT;
        self.free.push(slot);
    }

    fn bytes(&self) -> usize {
        let partners: usize =
            self.links.iter().map(|link| link.partners.capacity() * size_of::<Slot>()).sum();
        partners
            + self.links.capacity() * size_of::<Link>()
            + self.objects.capacity() * (size_of::<Id>() + 2)
            + self.free.capacity() * size_of::<Slot>()
            + self.indices.iter().map(Index::bytes).sum::<usize>()
            // Nodes of the tree are about three quarters full.
            + self.by_name.len() * size_of::<(Arc<str>, Slot)>() * 4 / 3
    }
}

impl Candidates {
    pub(super) fn new(definition: Arc<Definition>) -> Self {
        let plan = Plan::new(&definition);
        let pool = |role: &super::plan::Role| Pool {
            objects: Vec::new(),
            free: Vec::new(),
            fits: Vec::new(),
            is_consistent: Vec::new(),
            links: Vec::new(),
            arms: role.arms.len(),
            indices: role.keys.iter().cloned().map(Index::new).collect(),
            by_name: BTreeMap::new(),
            consistent: 0,
        };
        let pools = plan.roles.iter().map(pool).collect();
        Self {
            definition,
            plan,
            objects: Objects::default(),
            pools,
            count: 0,
            pairs: 0,
            gained: Vec::new(),
            lost: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Makes an object that is there a candidate of other roles by another event. After an error it is so in part; another call makes it
    /// whole.
    pub(super) fn replace(
        &mut self,
        id: Id,
        roles: RoleSet,
        candidate: Candidate,
        budget: &mut Budget,
    ) -> Result<(), Overflow> {
        let before = self.objects.get(id).roles;
        let count = self.count + roles.iter().count() - before.iter().count();
        if count > self.count.max(budget.bounds.candidates_max) {
            return Err(Overflow::Candidates { max: budget.bounds.candidates_max });
        }
        self.count = count;
        self.index(id, false);
        let object = self.objects.get_mut(id);
        object.candidate = candidate;
        for role in before.iter().filter(|role| !roles.has(*role)) {
            self.leave(id, role);
        }
        for role in roles.iter() {
            self.enter(id, role, !before.has(role));
        }
        self.objects.get_mut(id).roles = roles;
        self.index(id, true);
        let linked = roles.iter().try_for_each(|role| self.link(id, role, budget));
        self.settle();
        linked
    }

    /// Puts an object into the indices of its roles, or takes it out.
    fn index(&mut self, id: Id, is_in: bool) {
        let object = self.objects.get(id);
        let subject = object.subject(id);
        for role in object.roles.iter() {
            let (slot, pool) = (object.slots[role], &mut self.pools[role]);
            if !pool.fits(slot) {
                continue;
            }
            for index in &mut pool.indices {
                if is_in {
                    index.insert(&subject, slot);
                } else {
                    index.remove(&subject, slot);
                }
            }
        }
    }

    fn enter(&mut self, id: Id, role: usize, is_new: bool) {
        let object = self.objects.get_mut(id);
        let pool = &mut self.pools[role];
        if is_new {
            object.slots[role] = pool.add(id);
            pool.by_name.insert(object.name.clone(), object.slots[role]);
        }
        let slot = object.slots[role];
        let mut cast: Cast<'_> = [None; ROLES_MAX];
        cast[role] = Some(object.subject(id));
        let own = &self.plan.roles[role].own;
        pool.fits[slot as usize] = own.iter().all(|idx| self.definition.conditions[*idx].holds(&cast));
        if pool.is_consistent(slot) {
            self.lost.push((role, slot));
        } else {
            self.gained.push((role, slot));
        }
    }

    fn leave(&mut self, id: Id, role: usize) {
        let object = self.objects.get(id);
        let (slot, name) = (object.slots[role], object.name.clone());
        let pool = &mut self.pools[role];
        pool.fits[slot as usize] = false;
        pool.by_name.remove(&name);
        for arm in 0..pool.arms {
            self.scratch.partners.clear();
            self.relink(role, slot, arm);
        }
        let pool = &mut self.pools[role];
        if std::mem::take(&mut pool.is_consistent[slot as usize]) {
            pool.consistent -= 1;
        }
        pool.remove(slot);
    }

    /// Finds the partners of an object in a role.
    fn link(&mut self, id: Id, role: usize, budget: &mut Budget) -> Result<(), Overflow> {
        let slot = self.objects.get(id).slots[role];
        for arm in 0..self.pools[role].arms {
            let mut scratch = std::mem::take(&mut self.scratch);
            let found = self.find(id, role, arm, &mut scratch, budget);
            self.scratch = scratch;
            found?;
            let before = self.pools[role].link(slot, arm).partners.len();
            let pairs = self.pairs + self.scratch.partners.len() - before;
            if pairs > self.pairs.max(budget.bounds.pairs_max) {
                return Err(Overflow::Pairs { max: budget.bounds.pairs_max });
            }
            self.relink(role, slot, arm);
        }
        Ok(())
    }

    /// Looks up candidates of another role for which all conditions over both roles are true.
    fn find(
        &self,
        id: Id,
        role: usize,
        arm: usize,
        scratch: &mut Scratch,
        budget: &mut Budget,
    ) -> Result<(), Overflow> {
        let Scratch { keys: [keys, best], partners, .. } = scratch;
        partners.clear();
        let object = self.objects.get(id);
        if !self.pools[role].fits(object.slots[role]) {
            return Ok(());
        }
        let arm = &self.plan.roles[role].arms[arm];
        let pool = &self.pools[arm.other];
        let mut cast: Cast<'_> = [None; ROLES_MAX];
        let subject = object.subject(id);
        cast[role] = Some(subject);
        let mut look = |slot: Slot| {
            budget.look()?;
            let other = pool.object(slot);
            if other != id && self.fit(arm, other, &mut cast) {
                partners.push(slot);
            }
            Ok(())
        };
        match fewest(&pool.indices, &arm.probes, &subject, keys, best) {
            Some(index) => best.iter().flat_map(|key| index.bucket(*key)).try_for_each(&mut look)?,
            None => pool.fitting().try_for_each(&mut look)?,
        }
        // Arrays may be in several buckets.
        partners.sort_unstable();
        partners.dedup();
        Ok(())
    }

    /// Whether all conditions of an arm are true with an object in its role.
    fn fit<'a>(&'a self, arm: &Arm, other: Id, cast: &mut Cast<'a>) -> bool {
        cast[arm.other] = Some(self.objects.get(other).subject(other));
        arm.conditions.iter().all(|idx| self.definition.conditions[*idx].joins(cast))
    }

    /// Makes what was found the partners of a candidate, on both sides.
    fn relink(&mut self, role: usize, slot: Slot, arm_idx: usize) {
        let arm = &self.plan.roles[role].arms[arm_idx];
        let Scratch { partners, came, left, .. } = &mut self.scratch;
        let is_consistent = self.pools[role].is_consistent(slot);
        let link = self.pools[role].link_mut(slot, arm_idx);
        differences(&link.partners, partners, came, left);
        if came.is_empty() && left.is_empty() {
            return;
        }
        self.pairs = self.pairs + came.len() - left.len();
        link.partners.clear();
        link.partners.extend_from_slice(partners);
        let other = &mut self.pools[arm.other];
        let change = u32::from(is_consistent);
        for &partner in &*left {
            let is_consistent = other.is_consistent(partner);
            let link = other.link_mut(partner, arm.back);
            if let Ok(place) = link.partners.binary_search(&slot) {
                link.partners.remove(place);
            }
            link.consistent -= change;
            if link.consistent == 0 && is_consistent {
                self.lost.push((arm.other, partner));
            }
        }
        for &partner in &*came {
            let is_consistent = other.is_consistent(partner);
            let link = other.link_mut(partner, arm.back);
            if let Err(place) = link.partners.binary_search(&slot) {
                link.partners.insert(place, slot);
            }
            link.consistent += change;
            if !is_consistent {
                self.gained.push((arm.other, partner));
            }
        }
        let consistent = |slots: &[Slot]| slots.iter().filter(|slot| other.is_consistent(**slot)).count();
        let consistent = u32::try_from(consistent(partners)).expect("slots are u32");
        self.pools[role].link_mut(slot, arm_idx).consistent = consistent;
        // An object that came or moved is looked at again in any case.
    }

    pub(super) fn bytes(&self) -> usize {
        self.objects.bytes() + self.pools.iter().map(Pool::bytes).sum::<usize>()
    }
}

/// The index that has the fewest candidates for an event, and their keys in `best`.
fn fewest<'a>(
    indices: &'a [Index],
    probes: &[(usize, Probe)],
    subject: &Subject<'_>,
    keys: &mut Vec<Hashed>,
    best: &mut Vec<Hashed>,
) -> Option<&'a Index> {
    let mut found: Option<(usize, &Index)> = None;
    for (idx, probe) in probes {
        let index = &indices[*idx];
        keys.clear();
        if !index.look_up(probe, subject, keys) {
            continue;
        }
        // With one index there is nothing to compare.
        let count = if probes.len() == 1 { 0 } else { keys.iter().map(|key| index.count(*key)).sum() };
        if found.is_none_or(|(fewest, _)| count < fewest) {
            found = Some((count, index));
            std::mem::swap(keys, best);
        }
    }
    found.map(|(_, index)| index)
}

/// What an ascending list has that another has not, both ways.
fn differences(before: &[Slot], now: &[Slot], came: &mut Vec<Slot>, left: &mut Vec<Slot>) {
    came.clear();
    left.clear();
    let (mut before, mut now) = (before.iter().copied().peekable(), now.iter().copied().peekable());
    loop {
        match (before.peek(), now.peek()) {
            (None, None) => return,
            (Some(a), Some(b)) if a == b => {
                before.next();
                now.next();
            }
            (Some(a), other) if other.is_none_or(|b| a < b) => left.extend(before.next()),
            _ => came.extend(now.next()),
        }
    }
}
