"""What the client costs: events a second that one process receives and publishes, and the processor time of each.

    python bench/receive_and_publish.py ../../target/release/nearcast [events]

The broker, which is started here, runs on the same machine and takes its part of it. Each figure is the median of five runs, with the
least and the most.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import nearcast
from nearcast import Filter, around, attr, event

HERE = [9.19, 45.46]
RUNS = 5


def one(number: int) -> nearcast.Feature:
    return event(HERE, {"type": "accident", "severity": 3, "road": {"name": "A4"}, "number": number})


async def socket(publisher: nearcast.Session, events: int) -> None:
    """Published over the socket, as many at once as may wait for their answers."""
    numbers = iter(range(events))

    async def publish_on() -> None:
        for number in numbers:
            await publisher.publish(one(number))

    await asyncio.gather(*(publish_on() for _ in range(500)))


async def one_by_one(publisher: nearcast.Session, events: int) -> None:
    """Published over the socket, each after the answer to the one before."""
    for number in range(events // 10):
        await publisher.publish(one(number))


async def many(publisher: nearcast.Session, events: int) -> None:
    """Published over HTTP in batches."""
    await publisher.publish_many(one(number) for number in range(events))


async def publishing(
    url: str, how: Callable[[nearcast.Session, int], Awaitable[None]], events: int
) -> tuple[int, float, float]:
    async with nearcast.connect(url, "publisher") as publisher:
        began, used = time.perf_counter(), time.process_time()
        await how(publisher, events)
        taken, cost = time.perf_counter() - began, time.process_time() - used
        return events // 10 if how is one_by_one else events, taken, cost


PUBLISHER = """
import sys, nearcast.sync
from nearcast import event
with nearcast.sync.Api(sys.argv[1]) as api:
    api.publish_many(event([9.19, 45.46], {"type": "accident", "severity": 3, "road": {"name": "A4"}, "number": n}) for n in range(int(sys.argv[2])))
"""


def other_process(url: str, events: int) -> subprocess.Popen[str]:
    """Publishes, so that this process does nothing but receive."""
    return subprocess.Popen([sys.executable, "-c", PUBLISHER, url, str(events)], text=True)


async def receiving(url: str, events: int) -> tuple[int, float, float]:
    async with nearcast.connect(url, "receiver") as receiver:
        await receiver.move(HERE, confirm=True)
        await receiver.subscribe("all", Filter(around(500), attr("severity") >= 2))
        process = other_process(url, events)
        received, began, used = 0, 0.0, 0.0
        async for message in receiver:
            if received == 0:
                began, used = time.perf_counter(), time.process_time()
            received += message.count if isinstance(message, nearcast.Gap) else 1
            if received == events:
                break
        taken, cost = time.perf_counter() - began, time.process_time() - used
        process.wait()
        return events, taken, cost


def receiving_without_asyncio(url: str, events: int) -> tuple[int, float, float]:
    with nearcast.sync.connect(url, "receiver") as receiver:
        receiver.move(HERE, confirm=True)
        receiver.subscribe("all", Filter(around(500), attr("severity") >= 2))
        process = other_process(url, events)
        received, began, used = 0, 0.0, 0.0
        for message in receiver:
            if received == 0:
                began, used = time.perf_counter(), time.process_time()
            received += message.count if isinstance(message, nearcast.Gap) else 1
            if received == events:
                break
        taken, cost = time.perf_counter() - began, time.process_time() - used
        process.wait()
        return events, taken, cost


def report(name: str, run: Callable[[], tuple[int, float, float]]) -> None:
    rates, costs = [], []
    for _ in range(RUNS):
        events, taken, cost = run()
        rates.append(events / taken)
        costs.append(cost / events * 1e6)
    print(
        f"{name:<28} {statistics.median(rates):>9,.0f} events/s ({min(rates):,.0f} to {max(rates):,.0f}),"
        f" {statistics.median(costs):6.1f} µs of processor time each ({min(costs):.1f} to {max(costs):.1f})",
        flush=True,
    )


def main() -> None:
    program, events = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
    broker = subprocess.Popen(
        [program, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert broker.stdout is not None
        prefix = "nearcast listens on "
        url = next(line.removeprefix(prefix).strip() for line in broker.stdout if line.startswith(prefix))
        print(f"Python {sys.version.split()[0]}, {events:,} events a run, {RUNS} runs")
        report("receive", lambda: asyncio.run(receiving(url, events)))
        report("receive, without asyncio", lambda: receiving_without_asyncio(url, events))
        report("publish, 500 at once", lambda: asyncio.run(publishing(url, socket, events)))
        report("publish, one by one", lambda: asyncio.run(publishing(url, one_by_one, events)))
        report("publish_many", lambda: asyncio.run(publishing(url, many, events)))
    finally:
        broker.terminate()
        broker.wait()


if __name__ == "__main__":
    main()
