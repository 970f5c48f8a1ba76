"""What can go wrong. Every error of the SDK is a `NearcastError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .problems import Problem


class NearcastError(Exception):
    """What all errors of this package are."""


class ProblemError(NearcastError):
    """The broker refused something, and says why. Decide by `code`; see `problem` for all of it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem

    @property
    def code(self) -> str:
        """What kind of problem: `invalid-document`, `limit-reached`, .."""
        return self.problem.code

    @property
    def status(self) -> int:
        """The HTTP status that it has, or would have."""
        return self.problem.status


class UnreachableError(NearcastError, ConnectionError):
    """The broker could not be reached, or the connection broke. `__cause__` has what the network said."""


class ClosedError(NearcastError, ConnectionError):
    """The WebSocket was closed by the broker, or the session by the application (code 1000).

    Codes are in docs/protocol/connections.md: 1008 for clients that may not go on, 4401 for a token that has ended, and others.
    """

    def __init__(self, code: int, reason: str = "", problem: Problem | None = None) -> None:
        super().__init__(code, reason, problem)
        self.code = code
        self.reason = reason
        self.problem = problem
        """What the broker said before it closed, if anything."""

    def __str__(self) -> str:
        words = self.reason or (str(self.problem) if self.problem else "")
        return f"closed with {self.code}" + (f": {words}" if words else "")


class QueueFullError(NearcastError):
    """There is no connection, and as many events as may wait for one do."""


class TimedOutError(NearcastError, TimeoutError):
    """Something did not happen in the time that was given to it."""
