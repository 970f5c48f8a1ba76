"""Time, so that tests can bring their own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Protocol, TypeVar

from .errors import TimedOutError

T = TypeVar("T")


class Clock(Protocol):
    """What the SDK knows of time."""

    def monotonic(self) -> float:
        """Seconds from some moment on; never goes back."""
        ...

    def time(self) -> float:
        """Seconds since 1970, UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Returns when this many seconds have passed."""
        ...


class SystemClock:
    """The clock of the machine."""

    def monotonic(self) -> float:
        """Seconds from some moment on; never goes back."""
        return time.monotonic()

    def time(self) -> float:
        """Seconds since 1970, UTC."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Returns when this many seconds have passed."""
        await asyncio.sleep(seconds)


async def within(clock: Clock, seconds: float | None, awaitable: Awaitable[T], what: str) -> T:
    """Waits for something, but no longer than a number of seconds; `None` is for ever.

    Raises:
        TimedOutError: The time is over. What was waited for is cancelled.
    """
    if seconds is None:
        return await awaitable
    waited = asyncio.ensure_future(awaitable)
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((waited, timer), return_when=asyncio.FIRST_COMPLETED)
        if not waited.done():
            raise TimedOutError(f"{what} within {seconds:g} s")
        return waited.result()
    finally:
        timer.cancel()
        waited.cancel()
