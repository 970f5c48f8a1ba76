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


def question(
    begin: Position, end: Position, by: RouteBy | None, deadline_ms: float | None, coarsest: int | None
) -> dict[str, Any]:
    """The body of a question."""
    asked = {"from": list(begin), "to": list(end), "by": by, "deadline_ms": deadline_ms, "coarsest": coarsest}
    return {name: value for name, value in asked.items() if value is not None}
