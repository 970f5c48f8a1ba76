"""Hears when a bus comes near, and when it is gone."""

import asyncio
import sys

import nearcast
from nearcast import Event, Filter, around, attr, event

URL = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:7070"


async def drive(bus: nearcast.Session) -> None:
    """A newer event of the same key takes the place of the one before: the bus moves."""
    for step in range(8):
        position = [9.1800 + step * 0.003, 45.4642]
        await bus.publish(event(position, {"type": "bus", "line": 7}, key="bus-7", ttl_s=600))


async def main() -> None:
    async with nearcast.connect(URL, "bus-7") as bus, nearcast.connect(URL, "bea") as bea:
        await bea.move([9.1900, 45.4642])
        await bea.subscribe("buses", Filter(around(300), attr("type") == "bus"), on=["enter", "exit"])
        await drive(bus)
        async for message in bea:
            if isinstance(message, Event):
                print(f"{message.transition}: line {message.properties['line']} at {message.position}")
                if message.transition == "exit":
                    break


asyncio.run(main())
