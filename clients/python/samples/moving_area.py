"""Drives along a street; the area drives along, and brings what comes into reach."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import nearcast
from nearcast import Event, Filter, Fix, around, attr, event

URL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("NEARCAST_URL", "http://127.0.0.1:7070")


async def street() -> AsyncIterator[Fix]:
    """A receiver of positions: 160 m a fix, ten fixes a second."""
    for step in range(30):
        yield Fix([9.1500 + step * 0.002, 45.4642], accuracy_m=8)
        await asyncio.sleep(0.1)


async def main() -> None:
    async with nearcast.connect(URL, "works-py") as works, nearcast.connect(URL, "car-py") as car:
        published = []
        for number, longitude in enumerate([9.1600, 9.1800, 9.2000], start=1):
            roadworks = {"type": "roadworks", "number": number}
            # They live for a minute: who comes near until then hears of them.
            published.append(
                await works.publish(event([longitude, 45.4650], roadworks, key=f"works-py-{number}", ttl_s=60))
            )

        await car.move([9.1500, 45.4642], confirm=True)
        await car.subscribe("ahead", Filter(around(300), attr("type") == "roadworks"))
        driving = asyncio.create_task(car.follow(street(), min_distance_m=100, min_interval_s=0.1))
        async for message in car:
            if isinstance(message, Event):
                print(f"{message.cause}: roadworks {message.properties['number']}")
                if message.properties["number"] == 3:
                    break
        await driving

        # Nothing of this is left at the broker.
        for works_id in published:
            await works.revoke(works_id)
        await works.forget()
        await car.forget()


asyncio.run(main())
