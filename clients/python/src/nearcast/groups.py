"""Group definitions: which live objects fit together, one for each role. docs/protocol/groups.md of the broker describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypedDict

from .areas import Area
from .checks import written_filter
from .conditions import Condition
from .documents import SituationActivity
from .events import Finding


class Role(TypedDict, total=False):
    """Which live objects may take a role: those that satisfy the condition in the area."""

    where: Condition | str | bool | dict[str, Any]
    area: Area | dict[str, Any]


class _GroupDefinition(TypedDict):
    roles: dict[str, Role]


class GroupDefinition(_GroupDefinition, total=False):
    """Roles, conditions between them, and which groups are reported.

    `roles` are 1 to 8, by name. Their order counts: a group is reported at the place of its object of the first role.
    """

    where: list[str]
    """CQL2 texts, each over one or two roles, such as `DISTANCE(taxi, rider) <= 800`; all have to hold."""
    limit: int
    """Reported groups, 1 to 1,000: the first by `order`. 100 when it is absent."""
    order: str
    """A term by whose number groups are ranked, ascending; then, or when it is absent, the names of the objects, role by role."""


class _GroupDefinitionDocument(TypedDict):
    roles: dict[str, dict[str, Any]]
    where: list[str]
    limit: int
    activity: SituationActivity


class GroupDefinitionDocument(_GroupDefinitionDocument, total=False):
    """A group definition as the broker shows it, conditions as text, and, in lists, its `name`."""

    name: str
    order: str
    groups: list[dict[str, str]]
    """The reported groups now, in their order: the object of each role. Absent before it has begun."""


class ConditionLeaves(TypedDict):
    """How many candidates a condition leaves."""

    where: str
    candidates: int


class ExplainedPartners(TypedDict):
    """What is left of another role's candidates beside an object."""

    role: str
    """The other role."""
    candidates: int
    """Its candidates."""
    left: list[ConditionLeaves]
    """How many of them each condition over it alone and over both roles leaves by itself."""
    fitting: int
    """How many all of these leave."""
    consistent: int
    """How many of those are consistent."""


class _ExplainedRole(TypedDict):
    role: str
    consistent: bool
    partners: list[ExplainedPartners]


class ExplainedRole(_ExplainedRole, total=False):
    """How an object stands in one of its roles.

    It is `consistent` if it satisfies the conditions over the role alone and has a partner in each role that shares a condition with its own, which
    is consistent, too. `partners` has one for each of these roles.
    """

    failed: list[str]
    """Conditions over the role alone that are not true of it; absent where all are."""


class ExplainedObject(TypedDict):
    """Why an object is in groups or in none."""

    object: str
    groups: int
    """How many reported groups have it."""
    roles: list[ExplainedRole]
    """How it stands in each of its roles, in their order."""
    why: str
    """Why, in a sentence."""


class PutGroupDefinition(NamedTuple):
    """What `put_group_definition` did."""

    group_definition: GroupDefinitionDocument
    """The group definition as the broker has it."""
    created: bool
    """Whether there was none of this name before."""


class _GroupProperties(TypedDict):
    type: Literal["group"]
    group: str
    transition: Literal["enter", "exit"]


class GroupProperties(_GroupProperties, total=False):
    """The properties of what a group definition publishes: its name, and whether the group is reported from now on, or no more.

    `roles` has the object of each role: its key, or the id of its event. It is absent for a reader that may not see these events.
    """

    roles: dict[str, str]


class GroupFinding(Finding):
    """An event that a group definition published."""

    properties: GroupProperties


def group_definition_document(
    definition: GroupDefinition | GroupDefinitionDocument | Mapping[str, Any],
) -> dict[str, Any]:
    """Writes a group definition as it goes over the wire."""
    document: dict[str, Any] = dict(definition)
    if "roles" in document:
        document["roles"] = {name: written_filter(role) for name, role in document["roles"].items()}
    return document
