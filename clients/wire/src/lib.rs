//! The frames and documents that the broker and its clients exchange: version 1 of the protocol as serde types.
//!
//! The types say what is on the wire and nothing about what it means; they accept what a newer broker may add.
//! Feature `openapi` adds schemas for the broker's OpenAPI document.
#![forbid(unsafe_code)]

mod check;
mod document;
mod explain;
mod feature;
mod frame;
mod group;
mod problem;
mod push;
mod query;
mod route;
mod rules;
#[cfg(feature = "openapi")]
mod schema;

pub use check::{Check, Clock, Context, Formula, OnViolation, SituationActivity};
pub use document::{
    Accepted, Activity, Area, ClientFigures, Clients, Cluster, ClusterMember, ClusterRole, Delivered,
    Deliveries, DeliveryState, Filter, Following, Moved, NamedPosition, On, Overflow, Position, Rejected,
    RouteEnd, Stats, StatsHistory, Subscription, Warning,
};
pub use explain::{
    AreaForm, AskedEvent, AskedSubscription, Explain, ExplainedArea, ExplainedCheck, ExplainedCondition,
    ExplainedConstraint, ExplainedDerivation, ExplainedEvent, ExplainedFilter, ExplainedNearest,
    ExplainedPosition, ExplainedReach, Explanation, Truth,
};
pub use feature::{Feature, FeatureKind, PointGeometry, PointKind};
pub use frame::{Cause, ClientFrame, GapReason, ServerFrame, Transition};
pub use group::{ConditionLeaves, ExplainedObject, ExplainedPartners, ExplainedRole, GroupDefinition, Role};
pub use problem::{Fault, Link, PROBLEM_PREFIX, Problem};
pub use push::{PushKey, PushKeys, PushState, PushSubscription};
pub use query::{ClientPosition, CollectionKind, LiveEvents};
pub use route::{
    ClientRoute, ClientRoutes, FoundRoute, LineStringKind, RouteBy, RouteLine, RouteQuestion, RouteState,
};
pub use rules::{FactRule, Publication, RuleSet};
