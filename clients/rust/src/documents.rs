//! Documents that the broker's calls over HTTP take and answer, with the members that they have in JSON.

#[doc(inline)]
pub use wire::{
    Activity, Area, AreaForm, Cause, Check, ClientFigures, ClientPosition, Clients, Clock, Context,
    Delivered, Deliveries, DeliveryState, ExplainedArea, ExplainedCheck, ExplainedCondition,
    ExplainedConstraint, ExplainedDerivation, ExplainedEvent, ExplainedFilter, ExplainedNearest,
    ExplainedPosition, ExplainedReach, Explanation, FactRule, Fault, Filter, Following, Formula, Link,
    NamedPosition, On, OnViolation, Position, Publication, RuleSet, SituationActivity, Stats, Subscription,
    Transition, Truth, Warning,
};
