"""What keeps a session going: opens connections, tells each new one what the last one knew, and passes on what comes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any, NoReturn
from urllib.parse import quote

from .acks import Acknowledgements
from .backoff import Waits, is_away
from .clock import within
from .endpoint import HOPS, Endpoints, segment
from .errors import ClosedError, NearcastError, ProblemError, TimedOutError, UnreachableError
from .inbox import Inbox
from .link import OPEN_TIMEOUT_S, Link
from .messages import Event, Frame, Gap, Message, OkFrame, PongFrame, ProblemFrame, ReadyFrame, RetryFrame, read_frame
from .options import Options
from .positions import Positions
from .problems import Problem
from .requests import Request, Requests
from .states import Closed, Connecting, Lost, Ready, Refused, RequestWarned, State
from .subscriptions import SubscriptionDocument
from .tokens import Tokens

log = logging.getLogger("nearcast")

URGENT_TIMES = 16
"""Multiple of the buffer's bound that may wait while a call waits for its answer."""
WARNED = 32
"""Number of different warnings of the broker that are logged."""
STATES_KEPT = 64
"""Number of changes of the connection that wait for a watcher; of more the oldest are lost."""


class Conversation:
    """The connections of a session, one after the other."""

    def __init__(self, endpoints: Endpoints, client: str, tokens: Tokens, options: Options) -> None:
        self._endpoints = endpoints
        self._path = f"/v1/clients/{segment(client)}/ws"
        self._endpoint = endpoints.of(self._path)
        """The one that was tried last."""
        self._asked = self._endpoint
        """The one that was asked first where the client is served, which may have named another."""
        self._untried = 0
        """Addresses that are tried without a wait where the present one fails."""
        self._tokens = tokens
        self._options = options
        self._clock = options.clock
        self._epoch = ""
        self._link: Link | None = None
        self._last_problem: Problem | None = None
        self._retry_s: float | None = None
        self._hurry = asyncio.Event()
        self._lost: NearcastError | None = None
        self._error: NearcastError | None = None
        self._pongs: deque[asyncio.Future[None]] = deque()
        self._watches: weakref.WeakSet[Watch] = weakref.WeakSet()
        self._first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing: asyncio.Future[None] | None = None
        self.requests = Requests()
        self.acks = Acknowledgements(
            self._clock, lambda offset: self.requests.tell_newest({"op": "ack", "offset": offset})
        )
        processed = self.acks.processed if options.acknowledge == "auto" else _nothing
        self.inbox = Inbox(options.buffer, options.resume, processed)
        self.positions = Positions(self.requests, lambda problem: self._refused(problem, "a track"))
        self.subscriptions: dict[str, SubscriptionDocument] = {}
        """Those that this session made, in the order in which they were made first."""
        self.state: State = Connecting(1)
        self._warned: set[str] = set()
        """Where in frames the broker has found something odd, as far as that was logged."""
        self.ready = False
        """Whether there is a connection."""
        self._running = asyncio.ensure_future(self._run())

    async def until_ready(self) -> None:
        """Waits for the first connection.

        Raises:
            NearcastError: There is none: it was refused for good, or none came about in time.
        """
        try:
            await within(self._clock, self._options.connect_timeout_s, asyncio.shield(self._first), "no connection")
        except TimedOutError as error:
            why = self._lost
            raise TimedOutError(f"{error}: {why}" if why else str(error)) from why

    def ask(self, frame: Mapping[str, Any], *, again: bool) -> Request:
        """Sends a request, now or when there is a connection."""
        self.check_open()
        request = self.requests.ask(frame, again=again)
        self.inbox.look_again()
        return request

    def acknowledge(self, upto: Message | int) -> None:
        """Sends an acknowledgement, now or when there is a connection, if it is of the present session."""
        offset = self.inbox.offset_of(upto)
        if offset is not None:
            self.acks.at_once(offset)

    def check_open(self) -> None:
        """Raises what ended the session, if it is over."""
        if self._closing is not None or isinstance(self.state, Closed):
            raise self._error or ClosedError(1000, "the session is closed")

    async def ping(self) -> None:
        """Waits for a `pong`."""
        self.check_open()
        if not self.ready:
            raise UnreachableError("there is no connection")
        pong: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.requests.tell({"op": "ping"})
        self._pongs.append(pong)
        self.inbox.look_again()
        await pong

    def watch(self) -> Watch:
        """What becomes of the connection, beginning with what is."""
        watch = Watch(self.state)
        self._watches.add(watch)
        return watch

    async def close(self) -> None:
        """Writes what waits, within a bound, closes the connection, and ends everything."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self.acks.flush()
        self.inbox.look_again()
        if not isinstance(self.state, Closed):
            try:
                await within(self._clock, self._options.close_timeout_s, self.requests.idle(), "not all was written")
            except TimedOutError as error:
                log.warning("closed before everything was answered: %s", error)
        if self._link is not None:
            await self._link.close()
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        self._end(None)

    async def _run(self) -> None:
        try:
            await self._connect_again_and_again()
        except Exception as error:
            log.exception("the session broke")
            self._end(UnreachableError(f"the session broke: {error!r}"))

    async def _connect_again_and_again(self) -> None:
        attempts = 0
        waits = Waits(self._options.backoff, self._options.chance)
        while self._closing is None:
            attempts += 1
            self._tell(Connecting(attempts))
            ready_s, error = await self._connection()
            self._lost = error
            if self._final(error):
                self._end(error)
                return
            has_asked = not isinstance(error, _NoTokenError)
            if ready_s is None and has_asked:
                self._endpoints.leave(self._asked)
                self._endpoints.leave(self._endpoint)
            elif ready_s is not None:
                attempts = 0
                if ready_s >= self._options.backoff.steady_s:
                    waits.reset()
            if self._untried > 0:
                delay_s = 0.0
            elif self._retry_s is None:
                retry_after_s = error.problem.retry_after_s if isinstance(error, ProblemError) else None
                delay_s = waits.next(away=has_asked and is_away(error), retry_after_s=retry_after_s)
            else:
                # If the broker is not there then, the waits begin anew with short ones.
                delay_s = self._retry_s
                waits.reset()
            if self._closing is None:
                await self._pause(delay_s, error)

    async def _pause(self, delay_s: float, error: NearcastError) -> None:
        self._hurry.clear()
        self._tell(Lost(error, delay_s))
        log.warning("no connection, trying again in %.1f s: %s", delay_s, error)
        with contextlib.suppress(TimedOutError):
            await within(self._clock, delay_s, self._hurry.wait(), "not woken")

    def wake(self) -> None:
        """Does not wait for the next try, which is made now."""
        self._hurry.set()

    async def _connection(self) -> tuple[float | None, NearcastError]:
        """One connection from its beginning to its end: for how long it was ready, if it ever was, and why it ended."""
        began = None
        try:
            link = await self._open()
            try:
                ready = await within(self._clock, OPEN_TIMEOUT_S, self._greeted(link), "no ready")
                began = self._clock.monotonic()
                self._untried = 0
                await self._converse(link, ready)
            finally:
                self._break()
                link.abort()
        except NearcastError as error:
            if isinstance(error, ClosedError) and error.problem is None:
                error.problem = self._last_problem
            return None if began is None else self._clock.monotonic() - began, error

    def _final(self, error: NearcastError) -> bool:
        """Whether the next connection would end as this one did."""
        if isinstance(error, ClosedError):
            return error.code == 1008 or (error.code == 4401 and not self._tokens.renewable)
        return isinstance(error, ProblemError) and error.status in (400, 401, 403)

    async def _open(self) -> Link:
        self._last_problem = self._retry_s = None
        self._asked = self._endpoint = self._endpoints.of(self._path)
        untried, self._untried = self._untried, 0
        token = await self._token()
        self._untried = (untried or len(self._endpoints) + (self._endpoints.home(self._path) is not None)) - 1
        received = self.inbox.received
        query = f"?resume={quote(received.epoch, safe='')}:{received.offset}" if received else ""
        hops = 0
        while True:
            endpoint = self._endpoint
            try:
                tls = self._endpoints.tls(self._options.tls) if endpoint.has_tls else None
                self._link = await Link.open(endpoint.ws + self._path + query, token, tls)
            except ProblemError as error:
                home = self._endpoints.learn(endpoint, self._path, error.problem.location) if hops < HOPS else None
                if home is None:
                    raise
                self._endpoint, hops = home, hops + 1
                # Where nobody is there, the others would name it, too, until its standby has taken over.
                self._untried = 0
            else:
                return self._link

    async def _token(self) -> str | None:
        try:
            return await self._tokens.fresh()
        except Exception as error:
            raise _NoTokenError(f"there is no token: {error!r}") from error

    async def _greeted(self, link: Link) -> ReadyFrame:
        while True:
            frame = self._frame(await link.receive())
            if isinstance(frame, ReadyFrame):
                return frame
            if isinstance(frame, ProblemFrame):
                self._last_problem = frame.problem

    async def _converse(self, link: Link, ready: ReadyFrame) -> NoReturn:
        self._epoch = ready.epoch
        self._begin(self.inbox.begin(ready.epoch, ready.offset), ready)
        tasks = [
            asyncio.ensure_future(activity)
            for activity in (
                self._read(link),
                self._write(link),
                link.keep_alive(self._clock, lambda: self.inbox.paused),
                self._renew(),
            )
        ]
        try:
            # Only reading always ends by an error, after all that came before.
            await asyncio.gather(*tasks)
            raise UnreachableError("nobody reads any more")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, resumed: bool, ready: ReadyFrame) -> None:
        """Tells a new connection what the application wants, in the order of the contract."""
        unanswered = self.requests.broken()
        self.ready = True
        self.acks.begin(resumed=resumed)
        unanswered = self.positions.begin(unanswered)
        for name, document in self.subscriptions.items():
            # A broker that forgot the session has forgotten the durable ones, too.
            if not resumed or not document.get("durable"):
                self._subscribe_again(name, document)
        for request in sorted(unanswered, key=lambda request: request.op == "publish"):
            self.requests.add(request)
        self.requests.look_idle()
        if not self._first.done():
            self._first.set_result(None)
        log.info("connected")
        self._tell(Ready(ready.epoch, ready.offset, resumed))

    def _subscribe_again(self, id: str, document: SubscriptionDocument) -> None:
        def settled(problem: Problem | None) -> None:
            if problem is not None:
                self._refused(problem, f"subscribe {id!r}", id)

        self.requests.ask({"op": "subscribe", "id": id, **document}, again=False).settled = settled

    def _break(self) -> None:
        self.ready = False
        self._link = None
        self.acks.broken()
        while self._pongs:
            _fail(self._pongs.popleft(), UnreachableError("the connection broke"))

    async def _read(self, link: Link) -> None:
        inbox, requests = self.inbox, self.requests
        urgent_bound = self._options.buffer * URGENT_TIMES
        while True:
            await inbox.room(urgent=self._urgent, urgent_bound=urgent_bound)
            frame = self._frame(await link.receive())
            self._last_problem = None
            if isinstance(frame, Event | Gap):
                inbox.put(frame)
            elif isinstance(frame, OkFrame):
                self._warn(frame)
                requests.answer(frame.ref, None)
            elif isinstance(frame, ProblemFrame):
                if not requests.answer(frame.ref, frame.problem):
                    self._last_problem = frame.problem
                    self._refused(frame.problem, "a move or an ack")
            elif isinstance(frame, RetryFrame):
                self._retry_s = frame.retry_ms / 1000
            elif isinstance(frame, PongFrame) and self._pongs:
                pong = self._pongs.popleft()
                if not pong.done():
                    pong.set_result(None)

    def _urgent(self) -> bool:
        return self.requests.waits or bool(self._pongs)

    def _frame(self, text: str | bytes) -> Frame:
        try:
            return read_frame(text, self._epoch, self.inbox.generation)
        except ValueError as error:
            raise UnreachableError(f"this is no broker that this version understands: {error}") from error

    async def _write(self, link: Link) -> None:
        while True:
            request = await self.requests.next()
            if not await link.send(request.text):
                return
            self.requests.written(request)

    async def _renew(self) -> None:
        """Brings a new token before the old one ends."""
        while (delay_s := self._tokens.renew_in_s()) is not None:
            # A provider that gives the same one again is not asked again and again.
            await self._clock.sleep(max(1.0, delay_s))
            try:
                token = await self._token()
            except UnreachableError as error:
                log.warning("%s", error)
                continue
            self.requests.ask({"op": "auth", "token": token}, again=False).settled = self._authorised

    def _authorised(self, problem: Problem | None) -> None:
        if problem is not None:
            self._refused(problem, "auth")

    def _warn(self, frame: OkFrame) -> None:
        """Tells warnings of the broker's, and logs each place once: a program that repeats a mistake is not to fill the log."""
        for pointer, detail in frame.warnings:
            self._tell(RequestWarned(pointer, detail))
            if pointer not in self._warned and len(self._warned) < WARNED:
                self._warned.add(pointer)
                # An area may well be made before the client says where it is.
                level = logging.WARNING if pointer.startswith("/event") else logging.INFO
                log.log(level, "the broker warns of %s: %s", pointer, detail)

    def _refused(self, problem: Problem, call: str, subscription: str | None = None) -> None:
        # Where and not what: the details may tell a position.
        pointers = ", ".join(fault.pointer for fault in problem.errors)
        places = f" at {pointers}" if pointers else ""
        log.warning("the broker refused %s, and nobody waits for it: %s%s", call, problem.code, places)
        self._tell(Refused(ProblemError(problem), subscription))

    def _tell(self, state: State) -> None:
        if not isinstance(state, Refused | RequestWarned):
            self.state = state
        for watch in tuple(self._watches):
            watch.push(state)

    def _end(self, error: NearcastError | None) -> None:
        if isinstance(self.state, Closed):
            return
        self._error = error
        over = error or ClosedError(1000, "the session is closed")
        self._break()
        self.acks.broken()
        self.inbox.end(error)
        self.requests.fail(over)
        self.positions.fail(over)
        _fail(self._first, over)
        self._tell(Closed(error))


class _NoTokenError(UnreachableError):
    """Nobody brought a token; the broker was not asked."""


class Watch(AsyncIterator[State]):
    """Changes of a connection, until it is closed for good."""

    def __init__(self, state: State) -> None:
        self._states: deque[State] = deque([state], STATES_KEPT)
        self._arrival = asyncio.Event()
        self._over = False

    def push(self, state: State) -> None:
        """Adds one."""
        self._states.append(state)
        self._arrival.set()

    async def __anext__(self) -> State:
        if self._over:
            raise StopAsyncIteration
        while not self._states:
            self._arrival.clear()
            await self._arrival.wait()
        state = self._states.popleft()
        self._over = isinstance(state, Closed)
        return state


def _fail(future: asyncio.Future[None], error: NearcastError) -> None:
    if not future.done():
        future.set_exception(error)
        # Perhaps nobody waits any more; that is no news.
        future.exception()


def _nothing(_offset: int, _count: int) -> None:
    """Without automatic acknowledgements nothing follows from asking for the next message."""
