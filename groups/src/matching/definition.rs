//! What a matching looks for: roles, conditions and a ranking.

use matcher::World;
use matcher::condition::ConditionError;
use matcher::condition::expression::{Comparison, Truth};
use matcher::event::Scalar;
use matcher::geo::Radius;
use matcher::predicate::node::{Node, Operand};
use matcher::predicate::{Join, Predicate, Subject, Term};

/// Roles that a definition may have.
pub const ROLES_MAX: usize = 8;

/// Conditions that a definition may have.
pub const CONDITIONS_MAX: usize = 64;

/// Events by the role that they are looked at in.
pub(super) type Cast<'a> = [Option<Subject<'a>>; ROLES_MAX];

/// Roles, the conditions between them, and how groups are ranked.
#[derive(Clone, Debug)]
pub struct Definition {
    pub(super) roles: Vec<String>,
    pub(super) conditions: Vec<Condition>,
    pub(super) order: Option<Term>,
    pub(super) limit: usize,
    world: World,
}

/// A condition over one or two roles.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) predicate: Predicate,
    /// The roles that it reads, ascending; twice the same where it reads one.
    pub(super) roles: [usize; 2],
    /// Distances that the events of both roles have to be within of each other for it to be true.
    radii: Vec<Radius>,
    /// Whether that is all that it says.
    is_radius: bool,
}

/// What is wrong with a definition, and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{fault}")]
pub struct DefinitionError {
    /// Where.
    pub part: Part,
    /// What.
    pub fault: Fault,
}

/// A part of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All roles.
    Roles,
    /// A role, by its place.
    Role(usize),
    /// All conditions.
    Conditions,
    /// A condition, by its place.
    Where(usize),
    /// The order.
    Order,
}

/// What is wrong with a part of a definition. The messages are meant for those who write definitions.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// There is no role.
    #[error("there is no role")]
    NoRole,
    /// A name is given to two roles.
    #[error("there are two roles '{0}'")]
    RoleTwice(String),
    /// More than there may be.
    #[error("there are at most {max} {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        max: usize,
    },
    /// A text that cannot be read.
    #[error(transparent)]
    Text(ConditionError),
    /// A condition that reads no role.
    #[error("the condition reads no role, it has to read one or two")]
    ReadsNone,
    /// A condition that reads more than two roles.
    #[error("the condition reads {}, at most two roles are allowed", .0.join(", "))]
    ReadsTooMany(Vec<String>),
}

impl Definition {
    /// Reads conditions and order over roles of these names, which have no dots.
    ///
    /// `order` is a term over any of the roles: groups are ranked by its number, ascending. Those for which it has none come after all
    /// others, and equals are ranked by the names of their objects, compared as bytes, role by role. The first `limit` groups are reported.
    ///
    /// # Errors
    /// Everything that is wrong, with its place.
    pub fn new(
        world: World,
        roles: &[&str],
        conditions: &[&str],
        order: Option<&str>,
        limit: usize,
    ) -> Result<Self, Vec<DefinitionError>> {
        let mut faults = Vec::new();
        let mut fault = |part, fault| faults.push(DefinitionError { part, fault });
        if roles.is_empty() {
            fault(Part::Roles, Fault::NoRole);
        }
        if roles.len() > ROLES_MAX {
            fault(Part::Roles, Fault::TooMany { what: "roles", max: ROLES_MAX });
        }
        for (idx, role) in roles.iter().enumerate() {
            if roles[..idx].contains(role) {
                fault(Part::Role(idx), Fault::RoleTwice((*role).to_owned()));
            }
        }
        if conditions.len() > CONDITIONS_MAX {
            fault(Part::Conditions, Fault::TooMany { what: "conditions", max: CONDITIONS_MAX });
        }
        let mut read = Vec::new();
        for (idx, text) in conditions.iter().enumerate().take(CONDITIONS_MAX) {
            match Condition::new(world, text, roles) {
                Ok(condition) => read.push(condition),
                Err(found) => fault(Part::Where(idx), found),
            }
        }
        let order = order.map(|text| Term::parse(world, text, roles)).transpose();
        let order = order.unwrap_or_else(|error| {
            fault(Part::Order, Fault::Text(error));
            None
        });
        if faults.is_empty() {
            let roles = roles.iter().map(|role| (*role).to_owned()).collect();
            Ok(Self { roles, conditions: read, order, limit, world })
        } else {
            Err(faults)
        }
    }

    /// Names of the roles.
    pub fn roles(&self) -> impl ExactSizeIterator<Item = &str> {
        self.roles.iter().map(String::as_str)
    }

    /// How many groups are reported at most.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The world of its places and distances.
    #[must_use]
    pub fn world(&self) -> World {
        self.world
    }

    /// The place of a group in the ranking before names are looked at. Numbers of events and of operations are finite, so that a group
    /// without a number comes after all that have one.
    pub(super) fn value(&self, cast: &Cast<'_>) -> f64 {
        let Some(order) = &self.order else { return 0.0 };
        match order.value(cast) {
            // Zero has two names.
            Some(Scalar::Number(number)) => number + 0.0,
            Some(Scalar::Text(_) | Scalar::Bool(_)) | None => f64::INFINITY,
        }
    }
}

impl Condition {
    fn new(world: World, text: &str, roles: &[&str]) -> Result<Self, Fault> {
        let predicate = Predicate::parse(world, text, roles).map_err(Fault::Text)?;
        let read: Vec<_> = predicate.variables().collect();
        let roles = match read[..] {
            [] => return Err(Fault::ReadsNone),
            [role] => [role; 2],
            [a, b] => [a, b],
            _ => {
                let names = read.iter().map(|role| roles[*role].to_owned());
                return Err(Fault::ReadsTooMany(names.collect()));
            }
        };
        let radii: Vec<_> = predicate
            .necessary()
            .into_iter()
            .filter_map(|join| match join {
                Join::Within { metres, .. } => Radius::new(world, metres).ok(),
                Join::Equal { .. } | Join::Elapsed { .. } | Join::Speed { .. } => None,
            })
            .collect();
        let is_radius = radii.len() == 1 && is_radius(predicate.tree());
        Ok(Self { predicate, roles, radii, is_radius })
    }

    /// Whether it is true of the events of two roles, where it reads two. Distances are tested first and without trigonometry.
    pub(super) fn joins(&self, cast: &Cast<'_>) -> bool {
        if let [Some(a), Some(b)] = self.roles.map(|role| cast[role]) {
            let world = self.predicate.world();
            let is_within = |radius: &Radius| radius.holds(world, &a.event.position, &b.event.position);
            if !self.radii.iter().all(is_within) {
                return false;
            }
        }
        self.is_radius || self.holds(cast)
    }

    pub(super) fn holds(&self, cast: &Cast<'_>) -> bool {
        self.predicate.truth(cast) == Truth::True
    }
}

/// Whether a node is `DISTANCE(a, b) <= metres`, and no other bound than this.
fn is_radius(node: &Node) -> bool {
    let Node::Compare(Comparison::LessOrEqual, operands) = node else { return false };
    matches!(&**operands, [Operand::Distance(_), bound] if bound.number().is_some())
}
