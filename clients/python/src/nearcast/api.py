"""What goes over HTTP. Publishers that receive nothing need no more than this."""

from __future__ import annotations

import json
import ssl
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from .areas import Position
from .batches import BATCH, Batches, Outcome, chunks, chunks_as_they_come
from .conditions import Condition
from .documents import Deliveries, Explanation
from .endpoint import HOPS, Endpoints, segment
from .errors import ProblemError, TimedOutError, UnreachableError
from .events import Feature
from .options import Options
from .positions import moved
from .problems import Problem, read_answer
from .push import PushState
from .queries import PAGE, ClientPosition, Near, pages, question
from .requests import encode
from .routes import ClientRoute, FoundRoute, RouteBy
from .routes import question as route_question
from .situations import SituationCalls
from .subscriptions import SubscriptionDocument
from .tokens import TokenProvider, Tokens
from .version import USER_AGENT

TIMEOUT_S = 60.0
"""So long an answer may take; a batch is held back by a broker that has much to do."""
_NOT_CARRIED_OUT = ("recovering", "stopping", "elsewhere")
"""Refusals of a broker that carries out nothing, such as a standby, or nothing for this client."""


class Api(SituationCalls):
    """The broker's HTTP calls. Use it as an async context manager, or call `close` at the end."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: str | TokenProvider | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Makes one; nothing is sent yet.

        Args:
            url: Where the broker is: `http://..`, `https://..`, `ws://..` or `wss://..`. For a cluster, where its brokers are: a call that one
                did not carry out is made at the next.
            token: A JSON Web Token, or what makes one.
            tls: How a broker's certificate is checked, where it is not as the system does.
        """
        options = Options(tls=tls)
        self._set_up(Endpoints(url), Tokens(token, options.clock), options)

    @classmethod
    def of(cls, endpoints: Endpoints, tokens: Tokens, options: Options) -> Api:
        """The one of a session, which shares its tokens."""
        api = cls.__new__(cls)
        api._set_up(endpoints, tokens, options)
        return api

    def _set_up(self, endpoints: Endpoints, tokens: Tokens, options: Options) -> None:
        self._endpoints = endpoints
        self._tokens = tokens
        self._options = options
        self._http: dict[bool, httpx.AsyncClient] = {}
        """Those without TLS, and those with it: a broker without may name one with it."""

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        while self._http:
            await self._http.popitem()[1].aclose()

    async def publish(
        self, event: Feature | Mapping[str, Any], *, traceparent: str | None = None, tracestate: str | None = None
    ) -> str | float:
        """Publishes one event; returns its id when it is accepted.

        Raises:
            ProblemError: It was refused.
            UnreachableError: There was no answer; it may have been accepted.
        """
        headers = {"content-type": "application/geo+json", **_trace(traceparent, tracestate)}
        published = self._identified(event)
        await self._call("POST", "/v1/events", encode(published).encode(), headers)
        published_id: str | float = published["id"]
        return published_id

    async def publish_many(
        self,
        events: Iterable[Feature | Mapping[str, Any]] | AsyncIterable[Feature | Mapping[str, Any]],
        *,
        batch: int = BATCH,
        traceparent: str | None = None,
        tracestate: str | None = None,
    ) -> Outcome:
        """Publishes many events, in batches and one request at a time; the source is read no faster than the broker takes them.

        What the broker asks to try again (429, 503), and what breaks, is tried again for a minute. An event that is not live may so be
        published twice; every event has an `id` to tell.

        Raises:
            BatchError: A batch was refused as a whole, or nothing could be done for a minute.
        """
        batches = self.event_batches(traceparent=traceparent, tracestate=tracestate)
        if isinstance(events, AsyncIterable):
            async for chunk in chunks_as_they_come(events, batch, self._options.clock):
                await batches.send(self.event_lines(chunk))
        else:
            for chunk in chunks(events, batch):
                await batches.send(self.event_lines(chunk))
        return batches.outcome

    async def move_many(
        self,
        positions: Iterable[tuple[str, Position]] | AsyncIterable[tuple[str, Position]],
        *,
        batch: int = BATCH,
    ) -> Outcome:
        """Tells where many clients are, each by its name and position, as `publish_many` does; needs a token that may do so.

        Raises:
            BatchError: A batch was refused as a whole, or nothing could be done for a minute.
        """
        batches = self.position_batches()
        if isinstance(positions, AsyncIterable):
            async for chunk in chunks_as_they_come(positions, batch, self._options.clock):
                await batches.send(position_lines(chunk))
        else:
            for chunk in chunks(positions, batch):
                await batches.send(position_lines(chunk))
        return batches.outcome

    async def explain(
        self,
        client: str,
        subscription: str | SubscriptionDocument | Mapping[str, Any],
        event: str | Feature | Mapping[str, Any],
        *,
        position: Position | None = None,
    ) -> Explanation:
        """Why an event comes to a client, or does not.

        Args:
            client: The client's name.
            subscription: The id of one of its subscriptions, or a subscription that it might have.
            event: The id of a live event, or an event, taken as if it were published now.
            position: A place to put in place of the client's.
        """
        question: dict[str, Any] = {"client": client, "subscription": subscription, "event": event}
        if position is not None:
            question["position"] = list(position)
        answer: Explanation = await self._call("POST", "/v1/explain", encode(question).encode())
        return answer

    async def revoke(self, id: str | float) -> None:
        """Ends every live event of this id; a `ProblemError` with the code `not-found` where there is none."""
        await self._call("DELETE", f"/v1/events/{segment(id)}")

    async def deliveries(self, id: str | float) -> Deliveries:
        """To whom an event went, and what became of that."""
        answer: Deliveries = await self._call("GET", f"/v1/events/{segment(id)}/deliveries")
        return answer

    async def subscriptions(self, client: str) -> list[SubscriptionDocument]:
        """A client's subscriptions in their normal form, in the order of their ids."""
        answer: list[SubscriptionDocument] = await self._call("GET", f"/v1/clients/{segment(client)}/subscriptions")
        return answer

    async def events(
        self,
        *,
        bbox: tuple[float, float, float, float] | None = None,
        near: Near | None = None,
        where: Condition | str | None = None,
        client: str | None = None,
        page: int = PAGE,
    ) -> AsyncIterator[Feature]:
        """Live events, page by page as they are taken; with `near` the nearest first. What stays live comes once, whatever comes and goes.

        Args:
            bbox: West, south, east and north; one whose west is beyond its east crosses the antimeridian.
            near: In place of it, a place and a distance in metres: `([9.19, 45.464], 500)`, or `[9.19, 45.464, 500]`.
            where: What `attr` built, or CQL2 text.
            client: Only what matches one of this client's subscriptions where it is now.
            page: How many events one request asks for, 1 to 1,000.
        """
        async for features in self.event_pages(bbox=bbox, near=near, where=where, client=client, page=page):
            for feature in features:
                yield feature

    def event_pages(
        self,
        *,
        bbox: tuple[float, float, float, float] | None = None,
        near: Near | None = None,
        where: Condition | str | None = None,
        client: str | None = None,
        page: int = PAGE,
    ) -> AsyncIterator[list[Feature]]:
        """What `events` gives, a page at a time."""
        return pages(lambda path: self._call("GET", path), question(bbox, near, where, client, page))

    async def position(self, client: str) -> ClientPosition:
        """Where a client is: itself exactly, others as `privacy.round_m` of the broker permits.

        Raises:
            ProblemError: With the code `not-found` where it has told no position, and `forbidden` where it is not shown.
        """
        answer: ClientPosition = await self._call("GET", f"/v1/clients/{segment(client)}/position")
        return answer

    async def routes(self, client: str) -> list[ClientRoute]:
        """Where a client's areas along routes lie now: to itself those in force, to others what they would be from where they are shown it.

        Raises:
            ProblemError: With the code `no-streets` where the broker knows no streets, and `forbidden` where the client is not shown.
        """
        routes: list[ClientRoute] = []
        asked = {"limit": "1000"}
        while True:
            page = await self._call("GET", f"/v1/clients/{segment(client)}/routes?" + urlencode(asked, quote_via=quote))
            routes += page["routes"]
            if "next" not in page:
                return routes
            asked["after"] = page["next"]

    async def route(
        self,
        begin: Position,
        end: Position,
        *,
        by: RouteBy | None = None,
        deadline_ms: float | None = None,
        coarsest: int | None = None,
    ) -> FoundRoute:
        """The best way along the streets from one place to another, by what the broker knows of streets.

        Args:
            begin: Longitude and latitude.
            end: Longitude and latitude.
            by: What is to be least; `"duration"` unless said.
            deadline_ms: Milliseconds within which the answer is wanted. Without it the route is exact.
            coarsest: The coarsest level that will do, 0 to 3; 3 unless said. Level 0 is exact.

        Raises:
            ProblemError: With the code `no-route`, with `no-streets` where the broker knows no streets, or with `late`.
        """
        asked = route_question(begin, end, by, deadline_ms, coarsest)
        answer: FoundRoute = await self._call("POST", "/v1/routes", encode(asked).encode())
        return answer

    async def push_key(self) -> str:
        """The key that browsers subscribe to push messages with (`applicationServerKey`), in base64url.

        Raises:
            ProblemError: With the code `no-push` where the broker sends none.
        """
        answer: dict[str, str] = await self._call("GET", "/v1/push")
        return answer["public_key"]

    async def put_push(self, client: str, subscription: Mapping[str, Any]) -> PushState:
        """Has a client woken at a push subscription, what `PushSubscription.toJSON()` of a browser gives, while no connection reads."""
        headers = {"content-type": "application/json"}
        path = f"/v1/clients/{segment(client)}/push"
        answer: PushState = await self._call("PUT", path, encode(subscription).encode(), headers)
        return answer

    async def push(self, client: str) -> PushState:
        """The push subscription of a client, without its address.

        Raises:
            ProblemError: With the code `not-found` where there is none.
        """
        answer: PushState = await self._call("GET", f"/v1/clients/{segment(client)}/push")
        return answer

    async def delete_push(self, client: str) -> None:
        """Ends the push subscription of a client, if it has one."""
        await self._call("DELETE", f"/v1/clients/{segment(client)}/push")

    async def forget(self, client: str) -> None:
        """Deletes a client: its position, its subscriptions, and what is kept for it. Its connections are closed."""
        await self._call("DELETE", f"/v1/clients/{segment(client)}")

    def event_batches(self, *, traceparent: str | None = None, tracestate: str | None = None) -> Batches:
        """For who makes the batches of `publish_many` himself."""
        headers = _trace(traceparent, tracestate)
        return Batches(lambda body: self._lines("/v1/events", body, headers), "accepted", self._options)

    def event_lines(self, events: Iterable[Feature | Mapping[str, Any]]) -> list[bytes]:
        """Events as the lines of such a batch."""
        return [encode(self._identified(event)).encode() for event in events]

    def position_batches(self) -> Batches:
        """For who makes the batches of `move_many` himself."""
        return Batches(lambda body: self._lines("/v1/positions", body, {}), "moved", self._options)

    def _identified(self, event: Feature | Mapping[str, Any]) -> Mapping[str, Any]:
        return identified(event, self._options)

    async def _lines(self, path: str, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
        answer: dict[str, Any] = await self._call(
            "POST", path, body, {"content-type": "application/x-ndjson", **headers}
        )
        return answer

    async def _call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Makes a call; the answer's document, `None` where it has none.

        Raises:
            ProblemError: The broker, or a proxy before it, answered with an error.
            UnreachableError: There was no answer.
            TimedOutError: Not in time.
        """
        answer = await self._answer(method, path, body, headers)
        return json.loads(answer.content) if answer.content else None

    async def _answer(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        headers = {"content-type": "application/json", **(headers or {})} if body is not None else {}
        others = len(self._endpoints) - (self._endpoints.home(path) is None)
        asked = endpoint = self._endpoints.of(path)
        hops = 0
        while True:
            try:
                return await self._renewing(method, endpoint.http + path, body, headers)
            except (ProblemError, UnreachableError, TimedOutError) as error:
                if isinstance(error, ProblemError) and hops < HOPS:
                    home = self._endpoints.learn(endpoint, path, error.problem.location)
                    if home is not None:
                        endpoint, hops = home, hops + 1
                        continue
                is_elsewhere = not isinstance(error, ProblemError) or error.problem.code in _NOT_CARRIED_OUT
                if is_elsewhere:
                    self._endpoints.leave(asked)
                    self._endpoints.leave(endpoint)
                is_safe = isinstance(error, ProblemError) or (isinstance(error, UnreachableError) and method != "POST")
                if not (is_elsewhere and is_safe and others):
                    raise
                others -= 1
                asked = endpoint = self._endpoints.of(path)

    async def _renewing(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> httpx.Response:
        answer = await self._send(method, url, body, headers, await self._tokens.current())
        problem = _problem(answer)
        if problem is not None and problem.code == "token-expired" and self._tokens.renewable:
            answer = await self._send(method, url, body, headers, await self._tokens.fresh())
            problem = _problem(answer)
        if problem is not None:
            raise ProblemError(problem)
        return answer

    async def _send(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], token: str | None
    ) -> httpx.Response:
        has_tls = url.startswith("https:")
        if has_tls not in self._http:
            self._http[has_tls] = httpx.AsyncClient(
                headers={"user-agent": USER_AGENT},
                verify=self._endpoints.tls(self._options.tls) if has_tls else False,
                timeout=TIMEOUT_S,
                # The library would follow without the token.
                follow_redirects=False,
            )
        if token is not None:
            headers = {**headers, "authorization": f"Bearer {token}"}
        try:
            return await self._http[has_tls].request(method, url, content=body, headers=headers)
        except httpx.TimeoutException as error:
            raise TimedOutError(f"no answer within {TIMEOUT_S:g} s") from error
        except httpx.TransportError as error:
            raise UnreachableError(f"the broker cannot be reached: {error}") from error


def identified(event: Feature | Mapping[str, Any], options: Options) -> Mapping[str, Any]:
    """The event with an id of its own: by it the broker, or who receives it, can tell that it came twice."""
    if event.get("id") is not None:
        return event
    return {**event, "id": str(uuid.UUID(int=options.chance.getrandbits(128), version=4))}


def position_lines(positions: Iterable[tuple[str, Position]]) -> list[bytes]:
    """Names and positions as the lines of a batch."""
    return [encode({"client": client, **moved(position)}).encode() for client, position in positions]


def _problem(answer: httpx.Response) -> Problem | None:
    return None if answer.is_success else read_answer(answer.status_code, answer.headers, answer.content)


def _trace(traceparent: str | None, tracestate: str | None) -> dict[str, str]:
    trace = {"traceparent": traceparent, "tracestate": tracestate}
    return {name: value for name, value in trace.items() if value is not None}
