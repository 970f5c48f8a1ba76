//! Why an event comes to a subscription, or does not: what matching looked at, part by part.
//!
//! The parts come from the very functions that matching uses ([`crate::evaluation`], [`Area::holds`],
//! [`Area::outside_m`] and the constraints' own truth), so that an explanation cannot say otherwise.

mod reason;
mod swapped;
mod why;

use crate::area::Area;
use crate::condition::expression::{Constraint, Expression, Residual, Truth};
use crate::condition::normal::{Literal, ResidualLiteral};
use crate::evaluation::{filter_matches, reaches};
use crate::event::{Event, Value};
use crate::geo::{Position, World};
use crate::subscription::Filter;

/// Why an event satisfies a subscription, or does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Whether it does: some filter takes the event, and the event reaches the client.
    pub matched: bool,
    /// The event's own area; `None` where it has none.
    pub reach: Option<ReachPart>,
    /// Each filter, in the subscription's order.
    pub filters: Vec<FilterPart>,
}

/// The event's own area, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReachPart {
    /// Whether it holds the client; one without a position is not held to it.
    pub holds: bool,
    /// How far the event reaches.
    pub reach_m: f64,
    /// How far away the client is; `None` for one without a position.
    pub distance_m: Option<f64>,
    /// How far outside the client is, above 0 exactly when the reach does not hold it.
    pub outside_m: Option<f64>,
}

/// Outcome of a filter for the event.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterPart {
    /// Whether it takes it: both parts hold.
    pub matched: bool,
    /// Its area.
    pub area: AreaPart,
    /// Its condition.
    pub condition: ConditionPart,
}

/// Outcome of an area for the event's place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AreaPart {
    /// The kind of area.
    pub form: Form,
    /// Whether it holds the place.
    pub holds: bool,
    /// The distance to the centre, the corridor's line, or the polygon (0 inside of it); `None` where there is
    /// nothing to measure from.
    pub distance_m: Option<f64>,
    /// The radius of a circle or a corridor.
    pub radius_m: Option<f64>,
    /// How far outside the place is, above 0 exactly when the area does not hold it; `None` for an area that follows
    /// a client without a position, and for a corridor without a line.
    pub outside_m: Option<f64>,
    /// The distance that there would be if longitude and latitude had been exchanged; `None` unless the place is far outside, and would
    /// be inside then.
    pub swapped_distance_m: Option<f64>,
}

/// The kinds of areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Everywhere.
    Everywhere,
    /// A circle around the client.
    Following,
    /// A circle that stays.
    Circle,
    /// A polygon or a multipolygon.
    Polygon,
    /// A corridor.
    Corridor,
}

/// Outcome of a condition for the event's content.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionPart {
    /// Its truth; only what is true matches.
    pub truth: Truth,
    /// Its constraints in the order in which they were written. One under a `NOT` is given with its `NOT`, so that
    /// whatever keeps the condition from being true is among those that are not.
    pub constraints: Vec<ConstraintPart>,
}

/// Outcome of a constraint for the event.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstraintPart {
    /// The constraint as CQL2 text.
    pub constraint: String,
    /// The attribute that it looks at; of several the first, and empty where there is none.
    pub attribute: String,
    /// The value that it saw of this attribute; `None` where that is absent.
    pub value: Option<Value>,
    /// Its truth.
    pub truth: Truth,
    /// The reason for the outcome in words: what is so about the attribute.
    pub reason: String,
}

/// Explains what filters, of one subscription of a client that is there or nowhere, make of an event.
///
/// Cost: that of matching, without short cuts: every constraint and every edge is looked at.
#[must_use]
pub fn explain(world: World, filters: &[Filter], client: Option<&Position>, event: &Event) -> Explanation {
    let filters: Vec<FilterPart> = filters
        .iter()
        .map(|filter| FilterPart {
            matched: filter_matches(world, filter, client, event),
            area: AreaPart::of(world, &filter.area, client, &event.position),
            condition: ConditionPart::of(filter.condition.expression(), client, event),
        })
        .collect();
    let matched = filters.iter().any(|filter| filter.matched) && reaches(world, event, client);
    Explanation { matched, reach: ReachPart::of(world, event, client), filters }
}

impl ReachPart {
    fn of(world: World, event: &Event, client: Option<&Position>) -> Option<Self> {
        let radius = event.reach?;
        let area = Area::Circle { centre: event.position, radius };
        Some(Self {
            holds: reaches(world, event, client),
            reach_m: radius.metres(),
            distance_m: client.map(|client| world.distance_m(&event.position, client)),
            outside_m: client.map(|client| area.outside_m(world, None, client)),
        })
    }
}

impl AreaPart {
    fn of(world: World, area: &Area, client: Option<&Position>, position: &Position) -> Self {
        let outside_m = area.outside_m(world, client, position);
        let outside_m = outside_m.is_finite().then_some(outside_m);
        Self {
            form: Form::of(area),
            holds: area.holds(world, client, position),
            distance_m: match area {
                Area::Polygon(_) => outside_m,
                Area::Everywhere | Area::Following(_) | Area::Circle { .. } | Area::Corridor(_) => {
                    area.distance_m(world, client, position)
                }
            },
            radius_m: area.radius().map(|radius| radius.metres()),
            outside_m,
            swapped_distance_m: outside_m
                .and_then(|outside_m| swapped::distance_m(world, area, client, position, outside_m)),
        }
    }
}

impl Form {
    /// The form of an area.
    #[must_use]
    pub fn of(area: &Area) -> Self {
        match area {
            Area::Everywhere => Self::Everywhere,
            Area::Following(_) => Self::Following,
            Area::Circle { .. } => Self::Circle,
            Area::Polygon(_) => Self::Polygon,
            Area::Corridor(_) => Self::Corridor,
        }
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Everywhere => "everywhere",
            Self::Following => "following",
            Self::Circle => "circle",
            Self::Polygon => "polygon",
            Self::Corridor => "corridor",
        }
    }
}

impl ConditionPart {
    fn of(expression: &Expression, client: Option<&Position>, event: &Event) -> Self {
        let mut constraints = Vec::new();
        collect(expression, false, (client, event), &mut constraints);
        Self { truth: expression.truth_for(event, client), constraints }
    }
}

/// The constraints of an expression, or of its `NOT`, with the negations pushed to them.
fn collect(
    expression: &Expression,
    negated: bool,
    (client, event): (Option<&Position>, &Event),
    parts: &mut Vec<ConstraintPart>,
) {
    match expression {
        Expression::Constant(_) => {}
        Expression::Constraint(constraint) => parts.push(ConstraintPart::of(constraint, negated, event)),
        Expression::Residual(residual) => {
            parts.push(ConstraintPart::of_residual(residual, negated, client, event));
        }
        Expression::Not(inner) => collect(inner, !negated, (client, event), parts),
        Expression::And(inner) | Expression::Or(inner) => {
            for operand in inner {
                collect(operand, negated, (client, event), parts);
            }
        }
    }
}

impl ConstraintPart {
    fn of(constraint: &Constraint, negated: bool, event: &Event) -> Self {
        let value = event.value(&constraint.name);
        let truth = constraint.truth(value);
        Self {
            constraint: Literal { constraint: constraint.clone(), negated }.to_string(),
            attribute: constraint.name.as_str().to_owned(),
            value: value.cloned(),
            truth: if negated { !truth } else { truth },
            reason: reason::of(constraint, value),
        }
    }

    fn of_residual(residual: &Residual, negated: bool, client: Option<&Position>, event: &Event) -> Self {
        let truth = residual.truth(event, client);
        let read = residual.read(event);
        let first = read.first().cloned();
        Self {
            constraint: ResidualLiteral { residual: residual.clone(), negated }.to_string(),
            reason: if residual.reads_client() && client.is_none() {
                "the client has told no position".to_owned()
            } else {
                reason::of_read(&read, truth)
            },
            attribute: first.as_ref().map_or_else(String::new, |(name, _)| name.as_str().to_owned()),
            value: first.and_then(|(_, value)| value.cloned()),
            truth: if negated { !truth } else { truth },
        }
    }
}
