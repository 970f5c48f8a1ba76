"""Positions of the client, present and past, which are sent again on each connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .areas import Position
from .errors import NearcastError, ProblemError
from .follow import Fix, Recorder, TrackPoint
from .problems import Problem
from .requests import Request, Requests


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


class Positions:
    """Tells positions, and tells the newest again to each new connection.

    Positions do not queue up: while there is no connection the newest one wins, and who waits for an older one to be in force waits for it.
    What a followed source says meanwhile is recorded as a track.
    """

    def __init__(self, requests: Requests, refused: Callable[[Problem], None]) -> None:
        self._requests = requests
        self._refused = refused
        self._newest: Mapping[str, Any] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._end_of: Request | Recorder | None = None
        """What ends at the newest position, and tells it."""
        self._recorder = Recorder()

    def move(self, position: Mapping[str, Any], *, ready: bool) -> None:
        """Tells a position, for which nobody waits."""
        if ready:
            self._requests.tell_newest({"op": "move", **position})
        self._newest, self._end_of = position, None

    async def confirmed(self, position: Mapping[str, Any], *, ready: bool) -> None:
        """Tells a position, and waits until it, or a newer one, is in force."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if ready:
            self._ask(position, [waiter])
        self._newest, self._end_of = position, None
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            self._waiters.remove(waiter)

    def followed(self, fix: Fix, unix_s: float, *, ready: bool) -> None:
        """Tells a fix of a source that is followed, or records it."""
        position = moved(fix.coordinates, fix.accuracy_m)
        if ready:
            self.move(position, ready=True)
            return
        if not self._recorder and self._newest is not None:
            # The track begins where the client was last known to be.
            self._recorder.record(self._newest["coordinates"], unix_s)
        self._recorder.record(fix.coordinates, unix_s, fix.accuracy_m)
        self._newest, self._end_of = position, self._recorder

    def track(self, track: Mapping[str, Any], *, ready: bool, confirm: bool) -> Request | None:
        """Tells a track, whose end is the newest position. One that cannot be told now, or that somebody waits for, is not lost."""
        told = self._requests.ask({"op": "move", **track}, again=True) if confirm or not ready else None
        if told is None:
            self._requests.tell({"op": "move", **track})
        elif not confirm:
            told.settled = self._settled
        newest = {name: value for name, value in track.items() if name != "track"}
        self._newest, self._end_of = {"coordinates": track["track"][-1][:2], **newest}, told
        return told

    def begin(self, unanswered: list[Request]) -> list[Request]:
        """Tells a new connection: tracks that were not answered yet or recorded meanwhile, and the newest position.

        Gives the rest of what is unanswered.
        """
        tracks = [request for request in unanswered if request.op == "move"]
        for track in tracks:
            self._requests.add(track)
        if self._recorder:
            frame = {"op": "move", **tracked(self._recorder.take(), self._recorder.accuracy_m)}
            recorded = self._requests.ask(frame, again=True)
            recorded.settled = self._settled
            tracks.append(recorded)
            if self._end_of is self._recorder:
                self._end_of = recorded
        waiters = [waiter for waiter in self._waiters if not waiter.done()]
        if waiters and self._newest is not None:
            self._ask(self._newest, waiters)
        elif self._newest is not None and self._end_of not in tracks:
            self._requests.tell({"op": "move", **self._newest})
        return [request for request in unanswered if request.op != "move"]

    def fail(self, error: NearcastError) -> None:
        """Ends everything that waits."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error)

    def _settled(self, problem: Problem | None) -> None:
        """Of a track that nobody waits for."""
        if problem is not None:
            self._refused(problem)

    def _ask(self, position: Mapping[str, Any], waiters: list[asyncio.Future[None]]) -> None:
        def settled(problem: Problem | None) -> None:
            for waiter in waiters:
                if waiter.done():
                    continue
                if problem is None:
                    waiter.set_result(None)
                else:
                    waiter.set_exception(ProblemError(problem))

        self._requests.ask({"op": "move", **position}, again=False).settled = settled
