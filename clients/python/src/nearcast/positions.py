"""Positions of a client: distances, fixes, and the track of what it did while there was no connection."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .areas import Position

EARTH_RADIUS_M = 6_371_008.8

TrackPoint = tuple[float, float, float]
"""`(longitude, latitude, unix_s)`, or `(x, y, unix_s)`."""

Distance = Callable[[Position, Position], float]
"""How many metres are between two positions."""


@dataclass(frozen=True, slots=True)
class Fix:
    """Where a client was at a moment, as a receiver says it."""

    coordinates: Position
    accuracy_m: float | None = None
    unix_s: float | None = None
    """When; the moment that `follow` takes it where it is absent."""


def great_circle_m(a: Position, b: Position) -> float:
    """The distance that the broker measures by in a geodetic world (haversine)."""
    lon_a, lat_a, lon_b, lat_b = map(math.radians, (a[0], a[1], b[0], b[1]))
    half = math.sin((lat_b - lat_a) / 2) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, half)))


def planar_m(a: Position, b: Position) -> float:
    """The distance that the broker measures by in a planar world."""
    return math.hypot(b[0] - a[0], b[1] - a[1])


def moved(coordinates: Position, accuracy_m: float | None = None, time: str | None = None) -> dict[str, Any]:
    """A position as it goes over the wire."""
    document: dict[str, Any] = {"coordinates": list(coordinates)}
    if accuracy_m is not None:
        document["accuracy_m"] = accuracy_m
    if time is not None:
        document["time"] = time
    return document


def tracked(points: Sequence[TrackPoint], accuracy_m: float | None = None) -> dict[str, Any]:
    """A track as it goes over the wire."""
    document: dict[str, Any] = {"track": [list(point) for point in points]}
    if accuracy_m is not None:
        document["accuracy_m"] = accuracy_m
    return document


class Recorder:
    """A track of bounded length: when it is full every second point inside of it goes, so that it stays even in time."""

    def __init__(self, points_max: int = 1_000) -> None:
        if points_max < 3:
            raise ValueError("a track has room for three points at least")
        self._points_max = points_max
        self._points: list[TrackPoint] = []
        self.accuracy_m: float | None = None

    def __len__(self) -> int:
        return len(self._points)

    def record(self, coordinates: Position, unix_s: float, accuracy_m: float | None = None) -> None:
        """Adds a point. One that is older than the last gets its time, for times must not descend."""
        if len(self._points) == self._points_max:
            del self._points[1:-1:2]
        if self._points:
            unix_s = max(unix_s, self._points[-1][2])
        self._points.append((coordinates[0], coordinates[1], unix_s))
        self.accuracy_m = accuracy_m

    def take(self) -> list[TrackPoint]:
        """The track so far; a new one begins."""
        points, self._points = self._points, []
        return points
