"""A session: what an application does with a broker, over one WebSocket that comes back by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from .api import Api, identified
from .areas import Position
from .batches import BATCH, Outcome
from .clock import within
from .conditions import Condition
from .conversation import Conversation
from .documents import Deliveries, Explanation
from .endpoint import Endpoints
from .errors import NearcastError, QueueFullError
from .events import Feature
from .follow import Fix, Throttle, TrackPoint, follow, great_circle_m, planar_m
from .messages import Checkpoint, Message
from .options import Options
from .positions import moved, tracked
from .problems import Problem
from .queries import PAGE, ClientPosition, Near
from .requests import Request
from .routes import ClientRoute
from .states import State
from .subscriptions import Filters, On, Overflow, SubscriptionDocument, subscription
from .tokens import TokenProvider, Tokens

log = logging.getLogger("nearcast")


class Session:
    """One client at a broker. Made by `connect`.

    Iterating over it (`async for message in session`) brings an `Event` or a `Gap` at a time. It reconnects by itself, goes on where it
    was, makes subscriptions again that ended with their connection, tells its last position again, and sends what waits.

    Calls that wait for the broker wait as long as it takes, reconnects included, or `timeout_s` seconds (`TimedOutError`: it may still happen). They
    raise `ProblemError` where the broker refuses, and `ClosedError` once the session is over.
    """

    def __init__(self, endpoints: Endpoints, client: str, tokens: Tokens, options: Options) -> None:
        self.client = client
        self._options = options
        self.api = Api.of(endpoints, tokens, options)
        """The calls that go over HTTP, with the same token."""
        self._conversation = Conversation(endpoints, client, tokens, options)
        self._window = asyncio.Semaphore(options.queue)

    # Receiving.

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        return await self._conversation.inbox.take()

    async def receive(self, *, timeout_s: float | None = None) -> Message:
        """The next message, an `Event` or a `Gap`; the application is done with the one before.

        Raises:
            TimedOutError: None came in this time.
            NearcastError: The session is over.
        """
        taken = self._conversation.inbox.take()
        try:
            return await within(self._options.clock, timeout_s, taken, "no message")
        except StopAsyncIteration:
            self._conversation.check_open()
            raise

    async def ack(self, upto: Message | int) -> None:
        """Says that a message, and all before it, are not needed any more; with `acknowledge="manual"`.

        Args:
            upto: The message, or an offset of the session of the message that was taken last. Of another session than the present one it
                means nothing, and is not sent.
        """
        self._conversation.check_open()
        self._conversation.acknowledge(upto)

    @property
    def checkpoint(self) -> Checkpoint | None:
        """How far the application has come: up to the message that it took last. Another process goes on behind it with
        `connect(.., resume=checkpoint)`.
        """
        return self._conversation.inbox.checkpoint

    # Subscribing.

    async def subscribe(
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
        """Makes a subscription, or replaces the one of this id; returns when it is in force.

        Args:
            id: What the client calls it; messages name it.
            filters: An event matches when it lies in the area of one of them and its condition is true. Or a subscription as the protocol writes it,
                `{"filters": [{"area": {"radius_m": 500}, "where": "severity >= 2"}]}`; what is said here besides goes before its other members.
            on: What comes: `"event"` (as when it is absent), or that objects come inside and leave: `"enter"`, `"exit"`, or both.
            initial: Of transitions: what is inside already enters at once.
            dwell_s: Of transitions: an object enters when it has been inside for so long.
            hysteresis_m: Of transitions: an object leaves when it is so far outside.
            durable: It outlives the connection, and what matches is kept until it is acknowledged.
            overflow: What happens when this client does not keep up.
            timeout_s: How long to wait for the answer.

        Raises:
            ProblemError: The broker refused it, and says where and why.
            TypeError: The filters are none.
        """
        document = subscription(
            filters,
            on=on,
            initial=initial,
            dwell_s=dwell_s,
            hysteresis_m=hysteresis_m,
            durable=durable,
            overflow=overflow,
        )
        remembered = self._conversation.subscriptions

        def settled(problem: Problem | None) -> Problem | None:
            if problem is None:
                remembered[id] = document
            return problem

        asked = self._conversation.ask({"op": "subscribe", **document, "id": id}, again=True)
        asked.settled = settled
        await self._answer(asked, timeout_s)

    async def unsubscribe(self, id: str, *, timeout_s: float | None = None) -> None:
        """Ends a subscription of this client, whoever made it; a `ProblemError` with the code `not-found` where there is none."""
        remembered = self._conversation.subscriptions

        def settled(problem: Problem | None) -> Problem | None:
            if problem is not None and problem.code == "not-found" and asked.writes > 1:
                # The answer to the first time was lost with its connection.
                problem = None
            if problem is None:
                remembered.pop(id, None)
            return problem

        asked = self._conversation.ask({"op": "unsubscribe", "id": id}, again=True)
        asked.settled = settled
        await self._answer(asked, timeout_s)

    # Publishing.

    async def publish(
        self,
        event: Feature | Mapping[str, Any],
        *,
        traceparent: str | None = None,
        tracestate: str | None = None,
        timeout_s: float | None = None,
    ) -> str | float:
        """Publishes an event; returns its id when it is accepted.

        It gets an `id` where it has none. Without a connection it waits for one, behind those that wait already; one whose answer was lost with
        its connection is sent again: a live event then replaces itself, another one may be delivered twice, with the same `id`.

        Calls at the same time do not wait for each other's answers: `asyncio.gather` of many is quick. At most `queue`
        (of `connect`) wait for theirs.

        Raises:
            ProblemError: It was refused.
            QueueFullError: There is no connection, and as many events as may wait do.
            TypeError, ValueError: It is nothing that JSON can say.
        """
        frame: dict[str, Any] = {"op": "publish"}
        if traceparent is not None:
            frame["traceparent"] = traceparent
        if tracestate is not None:
            frame["tracestate"] = tracestate
        frame["event"] = published = identified(event, self._options)
        if timeout_s is None:
            await self._publish(frame)
        else:
            await within(self._options.clock, timeout_s, self._publish(frame), "not accepted")
        published_id: str | float = published["id"]
        return published_id

    async def _publish(self, frame: Mapping[str, Any]) -> None:
        self._conversation.check_open()
        if not self._conversation.ready and self._window.locked():
            raise QueueFullError(f"{self._options.queue} events wait for a connection")
        async with self._window:
            await self._conversation.ask(frame, again=True).done

    async def publish_many(
        self,
        events: Iterable[Feature | Mapping[str, Any]] | AsyncIterable[Feature | Mapping[str, Any]],
        *,
        batch: int = BATCH,
        traceparent: str | None = None,
        tracestate: str | None = None,
    ) -> Outcome:
        """Publishes many events over HTTP: see `Api.publish_many`."""
        return await self.api.publish_many(events, batch=batch, traceparent=traceparent, tracestate=tracestate)

    # Moving.

    async def move(
        self,
        coordinates: Position,
        *,
        accuracy_m: float | None = None,
        time: str | None = None,
        confirm: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Tells where the client is.

        Args:
            coordinates: `[longitude, latitude]`, or `[x, y]` in a planar world.
            accuracy_m: How far off it may be; exact where it is absent.
            time: When it was measured, RFC 3339; checked and not used.
            confirm: Waits until it, or a newer one, is in force. Without it nobody hears of a position that is refused, but `states`.
            timeout_s: How long to wait for that.

        The newest position is sent again on each new connection; without a connection only the newest one is kept.
        """
        conversation, position = self._conversation, moved(coordinates, accuracy_m, time)
        conversation.check_open()
        if confirm:
            told = conversation.positions.confirmed(position, ready=conversation.ready)
            await within(self._options.clock, timeout_s, told, "not in force")
        else:
            conversation.positions.move(position, ready=conversation.ready)

    async def track(
        self,
        points: Sequence[TrackPoint],
        *,
        accuracy_m: float | None = None,
        confirm: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Tells a way that was recorded, whose end is where the client is: live events along it come, too.

        Args:
            points: `(longitude, latitude, unix_s)` each, oldest first, at least one.
            accuracy_m: How far off the last one may be.
            confirm: Waits until it is in force.
            timeout_s: How long to wait for that.
        """
        if not points:
            raise ValueError("a track has at least one point")
        conversation = self._conversation
        conversation.check_open()
        told = conversation.positions.track(tracked(points, accuracy_m), ready=conversation.ready, confirm=confirm)
        if confirm and told is not None:
            await self._answer(told, timeout_s)

    async def follow(
        self,
        source: AsyncIterable[Fix],
        *,
        min_distance_m: float = 25.0,
        max_interval_s: float = 60.0,
        min_interval_s: float = 1.0,
        planar: bool = False,
    ) -> None:
        """Tells where the client is for as long as a source says it, with as few frames as will do.

        A fix is sent when it is `min_distance_m` away from the last one sent, or when that was `max_interval_s` ago, and never within
        `min_interval_s` of it. Without a connection these are recorded, a thousand at most (then every second one goes), and told as a track
        to the next one.

        Args:
            source: Fixes as they come.
            min_distance_m: See above.
            max_interval_s: See above.
            min_interval_s: See above.
            planar: Coordinates are metres in a plane.
        """
        clock, conversation = self._options.clock, self._conversation
        throttle = Throttle(planar_m if planar else great_circle_m, min_distance_m, max_interval_s, min_interval_s)

        def send(fix: Fix) -> None:
            conversation.check_open()
            unix_s = clock.time() if fix.unix_s is None else fix.unix_s
            conversation.positions.followed(fix, unix_s, ready=conversation.ready)

        try:
            await follow(source, throttle, clock, send)
        except Exception as error:
            # Nobody may look at the task that this runs in. What a source says may tell a position.
            log.warning("follow has ended: %s", error if isinstance(error, NearcastError) else type(error).__name__)
            raise

    # The rest.

    @property
    def state(self) -> State:
        """What the connection is doing."""
        return self._conversation.state

    def states(self) -> AsyncIterator[State]:
        """What becomes of the connection, beginning with what it is, until the session is over. Of changes that nobody takes the last 64 are kept."""
        return self._conversation.watch()

    def wake(self) -> None:
        """Tries to connect now instead of when its time has come: the network is back, or the application in the foreground."""
        self._conversation.wake()

    async def ping(self, *, timeout_s: float | None = None) -> float:
        """Asks the broker for a sign of life; how many seconds it took."""
        clock = self._options.clock
        began = clock.monotonic()
        await within(clock, timeout_s, self._conversation.ping(), "no pong")
        return clock.monotonic() - began

    async def explain(
        self,
        subscription: str | SubscriptionDocument | Mapping[str, Any],
        event: str | Feature | Mapping[str, Any],
        *,
        position: Position | None = None,
    ) -> Explanation:
        """Why an event comes to this client, or does not: see `Api.explain`."""
        return await self.api.explain(self.client, subscription, event, position=position)

    async def revoke(self, id: str | float) -> None:
        """Ends every live event of this id; a `ProblemError` with the code `not-found` where there is none."""
        await self.api.revoke(id)

    async def deliveries(self, id: str | float) -> Deliveries:
        """To whom an event went, and what became of that."""
        return await self.api.deliveries(id)

    async def subscriptions(self) -> list[SubscriptionDocument]:
        """This client's subscriptions as the broker has them, in the order of their ids."""
        return await self.api.subscriptions(self.client)

    def events(
        self,
        *,
        bbox: tuple[float, float, float, float] | None = None,
        near: Near | None = None,
        where: Condition | str | None = None,
        client: str | None = None,
        page: int = PAGE,
    ) -> AsyncIterator[Feature]:
        """Live events, wherever they are: see `Api.events`. `client=session.client` are those that this client's subscriptions take now."""
        return self.api.events(bbox=bbox, near=near, where=where, client=client, page=page)

    async def position(self) -> ClientPosition:
        """Where this client is, as the broker has it: see `Api.position`."""
        return await self.api.position(self.client)

    async def routes(self) -> list[ClientRoute]:
        """Where this client's areas along routes lie now: see `Api.routes`."""
        return await self.api.routes(self.client)

    async def move_many(
        self,
        positions: Iterable[tuple[str, Position]] | AsyncIterable[tuple[str, Position]],
        *,
        batch: int = BATCH,
    ) -> Outcome:
        """Tells where many clients are: see `Api.move_many`."""
        return await self.api.move_many(positions, batch=batch)

    async def forget(self) -> None:
        """Closes the session, and deletes this client at the broker: its position, its subscriptions, and what is kept for it."""
        await self._conversation.close()
        try:
            await self.api.forget(self.client)
        finally:
            await self.api.close()

    async def close(self) -> None:
        """Sends what waits, for `close_timeout_s` at most, and ends the session. What was received and not taken is not acknowledged."""
        await self._conversation.close()
        await self.api.close()

    async def until_ready(self) -> None:
        """Waits for the first connection; `connect` has done so."""
        await self._conversation.until_ready()

    def take_now(self, soon: Callable[[Callable[[], None]], None]) -> Message | None:
        """For `nearcast.sync`: the next message if one waits, taken in another thread. `soon` calls a function in the session's."""
        return self._conversation.inbox.take_now(soon)

    async def arrival(self, *, timeout_s: float | None = None) -> None:
        """For `nearcast.sync`: waits until there is something for `take_now`, and raises what `receive` does."""
        try:
            await within(self._options.clock, timeout_s, self._conversation.inbox.arrival(), "no message")
        except StopAsyncIteration:
            self._conversation.check_open()
            raise

    def finish(self) -> None:
        """Counts the message that was taken last as processed; leaving `async with` without an error does so."""
        self._conversation.inbox.finish()

    async def _answer(self, request: Request, timeout_s: float | None) -> None:
        await within(self._options.clock, timeout_s, request.done, f"no answer to {request.op}")


class Connect:
    """A session on its way: `async with connect(..) as session`, or `session = await connect(..)`."""

    def __init__(
        self, url: str | Sequence[str], client: str, token: str | TokenProvider | None, options: Options
    ) -> None:
        self._endpoints = Endpoints(url)
        self._client = client
        self._token = token
        self._options = options
        self._session: Session | None = None

    def __await__(self) -> Generator[Any, None, Session]:
        return self._connected().__await__()

    async def _connected(self) -> Session:
        session = Session(self._endpoints, self._client, Tokens(self._token, self._options.clock), self._options)
        try:
            await session.until_ready()
        except BaseException:
            await session.close()
            raise
        return session

    async def __aenter__(self) -> Session:
        self._session = await self._connected()
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            if kind is None:
                self._session.finish()
            await self._session.close()
