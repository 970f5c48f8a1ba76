"""Following a position source: which of its fixes are worth a frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable

from .clock import Clock
from .positions import Distance, Fix


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
