"""Hears of a taxi that reports places which it cannot have driven between."""

import asyncio
import os
import sys

import nearcast
from nearcast import Event, Filter, attr, event

URL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("NEARCAST_URL", "http://127.0.0.1:7070")

# The last report places the taxi 30 km further on after 20 s.
REPORTS = [
    ("r1", 114.000, "2026-03-01T08:00:00Z"),
    ("r2", 114.005, "2026-03-01T08:00:30Z"),
    ("r3", 114.305, "2026-03-01T08:00:50Z"),
]


async def main() -> None:
    async with nearcast.connect(URL, "watch-py") as watch:
        # No taxi is faster than 55 m/s between two of its reports of a minute.
        await watch.api.put_check("jump-py", {"preset": "speed", "object": "taxi", "max_m_per_s": 55, "clock": "event"})
        await watch.subscribe("jumps", Filter(where=attr("check") == "jump-py"))
        for name, longitude, time in REPORTS:
            await watch.publish(event([longitude, 22.5], {"taxi": "t1"}, id=name, time=time))
        told = 0
        async for message in watch:
            if isinstance(message, Event):
                bindings = message.properties["bindings"]
                print(f"{bindings['a']} does not fit {bindings['b']}")
                told += 1
                if told == 2:
                    break

        # Nothing of this is left at the broker.
        await watch.api.delete_check("jump-py")
        await watch.forget()


asyncio.run(main())
