"""Acknowledgements: as few frames as will do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .clock import Clock

DELIVERIES = 100
"""Number of processed deliveries after which an acknowledgement is sent at once, .."""
DELAY_S = 0.9
""".. and else so long after the first of them, so that it is there within a second."""


class Acknowledgements:
    """Collects what was processed and says when that is to be sent."""

    def __init__(self, clock: Clock, send: Callable[[int], None]) -> None:
        """Makes one.

        Args:
            clock: What it waits by.
            send: Is told the offset to send now; only called while there is a connection.
        """
        self._clock = clock
        self._send = send
        self._ready = False
        self._offset: int | None = None
        self._sent: int | None = None
        self._count = 0
        self._timer: asyncio.Task[None] | None = None

    def processed(self, offset: int, count: int) -> None:
        """Everything up to an offset is processed, so many messages more than the last time: it may wait for others."""
        if self._offset is not None and offset <= self._offset:
            return
        self._offset = offset
        self._count += count
        if self._count >= DELIVERIES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.ensure_future(self._later())

    def at_once(self, offset: int) -> None:
        """The same without waiting."""
        self._offset = max(offset, self._offset or 0)
        self.flush()

    def flush(self) -> None:
        """Sends what was collected; without a connection it stays for the next one."""
        self._stop_timer()
        self._count = 0
        if self._ready and self._offset is not None and self._offset != self._sent:
            self._sent = self._offset
            self._send(self._offset)

    def begin(self, *, resumed: bool) -> None:
        """A connection is ready. In a session that goes on the last offset is sent again, for nobody knows whether it arrived."""
        if not resumed:
            self._offset = None
        self._ready = True
        self._sent = None
        self.flush()

    def broken(self) -> None:
        """The connection is gone."""
        self._ready = False
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _later(self) -> None:
        await self._clock.sleep(DELAY_S)
        self._timer = None
        self.flush()
