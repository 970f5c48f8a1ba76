//! What one would use instead of an engine: a spatial index, or a content matcher.
//!
//! Both solve one half of the problem well and the other by looking at what is left. They get the workload in
//! the form that suits them: conditions as closed intervals, events with their names already looked up.

#[cfg(feature = "atree")]
pub mod atree;
pub mod counting;
pub mod rtree;

use anyhow::{Context, bail, ensure};
use matcher::area::Area;
use matcher::condition::expression::{Comparand, Comparison, Expression, Test};
use matcher::event::{Event, Scalar, Symbol, Value};
use matcher::fixtures::workload::Workload;
use matcher::geo::{Position, World};
use matcher::subscription::Filter;

/// A constraint as an interval of numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The name's index in [`Workload::names`].
    pub name: u32,
    /// The least number that satisfies it.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

/// An event, and the same with names looked up.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The event.
    pub event: Event,
    /// Where it is, in metres.
    pub at: [f64; 2],
    /// Its attributes by the name's index in [`Workload::names`].
    pub values: Vec<(u32, f64)>,
}

impl Prepared {
    /// The workload's event of an index.
    ///
    /// # Errors
    /// When its attributes are not all numbers of the workload's names.
    pub fn new(workload: &Workload, index: u64) -> anyhow::Result<Self> {
        let event = workload.event(index);
        let attributes = event.attributes.iter().map(|attribute| {
            let Value::Scalar(Scalar::Number(number)) = attribute.value else {
                bail!("{} is not a number", attribute.name.as_str());
            };
            Ok((name_index(workload, &attribute.name)?, number))
        });
        let values = attributes.collect::<anyhow::Result<_>>()?;
        Ok(Self { at: [event.position.x(), event.position.y()], values, event })
    }
}

/// The intervals of all filters' constraints, in one flat array.
#[derive(Debug)]
pub struct Contents {
    starts: Vec<u32>,
    intervals: Vec<Interval>,
}

impl Contents {
    /// Makes the contents of no filters.
    #[must_use]
    pub fn empty() -> Self {
        Self { starts: vec![0], intervals: Vec::new() }
    }

    /// Makes the contents of the workload's filters, in their order.
    ///
    /// # Errors
    /// When a condition is not a conjunction of numeric comparisons, or there are more than 2^32 of them.
    pub fn new(workload: &Workload) -> anyhow::Result<Self> {
        let mut contents = Self::empty();
        contents.starts.reserve(workload.filters_count());
        for (_, subscription) in workload.subscriptions() {
            subscription.filters.iter().try_for_each(|filter| contents.push(workload, filter))?;
        }
        contents.intervals.shrink_to_fit();
        Ok(contents)
    }

    /// Adds those of one more filter of the workload.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn push(&mut self, workload: &Workload, filter: &Filter) -> anyhow::Result<()> {
        push_intervals(workload, filter.condition.expression(), &mut self.intervals)?;
        self.starts.push(u32::try_from(self.intervals.len())?);
        Ok(())
    }

    /// How many filters there are.
    #[must_use]
    pub fn filters_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The intervals of a filter.
    #[must_use]
    pub fn of(&self, filter: usize) -> &[Interval] {
        &self.intervals[self.starts[filter] as usize..self.starts[filter + 1] as usize]
    }
}

/// A circle of the plane with the filter that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Circle {
    /// Its centre in metres.
    pub centre: [f64; 2],
    /// Its radius in metres.
    pub radius_m: f64,
}

impl Circle {
    /// Whether it holds a point; its edge does.
    #[must_use]
    pub fn holds(&self, point: [f64; 2]) -> bool {
        let (dx, dy) = (point[0] - self.centre[0], point[1] - self.centre[1]);
        dx * dx + dy * dy <= self.radius_m * self.radius_m
    }

    /// The sides of the box around it, along x and along y: one step further out, so that no rounding takes off
    /// a point of its edge.
    #[must_use]
    pub fn sides(&self) -> [[f64; 2]; 2] {
        self.centre.map(|middle| [(middle - self.radius_m).next_down(), (middle + self.radius_m).next_up()])
    }
}

/// The circles of all filters in their order, with the clients where they are at first.
///
/// # Errors
/// When an area is not a circle, or the world is not flat: the baselines know no other.
pub fn circles(workload: &Workload) -> anyhow::Result<Vec<Circle>> {
    ensure!(workload.world() == World::Planar, "the baselines need a planar world");
    let mut circles = Vec::with_capacity(workload.filters_count());
    for index in 0..workload.config().subscriptions {
        let home = workload.position(workload.home(matcher::subscription::ClientId(index)));
        for number in 0..workload.config().filters_per_subscription {
            circles.push(circle(&workload.area(index, number), &home)?);
        }
    }
    Ok(circles)
}

/// The circle of an area whose client is there.
///
/// # Errors
/// When the area is not a circle.
pub fn circle(area: &Area, client: &Position) -> anyhow::Result<Circle> {
    let (centre, radius) = match area {
        Area::Following(radius) => (client, radius),
        Area::Circle { centre, radius } => (centre, radius),
        Area::Everywhere | Area::Polygon(_) | Area::Corridor(_) => bail!("{area:?} is not a circle"),
    };
    Ok(Circle { centre: [centre.x(), centre.y()], radius_m: radius.metres() })
}

fn push_intervals(
    workload: &Workload,
    expression: &Expression,
    intervals: &mut Vec<Interval>,
) -> anyhow::Result<()> {
    match expression {
        Expression::And(operands) => {
            operands.iter().try_for_each(|operand| push_intervals(workload, operand, intervals))
        }
        Expression::Constraint(constraint) => {
            let (low, high) = bounds(&constraint.test)
                .with_context(|| format!("{constraint:?} is not an interval of numbers"))?;
            intervals.push(Interval { name: name_index(workload, &constraint.name)?, low, high });
            Ok(())
        }
        Expression::Constant(_) | Expression::Not(_) | Expression::Or(_) | Expression::Residual(_) => {
            bail!("{expression:?} is not a conjunction of constraints")
        }
    }
}

fn bounds(test: &Test) -> Option<(f64, f64)> {
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    match test {
        Test::Compare(comparison, Comparand::Scalar(Scalar::Number(number))) => match comparison {
            Comparison::Equal => Some((*number, *number)),
            Comparison::NotEqual => None,
            Comparison::Less => Some((low, number.next_down())),
            Comparison::LessOrEqual => Some((low, *number)),
            Comparison::Greater => Some((number.next_up(), high)),
            Comparison::GreaterOrEqual => Some((*number, high)),
        },
        Test::Between(Comparand::Scalar(Scalar::Number(low)), Comparand::Scalar(Scalar::Number(high))) => {
            Some((*low, *high))
        }
        Test::Compare(..) | Test::Between(..) | Test::In(_) | Test::Like(_) | Test::IsNull => None,
    }
}

fn name_index(workload: &Workload, name: &Symbol) -> anyhow::Result<u32> {
    let index = workload.names().iter().position(|known| known == name);
    Ok(u32::try_from(index.with_context(|| format!("{} is not a name of the workload", name.as_str()))?)?)
}
