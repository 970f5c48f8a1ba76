"""Following a position source: its fixes, which of them are worth a frame, and a recording of those without a connection."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass

from .areas import Position
from .clock import Clock

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


class Throttle:
    """Decides when a fix is sent: once it is far enough from the last one sent, or that is long enough ago, but never too soon after it."""

    def __init__(self, distance: Distance, min_distance_m: float, max_interval_s: float, min_interval_s: float) -> None:
        self._distance = distance
        self._min_distance_m = min_distance_m
        self._max_interval_s = max(max_interval_s, min_interval_s)
        self._min_interval_s = min_interval_s
        self._sent: Fix | None = None
        self._sent_at = 0.0

    def due_at(self, fix: Fix) -> float | None:
        """When a fix should be sent, on the monotonic clock; `None` for at once, because it is the first."""
        if self._sent is None:
            return None
        far = self._distance(self._sent.coordinates, fix.coordinates) >= self._min_distance_m
        return self._sent_at + (self._min_interval_s if far else self._max_interval_s)

    def sent(self, fix: Fix, now: float) -> None:
        """It was sent."""
        self._sent, self._sent_at = fix, now


async def follow(source: AsyncIterable[Fix], throttle: Throttle, clock: Clock, send: Callable[[Fix], None]) -> None:
    """Sends the fixes of a source that the throttle lets through, until it ends.

    A fix that has to wait is sent when its time has come, unless a newer one takes its place; the last one of all is sent at the end.
    """
    fixes: AsyncIterator[Fix] = aiter(source)
    newest: Fix | None = None
    coming = asyncio.ensure_future(_next(fixes))
    try:
        while True:
            timer = None
            if newest is not None:
                now = clock.monotonic()
                due_at = throttle.due_at(newest)
                if due_at is None or due_at <= now:
                    send(newest)
                    throttle.sent(newest, now)
                    newest = None
                else:
                    timer = asyncio.ensure_future(clock.sleep(due_at - now))
            try:
                await asyncio.wait((coming, timer) if timer else (coming,), return_when=asyncio.FIRST_COMPLETED)
            finally:
                if timer is not None:
                    timer.cancel()
            if coming.done():
                fix = coming.result()
                if fix is None:
                    break
                newest = fix
                coming = asyncio.ensure_future(_next(fixes))
        if newest is not None:
            send(newest)
    finally:
        coming.cancel()


async def _next(fixes: AsyncIterator[Fix]) -> Fix | None:
    try:
        return await anext(fixes)
    except StopAsyncIteration:
        return None


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
