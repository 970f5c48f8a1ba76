"""Hears when a bus comes near, and when it is gone."""

import asyncio
import os
import sys

import nearcast
from nearcast import Event, Filter, around, attr, event

URL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("NEARCAST_URL", "http://127.0.0.1:7070")


async def drive(bus: nearcast.Session, longitude: float) -> str | float:
    """A newer event of the same key takes the place of the one before: the bus moves."""
    return await bus.publish(event([longitude, 45.4642], {"type": "bus", "line": 7}, key="bus-py", ttl_s=60))


async def main() -> None:
    async with nearcast.connect(URL, "bus-py") as bus, nearcast.connect(URL, "bea-py") as bea:
        await drive(bus, 9.1800)
        await bea.move([9.1900, 45.4642])
        await bea.subscribe("buses", Filter(around(300), attr("type") == "bus"), on=["enter", "exit"])
        for longitude in [9.1860, 9.1890, 9.1920, 9.1950]:
            last = await drive(bus, longitude)
        async for message in bea:
            if isinstance(message, Event):
                print(f"{message.transition}: line {message.properties['line']} at {message.position}")
                if message.transition == "exit":
                    break

        # Nothing of this is left at the broker.
        await bus.revoke(last)
        await bus.forget()
        await bea.forget()


asyncio.run(main())
