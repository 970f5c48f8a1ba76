"""Is away for a while, and gets what it missed."""

import asyncio
import os
import sys

import nearcast
from nearcast import Checkpoint, Event, Filter, Gap, Message, attr, event

URL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("NEARCAST_URL", "http://127.0.0.1:7070")


PHONE = "phone-py"


async def first_run() -> Checkpoint | None:
    async with nearcast.connect(URL, PHONE) as phone:
        await phone.subscribe("alarms", Filter(where=attr("type").in_("fire", "flood")), durable=True)
        await phone.publish(event([9.19, 45.46], {"type": "fire", "number": 1}))
        async for message in phone:
            print(f"here: {told(message)}")
            break
        return phone.checkpoint  # (epoch, offset), to be stored


async def next_run(checkpoint: Checkpoint | None) -> None:
    async with nearcast.connect(URL, PHONE, resume=checkpoint) as phone:
        async for message in phone:
            print(f"missed: {told(message)}")
            if isinstance(message, Event) and message.properties["number"] == 3:
                break
        await phone.forget()  # A durable subscription would go on to keep what matches.


def told(message: Message) -> str:
    match message:
        case Event():
            return f"{message.properties['type']} {message.properties['number']}"
        case Gap():
            return f"{message.count} that are lost: {message.reason}"


async def main() -> None:
    async with nearcast.connect(URL, PHONE) as phone:
        await phone.forget()  # what a run that was broken off has left

    checkpoint = await first_run()
    async with nearcast.Api(URL) as api:  # meanwhile, somewhere else
        await api.publish(event([9.19, 45.46], {"type": "flood", "number": 2}))
        await api.publish(event([9.19, 45.46], {"type": "fire", "number": 3}))
    await next_run(checkpoint)


asyncio.run(main())
