"""The broker is killed and started again under a session: what was acknowledged arrives."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import nearcast
from nearcast import Backoff, Event, Filter, Gap, Ready, event
from tests.broker import Broker
from tests.scripted import within

KILLS = 4
AFTER = 25
"""So many events are accepted before the next kill, and after the last one."""
DEADLINE_S = 60
SOON = Backoff(base_s=0.05, cap_s=0.5)
HERE = [9.19, 45.46]


class Ledger:
    """What was accepted, and what arrived."""

    def __init__(self) -> None:
        self.accepted: set[int] = set()
        self.arrived: Counter[int] = Counter()
        self.gaps: list[Gap] = []

    @property
    def complete(self) -> bool:
        return self.accepted <= set(self.arrived)

    def take(self, message: Event | Gap) -> None:
        if isinstance(message, Gap):
            self.gaps.append(message)
        else:
            self.arrived[message.properties["number"]] += 1

    def check(self, *, twice_at_most: int) -> None:
        """Nothing is missing, no gap was told, and twice came only what was on its way when the broker died."""
        assert self.complete, sorted(self.accepted - set(self.arrived))
        assert not self.gaps
        assert sum(times - 1 for times in self.arrived.values()) <= twice_at_most


def numbered(number: int) -> nearcast.Feature:
    return event(HERE, {"number": number})


@pytest.fixture
def durable(brokers: Callable[..., Broker]) -> Iterator[Broker]:
    """Its data is in memory where the system offers that: a killed process leaves the same there, and a busy disk holds nobody up."""
    memory = Path("/dev/shm")  # noqa: S108
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        broker = brokers("--data", folder)
        yield broker
        broker.stop()


@pytest.mark.timeout(120)
async def test_nothing_is_lost(durable: Broker) -> None:
    ledger = Ledger()
    loop = asyncio.get_running_loop()

    async def publish(session: nearcast.Session, number: int) -> None:
        await session.publish(numbered(number))
        ledger.accepted.add(number)

    async def publish_on(session: nearcast.Session, enough: asyncio.Event) -> None:
        number = 0
        while not enough.is_set():
            await asyncio.gather(*(publish(session, number + each) for each in range(5)))
            number += 5

    async def take(session: nearcast.Session) -> None:
        async for message in session:
            ledger.take(message)

    async with (
        nearcast.connect(durable.url, "ann", backoff=SOON) as ann,
        nearcast.connect(durable.url, "bob", backoff=SOON) as bob,
    ):
        await ann.subscribe("all", Filter(), durable=True)
        enough = asyncio.Event()
        publishing = asyncio.ensure_future(publish_on(bob, enough))
        taking = asyncio.ensure_future(take(ann))
        for kill in range(1, KILLS + 1):
            await until(lambda kill=kill: len(ledger.accepted) >= kill * AFTER)  # type: ignore[misc]
            await loop.run_in_executor(None, durable.kill)
            await loop.run_in_executor(None, durable.start)
        await until(lambda: len(ledger.accepted) >= (KILLS + 1) * AFTER)
        enough.set()
        await within(publishing)
        await until(lambda: ledger.complete)
    await within(taking)
    ledger.check(twice_at_most=KILLS * 5)


@pytest.mark.timeout(120)
def test_nothing_is_lost_without_asyncio(durable: Broker) -> None:
    ledger = Ledger()
    progress = threading.Condition()
    enough = threading.Event()

    def publish_on(session: nearcast.sync.Session) -> None:
        number = 0
        while not enough.is_set():
            session.publish(numbered(number))
            with progress:
                ledger.accepted.add(number)
                progress.notify_all()
            number += 1

    def take(session: nearcast.sync.Session) -> None:
        for message in session:
            with progress:
                ledger.take(message)
                progress.notify_all()

    with (
        nearcast.sync.connect(durable.url, "ann", backoff=SOON) as ann,
        nearcast.sync.connect(durable.url, "bob", backoff=SOON) as bob,
    ):
        ann.subscribe("all", Filter(), durable=True)
        publishing = threading.Thread(target=publish_on, args=(bob,))
        taking = threading.Thread(target=take, args=(ann,))
        publishing.start()
        taking.start()

        def wait_for(condition: Callable[[], bool]) -> None:
            with progress:
                assert progress.wait_for(condition, DEADLINE_S)

        for kill in range(1, KILLS + 1):
            wait_for(lambda kill=kill: len(ledger.accepted) >= kill * AFTER)  # type: ignore[misc]
            durable.kill()
            durable.start()
        wait_for(lambda: len(ledger.accepted) >= (KILLS + 1) * AFTER)
        enough.set()
        publishing.join(DEADLINE_S)
        wait_for(lambda: ledger.complete)
    taking.join(DEADLINE_S)
    ledger.check(twice_at_most=KILLS)


@pytest.mark.timeout(120)
async def test_the_next_process_goes_on(durable: Broker) -> None:
    """A session that stores its checkpoint, is gone while the broker dies, and comes back."""
    async with nearcast.connect(durable.url, "ann", acknowledge="manual") as ann:
        await ann.subscribe("all", Filter(), durable=True)
        await ann.publish(numbered(1))
        assert (await within(ann.receive())).offset == 1  # type: ignore[union-attr]
        checkpoint = ann.checkpoint
    async with nearcast.Api(durable.url) as api:
        await api.publish(numbered(2))
        durable.kill()
        durable.start()
        outcome = await api.publish_many(numbered(number) for number in range(3, 6))
        assert outcome.accepted == 3
    async with nearcast.connect(durable.url, "ann", resume=checkpoint) as ann:
        assert ann.state == Ready(checkpoint.epoch, 1, resumed=True) if checkpoint else False
        messages = [await within(ann.receive()) for _ in range(4)]
    assert [message.properties["number"] for message in messages if isinstance(message, Event)] == [2, 3, 4, 5]
    async with nearcast.connect(durable.url, "ann") as ann:
        # Leaving without an error acknowledged all of it.
        assert isinstance(ann.state, Ready)
        assert ann.state.offset == 5


async def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition that other tasks bring about."""

    async def watch() -> None:
        while not condition():
            await asyncio.sleep(0.005)

    await asyncio.wait_for(watch(), DEADLINE_S)
