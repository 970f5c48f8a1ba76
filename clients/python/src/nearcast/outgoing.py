"""Frames on their way to the broker, in order, and the requests that wait for an answer."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from .errors import NearcastError, ProblemError
from .problems import Problem


def encode(document: Mapping[str, Any]) -> str:
    """Writes JSON.

    Raises:
        TypeError, ValueError: It has something that JSON has not: NaN, half of a surrogate pair, an object of a class.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text.encode()
    return text


class Outbound:
    """A frame that is to be written, and what becomes of it."""

    __slots__ = ("again", "done", "op", "ref", "settled", "text", "writes")

    def __init__(self, op: str, text: str, ref: int | None, *, again: bool = False) -> None:
        self.op = op
        self.text = text
        self.ref = ref
        self.again = again
        """Whether it is written again when its connection breaks before the answer."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Ends with the answer."""
        self.settled: Callable[[Problem | None], Problem | None] | None = None
        """Is told of the answer before `done` is, and may make another one of it."""
        self.writes = 0
        """How often it was written."""


class Outgoing:
    """What one session writes: `add` decides the order, `next` gives it to the socket, `answer` ends what was asked."""

    def __init__(self) -> None:
        self._refs = itertools.count(1)
        self._queue: deque[Outbound] = deque()
        self._writing: Outbound | None = None
        self._unanswered: dict[int, Outbound] = {}
        self._arrival = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waits(self) -> bool:
        """Whether something that was written waits for its answer."""
        return bool(self._unanswered)

    def ask(self, frame: Mapping[str, Any], *, again: bool) -> Outbound:
        """Adds a request, which will be answered."""
        ref = next(self._refs)
        outbound = Outbound(frame["op"], encode({"op": frame["op"], "ref": ref, **frame}), ref, again=again)
        self.add(outbound)
        return outbound

    def tell(self, frame: Mapping[str, Any]) -> Outbound:
        """Adds a frame without an answer."""
        outbound = Outbound(frame["op"], encode(frame), None)
        self.add(outbound)
        return outbound

    def tell_newest(self, frame: Mapping[str, Any]) -> None:
        """The same of something that makes an earlier one out of date: that is not written if it is the last that waits."""
        last = self._queue[-1] if self._queue else None
        if last is not None and last is not self._writing and last.ref is None and last.op == frame["op"]:
            last.text = encode(frame)
        else:
            self.tell(frame)

    def add(self, outbound: Outbound) -> None:
        """Puts a frame behind all others."""
        if outbound.ref is not None:
            self._unanswered[outbound.ref] = outbound
        self._queue.append(outbound)
        self._arrival.set()
        self._idle.clear()

    async def next(self) -> Outbound:
        """The first frame, which stays the first until it is `written`."""
        while True:
            while self._queue:
                first = self._queue[0]
                if not first.done.cancelled():
                    self._writing = first
                    return first
                self._forget(self._queue.popleft())
            self._arrival.clear()
            await self._arrival.wait()

    def written(self, outbound: Outbound) -> None:
        """The frame that `next` gave is with the socket."""
        outbound.writes += 1
        self._writing = None
        if self._queue and self._queue[0] is outbound:
            self._queue.popleft()
        if outbound.ref is None and not outbound.done.done():
            outbound.done.set_result(None)
        self.look_idle()

    def answer(self, ref: object, problem: Problem | None) -> bool:
        """Ends a request; whether there was one."""
        outbound = self._unanswered.pop(ref, None) if isinstance(ref, int) else None
        if outbound is None:
            return False
        if outbound.settled is not None:
            problem = outbound.settled(problem)
        if not outbound.done.done():
            if problem is None:
                outbound.done.set_result(None)
            else:
                outbound.done.set_exception(ProblemError(problem))
        self.look_idle()
        return True

    def broken(self) -> list[Outbound]:
        """The connection is gone: empties it, and gives what is to be written on the next one, in its order.

        Who waits for `idle` goes on waiting until `look_idle` is called, when that is added again.
        """
        unanswered = [outbound for outbound in self._unanswered.values() if not outbound.done.done()]
        self._queue.clear()
        self._unanswered.clear()
        self._writing = None
        return [outbound for outbound in unanswered if outbound.again]

    def fail(self, error: NearcastError) -> None:
        """Ends everything that waits."""
        for outbound in (*self._queue, *self._unanswered.values()):
            if not outbound.done.done():
                outbound.done.set_exception(error)
                outbound.done.exception()
        self._queue.clear()
        self._unanswered.clear()
        self.look_idle()

    async def idle(self) -> None:
        """Returns when everything is written and answered."""
        await self._idle.wait()

    def _forget(self, outbound: Outbound) -> None:
        if outbound.ref is not None:
            self._unanswered.pop(outbound.ref, None)
        self.look_idle()

    def look_idle(self) -> None:
        """Looks whether there is nothing more to do."""
        if not self._queue and not self._unanswered:
            self._idle.set()
