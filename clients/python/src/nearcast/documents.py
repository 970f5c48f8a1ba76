"""What the broker answers over HTTP."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from .messages import Cause, Transition

Truth = Literal["true", "false", "unknown"]


class ExplainedPosition(TypedDict):
    """The position that was used."""

    coordinates: list[float]
    accuracy_m: float | None
    age_s: float | None


class ExplainedEvent(TypedDict):
    """The event that was looked at."""

    id: str | float | None
    live: bool
    expires_in_s: float | None


class ExplainedReach(TypedDict):
    """The event's own area, seen from the client."""

    holds: bool
    reach_m: float
    distance_m: float | None
    metres_outside: float | None


class ExplainedNearest(TypedDict):
    """The event's place among the nearest."""

    k: int
    rank: int | None
    holds: bool


class _ExplainedArea(TypedDict):
    form: Literal["everywhere", "following", "circle", "polygon", "corridor", "route"]
    holds: bool
    distance_m: float | None
    radius_m: float | None
    metres_outside: float | None


class ExplainedArea(_ExplainedArea, total=False):
    """What an area makes of the event's place."""

    swapped_distance_m: float
    waits_for_a_better_fix: bool
    nearest: ExplainedNearest


class ExplainedConstraint(TypedDict):
    """What a constraint makes of the event."""

    constraint: str
    attribute: str
    value: Any
    truth: Truth
    reason: str


class ExplainedCondition(TypedDict):
    """What a condition makes of the event."""

    truth: Truth
    constraints: list[ExplainedConstraint]


class ExplainedFilter(TypedDict):
    """What a filter makes of the event."""

    matched: bool
    area: ExplainedArea
    condition: ExplainedCondition


class ExplainedCheck(TypedDict):
    """A check that the event would break, with variables and ids of the events that do not fit."""

    check: str
    on_violation: Literal["mark", "drop"]
    links: list[dict[str, str]]


_Derivation = TypedDict("_Derivation", {"by": str, "from": list[str]})


class ExplainedDerivation(_Derivation, total=False):
    """How a check, a rule set or a group definition came to publish the event, as `rules/traffic`, with the rule by its name or its number, and
    the ids of the events that it follows from.
    """

    rule: str


class _Explanation(TypedDict):
    matched: bool
    client: str
    subscription: str | None
    position: ExplainedPosition | None
    event: ExplainedEvent
    reach: ExplainedReach | None
    filters: list[ExplainedFilter]
    inside: bool
    why: str


class Explanation(_Explanation, total=False):
    """Why an event comes to a client, or does not; `why` is all of it in a sentence."""

    position_withheld: bool
    checks: list[ExplainedCheck]
    derived: ExplainedDerivation


class _Delivered(TypedDict):
    client: str
    subscriptions: list[str]
    offset: int
    cause: Cause
    state: Literal["waiting", "written", "dropped", "unread"]


class Delivered(_Delivered, total=False):
    """One delivery of an event, and what became of it."""

    transition: Transition
    position: list[float]


class _Deliveries(TypedDict):
    id: str
    deliveries: list[Delivered]


class Deliveries(_Deliveries, total=False):
    """To whom an event went."""

    omitted: int


class _SituationActivity(TypedDict):
    inputs: int
    evaluations: int
    published: int
    queued: int
    mean_us: float
    p99_us: float
    engine: str
    dropped: int
    marked: int
    passed: int
    ahead: int
    restarts: int
    paused: bool


class SituationActivity(_SituationActivity, total=False):
    """What a check, a rule set or a group definition does; `constraints` is how many are in the store of a rule set, and `problem` what last
    went wrong.

    Of a group definition that has begun, `candidates` are how many live objects are candidates of each role, and `consistent` how many
    of these satisfy the conditions over the role alone and are supported: for each role that shares a condition with it there is such a candidate
    with which all conditions over both are true.
    """

    constraints: int
    candidates: dict[str, int]
    consistent: dict[str, int]
    problem: str
