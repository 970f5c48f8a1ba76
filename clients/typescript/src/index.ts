// What is exported everywhere; `connect` comes with the platform.

export { alongRoute, around, circle, corridor, everywhere, polygon, Area } from "./areas.js";
export type { AreaDocument, Coordinates, LineGeometry, PolygonGeometry, Ring } from "./areas.js";
export type { BackoffOptions } from "./backoff.js";
export type { BatchOptions, MoveReport, NamedPosition, PublishReport, Rejection, Warning } from "./batches.js";
export type { Check, CheckContext, CheckDocument, CheckPreset, Formula, PutCheck, Violation } from "./checks.js";
export { checkpointStorage } from "./checkpoints.js";
export type { CheckpointStore, TextStorage } from "./checkpoints.js";
export type { Clock, Random } from "./clock.js";
export { and, attr, not, or, Attribute, CaselessAttribute, Condition } from "./conditions.js";
export type { Value } from "./conditions.js";
export type { ConnectOptions } from "./connect.js";
export type { Checkpoint, Delivery, Gap, Message } from "./messages.js";
export { BatchError, Closed, ConnectionError, NearcastError, ProblemError, QueueFull, Timeout } from "./errors.js";
export type { Fault, Link, Problem } from "./errors.js";
export { event } from "./events.js";
export type { DeliveredFeature, Derived, EventOptions, Feature, Properties } from "./events.js";
export type { Fix, FollowOptions } from "./follow.js";
export { geolocation, GeolocationError, unlocatable, watchGeolocation } from "./geolocation.js";
export type { GeolocationOptions, NoFix } from "./geolocation.js";
export type { Cause, Filter, GapReason, PositionOptions, RequestWarning, Subscription, Trace, TrackPoint } from "./frames.js";
export type {
  ExplainedObject,
  ExplainedPartners,
  ExplainedRole,
  GroupDefinition,
  GroupDefinitionDocument,
  GroupProperties,
  PutGroupDefinition,
  Role,
} from "./groups.js";
export type { EventDeliveries, Explanation, Question, SubscriptionDocument } from "./http.js";
export type { Connection } from "./link.js";
export type { PushState, PushSubscriptionDocument } from "./push.js";
export type { ClientPosition, Query } from "./queries.js";
export type { ClientRoute, FoundRoute, RouteOptions } from "./routes.js";
export type { FactRule, Publication, PutRuleSet, RuleFailure, RuleSet, RuleSetDocument } from "./rules.js";
export { Session } from "./session.js";
export type { SituationActivity } from "./situations.js";
export type { TokenSource } from "./tokens.js";
