"""What is live now, and where a client is, asked of a real broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import nearcast
from nearcast import Api, Filter, ProblemError, around, attr, event, sync
from tests.broker import Broker

COUNT = 25


def places() -> list[nearcast.Feature]:
    return [event([9 + number / 1000, 45], {"n": number}, ttl_s=600) for number in range(COUNT)]


async def test_events_page_by_page(brokers: Callable[..., Broker]) -> None:
    url = brokers().url

    async def numbers(**query: object) -> list[int]:
        return [feature["properties"]["n"] async for feature in session.events(**query)]  # type: ignore[arg-type, index]

    async with nearcast.connect(url, "ann") as session:
        await session.publish_many(places())
        assert sorted(await numbers(page=7)) == list(range(COUNT))
        assert await numbers(near=([9.0101, 45], 200), page=1) == [10, 11, 9, 12, 8]
        assert await numbers(bbox=(8.9, 44.9, 9.0101, 45.1), where=attr("n") >= 10) == [10]
        assert await numbers(client="ann", where="n = 3") == []
        with pytest.raises(ProblemError, match="swapped"):
            await numbers(bbox=(45, 109, 46, 110))
        with pytest.raises(ProblemError, match="no position"):
            await session.position()
        await session.subscribe("near", Filter(around(150)))
        await session.move([9.01, 45], accuracy_m=5, confirm=True)
        assert sorted(await numbers(client="ann")) == [9, 10, 11]
        assert (await session.position())["coordinates"] == [9.01, 45]
        assert (await session.api.position("ann"))["accuracy_m"] == 5


PUSH = {
    "endpoint": "https://1.1.1.1/a",
    "expirationTime": None,
    "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    },
}
"""A push subscription as a browser writes it."""


async def test_a_client_has_a_push_subscription(brokers: Callable[..., Broker]) -> None:
    url = brokers().url
    async with Api(url) as api:
        assert len(await api.push_key()) == 87
        with pytest.raises(ProblemError, match="no push subscription"):
            await api.push("ann")
        assert (await api.put_push("ann", PUSH))["endpoint_origin"] == "https://1.1.1.1"
        assert (await api.push("ann"))["failures"] == 0
        await api.delete_push("ann")
    with sync.Api(url) as api_without_asyncio:
        assert len(api_without_asyncio.push_key()) == 87
        assert api_without_asyncio.put_push("ann", PUSH)["last_push"] is None
        assert api_without_asyncio.push("ann")["endpoint_origin"] == "https://1.1.1.1"
        api_without_asyncio.delete_push("ann")


def test_the_same_without_asyncio(brokers: Callable[..., Broker]) -> None:
    url = brokers().url
    with sync.connect(url, "ann") as session, sync.Api(url) as api:
        session.publish_many(places())
        numbers = [feature["properties"]["n"] for feature in api.events(near=([9, 45], 250), page=2)]  # type: ignore[index]
        assert numbers == [0, 1, 2, 3]
        assert len(list(session.events())) == COUNT
        session.move([9.01, 45], confirm=True)
        assert session.position()["coordinates"] == api.position("ann")["coordinates"] == [9.01, 45]
