"""Areas of relevance: where an event has to lie for a filter to take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Position = Sequence[float]
"""`[longitude, latitude]` in WGS 84 degrees, or `[x, y]` in metres in a planar world; a third number, the altitude, is not used."""


@dataclass(frozen=True, slots=True)
class Area:
    """An area, made by `around`, `circle`, `polygon`, `corridor`, `along_route` or `everywhere`.

    What is wrong with it (a radius below 0, a ring that does not close) the broker says, when it is subscribed with.
    """

    document: Mapping[str, Any]
    """As it goes over the wire; empty for everywhere."""

    def nearest(self, k: int) -> Area:
        """Of the live objects inside only the `k` nearest to the client count."""
        return Area({**self.document, "nearest": k})


def around(radius_m: float) -> Area:
    """A circle around the client, which follows it. It holds nothing while the client has told no position."""
    return Area({"radius_m": radius_m})


def circle(center: Position, radius_m: float) -> Area:
    """A circle that stays. Its edge belongs to it."""
    return Area({"center": list(center), "radius_m": radius_m})


def polygon(rings: Sequence[Sequence[Position]] | Mapping[str, Any]) -> Area:
    """A polygon: its outer ring and its holes, as in GeoJSON, or a GeoJSON Polygon or MultiPolygon itself.

    A ring that does not end where it begins is closed; GeoJSON is passed on as it is. One across the antimeridian comes cut in two, as a
    MultiPolygon.
    """
    if isinstance(rings, Mapping):
        return Area({"polygon": dict(rings)})
    return Area({"polygon": {"type": "Polygon", "coordinates": [_closed(ring) for ring in rings]}})


def corridor(line: Sequence[Position] | Mapping[str, Any], radius_m: float) -> Area:
    """All within a distance of a line: its positions, at least two, or a GeoJSON LineString."""
    if isinstance(line, Mapping):
        return Area({"corridor": dict(line), "radius_m": radius_m})
    coordinates = [list(point) for point in line]
    return Area({"corridor": {"type": "LineString", "coordinates": coordinates}, "radius_m": radius_m})


def along_route(to: Position, radius_m: float) -> Area:
    """All within a distance of the quickest way along streets from the client to a place.

    It is found again when the client has left it, and holds nothing while the client has told no position. The broker has to know the streets.
    """
    return Area({"route": {"to": list(to)}, "radius_m": radius_m})


def everywhere() -> Area:
    """Wherever it is."""
    return Area({})


def _closed(ring: Sequence[Position]) -> list[list[float]]:
    points = [list(point) for point in ring]
    return points if not points or points[0] == points[-1] else [*points, points[0]]
