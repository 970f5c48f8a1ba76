"""One WebSocket, from its upgrade to its close, in terms of this package's errors."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.protocol import State

from .clock import Clock, within
from .errors import ClosedError, ProblemError, TimedOutError, UnreachableError
from .problems import read_answer
from .version import USER_AGENT

OPEN_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 2.0
FRAME_BYTES = 64 << 20
"""No broker is configured to send longer frames; one that did would fill the memory."""
PING_S = 20.0
"""As often as the broker pings. It takes a client that is silent for a minute for dead."""
PONG_S = 20.0


class _Connect(connect):
    def process_redirect(self, exc: Exception) -> Exception:
        """Follows none: the library would do so without the token."""
        return exc


class Link:
    """An open WebSocket."""

    def __init__(self, websocket: ClientConnection) -> None:
        self._websocket = websocket

    @classmethod
    async def open(cls, url: str, token: str | None, tls: ssl.SSLContext | None) -> Link:
        """Opens one.

        Raises:
            ProblemError: The broker, or a proxy before it, answered with something else.
            UnreachableError: There was no answer.
        """
        try:
            websocket = await _Connect(
                url,
                additional_headers={"Authorization": f"Bearer {token}"} if token is not None else None,
                user_agent_header=USER_AGENT,
                ssl=tls,
                # Frames are short: to compress them costs more than it saves.
                compression=None,
                open_timeout=OPEN_TIMEOUT_S,
                close_timeout=CLOSE_TIMEOUT_S,
                # It would take a peer for dead whose pongs nobody reads while the application is slow: `keep_alive` knows of that.
                ping_interval=None,
                max_size=FRAME_BYTES,
            )
        except InvalidStatus as error:
            answer = error.response
            headers = {name.lower(): value for name, value in answer.headers.raw_items()}
            raise ProblemError(read_answer(answer.status_code, headers, bytes(answer.body or b""))) from None
        except (OSError, TimeoutError, asyncio.TimeoutError, EOFError, InvalidHandshake) as error:
            raise UnreachableError(f"the broker cannot be reached: {error}") from error
        return cls(websocket)

    async def receive(self) -> str | bytes:
        """The next frame.

        Raises:
            ClosedError: The broker closed.
            UnreachableError: The connection broke.
        """
        try:
            return await self._websocket.recv()
        except ConnectionClosed as error:
            if error.rcvd is not None:
                raise ClosedError(error.rcvd.code, error.rcvd.reason) from None
            raise UnreachableError("the connection broke") from error

    async def send(self, text: str) -> bool:
        """Sends a frame; whether it was written. Why it was not `receive` says, after what came before."""
        try:
            await self._websocket.send(text)
        except ConnectionClosed:
            return False
        return True

    async def keep_alive(self, clock: Clock, paused: Callable[[], bool]) -> None:
        """Lets the broker hear of this client, and hears whether the broker is there, until the connection is closed.

        While nobody reads (`paused`) no pong can come, and no ping of the broker's is answered: it gets pongs that it did not ask for.

        Raises:
            UnreachableError: The broker is silent.
        """
        while self._websocket.state is State.OPEN:
            await clock.sleep(PING_S)
            try:
                if paused():
                    await self._websocket.pong()
                    continue
                # A pong that comes too late finds who waits for it.
                await within(clock, PONG_S, asyncio.shield(await self._websocket.ping()), "no pong")
            except ConnectionClosed:
                return
            except TimedOutError as error:
                if not paused():
                    raise UnreachableError("the broker is silent") from error

    async def close(self, code: int = 1000) -> None:
        """Closes it; returns when it is closed, after some seconds at the latest."""
        await self._websocket.close(code)

    def abort(self) -> None:
        """Ends it without a word."""
        self._websocket.transport.abort()
