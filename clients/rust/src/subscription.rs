//! Subscriptions and their filters.

use std::time::Duration;

use wire::{On, Overflow};

use crate::{Area, Condition, condition::Cql2};

/// An area and a condition, of which either may be absent.
///
/// ```
/// use nearcast_client::{Filter, around, attr};
/// let near = around(500.0).when(attr("severity").ge(2));
/// let all = Filter::all();
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Filter(wire::Filter);

impl Filter {
    /// Every event.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only where the condition is true as well: one that [`attr`](crate::attr) builds, CQL2 text, or CQL2-JSON.
    pub fn when(mut self, condition: impl Into<Cql2>) -> Self {
        self.0.condition = Some(condition.into().0);
        self
    }
}

impl From<Area> for Filter {
    fn from(area: Area) -> Self {
        Self(wire::Filter { area: area.0, condition: None })
    }
}

impl From<Condition> for Filter {
    fn from(condition: Condition) -> Self {
        Self::all().when(condition)
    }
}

/// Argument of [`Session::subscribe`](crate::Session::subscribe): filters, of which one has to hold, and what the client
/// gets of them. A single [`Filter`], [`Area`] or [`Condition`] becomes a subscription by itself.
///
/// ```
/// use nearcast_client::{Subscription, around, attr};
/// let buses = Subscription::from(around(300.0).when(attr("type").eq("bus"))).enters().exits().hysteresis_m(20.0);
/// let alarms = Subscription::any([around(500.0).into(), attr("type").eq("fire").into()]).durable();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Subscription(wire::Subscription);

impl Subscription {
    /// A subscription to events for which one of the filters holds.
    pub fn any(filters: impl IntoIterator<Item = Filter>) -> Self {
        Self(wire::Subscription::of_events(filters.into_iter().map(|filter| filter.0).collect()))
    }

    /// Tells of live objects that come inside, in place of events.
    pub fn enters(self) -> Self {
        self.on(On::Enter)
    }

    /// Tells of live objects that leave, in place of events.
    pub fn exits(self) -> Self {
        self.on(On::Exit)
    }

    fn on(mut self, transition: On) -> Self {
        self.0.on.retain(|&on| on != On::Event && on != transition);
        self.0.on.push(transition);
        self
    }

    /// Begins with an enter for each object that is inside already. This is for subscriptions to transitions.
    pub fn initial(mut self) -> Self {
        self.0.initial = Some(true);
        self
    }

    /// Lets an object enter only when it has been inside for `time`. This is for subscriptions to transitions.
    pub fn dwell(mut self, time: Duration) -> Self {
        self.0.dwell_s = Some(time.as_secs_f64());
        self
    }

    /// Lets an object leave only when it is more than `hysteresis_m` metres outside. This is for subscriptions to
    /// transitions.
    pub fn hysteresis_m(mut self, hysteresis_m: f64) -> Self {
        self.0.hysteresis_m = Some(hysteresis_m);
        self
    }

    /// Outlives the connection, and what matches is kept until it is acknowledged.
    pub fn durable(mut self) -> Self {
        self.0.durable = true;
        self
    }

    /// Sets what happens when the client does not keep up. The broker's default holds where this is not set.
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.0.overflow = Some(overflow);
        self
    }

    pub(crate) fn named(self, id: String) -> wire::Subscription {
        wire::Subscription { id: Some(id), activity: None, warnings: Vec::new(), ..self.0 }
    }
}

impl<F: Into<Filter>> From<F> for Subscription {
    fn from(filter: F) -> Self {
        Self::any([filter.into()])
    }
}

/// Makes a subscription of the document that the broker shows.
impl From<wire::Subscription> for Subscription {
    fn from(document: wire::Subscription) -> Self {
        Self(document)
    }
}

impl From<Subscription> for wire::Subscription {
    fn from(subscription: Subscription) -> Self {
        subscription.0
    }
}
