"""What comes from the broker: messages for the application, and answers for the session."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from .events import Feature, delivered
from .problems import Problem, read_problem

Cause = Literal["published", "moved", "changed", "expired", "revoked"]
"""What brought a delivery: the event was published, the subscriber moved, the subscription changed, or the event ended."""

Transition = Literal["enter", "exit"]
"""The event's object came inside of the subscriptions, or left them."""


class Checkpoint(NamedTuple):
    """How far a client has come in a session."""

    epoch: str
    offset: int


@dataclass(frozen=True, slots=True)
class Event:
    """A delivery: an event, or with `transition` that its object came inside or left."""

    offset: int
    """Its number in the session; of one that comes `ahead` that of the delivery before it."""
    subscriptions: tuple[str, ...]
    """The ids of this client's subscriptions that brought it."""
    cause: Cause
    """What brought it."""
    feature: Feature
    """The event as it was published, with `id` and `time`, and with `properties` that are an object. Of an exit the last one that was inside."""
    transition: Transition | None = None
    """What became of the event's object; `None` where the subscriptions are to events."""
    ahead: bool = False
    """An alarm that comes before its turn. It comes again if the connection breaks before its turn was acknowledged."""
    traceparent: str | None = None
    """The trace that it belongs to (W3C Trace Context)."""
    tracestate: str | None = None
    """What belongs to that."""
    epoch: str = field(default="", compare=False)
    """Names the session; offsets of another one do not compare."""
    _generation: int = field(default=0, compare=False, repr=False)
    violates: tuple[str, ...] = ()
    """The checks that mark what violates them, and that the event violates."""

    @property
    def id(self) -> str | float | None:
        """The event's id."""
        return self.feature.get("id")

    @property
    def properties(self) -> dict[str, Any]:
        """The event's attributes."""
        return self.feature.get("properties") or {}

    @property
    def position(self) -> list[float]:
        """Where it happened."""
        return self.feature["geometry"]["coordinates"]


@dataclass(frozen=True, slots=True)
class Gap:
    """Deliveries that were lost, and that will not come any more."""

    from_: int
    """The first offset that was lost."""
    to: int
    """The last one."""
    count: int
    """How many; 0 when nothing is known to be missing."""
    reason: str
    """Why: `overflow`, `members`, `age`, `late` (not written by the deadlines of the events), `not-durable`, `acknowledged`, `epoch`
    (the session is another one), or `ahead`: with this one nothing was lost, it stands where an alarm would have come that was told before
    its turn."""
    epoch: str = field(default="", compare=False)
    """Names the session; offsets of another one do not compare."""
    _generation: int = field(default=0, compare=False, repr=False)


Message = Event | Gap
"""What a session brings to the application."""


@dataclass(frozen=True, slots=True)
class ReadyFrame:
    """The first frame of a connection."""

    client: str
    epoch: str
    offset: int


@dataclass(frozen=True, slots=True)
class OkFrame:
    """A request was carried out."""

    ref: Any = None
    warnings: tuple[tuple[str, str], ...] = ()
    """What is probably not meant so in it: a JSON pointer and a sentence each."""


@dataclass(frozen=True, slots=True)
class ProblemFrame:
    """A request was not carried out."""

    problem: Problem
    ref: Any = None


@dataclass(frozen=True, slots=True)
class RetryFrame:
    """The broker stops; the client is to come back after this time."""

    retry_ms: int


@dataclass(frozen=True, slots=True)
class PongFrame:
    """The answer to `ping`."""


@dataclass(frozen=True, slots=True)
class UnknownFrame:
    """Something that a newer broker sends."""


Frame = ReadyFrame | OkFrame | ProblemFrame | RetryFrame | PongFrame | UnknownFrame | Event | Gap


def read_frame(text: str | bytes, epoch: str = "", generation: int = 0) -> Frame:
    """Reads a frame of the broker. Members that are not known are passed over.

    Args:
        text: The frame.
        epoch: The session's epoch, which messages get.
        generation: Which of the runs of offsets it is that belong together, as the inbox counts them.

    Raises:
        ValueError: It is no frame of the protocol.
    """
    frame = json.loads(text)
    try:
        match frame.get("op") if isinstance(frame, dict) else None:
            case "event":
                return Event(
                    frame["offset"],
                    tuple(frame["subscriptions"]),
                    frame["cause"],
                    delivered(frame["event"]),
                    frame.get("transition"),
                    frame.get("ahead", False),
                    frame.get("traceparent"),
                    frame.get("tracestate"),
                    epoch,
                    generation,
                    tuple(frame.get("violates", ())),
                )
            case "ok":
                warnings = tuple((warning["pointer"], warning["detail"]) for warning in frame.get("warnings", ()))
                return OkFrame(frame.get("ref"), warnings)
            case "gap":
                return Gap(frame["from"], frame["to"], frame["count"], frame["reason"], epoch, generation)
            case "problem":
                return ProblemFrame(read_problem(frame["problem"]), frame.get("ref"))
            case "retry":
                return RetryFrame(int(frame["retry_ms"]))
            case "pong":
                return PongFrame()
            case "ready":
                return ReadyFrame(frame["client"], frame["epoch"], frame["offset"])
            case _:
                return UnknownFrame()
    except (KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"this is no frame of the protocol: {error!r}") from error
