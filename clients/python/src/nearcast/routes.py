"""Routes through streets."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from .areas import Position

RouteBy = Literal["duration", "length"]


class RouteLine(TypedDict):
    """A GeoJSON LineString, longitude before latitude."""

    type: Literal["LineString"]
    coordinates: list[list[float]]


class FoundRoute(TypedDict):
    """A way along the streets. `level` 0 is exact; `score` is what a route of the level is worth: 6, 4, 2 or 1."""

    route: RouteLine
    length_m: float
    duration_s: float
    level: int
    score: int


class _Area(TypedDict):
    subscription: str
    filter: int
    to: list[float]
    by: RouteBy
    radius_m: float
    state: Literal["found", "no-position", "sought", "off-streets", "unreachable", "no-room"]


class ClientRoute(_Area, total=False):
    """An area along a route as it lies now.

    `state` is `"found"`, or the reason for which it lies nowhere, with `why` in words. A way that was found has `route`, and `left_m` and `left_s` to
    its end. `approximate` is there, and true, for others than the client: the way is the one from where they are shown it.
    """

    why: str
    route: RouteLine
    left_m: float
    left_s: float
    approximate: Literal[True]


def question(
    begin: Position, end: Position, by: RouteBy | None, deadline_ms: float | None, coarsest: int | None
) -> dict[str, Any]:
    """The body of a question."""
    asked = {"from": list(begin), "to": list(end), "by": by, "deadline_ms": deadline_ms, "coarsest": coarsest}
    return {name: value for name, value in asked.items() if value is not None}
