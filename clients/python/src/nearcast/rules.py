"""Rule sets: events become facts, and rules derive, merge and cancel them. docs/protocol/rules.md of the broker describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypedDict

from .areas import Area
from .checks import written_filter
from .conditions import Condition
from .documents import SituationActivity


class FactRule(TypedDict, total=False):
    """Which events become a fact: those that satisfy the condition in the area."""

    where: Condition | str | bool | dict[str, Any]
    area: Area | dict[str, Any]
    args: list[str]
    """Its arguments: names of attributes, `@id`, `@lon`, `@lat`, `@time` (Unix seconds) and `@key`."""
    for_s: float
    """Seconds after which it is taken away; never when it is absent."""


class Publication(TypedDict, total=False):
    """How a constraint is published."""

    at: list[int]
    """Which two arguments are longitude and latitude, counted from 0; where the event was that brought it when it is absent."""
    properties: dict[str, Any]
    """The attributes of the event. `{0}` in a text stands for the first argument, and a text that is nothing else is that argument. The name
    of the constraint as `type` when it is absent."""
    key: str
    """The event's key, in which `{0}` stands for the first argument."""
    ttl_s: float
    """How long the event is live, in seconds."""


class _RuleSet(TypedDict):
    facts: dict[str, FactRule]
    program: str


class RuleSet(_RuleSet, total=False):
    """Which events become facts, by the name of the constraint; the rules, as a text; and what of what they make is published."""

    clock: Literal["arrival", "event"]
    """The time that facts go by: when events arrive (so when it is absent), or their `time`."""
    publish: dict[str, Publication]


class _RuleSetDocument(TypedDict):
    facts: dict[str, dict[str, Any]]
    program: str
    clock: Literal["arrival", "event"]
    publish: dict[str, Publication]
    activity: SituationActivity


class RuleSetDocument(_RuleSetDocument, total=False):
    """A rule set as the broker shows it, conditions as text, and, in lists, its `name`."""

    name: str


class PutRuleSet(NamedTuple):
    """What `put_rule_set` did."""

    rule_set: RuleSetDocument
    """The rule set as the broker has it."""
    created: bool
    """Whether there was none of this name before."""


def rule_set_document(rule_set: RuleSet | RuleSetDocument | Mapping[str, Any]) -> dict[str, Any]:
    """Writes a rule set as it goes over the wire."""
    document: dict[str, Any] = dict(rule_set)
    if "facts" in document:
        document["facts"] = {name: written_filter(fact) for name, fact in document["facts"].items()}
    return document
