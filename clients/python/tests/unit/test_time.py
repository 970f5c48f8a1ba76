"""What happens when: backoff, tokens, positions that are followed, acknowledgements."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from nearcast import Fix, TimedOutError
from nearcast.acks import Acknowledgements
from nearcast.clock import within
from nearcast.follow import Recorder, Throttle, follow, great_circle_m, planar_m
from nearcast.tokens import Tokens, ends_at
from tests.clock import FakeClock, settle
from tests.vectors.test_frames import token_until


async def test_a_token_is_renewed_a_minute_before_its_end() -> None:
    clock = FakeClock()
    lives = iter([600, 90, 40, -5])
    tokens = Tokens(lambda: token_until(clock.time() + next(lives)), clock)
    assert tokens.renew_in_s() is None
    for renewed_in_s in [540, 45, 20, 0]:
        await tokens.fresh()
        assert tokens.renew_in_s() == renewed_in_s


async def test_a_token_that_is_about_to_end_is_not_used_for_a_call() -> None:
    clock = FakeClock()
    made: list[str] = []

    async def provider() -> str:
        made.append(token_until(clock.time() + 600))
        return made[-1]

    tokens = Tokens(provider, clock)
    assert await tokens.current() == await tokens.current() == made[0]
    await clock.advance(600)
    assert await tokens.current() == made[1]


async def test_a_token_without_a_provider_stays() -> None:
    tokens = Tokens(token_until(0), FakeClock())
    assert not tokens.renewable
    assert tokens.renew_in_s() is None
    assert await tokens.fresh() == await tokens.current() == token_until(0)


@pytest.mark.parametrize("token", ["", "a", "a.b.c", "e30.e30.c", "e30.W10.c", "e30.eyJleHAiOiAiYSJ9.c"])
def test_a_token_that_says_no_end(token: str) -> None:
    assert ends_at(token) is None


def test_distances() -> None:
    assert great_circle_m([9.19, 45.46], [9.19, 45.46]) == 0
    assert great_circle_m([0, 0], [180, 0]) == pytest.approx(20_015_114.9, abs=1)
    assert great_circle_m([179.999, 0], [-179.999, 0]) == pytest.approx(222.4, abs=0.1)
    assert planar_m([0, 0], [3, 4]) == 5


class Source:
    """Fixes that a test brings."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._fixes: asyncio.Queue[Fix | None] = asyncio.Queue()
        self.sent: list[tuple[float, float]] = []
        throttle = Throttle(planar_m, min_distance_m=25, max_interval_s=60, min_interval_s=1)
        self.task = asyncio.ensure_future(follow(self._read(), throttle, clock, self._send))

    async def _read(self) -> AsyncIterator[Fix]:
        while (fix := await self._fixes.get()) is not None:
            yield fix

    def _send(self, fix: Fix) -> None:
        self.sent.append((self._clock.monotonic(), fix.coordinates[0]))

    async def at(self, x: float | None) -> None:
        self._fixes.put_nowait(None if x is None else Fix([x, 0]))
        await settle()


async def test_only_fixes_that_are_worth_it_are_sent() -> None:
    clock = FakeClock()
    source = Source(clock)
    await source.at(0)  # the first
    await clock.advance(10)
    await source.at(24)  # too near
    await source.at(25)  # far enough
    await source.at(100)  # too soon
    await source.at(110)
    await clock.advance(0.9)
    assert source.sent == [(0, 0), (10, 25)]
    await clock.advance(0.1)  # soon enough: the newest one goes
    assert source.sent[2:] == [(11, 110)]
    await source.at(111)  # too near, and nothing comes any more
    await clock.advance(59.9)
    assert source.sent[3:] == []
    await clock.advance(0.1)
    assert source.sent[3:] == [(71, 111)]
    await clock.advance(300)  # nothing new is not told again
    assert source.sent[4:] == []
    await source.at(112)
    await clock.advance(0.5)
    await source.at(113)
    await source.at(None)  # at the end the last one goes
    await source.task
    assert source.sent[4:] == [(371, 112), (371.5, 113)]


async def test_following_ends_with_its_source() -> None:
    async def broken() -> AsyncIterator[Fix]:
        for x in range(3):
            if x == 2:
                raise OSError("no receiver")
            yield Fix([x, 0])

    sent: list[Fix] = []
    with pytest.raises(OSError, match="no receiver"):
        await follow(broken(), Throttle(planar_m, 25, 60, 1), FakeClock(), sent.append)


def test_a_track_is_thinned() -> None:
    recorder = Recorder(points_max=10)
    for x in range(1_000):
        recorder.record([x, 0], 100 + x)
    points = recorder.take()
    assert 3 <= len(points) <= 10
    assert [points[0], points[-1]] == [(0, 0, 100), (999, 0, 1_099)]
    assert points == sorted(points)
    assert recorder.take() == []


def test_times_of_a_track_do_not_descend() -> None:
    recorder = Recorder()
    for unix_s in [5.0, 3.0, 7.0]:
        recorder.record([0, 0], unix_s)
    assert [unix_s for _, _, unix_s in recorder.take()] == [5, 5, 7]
    with pytest.raises(ValueError, match="three points"):
        Recorder(2)


async def test_acknowledgements_are_collected() -> None:
    clock, sent = FakeClock(), list[int]()
    acks = Acknowledgements(clock, sent.append)
    acks.begin(resumed=False)
    for offset in range(1, 51):
        acks.processed(offset, 1)
    await clock.advance(0.8)
    assert sent == []
    await clock.advance(0.2)
    assert sent == [50]
    for offset in range(51, 251):  # a hundred go at once
        acks.processed(offset, 1)
    assert sent == [50, 150, 250]
    acks.processed(250, 0)
    await clock.advance(5)
    assert sent == [50, 150, 250]


async def test_acknowledgements_wait_for_a_connection() -> None:
    clock, sent = FakeClock(), list[int]()
    acks = Acknowledgements(clock, sent.append)
    acks.begin(resumed=False)
    acks.processed(3, 3)
    acks.broken()
    await clock.advance(5)
    acks.at_once(4)
    assert sent == []
    acks.begin(resumed=True)
    acks.broken()
    acks.begin(resumed=True)  # nobody knows whether it arrived
    assert sent == [4, 4]
    acks.broken()
    acks.begin(resumed=False)  # offsets of another session
    assert sent == [4, 4]
    acks.processed(1, 1)
    acks.flush()
    assert sent == [4, 4, 1]


async def test_what_takes_too_long() -> None:
    clock = FakeClock()
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(within(clock, 3, never, "no answer"))
    await settle()
    await clock.advance(3)
    with pytest.raises(TimedOutError, match="no answer within 3 s"):
        await waiting
    assert never.cancelled()
