//! Subscriptions: a disjunction of filters, each an area and a condition.

use crate::area::Area;
use crate::condition::Condition;

/// A client, as engines know it: a small number that the caller gives out and reuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

/// A subscription, as engines know it: a small number that the caller gives out and reuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(pub u32);

/// Subscription of a client to every event that satisfies one of the filters.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// The client whose position its following areas follow.
    pub client: ClientId,
    /// The alternatives. None matches nothing.
    pub filters: Vec<Filter>,
}

/// An area of relevance and a condition on the content.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The area of relevance.
    pub area: Area,
    /// The condition on the content.
    pub condition: Condition,
}
