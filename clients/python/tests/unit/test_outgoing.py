"""What is written, in which order, and what becomes of it when a connection breaks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from nearcast.outgoing import Outgoing
from tests.clock import settle


async def written(outgoing: Outgoing) -> list[dict[str, Any]]:
    """All that waits to be written."""
    frames = []
    while outgoing._queue:
        outbound = await outgoing.next()
        frames.append(json.loads(outbound.text))
        outgoing.written(outbound)
    return frames


async def test_the_newest_takes_the_place_of_one_that_waits() -> None:
    outgoing = Outgoing()
    outgoing.tell_newest({"op": "move", "coordinates": [1, 1]})
    outgoing.tell_newest({"op": "move", "coordinates": [2, 2]})
    outgoing.tell_newest({"op": "ack", "offset": 1})
    outgoing.tell_newest({"op": "move", "coordinates": [3, 3]})
    assert await written(outgoing) == [
        {"op": "move", "coordinates": [2, 2]},
        {"op": "ack", "offset": 1},
        {"op": "move", "coordinates": [3, 3]},
    ]


async def test_but_not_of_one_that_is_being_written() -> None:
    outgoing = Outgoing()
    outgoing.tell_newest({"op": "ack", "offset": 1})
    outbound = await outgoing.next()
    outgoing.tell_newest({"op": "ack", "offset": 2})
    outgoing.written(outbound)
    assert await written(outgoing) == [{"op": "ack", "offset": 2}]


async def test_who_waits_until_all_is_done_waits_for_the_next_connection() -> None:
    outgoing = Outgoing()
    asked = outgoing.ask({"op": "publish"}, again=True)
    outgoing.ask({"op": "auth"}, again=False)
    idle = asyncio.ensure_future(outgoing.idle())
    await written(outgoing)
    again = outgoing.broken()
    assert again == [asked]
    outgoing.add(asked)
    outgoing.look_idle()
    await settle()
    assert not idle.done()
    await written(outgoing)
    assert asked.writes == 2
    assert outgoing.answer(asked.ref, None)
    assert not outgoing.answer(asked.ref, None)
    assert not outgoing.answer("1", None)
    await settle()
    assert idle.done()
    assert asked.done.done()
