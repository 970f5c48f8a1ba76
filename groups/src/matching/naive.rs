//! The groups from scratch: the oracle of [`Matching`](super::Matching).

use std::collections::BTreeMap;
use std::sync::Arc;

use matcher::predicate::Subject;

use super::definition::{Cast, Definition, ROLES_MAX};
use super::{Candidate, Change, Count, Group, RoleSet};

/// Looks at everything at each change.
///
/// Cost: the product of the candidates of all roles.
#[derive(Clone, Debug)]
pub struct Naive {
    definition: Arc<Definition>,
    objects: BTreeMap<Arc<str>, (RoleSet, Candidate)>,
    told: Vec<Group>,
}

/// A candidate, and a number that its object has alone.
type Numbered<'a> = (&'a Arc<str>, Subject<'a>);

impl Naive {
    /// No candidates.
    #[must_use]
    pub fn new(definition: Arc<Definition>) -> Self {
        let mut naive = Self { definition, objects: BTreeMap::new(), told: Vec::new() };
        naive.told = naive.search();
        naive
    }

    /// Does what [`Matching::put`](super::Matching::put) does.
    pub fn put(&mut self, object: &str, roles: RoleSet, candidate: Candidate) -> Vec<Change> {
        let roles = roles.of_first(self.definition.roles.len());
        if roles.is_empty() {
            self.objects.remove(object);
        } else {
            self.objects.insert(object.into(), (roles, candidate));
        }
        self.tell()
    }

    /// Does what [`Matching::remove`](super::Matching::remove) does.
    pub fn remove(&mut self, object: &str) -> Vec<Change> {
        self.objects.remove(object);
        self.tell()
    }

    /// The reported groups, in the order of the ranking.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.told
    }

    /// Candidates of each role.
    #[must_use]
    pub fn counts(&self) -> Vec<Count> {
        let definition = &*self.definition;
        let all: Vec<_> = (0..definition.roles.len()).map(|role| self.of_role(role)).collect();
        let mut left: Vec<Vec<Numbered<'_>>> = all.clone();
        for (role, left) in left.iter_mut().enumerate() {
            left.retain(|(_, subject)| {
                let mut cast: Cast<'_> = [None; ROLES_MAX];
                cast[role] = Some(*subject);
                definition.conditions.iter().all(|one| one.roles != [role; 2] || one.holds(&cast))
            });
        }
        loop {
            let before = left.clone();
            for (role, left) in left.iter_mut().enumerate() {
                left.retain(|one| {
                    (0..before.len()).all(|other| self.is_supported(role, one, other, &before))
                });
            }
            if before.iter().map(Vec::len).eq(left.iter().map(Vec::len)) {
                break;
            }
        }
        let count = |(all, left): (&Vec<_>, &Vec<_>)| Count { candidates: all.len(), consistent: left.len() };
        all.iter().zip(&left).map(count).collect()
    }

    fn is_supported(
        &self,
        role: usize,
        one: &Numbered<'_>,
        other: usize,
        left: &[Vec<Numbered<'_>>],
    ) -> bool {
        let shared: Vec<_> = self
            .definition
            .conditions
            .iter()
            .filter(|condition| condition.roles == [role.min(other), role.max(other)] && role != other)
            .collect();
        shared.is_empty()
            || left[other].iter().any(|(name, partner)| {
                let mut cast: Cast<'_> = [None; ROLES_MAX];
                (cast[role], cast[other]) = (Some(one.1), Some(*partner));
                *name != one.0 && shared.iter().all(|condition| condition.holds(&cast))
            })
    }

    /// Candidates of a role, in the order of their names.
    fn of_role(&self, role: usize) -> Vec<Numbered<'_>> {
        let numbered = (0..).zip(&self.objects).filter(|(_, (_, (roles, _)))| roles.has(role));
        numbered
            .map(|(identity, (name, (_, Candidate { event, time_ms })))| {
                (name, Subject { event, time_ms: *time_ms, identity })
            })
            .collect()
    }

    fn tell(&mut self) -> Vec<Change> {
        let told = self.search();
        let before = std::mem::replace(&mut self.told, told);
        let exits = before.iter().filter(|group| !self.told.contains(group)).cloned().map(Change::Exit);
        let enters = self.told.iter().filter(|group| !before.contains(group)).cloned().map(Change::Enter);
        exits.chain(enters).collect()
    }

    fn search(&self) -> Vec<Group> {
        let roles: Vec<_> = (0..self.definition.roles.len()).map(|role| self.of_role(role)).collect();
        let mut found = Vec::new();
        self.extend(&roles, &mut Vec::new(), &mut [None; ROLES_MAX], &mut found);
        found.sort_by(|(a, a_group), (b, b_group)| {
            a.total_cmp(b).then_with(|| a_group.objects.cmp(&b_group.objects))
        });
        found.truncate(self.definition.limit);
        found.into_iter().map(|(_, group)| group).collect()
    }

    fn extend<'a>(
        &self,
        roles: &[Vec<Numbered<'a>>],
        names: &mut Vec<Arc<str>>,
        cast: &mut Cast<'a>,
        found: &mut Vec<(f64, Group)>,
    ) {
        let role = names.len();
        let Some(candidates) = roles.get(role) else {
            found.push((self.definition.value(cast), Group { objects: names[..].into() }));
            return;
        };
        for (name, subject) in candidates {
            cast[role] = Some(*subject);
            let is_ready = |condition: &&super::definition::Condition| condition.roles[1] == role;
            let mut ready = self.definition.conditions.iter().filter(is_ready);
            if !names.contains(name) && ready.all(|condition| condition.holds(cast)) {
                names.push((*name).clone());
                self.extend(roles, names, cast, found);
                names.pop();
            }
        }
        cast[role] = None;
    }
}
