"""Subscriptions: what a client wants to hear of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from .areas import Area
from .conditions import Condition

On = Literal["event", "enter", "exit"]
"""What a subscription brings: events, or that objects come inside and leave."""

Overflow = Literal["drop-oldest", "keep-latest", "disconnect"]
"""What happens at the broker when the client does not keep up."""


@dataclass(frozen=True, slots=True)
class Filter:
    """An area and a condition, which both have to hold; absent is everywhere, and every event."""

    area: Area | None = None
    where: Condition | str | bool | Mapping[str, Any] | None = None
    """What `attr` built, CQL2 text, or CQL2-JSON."""

    def document(self) -> dict[str, Any]:
        """As it goes over the wire."""
        document: dict[str, Any] = {}
        if not (self.area is None or isinstance(self.area, Area)):
            raise TypeError(
                "the area of a Filter is made by around, circle, polygon, corridor, along_route or everywhere, "
                f"not a {_kind(self.area)}: {_CONDITION}"
            )
        if self.area is not None and self.area.document:
            document["area"] = dict(self.area.document)
        if self.where is not None:
            document["where"] = str(self.where) if isinstance(self.where, Condition) else self.where
        return document


_CONDITION = "a condition alone is Filter(where=..)"


def _kind(given: object) -> str:
    return type(given).__name__


class Activity(TypedDict):
    """What happened to a subscription since it was made. Times are RFC 3339, `None` before the first."""

    evaluations: int
    last_evaluation: str | None
    matches: int
    last_match: str | None
    deliveries: int
    last_delivery: str | None


class SubscriptionWarning(TypedDict):
    """Something in a subscription that is probably not meant so."""

    pointer: str
    detail: str


class _Required(TypedDict):
    filters: list[dict[str, Any]]


class SubscriptionDocument(_Required, total=False):
    """A subscription as it goes over the wire, and as the broker shows it in its normal form."""

    id: str
    on: list[On]
    initial: bool
    dwell_s: float
    hysteresis_m: float
    durable: bool
    overflow: Overflow
    activity: Activity
    warnings: list[SubscriptionWarning]
    """What is probably not meant so, in the answer that made it."""


Filters = Filter | Sequence[Filter | Mapping[str, Any]] | SubscriptionDocument | Mapping[str, Any]
"""What a subscription takes: a filter, several of them, or the subscription as it goes over the wire."""


def subscription(
    filters: Filters,
    *,
    on: On | Sequence[On] | None = None,
    initial: bool | None = None,
    dwell_s: float | None = None,
    hysteresis_m: float | None = None,
    durable: bool | None = None,
    overflow: Overflow | None = None,
) -> SubscriptionDocument:
    """Writes a subscription; `Session.subscribe` explains what its members mean."""
    given: Any = filters
    document: Any = {}
    if isinstance(given, Mapping):
        # What the broker says of a subscription is not for it.
        document = {name: member for name, member in given.items() if name not in {"id", "activity", "warnings"}}
        given = document.get("filters")
    given = [given] if isinstance(given, Filter) else given
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise _no_filters(given)
    document["filters"] = [_written(each) for each in given]
    if on is not None:
        document["on"] = [on] if isinstance(on, str) else list(on)
    if initial is not None:
        document["initial"] = initial
    if dwell_s is not None:
        document["dwell_s"] = dwell_s
    if hysteresis_m is not None:
        document["hysteresis_m"] = hysteresis_m
    if durable is not None:
        document["durable"] = durable
    if overflow is not None:
        document["overflow"] = overflow
    written: SubscriptionDocument = document
    return written


def _written(given: object) -> dict[str, Any]:
    if isinstance(given, Filter):
        return given.document()
    if isinstance(given, Mapping):
        return dict(given)
    raise _no_filters(given)


def _no_filters(given: object) -> TypeError:
    return TypeError(
        f"a subscription takes a Filter, a list of them, or {{'filters': [..]}} as the protocol writes it, not a {_kind(given)}: "
        f"an area alone is Filter(around(500)), {_CONDITION}"
    )
