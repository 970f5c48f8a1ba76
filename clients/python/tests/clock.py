"""A clock that goes when a test says so."""

from __future__ import annotations

import asyncio
import heapq
import itertools


class FakeClock:
    """Time stands still until `advance` moves it; who sleeps wakes in the order of their times."""

    def __init__(self, unix_s: float = 1_772_350_200.0) -> None:
        self._now = 0.0
        self._began = unix_s
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self._now

    def time(self) -> float:
        return self._began + self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), waker))
        await waker

    @property
    def sleeping(self) -> list[float]:
        """When those who sleep wake."""
        return sorted(time for time, _, waker in self._sleepers if not waker.done())

    async def advance(self, seconds: float) -> None:
        """Moves it, and lets those run who wake."""
        await settle()
        until = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= until:
            self._now, _, waker = heapq.heappop(self._sleepers)
            if not waker.done():
                waker.set_result(None)
                await settle()
        self._now = until
        await settle()


async def settle() -> None:
    """Lets everything run that can run without the network."""
    for _ in range(20):
        await asyncio.sleep(0)
