"""Checks: constraints on the events of some time. docs/protocol/checks.md of the broker describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypedDict, Union

from .areas import Area
from .conditions import Condition
from .documents import SituationActivity
from .events import Finding

Formula = Union[str, "Forall", "Exists", "And", "Or", "Implies", "Not"]
"""What has to hold: a CQL2 text over the variables, such as `SPEED(a, b) <= 55`, or what is made of others."""

Forall = TypedDict("Forall", {"forall": str, "in": str, "that": Formula})
Exists = TypedDict("Exists", {"exists": str, "in": str, "that": Formula})
And = TypedDict("And", {"and": list[Formula]})
Or = TypedDict("Or", {"or": list[Formula]})
Not = TypedDict("Not", {"not": Formula})


class Implies(TypedDict):
    """Where the first holds, the second does."""

    implies: list[Formula]


class _Lasting(TypedDict):
    for_s: float


class CheckContext(_Lasting, total=False):
    """A set of events: each that satisfies the condition in the area, for some seconds."""

    where: Condition | str | bool | dict[str, Any]
    area: Area | dict[str, Any]


class _CheckOptions(TypedDict, total=False):
    clock: Literal["arrival", "event"]
    """The time that the sets go by: when events arrive (so when it is absent), or their `time`."""
    on_violation: Literal["tell", "mark", "drop"]
    """What becomes of a violation: it is published (so when it is absent), its event is delivered with `violates`, or its event is refused
    with the problem `inconsistent`."""


class FormulaCheck(_CheckOptions):
    """Sets of events, and a formula that has to hold for them."""

    contexts: dict[str, CheckContext]
    formula: Formula


class SpeedCheck(_CheckOptions):
    """An object, which an attribute names, is no faster between two of its reports of a minute."""

    preset: Literal["speed"]
    object: str
    max_m_per_s: float


class AccuracyCheck(_CheckOptions):
    """An event that has this attribute has at most so much of it."""

    preset: Literal["accuracy"]
    property: str
    max_m: float


class FrozenCheck(_CheckOptions):
    """An object, which an attribute names, does not report the very same place for so long."""

    preset: Literal["frozen"]
    object: str
    for_s: float


class OutsideCheck(_CheckOptions):
    """Events are within a GeoJSON Polygon."""

    preset: Literal["outside"]
    polygon: Mapping[str, Any]


class DuplicateCheck(_CheckOptions):
    """An object, which an attribute names, does not report twice within this distance and time."""

    preset: Literal["duplicate"]
    object: str
    within_m: float
    for_s: float


Check = FormulaCheck | SpeedCheck | AccuracyCheck | FrozenCheck | OutsideCheck | DuplicateCheck
"""What has to hold, written out or as a preset."""


class _CheckDocument(TypedDict):
    contexts: dict[str, dict[str, Any]]
    formula: Formula
    clock: Literal["arrival", "event"]
    on_violation: Literal["tell", "mark", "drop"]
    activity: SituationActivity


class CheckDocument(_CheckDocument, total=False):
    """A check as the broker shows it: with the sets and the formula that a preset became, and, in lists, its `name`."""

    name: str


class PutCheck(NamedTuple):
    """What `put_check` did."""

    check: CheckDocument
    """The check as the broker has it."""
    created: bool
    """Whether there was none of this name before."""


class _ViolationProperties(TypedDict):
    type: Literal["violation"]
    check: str


class ViolationProperties(_ViolationProperties, total=False):
    """The properties of what a check publishes: its name, and the ids of the events that do not fit together, by variable, which are absent for
    a reader that may not see these events.

    Where it marks or drops, also what became of the event that brought it, and the id of this event.
    """

    bindings: dict[str, str]
    outcome: Literal["marked", "dropped"]
    event: str


class Violation(Finding):
    """An event that a check published, or lists where it marks or drops."""

    properties: ViolationProperties


def check_document(check: Check | CheckDocument | Mapping[str, Any]) -> dict[str, Any]:
    """Writes a check as it goes over the wire."""
    document: dict[str, Any] = dict(check)
    if "contexts" in document:
        document["contexts"] = {name: written_filter(context) for name, context in document["contexts"].items()}
    return document


def written_filter(filter: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the `where` and the `area` of a set, a fact or a role, as they go over the wire."""
    written = dict(filter)
    if isinstance(written.get("where"), Condition):
        written["where"] = str(written["where"])
    if isinstance(written.get("area"), Area):
        written["area"] = dict(written["area"].document)
        if not written["area"]:
            del written["area"]
    return written
