"""Many elements over HTTP, in batches."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .backoff import Waits, is_away
from .clock import Clock
from .errors import NearcastError, ProblemError, TimedOutError, UnreachableError
from .options import Options
from .problems import Problem, read_problem

T = TypeVar("T")

BATCH = 1_000
"""Elements in one request."""
LINGER_S = 0.05
"""A source that pauses for so long has what it gave sent."""
PATIENCE_S = 60.0
"""So long without any progress a batch is tried again."""
REJECTED_LISTED = 1_000
"""Number of rejections of one call that are listed; further ones are counted."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """One element that was not accepted."""

    index: int
    """Which, from 0, over the whole input."""
    problem: Problem
    """Why."""


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that is probably not meant so, in an element that was accepted: a misspelt member, for one."""

    index: int
    """Which element, from 0, over the whole input."""
    pointer: str
    """Where in it, as a JSON pointer."""
    detail: str
    """What is odd there, and what is probably meant."""


@dataclass(slots=True)
class Outcome:
    """What became of many elements."""

    accepted: int = 0
    """Number of events that were accepted, or of positions that are in force."""
    rejected: list[Rejected] = field(default_factory=list)
    """Which were not, the first thousand of them."""
    rejected_unlisted: int = 0
    """How many more were not."""
    warnings: list[Warned] = field(default_factory=list)
    """What is probably not meant so in elements that were accepted, the first thousand."""
    warnings_unlisted: int = 0
    """How many more warnings there were."""


class BatchError(NearcastError):
    """A batch could not be brought to its end; `__cause__` says why."""

    def __init__(self, why: str, outcome: Outcome) -> None:
        super().__init__(why)
        self.outcome = outcome
        """What became of the elements before. Of the batch itself some may have been taken."""


class Batches:
    """Sends batches one after the other, and again where the broker asks for it."""

    def __init__(self, post: Callable[[bytes], Awaitable[dict[str, Any]]], member: str, options: Options) -> None:
        """Makes one.

        Args:
            post: Sends lines, and gives the answer.
            member: How the answer calls what was accepted.
            options: Clock, chance, and when a batch is tried again where the broker does not say it.
        """
        self._post = post
        self._member = member
        self._options = options
        self._index = 0
        self.outcome = Outcome()

    async def send(self, lines: list[bytes]) -> None:
        """Sends a batch, and returns when it is answered.

        Of a batch that the broker ends midway (429 and such) it says what became of the first elements; the rest is sent again.

        Raises:
            BatchError: It was refused as a whole, or nothing could be done for a minute.
        """
        clock, since = self._options.clock, self._options.clock.monotonic()
        waits = Waits(self._options.backoff, self._options.chance)
        while lines:
            try:
                answer = await self._post(b"\n".join(lines))
            except (ProblemError, UnreachableError, TimedOutError) as error:
                problem = error.problem if isinstance(error, ProblemError) else None
                if problem and (through := self._partly(problem)):
                    self._index += through
                    lines = lines[through:]
                    since = clock.monotonic()
                    waits.reset()
                if not _passes(problem) or clock.monotonic() - since >= PATIENCE_S:
                    raise BatchError(f"a batch was not taken: {error}", self.outcome) from error
                retry_after_s = problem.retry_after_s if problem else None
                await clock.sleep(waits.next(away=is_away(error), retry_after_s=retry_after_s))
            else:
                self._count(answer)
                self._index += len(lines)
                return

    def _partly(self, problem: Problem) -> int:
        """How many elements a batch that ended midway is through: the first ones.

        A broker that does not tell which of them were rejected is an older one: where some were, as many come twice. Or it does not know which
        are on disk (`storage`): all come again.
        """
        told = problem.document
        if not isinstance(told.get(self._member), int) or (problem.code == "storage" and "rejected" not in told):
            return 0
        return self._count(told)

    def _count(self, told: Mapping[str, Any]) -> int:
        """Takes down what became of the next elements, and returns how many those are."""
        outcome = self.outcome
        accepted, listed, unlisted = told[self._member], told.get("rejected", ()), told.get("rejected_unlisted", 0)
        outcome.accepted += accepted
        outcome.rejected_unlisted += unlisted
        for rejected in listed:
            if len(outcome.rejected) < REJECTED_LISTED:
                problem = read_problem(rejected["problem"])
                outcome.rejected.append(Rejected(self._index + rejected["index"], problem))
            else:
                outcome.rejected_unlisted += 1
        outcome.warnings_unlisted += told.get("warnings_unlisted", 0)
        for warning in told.get("warnings", ()):
            if len(outcome.warnings) < REJECTED_LISTED:
                index = self._index + warning["index"]
                outcome.warnings.append(Warned(index, warning["pointer"], warning["detail"]))
            else:
                outcome.warnings_unlisted += 1
        return int(accepted + len(listed) + unlisted)


def _passes(problem: Problem | None) -> bool:
    """Whether it may be otherwise a little later: the network, and what the broker or a proxy says of itself."""
    return problem is None or problem.status in (408, 429, 502, 503, 504) or problem.code == "interrupted"


def chunks(source: Iterable[T], size: int) -> Iterator[list[T]]:
    """Elements in lists of `size`."""
    elements = iter(source)
    while chunk := list(itertools.islice(elements, size)):
        yield chunk


async def chunks_as_they_come(source: AsyncIterable[T], size: int, clock: Clock) -> AsyncIterator[list[T]]:
    """Elements in lists of `size`, or fewer where the source pauses. At most one element is asked for ahead."""
    elements = aiter(source)
    chunk: list[T] = []
    coming = asyncio.ensure_future(_next(elements))
    timer: asyncio.Future[None] | None = None
    try:
        while True:
            if chunk and timer is None:
                timer = asyncio.ensure_future(clock.sleep(LINGER_S))
            await asyncio.wait((coming, timer) if timer else (coming,), return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                element = coming.result()
                if not element:
                    break
                chunk.extend(element)
                coming = asyncio.ensure_future(_next(elements))
            if chunk and (len(chunk) == size or (timer and timer.done())):
                full, chunk = chunk, []
                if timer:
                    timer.cancel()
                    timer = None
                yield full
        if chunk:
            yield chunk
    finally:
        coming.cancel()
        if timer:
            timer.cancel()


async def _next(elements: AsyncIterator[T]) -> tuple[T, ...]:
    """The next element, or none at the end."""
    try:
        return (await anext(elements),)
    except StopAsyncIteration:
        return ()
