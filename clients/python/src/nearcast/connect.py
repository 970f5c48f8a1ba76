"""`connect`, for asyncio."""

from __future__ import annotations

import random
import ssl
from collections.abc import Sequence
from typing import Literal

from .backoff import Backoff
from .clock import Clock, SystemClock
from .messages import Checkpoint
from .options import Options
from .session import Connect
from .tokens import TokenProvider


def connect(
    url: str | Sequence[str],
    client: str,
    *,
    token: str | TokenProvider | None = None,
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
) -> Connect:
    """Connects a client: `async with connect(..) as session`, or `session = await connect(..)` and `await session.close()`.

    Args:
        url: Where the broker is: `http://..`, `https://..`, `ws://..` or `wss://..`. For a cluster, where its brokers are: where one does not
            answer, or is a standby, the next one is asked.
        client: The client's name.
        token: A JSON Web Token, or what makes one: it is asked before each connection, and a minute before the last one ends.
        resume: Where another process came to: its `Session.checkpoint`.
        acknowledge: `"auto"`: a message counts as processed when the application asks for the next one. `"manual"`: when it calls `ack`.
        buffer: The most messages that wait for the application. Then the socket is not read, and the broker's policy (`overflow`) decides.
            While a call waits for its answer, which comes behind messages, it may be sixteen times as many.
        queue: The most events that wait for the broker's answer. Further calls of `publish` wait; without a connection they fail.
        connect_timeout_s: So long the broker is tried to be reached, again and again. `None`: for ever.
        close_timeout_s: So long `close` waits until what was published is answered.
        backoff: When a connection that broke is tried again.
        tls: How a broker's certificate is checked, where it is not as the system does.
        clock: What everything waits by.
        chance: What jitter and ids are made of; the system's own where it is absent.

    Raises:
        ProblemError: The broker refuses this client.
        ClosedError: The same, a moment later.
        TimedOutError: There is no connection in time; `__cause__` is why the last attempt failed.
        ValueError: `url` is none, or has none.
    """
    options = Options(
        acknowledge=acknowledge,
        resume=resume,
        buffer=buffer,
        queue=queue,
        connect_timeout_s=connect_timeout_s,
        close_timeout_s=close_timeout_s,
        backoff=backoff or Backoff(),
        tls=tls,
        clock=clock or SystemClock(),
        chance=chance or random.SystemRandom(),
    )
    return Connect(url, client, token, options)
