"""The same without asyncio: the same names, whose calls return when they are done.

    with nearcast.sync.connect("http://localhost:7070", "ann") as session:
        session.move([9.1895, 45.4642])
        session.subscribe("accidents", Filter(around(500), attr("severity") >= 2))
        for message in session:
            print(message)

One thread in the background carries out what all sessions of the process do; it begins with the first and ends with the process. Sessions may be
used from several threads at once.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from . import api as asynchronous_api
from . import session as asynchronous
from .areas import Position
from .background import background
from .backoff import Backoff
from .batches import BATCH, Outcome, chunks
from .clock import Clock
from .conditions import Condition
from .connect import connect as connect_asynchronously
from .documents import Deliveries, Explanation
from .errors import ClosedError
from .events import Feature
from .follow import Fix, TrackPoint
from .messages import Checkpoint, Message
from .push import PushState
from .queries import PAGE, ClientPosition, Near
from .routes import ClientRoute, FoundRoute, RouteBy
from .states import Closed, State
from .subscriptions import Filters, On, Overflow, SubscriptionDocument
from .sync_situations import SyncSituationCalls

__all__ = ["Api", "Session", "connect"]


class Session:
    """One client at a broker, as `nearcast.Session` is. Made by `connect`."""

    def __init__(self, session: asynchronous.Session) -> None:
        self._session = session
        self.client = session.client
        self.api = Api._of(session.api)
        """The calls that go over HTTP, with the same token."""

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            background.call(_finish, self._session)
        self.close()

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        try:
            return self.receive()
        except ClosedError:
            if isinstance(self.state, Closed) and self.state.error is None:
                raise StopIteration from None
            raise

    def receive(self, *, timeout_s: float | None = None) -> Message:
        """The next message, an `Event` or a `Gap`; the application is done with the one before.

        Raises:
            TimedOutError: None came in this time.
            NearcastError: The session is over.
        """
        # Taken in this thread: quicker than to ask the background for each, and an interrupt (ctrl-C) while it waits takes nothing along.
        ends = None if timeout_s is None else time.monotonic() + timeout_s
        while (message := self._session.take_now(background.soon)) is None:
            left_s = None if ends is None else max(0.0, ends - time.monotonic())
            background.call(self._session.arrival, timeout_s=left_s)
        return message

    def ack(self, upto: Message | int) -> None:
        """Says that a message, and all before it, are not needed any more; with `acknowledge="manual"`. See `nearcast.Session.ack`."""
        background.call(self._session.ack, upto)

    @property
    def checkpoint(self) -> Checkpoint | None:
        """How far the application has come; another process goes on behind it with `connect(.., resume=checkpoint)`."""
        return self._session.checkpoint

    def subscribe(
        self,
        id: str,
        filters: Filters,
        *,
        on: On | Sequence[On] | None = None,
        initial: bool | None = None,
        dwell_s: float | None = None,
        hysteresis_m: float | None = None,
        durable: bool | None = None,
        overflow: Overflow | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Makes a subscription, or replaces the one of this id; returns when it is in force. See `nearcast.Session.subscribe`."""
        background.call(
            self._session.subscribe,
            id,
            filters,
            on=on,
            initial=initial,
            dwell_s=dwell_s,
            hysteresis_m=hysteresis_m,
            durable=durable,
            overflow=overflow,
            timeout_s=timeout_s,
        )

    def unsubscribe(self, id: str, *, timeout_s: float | None = None) -> None:
        """Ends a subscription of this client, whoever made it."""
        background.call(self._session.unsubscribe, id, timeout_s=timeout_s)

    def publish(
        self,
        event: Feature | Mapping[str, Any],
        *,
        traceparent: str | None = None,
        tracestate: str | None = None,
        timeout_s: float | None = None,
    ) -> str | float:
        """Publishes an event; returns its id when it is accepted. See `nearcast.Session.publish`; for many there is `publish_many`."""
        return background.call(
            self._session.publish, event, traceparent=traceparent, tracestate=tracestate, timeout_s=timeout_s
        )

    def publish_many(
        self,
        events: Iterable[Feature | Mapping[str, Any]],
        *,
        batch: int = BATCH,
        traceparent: str | None = None,
        tracestate: str | None = None,
    ) -> Outcome:
        """Publishes many events over HTTP: see `nearcast.Api.publish_many`."""
        return self.api.publish_many(events, batch=batch, traceparent=traceparent, tracestate=tracestate)

    def move(
        self,
        coordinates: Position,
        *,
        accuracy_m: float | None = None,
        time: str | None = None,
        confirm: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Tells where the client is. See `nearcast.Session.move`."""
        background.call(
            self._session.move, coordinates, accuracy_m=accuracy_m, time=time, confirm=confirm, timeout_s=timeout_s
        )

    def track(
        self,
        points: Sequence[TrackPoint],
        *,
        accuracy_m: float | None = None,
        confirm: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Tells a way that was recorded, whose end is where the client is. See `nearcast.Session.track`."""
        background.call(self._session.track, points, accuracy_m=accuracy_m, confirm=confirm, timeout_s=timeout_s)

    def follow(
        self,
        source: Iterable[Fix],
        *,
        min_distance_m: float = 25.0,
        max_interval_s: float = 60.0,
        min_interval_s: float = 1.0,
        planar: bool = False,
    ) -> None:
        """Tells where the client is for as long as a source says it, which is read in this thread. See `nearcast.Session.follow`."""
        fixes = _Fixes()
        following = background.start(
            self._session.follow,
            fixes,
            min_distance_m=min_distance_m,
            max_interval_s=max_interval_s,
            min_interval_s=min_interval_s,
            planar=planar,
        )
        try:
            for fix in source:
                if following.done():
                    break
                background.soon(fixes.put, fix)
            background.soon(fixes.end)
            following.result()
        finally:
            following.cancel()

    @property
    def state(self) -> State:
        """What the connection is doing."""
        return self._session.state

    def states(self) -> Iterator[State]:
        """What becomes of the connection, beginning with what it is, until the session is over."""
        states = background.call(_begin, self._session.states)
        while True:
            try:
                yield background.call(states.__anext__)
            except StopAsyncIteration:
                return

    def wake(self) -> None:
        """Tries to connect now instead of when its time has come."""
        background.soon(self._session.wake)

    def ping(self, *, timeout_s: float | None = None) -> float:
        """Asks the broker for a sign of life; how many seconds it took."""
        return background.call(self._session.ping, timeout_s=timeout_s)

    def explain(
        self,
        subscription: str | SubscriptionDocument | Mapping[str, Any],
        event: str | Feature | Mapping[str, Any],
        *,
        position: Position | None = None,
    ) -> Explanation:
        """Why an event comes to this client, or does not: see `nearcast.Api.explain`."""
        return self.api.explain(self.client, subscription, event, position=position)

    def revoke(self, id: str | float) -> None:
        """Ends every live event of this id."""
        self.api.revoke(id)

    def deliveries(self, id: str | float) -> Deliveries:
        """To whom an event went, and what became of that."""
        return self.api.deliveries(id)

    def subscriptions(self) -> list[SubscriptionDocument]:
        """This client's subscriptions as the broker has them, in the order of their ids."""
        return self.api.subscriptions(self.client)

    def events(
        self,
        *,
        bbox: tuple[float, float, float, float] | None = None,
        near: Near | None = None,
        where: Condition | str | None = None,
        client: str | None = None,
        page: int = PAGE,
    ) -> Iterator[Feature]:
        """Live events, wherever they are: see `nearcast.Api.events`."""
        return self.api.events(bbox=bbox, near=near, where=where, client=client, page=page)

    def position(self) -> ClientPosition:
        """Where this client is, as the broker has it: see `nearcast.Api.position`."""
        return self.api.position(self.client)

    def routes(self) -> list[ClientRoute]:
        """Where this client's areas along routes lie now: see `nearcast.Api.routes`."""
        return self.api.routes(self.client)

    def move_many(self, positions: Iterable[tuple[str, Position]], *, batch: int = BATCH) -> Outcome:
        """Tells where many clients are: see `nearcast.Api.move_many`."""
        return self.api.move_many(positions, batch=batch)

    def forget(self) -> None:
        """Closes the session, and deletes this client at the broker: its position, its subscriptions, and what is kept for it."""
        background.call(self._session.forget)
        background.forget(self._session)

    def close(self) -> None:
        """Sends what waits, within a bound, and ends the session. What was received and not taken is not acknowledged."""
        background.call(self._session.close)
        background.forget(self._session)


class Api(SyncSituationCalls):
    """The broker's HTTP calls, as `nearcast.Api` has them. Use it as a context manager, or call `close` at the end."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: str | Callable[[], str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Makes one; nothing is sent yet. A `token` that is a function is called in a thread of its own."""
        self._api = asynchronous_api.Api(url, token=_in_a_thread(token), tls=tls)

    @classmethod
    def _of(cls, api: asynchronous_api.Api) -> Api:
        made = cls.__new__(cls)
        made._api = api
        return made

    def _calls(self) -> asynchronous_api.Api:
        return self._api

    def __enter__(self) -> Api:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        background.call(self._api.close)

    def publish(
        self, event: Feature | Mapping[str, Any], *, traceparent: str | None = None, tracestate: str | None = None
    ) -> str | float:
        """Publishes one event; returns its id when it is accepted."""
        return background.call(self._api.publish, event, traceparent=traceparent, tracestate=tracestate)

    def publish_many(
        self,
        events: Iterable[Feature | Mapping[str, Any]],
        *,
        batch: int = BATCH,
        traceparent: str | None = None,
        tracestate: str | None = None,
    ) -> Outcome:
        """Publishes many events, which are read in this thread: see `nearcast.Api.publish_many`."""
        batches = self._api.event_batches(traceparent=traceparent, tracestate=tracestate)
        for chunk in chunks(events, batch):
            background.call(batches.send, self._api.event_lines(chunk))
        return batches.outcome

    def move_many(self, positions: Iterable[tuple[str, Position]], *, batch: int = BATCH) -> Outcome:
        """Tells where many clients are: see `nearcast.Api.move_many`."""
        batches = self._api.position_batches()
        for chunk in chunks(positions, batch):
            background.call(batches.send, asynchronous_api.position_lines(chunk))
        return batches.outcome

    def explain(
        self,
        client: str,
        subscription: str | SubscriptionDocument | Mapping[str, Any],
        event: str | Feature | Mapping[str, Any],
        *,
        position: Position | None = None,
    ) -> Explanation:
        """Why an event comes to a client, or does not: see `nearcast.Api.explain`."""
        return background.call(self._api.explain, client, subscription, event, position=position)

    def revoke(self, id: str | float) -> None:
        """Ends every live event of this id."""
        background.call(self._api.revoke, id)

    def deliveries(self, id: str | float) -> Deliveries:
        """To whom an event went, and what became of that."""
        return background.call(self._api.deliveries, id)

    def subscriptions(self, client: str) -> list[SubscriptionDocument]:
        """A client's subscriptions in their normal form, in the order of their ids."""
        return background.call(self._api.subscriptions, client)

    def events(
        self,
        *,
        bbox: tuple[float, float, float, float] | None = None,
        near: Near | None = None,
        where: Condition | str | None = None,
        client: str | None = None,
        page: int = PAGE,
    ) -> Iterator[Feature]:
        """Live events, page by page as they are taken: see `nearcast.Api.events`."""
        pages = self._api.event_pages(bbox=bbox, near=near, where=where, client=client, page=page)
        while True:
            try:
                features = background.call(pages.__anext__)
            except StopAsyncIteration:
                return
            yield from features

    def position(self, client: str) -> ClientPosition:
        """Where a client is: see `nearcast.Api.position`."""
        return background.call(self._api.position, client)

    def routes(self, client: str) -> list[ClientRoute]:
        """Where a client's areas along routes lie now: see `nearcast.Api.routes`."""
        return background.call(self._api.routes, client)

    def route(
        self,
        begin: Position,
        end: Position,
        *,
        by: RouteBy | None = None,
        deadline_ms: float | None = None,
        coarsest: int | None = None,
    ) -> FoundRoute:
        """The best way along the streets from one place to another: see `nearcast.Api.route`."""
        return background.call(self._api.route, begin, end, by=by, deadline_ms=deadline_ms, coarsest=coarsest)

    def push_key(self) -> str:
        """The key that browsers subscribe to push messages with: see `nearcast.Api.push_key`."""
        return background.call(self._api.push_key)

    def put_push(self, client: str, subscription: Mapping[str, Any]) -> PushState:
        """Has a client woken at a push subscription: see `nearcast.Api.put_push`."""
        return background.call(self._api.put_push, client, subscription)

    def push(self, client: str) -> PushState:
        """The push subscription of a client, without its address."""
        return background.call(self._api.push, client)

    def delete_push(self, client: str) -> None:
        """Ends the push subscription of a client, if it has one."""
        background.call(self._api.delete_push, client)

    def forget(self, client: str) -> None:
        """Deletes a client: its position, its subscriptions, and what is kept for it. Its connections are closed."""
        background.call(self._api.forget, client)


def connect(
    url: str | Sequence[str],
    client: str,
    *,
    token: str | Callable[[], str] | None = None,
    resume: Checkpoint | None = None,
    acknowledge: Literal["auto", "manual"] = "auto",
    buffer: int = 1_000,
    queue: int = 1_000,
    connect_timeout_s: float | None = 10.0,
    close_timeout_s: float = 5.0,
    backoff: Backoff | None = None,
    tls: ssl.SSLContext | None = None,
    clock: Clock | None = None,
    chance: random.Random | None = None,
) -> Session:
    """Connects a client: `with connect(..) as session`, or `session = connect(..)` and `session.close()`.

    The arguments are those of `nearcast.connect`; a `token` that is a function is called in a thread of its own.
    """
    session = background.call(
        _connected,
        connect_asynchronously(
            url,
            client,
            token=_in_a_thread(token),
            resume=resume,
            acknowledge=acknowledge,
            buffer=buffer,
            queue=queue,
            connect_timeout_s=connect_timeout_s,
            close_timeout_s=close_timeout_s,
            backoff=backoff,
            tls=tls,
            clock=clock,
            chance=chance,
        ),
    )
    background.remember(session)
    return Session(session)


class _Fixes(AsyncIterator[Fix]):
    """Fixes on their way from the thread that reads them. Of those that come faster than they are looked at the newest stay."""

    def __init__(self) -> None:
        self._fixes: deque[Fix] = deque(maxlen=256)
        self._ended = False
        self._arrival = asyncio.Event()

    def put(self, fix: Fix) -> None:
        self._fixes.append(fix)
        self._arrival.set()

    def end(self) -> None:
        self._ended = True
        self._arrival.set()

    async def __anext__(self) -> Fix:
        while not self._fixes:
            if self._ended:
                raise StopAsyncIteration
            self._arrival.clear()
            await self._arrival.wait()
        return self._fixes.popleft()


async def _connected(connecting: Awaitable[asynchronous.Session]) -> asynchronous.Session:
    return await connecting


async def _begin(states: Callable[[], AsyncIterator[State]]) -> AsyncIterator[State]:
    return states()


async def _finish(session: asynchronous.Session) -> None:
    session.finish()


def _in_a_thread(token: str | Callable[[], str] | None) -> str | Callable[[], Awaitable[str]] | None:
    """What makes a token may take its time, and must not hold up the sessions meanwhile."""
    if not callable(token):
        return token
    make = token

    async def made() -> str:
        return await asyncio.to_thread(make)

    return made
