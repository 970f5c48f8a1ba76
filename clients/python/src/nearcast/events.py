"""Events as they are published: GeoJSON Features with a Point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from .areas import Position


class PointGeometry(TypedDict):
    """Where an event happened."""

    type: Literal["Point"]
    coordinates: list[float]


_From = TypedDict("_From", {"from": list[str]}, total=False)


class Derived(_From):
    """Where an event of the broker's own comes from: what published it, as `checks/jump`, and one more than the greatest depth of the events
    that it was made of. `from` are the ids of these; it is absent for a reader that may not see them.
    """

    by: str
    depth: int


class _Required(TypedDict):
    type: Literal["Feature"]
    geometry: PointGeometry


class Feature(_Required, total=False):
    """An event. It may have further members, which are passed on."""

    id: str | float | None
    properties: dict[str, Any] | None
    time: str
    ttl_s: float
    key: str
    priority: Literal["normal", "alarm"]
    reach_m: float
    deadline_ms: float
    derived: Derived
    """Only the broker's own events have it."""


class Finding(TypedDict):
    """An event of the broker's own, beside its properties."""

    type: Literal["Feature"]
    id: str
    time: str
    geometry: PointGeometry
    derived: Derived


def delivered(feature: Feature) -> Feature:
    """An event of the broker's. GeoJSON lets `properties` be `None` or absent; an application may rely on an object."""
    return feature if feature.get("properties") is not None else {**feature, "properties": {}}


def event(
    position: Position,
    properties: Mapping[str, Any] | None = None,
    *,
    id: str | float | None = None,
    time: str | None = None,
    ttl_s: float | None = None,
    key: str | None = None,
    priority: Literal["normal", "alarm"] | None = None,
    reach_m: float | None = None,
    deadline_ms: float | None = None,
) -> Feature:
    """Makes an event.

    Args:
        position: Where: `[longitude, latitude]`, or `[x, y]` in a planar world.
        properties: The attributes. Nested objects get names joined by dots.
        id: What it is called. `publish` gives it one where it has none, so that it can be sent again after a break.
        time: When it happened, RFC 3339 with an offset; the time of arrival where it is absent.
        ttl_s: For how many seconds it is live: who comes into reach of it gets it then.
        key: The object that it is about; a newer event of this key takes its place.
        priority: `"alarm"` goes before others, and is taken when others are refused.
        reach_m: Clients whose position is further away do not get it.
        deadline_ms: Milliseconds from its arrival within which it may be delivered; then a gap of reason `late` takes its place.
    """
    feature: Feature = {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": list(position)},
        "properties": dict(properties or {}),
    }
    if id is not None:
        feature["id"] = id
    if time is not None:
        feature["time"] = time
    if ttl_s is not None:
        feature["ttl_s"] = ttl_s
    if key is not None:
        feature["key"] = key
    if priority is not None:
        feature["priority"] = priority
    if reach_m is not None:
        feature["reach_m"] = reach_m
    if deadline_ms is not None:
        feature["deadline_ms"] = deadline_ms
    return feature
