"""Is away for a while, and gets what it missed."""

import asyncio
import sys

import nearcast
from nearcast import Checkpoint, Event, Filter, attr, event

URL = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:7070"


async def first_run() -> Checkpoint | None:
    async with nearcast.connect(URL, "phone-1") as phone:
        await phone.subscribe("alarms", Filter(where=attr("type").in_("fire", "flood")), durable=True)
        await phone.publish(event([9.19, 45.46], {"type": "fire", "number": 1}))
        async for message in phone:
            print(f"here: {message}")
            break
        return phone.checkpoint  # (epoch, offset), to be stored


async def next_run(checkpoint: Checkpoint | None) -> None:
    async with nearcast.connect(URL, "phone-1", resume=checkpoint) as phone:
        async for message in phone:
            print(f"missed: {message}")
            if isinstance(message, Event) and message.properties["number"] == 3:
                break


async def main() -> None:
    checkpoint = await first_run()
    async with nearcast.Api(URL) as api:  # meanwhile, somewhere else
        await api.publish(event([9.19, 45.46], {"type": "flood", "number": 2}))
        await api.publish(event([9.19, 45.46], {"type": "fire", "number": 3}))
    await next_run(checkpoint)


asyncio.run(main())
