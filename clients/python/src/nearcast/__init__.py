"""nearcast: location-aware publish and subscribe.

    async with nearcast.connect("http://localhost:7070", "ann") as session:
        await session.move([9.1895, 45.4642])
        await session.subscribe("accidents", Filter(around(500), attr("severity") >= 2))
        async for message in session:
            print(message)

The same without asyncio is in `nearcast.sync`. What the broker does is described by its protocol (docs/protocol/) and its conditions
(docs/semantics.md).
"""

from . import sync
from .api import Api
from .areas import Area, Position, along_route, around, circle, corridor, everywhere, polygon
from .backoff import Backoff
from .batches import BatchError, Outcome, Rejected, Warned
from .checkpoints import CheckpointFile
from .checks import (
    AccuracyCheck,
    Check,
    CheckContext,
    CheckDocument,
    DuplicateCheck,
    Formula,
    FormulaCheck,
    FrozenCheck,
    OutsideCheck,
    PutCheck,
    SpeedCheck,
    Violation,
)
from .clock import Clock, SystemClock
from .conditions import Attribute, Condition, Value, attr
from .connect import connect
from .documents import Delivered, Deliveries, Explanation, SituationActivity
from .errors import ClosedError, NearcastError, ProblemError, QueueFullError, TimedOutError, UnreachableError
from .events import Derived, Feature, event
from .follow import Fix, TrackPoint
from .groups import (
    ExplainedObject,
    GroupDefinition,
    GroupDefinitionDocument,
    GroupFinding,
    GroupProperties,
    PutGroupDefinition,
    Role,
)
from .messages import Cause, Checkpoint, Event, Gap, Message, Transition
from .problems import Fault, Problem
from .push import PushState
from .queries import ClientPosition
from .routes import ClientRoute, FoundRoute, RouteBy, RouteLine
from .rules import FactRule, Publication, PutRuleSet, RuleSet, RuleSetDocument
from .session import Connect, Session
from .states import Closed, Connecting, Lost, Ready, Refused, RequestWarned, State
from .subscriptions import Activity, Filter, On, Overflow, SubscriptionDocument
from .tokens import TokenProvider
from .version import __version__

__all__ = [
    "AccuracyCheck",
    "Activity",
    "Api",
    "Area",
    "Attribute",
    "Backoff",
    "BatchError",
    "Cause",
    "Check",
    "CheckContext",
    "CheckDocument",
    "Checkpoint",
    "CheckpointFile",
    "ClientPosition",
    "ClientRoute",
    "Clock",
    "Closed",
    "ClosedError",
    "Condition",
    "Connect",
    "Connecting",
    "Delivered",
    "Deliveries",
    "Derived",
    "DuplicateCheck",
    "Event",
    "ExplainedObject",
    "Explanation",
    "FactRule",
    "Fault",
    "Feature",
    "Filter",
    "Fix",
    "Formula",
    "FormulaCheck",
    "FoundRoute",
    "FrozenCheck",
    "Gap",
    "GroupDefinition",
    "GroupDefinitionDocument",
    "GroupFinding",
    "GroupProperties",
    "Lost",
    "Message",
    "NearcastError",
    "On",
    "Outcome",
    "OutsideCheck",
    "Overflow",
    "Position",
    "Problem",
    "ProblemError",
    "Publication",
    "PushState",
    "PutCheck",
    "PutGroupDefinition",
    "PutRuleSet",
    "QueueFullError",
    "Ready",
    "Refused",
    "Rejected",
    "RequestWarned",
    "Role",
    "RouteBy",
    "RouteLine",
    "RuleSet",
    "RuleSetDocument",
    "Session",
    "SituationActivity",
    "SpeedCheck",
    "State",
    "SubscriptionDocument",
    "SystemClock",
    "TimedOutError",
    "TokenProvider",
    "TrackPoint",
    "Transition",
    "UnreachableError",
    "Value",
    "Violation",
    "Warned",
    "__version__",
    "along_route",
    "around",
    "attr",
    "circle",
    "connect",
    "corridor",
    "event",
    "everywhere",
    "polygon",
    "sync",
]
