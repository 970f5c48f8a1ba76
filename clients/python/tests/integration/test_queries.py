"""What is live now, and where a client is, asked of a real broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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


STREETS = Path(__file__).parents[4] / "loadgen/data/liechtenstein/highways.osm.pbf"


async def test_routes_lead_along_the_streets(brokers: Callable[..., Broker]) -> None:
    vaduz, schaan = [9.5209, 47.1415], [9.5085, 47.1650]
    url = brokers("--streets", str(STREETS)).url
    async with Api(url) as api:
        found = await api.route(vaduz, schaan, by="length")
        assert found["level"] == 0
        assert 2_500 < found["length_m"] < 4_000
        assert len(found["route"]["coordinates"]) > 2
        with pytest.raises(ProblemError, match="within 1000 m of to"):
            await api.route(vaduz, [8, 50])
    async with nearcast.connect(url, "ann") as session:
        await session.subscribe("way", Filter(nearcast.along_route(schaan, 100)))
        assert [way["state"] for way in await session.routes()] == ["no-position"]
        await session.move(vaduz, confirm=True)
        [way] = await session.routes()
        assert (way["subscription"], way["filter"], way["state"]) == ("way", 0, "found")
        assert way["left_m"] > 2_000
        assert len(way["route"]["coordinates"]) > 2
    with sync.Api(url) as api_without_asyncio:
        assert api_without_asyncio.route(vaduz, schaan, deadline_ms=10_000, coarsest=0)["score"] == 6
        with sync.connect(url, "bob") as session_without_asyncio:
            session_without_asyncio.subscribe("way", Filter(nearcast.along_route(schaan, 100)))
            assert session_without_asyncio.routes()[0]["to"] == schaan
            assert [way["radius_m"] for way in api_without_asyncio.routes("bob")] == [100]
    async with Api(brokers().url) as api:
        with pytest.raises(ProblemError, match="knows no streets"):
            await api.route(vaduz, schaan)


def test_the_same_without_asyncio(brokers: Callable[..., Broker]) -> None:
    url = brokers().url
    with sync.connect(url, "ann") as session, sync.Api(url) as api:
        session.publish_many(places())
        numbers = [feature["properties"]["n"] for feature in api.events(near=([9, 45], 250), page=2)]  # type: ignore[index]
        assert numbers == [0, 1, 2, 3]
        assert len(list(session.events())) == COUNT
        session.move([9.01, 45], confirm=True)
        assert session.position()["coordinates"] == api.position("ann")["coordinates"] == [9.01, 45]


async def test_what_is_published_is_known_by_its_id(broker: Broker, client: str) -> None:
    bare: dict[str, object] = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 1]}, "ttl_s": 600}
    own = f"of {client}"
    async with nearcast.connect(broker.url, client) as session:
        # As the protocol writes it, and as the broker shows it again.
        await session.subscribe("bare", {"filters": [{"area": {"center": [1, 1], "radius_m": 100}}]})
        await session.subscribe("again", (await session.subscriptions())[0])
        assert await session.publish({**bare, "id": own}) == own
        ids = [own, await session.publish({**bare, "properties": None}), await session.api.publish(bare)]
        for event_id in ids:
            message = await session.receive(timeout_s=15)
            assert isinstance(message, nearcast.Event)
            assert (message.id, message.properties, message.feature["properties"]) == (event_id, {}, {})
            assert set(message.subscriptions) == {"again", "bare"}
        assert [feature["properties"] async for feature in session.events(near=[1, 1, 1])] == [{}, {}, {}]
        for event_id in ids:
            await session.revoke(event_id)
        assert [feature async for feature in session.events(near=([1, 1], 1))] == []
        await session.forget()
        with pytest.raises(nearcast.ClosedError):
            await session.receive()


def test_what_is_published_is_known_by_its_id_without_asyncio(broker: Broker, client: str) -> None:
    with sync.connect(broker.url, client) as session:
        for publish in (session.publish, session.api.publish):
            event_id = publish(event([2, 2], ttl_s=600))
            assert [feature["id"] for feature in session.events(near=[2, 2, 1])] == [event_id]
            session.revoke(event_id)
            assert publish(event([2, 2], id=7, ttl_s=600)) == 7
            session.revoke(7)
        session.forget()
        with pytest.raises(nearcast.ClosedError):
            session.receive()
