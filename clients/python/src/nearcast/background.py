"""The thread in which the sessions of `nearcast.sync` live."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, ParamSpec, TypeVar

from .session import Session

P = ParamSpec("P")
T = TypeVar("T")

EXIT_S = 10.0
"""So long the end of the process waits for sessions that were left open."""


class Background:
    """An event loop in a thread of its own, which begins when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin_anew()
        atexit.register(self._end)
        # A fork has the loop, but not the thread.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._sessions: set[Session] = set()

    def start(self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Calls a function there, without waiting for it."""
        loop = self._running()
        if threading.current_thread() is self._thread:
            raise RuntimeError("nearcast.sync waits for its own thread: use nearcast.connect in asyncio")
        return asyncio.run_coroutine_threadsafe(function(*args, **kwargs), loop)

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls a function there, and waits for it. An interrupt (ctrl-C) cancels it."""

        async def called() -> T:
            return await function(*args, **kwargs)

        future = self.start(called)
        try:
            return future.result()
        finally:
            future.cancel()

    def soon(self, function: Callable[..., object], *args: object) -> None:
        """Calls a plain function there, after what was called before."""
        self._running().call_soon_threadsafe(function, *args)

    def remember(self, session: Session) -> None:
        """The end of the process closes this session, if nobody did before."""
        self._sessions.add(session)

    def forget(self, session: Session) -> None:
        """It is closed."""
        self._sessions.discard(session)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="nearcast", daemon=True)
                self._thread.start()
            return self._loop

    def _end(self) -> None:
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        wait((asyncio.run_coroutine_threadsafe(self._close(), loop),), EXIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(EXIT_S)
        if not thread.is_alive():
            loop.close()

    async def _close(self) -> None:
        await asyncio.gather(*(session.close() for session in self._sessions), return_exceptions=True)


background = Background()
