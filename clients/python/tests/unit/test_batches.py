"""Many elements over HTTP: what is sent again, and what the report says of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from nearcast import Backoff, BatchError, ProblemError, UnreachableError
from nearcast.batches import Batches, chunks, chunks_as_they_come
from nearcast.options import Options
from nearcast.problems import Problem, read_problem
from tests.clock import FakeClock, settle


class Broker:
    """Answers as a test says, and notes what came."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self._answers = list(answers)
        self.came: list[list[int]] = []
        self.at: list[float] = []
        self.clock = FakeClock()
        options = Options(clock=self.clock, backoff=Backoff(base_s=0, cap_s=0))
        self.batches = Batches(self._post, "accepted", options)

    async def _post(self, body: bytes) -> dict[str, Any]:
        self.came.append([json.loads(line) for line in body.split(b"\n")])
        self.at.append(self.clock.monotonic())
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def send(self, elements: range) -> None:
        sending = asyncio.ensure_future(self.batches.send([str(element).encode() for element in elements]))
        while not sending.done():
            await settle()
            if not sending.done():
                await self.clock.advance(1)
        await sending


def refused(status: int, code: str = "overloaded", retry_after_s: float | None = None, **members: Any) -> ProblemError:
    document = {"type": f"urn:nearcast:problem:{code}", "title": code, "status": status, **members}
    return ProblemError(read_problem(document, status, retry_after_s))


def accepted(accepted: int, *rejected: int, unlisted: int = 0) -> dict[str, Any]:
    problem = {"type": "urn:nearcast:problem:invalid-document", "title": "not valid", "status": 400}
    listed = [{"index": index, "problem": problem} for index in rejected]
    return {"accepted": accepted, "rejected": listed, **({"rejected_unlisted": unlisted} if unlisted else {})}


async def test_rejections_count_over_the_whole_input() -> None:
    broker = Broker(accepted(2, 1), accepted(3), accepted(0, 0, 2, unlisted=1))
    for first in (0, 3, 6):
        await broker.send(range(first, first + 3))
    outcome = broker.batches.outcome
    assert outcome.accepted == 5
    assert [rejected.index for rejected in outcome.rejected] == [1, 6, 8]
    assert outcome.rejected_unlisted == 1
    assert isinstance(outcome.rejected[0].problem, Problem)


async def test_warnings_count_over_the_whole_input() -> None:
    warnings = [{"index": index, "pointer": "/ttl", "detail": "did you mean ttl_s?"} for index in range(3)]
    broker = Broker(accepted(3), {**accepted(3), "warnings": warnings, "warnings_unlisted": 2})
    for first in (0, 3):
        await broker.send(range(first, first + 3))
    outcome = broker.batches.outcome
    assert [(warned.index, warned.pointer) for warned in outcome.warnings] == [(3, "/ttl"), (4, "/ttl"), (5, "/ttl")]
    assert outcome.warnings_unlisted == 2


async def test_only_so_many_rejections_are_listed() -> None:
    broker = Broker(accepted(0, *range(600)))
    for first in (0, 600):
        await broker.send(range(first, first + 600))
    assert len(broker.batches.outcome.rejected) == 1_000
    assert broker.batches.outcome.rejected_unlisted == 200


async def test_the_rest_of_a_batch_that_was_ended_is_sent_again_when_the_broker_says() -> None:
    broker = Broker(
        refused(429, retry_after_s=1), refused(429, "too-many-events", retry_after_s=7, accepted=2), accepted(3)
    )
    await broker.send(range(5))
    assert broker.came == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [2, 3, 4]]
    assert broker.at == [0, 1, 8]
    assert broker.batches.outcome.accepted == 5


async def test_what_was_rejected_before_the_end_is_not_sent_again() -> None:
    broker = Broker(
        refused(429, **accepted(2, 1)),
        refused(503, "stopping", **accepted(0, 0, unlisted=1)),
        refused(503, "storage", **accepted(1)),
        accepted(1, 0),
    )
    await broker.send(range(8))
    assert broker.came == [[*range(8)], [3, 4, 5, 6, 7], [5, 6, 7], [6, 7]]
    outcome = broker.batches.outcome
    assert outcome.accepted == 4
    assert [rejected.index for rejected in outcome.rejected] == [1, 3, 6]
    assert outcome.rejected_unlisted == 1


async def test_a_batch_goes_again_as_a_whole_when_it_is_not_known_what_is_on_disk() -> None:
    broker = Broker(refused(503, "storage", accepted=2), accepted(3))
    await broker.send(range(3))
    assert broker.came == [[0, 1, 2]] * 2
    assert broker.batches.outcome.accepted == 3


async def test_what_breaks_is_sent_again() -> None:
    broker = Broker(UnreachableError("reset"), refused(503, "recovering"), refused(502, "about:blank"), accepted(2))
    await broker.send(range(2))
    assert broker.came == [[0, 1]] * 4


async def test_it_is_given_up_after_a_minute_without_progress() -> None:
    broker = Broker(refused(429, retry_after_s=1, accepted=1), refused(429, retry_after_s=1))
    with pytest.raises(BatchError, match="overloaded") as failed:
        await broker.send(range(3))
    assert failed.value.outcome.accepted == 1
    assert isinstance(failed.value.__cause__, ProblemError)
    assert 60 <= broker.clock.monotonic() < 65


async def test_what_is_wrong_is_not_tried_again() -> None:
    broker = Broker(refused(403, "forbidden"))
    with pytest.raises(BatchError, match="forbidden"):
        await broker.send(range(3))
    assert len(broker.came) == 1


def test_chunks() -> None:
    assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(chunks([], 2)) == []


async def test_a_source_that_pauses_has_its_elements_sent() -> None:
    clock = FakeClock()
    given: asyncio.Queue[int | None] = asyncio.Queue()
    got: list[list[int]] = []
    asked = 0

    async def source() -> AsyncIterator[int]:
        nonlocal asked
        while (element := await given.get()) is not None:
            asked += 1
            yield element

    async def take() -> None:
        async for chunk in chunks_as_they_come(source(), 3, clock):
            got.append(chunk)
            await clock.sleep(10)  # so long a request takes

    taking = asyncio.ensure_future(take())
    for element in range(5):
        given.put_nowait(element)
    await settle()
    assert got == [[0, 1, 2]]
    assert asked == 4  # one ahead, no more
    await clock.advance(10)
    assert got == [[0, 1, 2]]
    await clock.advance(0.1)
    assert got == [[0, 1, 2], [3, 4]]
    await clock.advance(10)
    given.put_nowait(5)
    given.put_nowait(None)
    await settle()
    assert got[2:] == [[5]]
    await clock.advance(10)
    await taking
