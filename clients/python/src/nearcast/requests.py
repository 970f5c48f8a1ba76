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


class Request:
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
        """Called with the answer before `done` is, and may make another one of it."""
        self.writes = 0
        """How often it was written."""


class Requests:
    """What one session writes: `add` decides the order, `next` gives it to the socket, `answer` ends what was asked."""

    def __init__(self) -> None:
        self._refs = itertools.count(1)
        self._queue: deque[Request] = deque()
        self._writing: Request | None = None
        self._unanswered: dict[int, Request] = {}
        self._arrival = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waits(self) -> bool:
        """Whether something that was written waits for its answer."""
        return bool(self._unanswered)

    def ask(self, frame: Mapping[str, Any], *, again: bool) -> Request:
        """Adds a request, which will be answered."""
        ref = next(self._refs)
        request = Request(frame["op"], encode({"op": frame["op"], "ref": ref, **frame}), ref, again=again)
        self.add(request)
        return request

    def tell(self, frame: Mapping[str, Any]) -> Request:
        """Adds a frame without an answer."""
        request = Request(frame["op"], encode(frame), None)
        self.add(request)
        return request

    def tell_newest(self, frame: Mapping[str, Any]) -> None:
        """Adds a frame without an answer that makes an earlier one out of date: that is not written if it is the last that waits."""
        last = self._queue[-1] if self._queue else None
        if last is not None and last is not self._writing and last.ref is None and last.op == frame["op"]:
            last.text = encode(frame)
        else:
            self.tell(frame)

    def add(self, request: Request) -> None:
        """Puts a frame behind all others."""
        if request.ref is not None:
            self._unanswered[request.ref] = request
        self._queue.append(request)
        self._arrival.set()
        self._idle.clear()

    async def next(self) -> Request:
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

    def written(self, request: Request) -> None:
        """The frame that `next` gave is with the socket."""
        request.writes += 1
        self._writing = None
        if self._queue and self._queue[0] is request:
            self._queue.popleft()
        if request.ref is None and not request.done.done():
            request.done.set_result(None)
        self.look_idle()

    def answer(self, ref: object, problem: Problem | None) -> bool:
        """Ends a request; whether there was one."""
        request = self._unanswered.pop(ref, None) if isinstance(ref, int) else None
        if request is None:
            return False
        if request.settled is not None:
            problem = request.settled(problem)
        if not request.done.done():
            if problem is None:
                request.done.set_result(None)
            else:
                request.done.set_exception(ProblemError(problem))
        self.look_idle()
        return True

    def broken(self) -> list[Request]:
        """The connection is gone: empties it, and gives what is to be written on the next one, in its order.

        Who waits for `idle` goes on waiting until `look_idle` is called, when that is added again.
        """
        unanswered = [request for request in self._unanswered.values() if not request.done.done()]
        self._queue.clear()
        self._unanswered.clear()
        self._writing = None
        return [request for request in unanswered if request.again]

    def fail(self, error: NearcastError) -> None:
        """Ends everything that waits."""
        for request in (*self._queue, *self._unanswered.values()):
            if not request.done.done():
                request.done.set_exception(error)
                request.done.exception()
        self._queue.clear()
        self._unanswered.clear()
        self.look_idle()

    async def idle(self) -> None:
        """Returns when everything is written and answered."""
        await self._idle.wait()

    def _forget(self, request: Request) -> None:
        if request.ref is not None:
            self._unanswered.pop(request.ref, None)
        self.look_idle()

    def look_idle(self) -> None:
        """Looks whether there is nothing more to do."""
        if not self._queue and not self._unanswered:
            self._idle.set()
