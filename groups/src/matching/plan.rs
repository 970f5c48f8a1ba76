//! How a definition is worked with: which roles share conditions, how partners are looked up, and in which order roles are bound.

use matcher::predicate::index::{Key, Probe, of_predicates};

use super::definition::Definition;

/// What there is to know of all roles, and the ways through them.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) roles: Vec<Role>,
    /// How groups are found that have a given candidate in a role, for each role.
    pub(super) from: Vec<Way>,
    /// How all groups are found.
    pub(super) all: Way,
}

/// A role and the roles that share conditions with it.
#[derive(Debug)]
pub(super) struct Role {
    /// Conditions over it alone.
    pub(super) own: Vec<usize>,
    pub(super) arms: Vec<Arm>,
    /// What its candidates are indexed by.
    pub(super) keys: Vec<Key>,
}

/// What a role has to do with another one.
#[derive(Debug)]
pub(super) struct Arm {
    /// The other role.
    pub(super) other: usize,
    /// Place of the other role's arm that leads back.
    pub(super) back: usize,
    /// Conditions over both, the cheapest first.
    pub(super) conditions: Vec<usize>,
    /// By which keys of the other role partners can be looked up.
    pub(super) probes: Vec<(usize, Probe)>,
}

/// An order in which roles are bound.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) steps: Vec<Step>,
    /// Steps after which the value of the order is known. The roles of the others are in the order of the document, so that groups of one
    /// value are found in the order of their names.
    pub(super) heads: usize,
}

/// Binds one role.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) role: usize,
    pub(super) source: Source,
}

/// Where the candidates of a step are found.
#[derive(Debug)]
pub(super) enum Source {
    /// Candidates that are supports of all of these: roles that are bound, and their arms.
    Beside(Vec<(usize, usize)>),
    /// Supports of supports: from a bound role along arms, each of the role that the one before leads to.
    Along { from: usize, arms: Vec<usize> },
    /// All.
    All,
}

impl Plan {
    pub(super) fn new(definition: &Definition) -> Self {
        let count = definition.roles.len();
        let shared = |a: usize, b: usize| {
            let both = [a.min(b), a.max(b)];
            let mut found: Vec<_> = (0..definition.conditions.len())
                .filter(|idx| definition.conditions[*idx].roles == both)
                .collect();
            found.sort_by_key(|idx| definition.conditions[*idx].predicate.cost());
            found
        };
        let others =
            |role: usize| (0..count).filter(move |other| *other != role && !shared(role, *other).is_empty());
        let mut roles: Vec<_> = (0..count)
            .map(|role| Role { own: shared(role, role), arms: Vec::new(), keys: Vec::new() })
            .collect();
        for role in 0..count {
            for other in others(role) {
                let conditions = shared(role, other);
                let predicates = conditions.iter().map(|idx| (&definition.conditions[*idx].predicate, true));
                let joins = of_predicates(definition.world(), predicates, |_, _| f64::INFINITY);
                let mut lookups: Vec<_> = joins.iter().filter_map(|join| join.lookup(role, other)).collect();
                lookups.sort_by_key(|lookup| lookup.rank);
                let mut probes = Vec::new();
                for lookup in lookups {
                    let keys = &mut roles[other].keys;
                    let key = keys.iter().position(|key| *key == lookup.key).unwrap_or_else(|| {
                        keys.push(lookup.key);
                        keys.len() - 1
                    });
                    probes.push((key, lookup.probe));
                }
                let back = others(other).position(|back| back == role).expect("conditions are shared");
                roles[role].arms.push(Arm { other, back, conditions, probes });
            }
        }
        let ordered: Vec<usize> = definition.order.iter().flat_map(|order| order.variables()).collect();
        let from = (0..count).map(|role| Way::new(&roles, &ordered, Some(role))).collect();
        let all = Way::new(&roles, &ordered, None);
        Self { roles, from, all }
    }
}

impl Way {
    fn new(roles: &[Role], ordered: &[usize], fixed: Option<usize>) -> Self {
        let mut bound: Vec<usize> = fixed.into_iter().collect();
        let mut steps = Vec::new();
        let mut bind = |role: usize, bound: &mut Vec<usize>| {
            steps.push(Step { role, source: Source::new(roles, bound, role) });
            bound.push(role);
        };
        while let Some(role) = ordered
            .iter()
            .copied()
            .filter(|role| !bound.contains(role))
            .min_by_key(|role| Source::new(roles, &bound, *role).rank())
        {
            bind(role, &mut bound);
        }
        let heads = bound.len() - usize::from(fixed.is_some());
        for role in 0..roles.len() {
            if !bound.contains(&role) {
                bind(role, &mut bound);
            }
        }
        Self { steps, heads }
    }
}

impl Source {
    fn new(roles: &[Role], bound: &[usize], role: usize) -> Self {
        let beside: Vec<_> = bound
            .iter()
            .filter_map(|&from| {
                let arm = roles[from].arms.iter().position(|arm| arm.other == role)?;
                Some((from, arm))
            })
            .collect();
        if !beside.is_empty() {
            return Self::Beside(beside);
        }
        // The shortest way from a bound role.
        let mut ways: Vec<(usize, usize, Vec<usize>)> =
            bound.iter().map(|&from| (from, from, Vec::new())).collect();
        let mut at = 0;
        while let Some((from, last, arms)) = ways.get(at).cloned() {
            for (idx, arm) in roles[last].arms.iter().enumerate() {
                let arms: Vec<_> = arms.iter().copied().chain([idx]).collect();
                if arm.other == role {
                    return Self::Along { from, arms };
                }
                if ways.iter().all(|(_, known, _)| *known != arm.other) {
                    ways.push((from, arm.other, arms));
                }
            }
            at += 1;
        }
        Self::All
    }

    /// The lower the better.
    fn rank(&self) -> usize {
        match self {
            Self::Beside(_) => 0,
            Self::Along { arms, .. } => arms.len(),
            Self::All => usize::MAX,
        }
    }
}
