"""A WebSocket server that does what a test says."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

import nearcast

T = TypeVar("T")

DEADLINE_S = 15.0
NO_BACKOFF = nearcast.Backoff(base_s=0, cap_s=0)


class Most(random.Random):
    """Always the most that there is."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


@dataclass
class Upgrade:
    """A request for a WebSocket, which waits for what the test says."""

    request: Request
    answer: asyncio.Future[Response | None]
    connection: asyncio.Future[ServerConnection]

    @property
    def resume(self) -> str | None:
        """How far the client says that it is."""
        values = parse_qs(urlsplit(self.request.path).query, strict_parsing=False).get("resume")
        return values[0] if values else None

    @property
    def token(self) -> str | None:
        """Who the client says that it is."""
        header = self.request.headers.get("Authorization")
        return header.removeprefix("Bearer ") if header else None


class ScriptedServer:
    """One server for one client. What is waited for comes in time, or the test fails."""

    def __init__(self) -> None:
        self._upgrades: asyncio.Queue[Upgrade] = asyncio.Queue()
        self._answered: dict[ServerConnection, Upgrade] = {}
        self._server: Server | None = None
        self.connection: ServerConnection | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        host, port = next(iter(self._server.sockets)).getsockname()[:2]
        return f"ws://{host}:{port}"

    async def __aenter__(self) -> ScriptedServer:
        self._server = await serve(self._handle, "127.0.0.1", 0, process_request=self._request, close_timeout=1)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        while not self._upgrades.empty():
            upgrade = self._upgrades.get_nowait()
            if not upgrade.answer.done():
                upgrade.answer.set_result(_response(503, {}, ""))
        await self._server.wait_closed()

    async def _request(self, connection: ServerConnection, request: Request) -> Response | None:
        loop = asyncio.get_running_loop()
        upgrade = Upgrade(request, loop.create_future(), loop.create_future())
        self._answered[connection] = upgrade
        self._upgrades.put_nowait(upgrade)
        return await upgrade.answer

    async def _handle(self, connection: ServerConnection) -> None:
        self._answered[connection].connection.set_result(connection)
        await connection.wait_closed()

    async def upgrade(self) -> Upgrade:
        """The client's next request for a connection."""
        return await within(self._upgrades.get())

    async def accept(self, upgrade: Upgrade | None = None) -> Upgrade:
        """Takes it."""
        upgrade = upgrade or await self.upgrade()
        upgrade.answer.set_result(None)
        self.connection = await within(upgrade.connection)
        return upgrade

    async def refuse(self, upgrade: Upgrade, status: int, headers: Mapping[str, str], body: str) -> None:
        """Answers it with something else."""
        upgrade.answer.set_result(_response(status, headers, body))

    async def send(self, frame: Mapping[str, Any]) -> None:
        assert self.connection is not None
        await within(self.connection.send(json.dumps(frame)))

    async def receive(self) -> dict[str, Any]:
        """The client's next frame."""
        assert self.connection is not None
        frame: dict[str, Any] = json.loads(await within(self.connection.recv()))
        return frame

    async def ready(self, epoch: str = "e1", offset: int = 0, upgrade: Upgrade | None = None) -> Upgrade:
        """Takes the client's next connection, and says that it is ready."""
        upgrade = await self.accept(upgrade)
        await self.send({"op": "ready", "client": "ann", "epoch": epoch, "offset": offset})
        return upgrade

    def reset(self) -> None:
        """Breaks the connection."""
        assert self.connection is not None
        self.connection.transport.abort()

    @asynccontextmanager
    async def session(self, client: str, **options: Any) -> AsyncIterator[nearcast.Session]:
        """A session whose first connection is ready."""
        connecting = asyncio.ensure_future(connected(self.url, client, **options))
        await self.ready()
        session = await within(connecting)
        try:
            yield session
        finally:
            await session.close()


async def connected(url: str, client: str, **options: Any) -> nearcast.Session:
    """Connects, without waiting between attempts."""
    options.setdefault("backoff", NO_BACKOFF)
    return await nearcast.connect(url, client, **options)


async def within(awaitable: Awaitable[T]) -> T:
    """Fails where something does not happen in time."""
    return await asyncio.wait_for(awaitable, DEADLINE_S)


def _response(status: int, headers: Mapping[str, str], body: str) -> Response:
    content = body.encode()
    return Response(
        status, "", Headers({**headers, "content-length": str(len(content)), "connection": "close"}), content
    )
