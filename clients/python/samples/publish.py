"""Publishes events, and gets the one that is near."""

import asyncio
import os
import sys

import nearcast
from nearcast import Event, Filter, around, attr, event

URL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("NEARCAST_URL", "http://127.0.0.1:7070")


async def main() -> None:
    async with nearcast.connect(URL, "ann-py") as ann:
        await ann.move([9.1895, 45.4642])
        await ann.subscribe("accidents", Filter(around(500), attr("severity") >= 2))

        await ann.publish(event([9.2500, 45.4600], {"type": "accident", "severity": 3}))  # 5 km away
        await ann.publish(event([9.1901, 45.4650], {"type": "accident", "severity": 3}))  # 100 m away
        async for message in ann:
            if isinstance(message, Event):
                print(f"near: {message.properties} at {message.position}")
                break
        await ann.forget()  # closes the session, and leaves nothing at the broker


asyncio.run(main())
