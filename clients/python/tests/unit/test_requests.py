"""What is written, in which order, and what becomes of it when a connection breaks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from nearcast.requests import Requests
from tests.clock import settle


async def written(requests: Requests) -> list[dict[str, Any]]:
    """All that waits to be written."""
    frames = []
    while requests._queue:
        request = await requests.next()
        frames.append(json.loads(request.text))
        requests.written(request)
    return frames


async def test_the_newest_takes_the_place_of_one_that_waits() -> None:
    requests = Requests()
    requests.tell_newest({"op": "move", "coordinates": [1, 1]})
    requests.tell_newest({"op": "move", "coordinates": [2, 2]})
    requests.tell_newest({"op": "ack", "offset": 1})
    requests.tell_newest({"op": "move", "coordinates": [3, 3]})
    assert await written(requests) == [
        {"op": "move", "coordinates": [2, 2]},
        {"op": "ack", "offset": 1},
        {"op": "move", "coordinates": [3, 3]},
    ]


async def test_but_not_of_one_that_is_being_written() -> None:
    requests = Requests()
    requests.tell_newest({"op": "ack", "offset": 1})
    request = await requests.next()
    requests.tell_newest({"op": "ack", "offset": 2})
    requests.written(request)
    assert await written(requests) == [{"op": "ack", "offset": 2}]


async def test_who_waits_until_all_is_done_waits_for_the_next_connection() -> None:
    requests = Requests()
    asked = requests.ask({"op": "publish"}, again=True)
    requests.ask({"op": "auth"}, again=False)
    idle = asyncio.ensure_future(requests.idle())
    await written(requests)
    again = requests.broken()
    assert again == [asked]
    requests.add(asked)
    requests.look_idle()
    await settle()
    assert not idle.done()
    await written(requests)
    assert asked.writes == 2
    assert requests.answer(asked.ref, None)
    assert not requests.answer(asked.ref, None)
    assert not requests.answer("1", None)
    await settle()
    assert idle.done()
    assert asked.done.done()
