"""What becomes of a session's connection."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import NearcastError, ProblemError


@dataclass(frozen=True, slots=True)
class Connecting:
    """A connection is being opened."""

    attempt: int
    """Which one since the last that was ready, from 1."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The connection is open."""

    epoch: str
    offset: int
    resumed: bool
    """Whether it goes on in the session of before, where the application was."""


@dataclass(frozen=True, slots=True)
class Lost:
    """There is no connection, and another one is tried later."""

    error: NearcastError
    retry_s: float


@dataclass(frozen=True, slots=True)
class Refused:
    """Something was refused that nobody waits for: a move, a subscription that was made again, a token."""

    error: ProblemError
    subscription: str | None = None
    """Of a subscription its id."""


@dataclass(frozen=True, slots=True)
class RequestWarned:
    """The broker carried a request of the session out, and says what is probably not meant so in it."""

    pointer: str
    """Where in the request, as a JSON pointer: `/event/ttl`, for one."""
    detail: str
    """What is odd there, and what is probably meant."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The session is over: closed by the application, or by an error that does not go away by itself."""

    error: NearcastError | None


State = Connecting | Ready | Lost | Refused | RequestWarned | Closed
