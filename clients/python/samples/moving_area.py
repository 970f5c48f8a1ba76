"""Drives along a street; the area drives along, and brings what comes into reach."""

import asyncio
import sys
from collections.abc import AsyncIterator

import nearcast
from nearcast import Event, Filter, Fix, around, attr, event

URL = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:7070"


async def street() -> AsyncIterator[Fix]:
    """A receiver of positions: 160 m a fix, ten fixes a second."""
    for step in range(30):
        yield Fix([9.1500 + step * 0.002, 45.4642], accuracy_m=8)
        await asyncio.sleep(0.1)


async def main() -> None:
    async with nearcast.connect(URL, "works") as works:
        for number, longitude in enumerate([9.1600, 9.1800, 9.2000], start=1):
            await works.publish(event([longitude, 45.4650], {"type": "roadworks", "number": number}, ttl_s=600))

    async with nearcast.connect(URL, "car-7") as car:
        await car.subscribe("ahead", Filter(around(300), attr("type") == "roadworks"))
        driving = asyncio.create_task(car.follow(street(), min_distance_m=100, min_interval_s=0.1))
        async for message in car:
            if isinstance(message, Event):
                print(f"{message.cause}: roadworks {message.properties['number']}")
                if message.properties["number"] == 3:
                    break
        await driving


asyncio.run(main())
