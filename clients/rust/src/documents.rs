//! Documents that the broker's calls over HTTP take and answer, with the members that they have in JSON.

#[doc(inline)]
pub use wire::{
    Activity, Area, AreaForm, Cause, Check, ClientFigures, ClientPosition, ClientRoute, Clients, Clock,
    ConditionLeaves, Context, Delivered, Deliveries, DeliveryState, ExplainedArea, ExplainedCheck,
    ExplainedCondition, ExplainedConstraint, ExplainedDerivation, ExplainedEvent, ExplainedFilter,
    ExplainedNearest, ExplainedObject, ExplainedPartners, ExplainedPosition, ExplainedReach, ExplainedRole,
    Explanation, FactRule, Fault, Filter, Following, Formula, GroupDefinition, Link, NamedPosition, On,
    OnViolation, Position, Publication, Role, RouteState, RuleSet, SituationActivity, Stats, Subscription,
    Transition, Truth, Warning,
};
