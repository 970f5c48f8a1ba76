"""Brokers that name another one as that of the client."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from itertools import pairwise

import pytest

import nearcast
from nearcast import Backoff, Lost, ProblemError, Ready
from nearcast.endpoint import HOMES, Endpoint, Endpoints
from tests.scripted import NO_BACKOFF, Most, ScriptedServer, Upgrade, within

ELSEWHERE = json.dumps({"type": "urn:nearcast:problem:elsewhere", "title": "another broker serves it", "status": 307})
PROBLEM = {"content-type": "application/problem+json"}
PATH = "/v1/clients/ann/ws?resume=e1:5"


async def send_on(server: ScriptedServer, request: Upgrade, other: str) -> None:
    await server.refuse(request, 307, {**PROBLEM, "location": other + request.request.path}, ELSEWHERE)


def http(server: ScriptedServer) -> str:
    return server.url.replace("ws:", "http:")


async def test_a_session_goes_where_its_client_is_served_until_nobody_is_there() -> None:
    async with ScriptedServer() as door, ScriptedServer() as home:
        connecting = asyncio.ensure_future(_connect(door, "secret"))
        await send_on(door, await door.upgrade(), http(home))
        first = await home.upgrade()
        assert (first.request.path, first.token) == ("/v1/clients/ann/ws", "secret")
        await home.ready("e1", 5, first)
        session = await within(connecting)
        states = session.states()
        assert isinstance(await within(anext(states)), Ready)

        # Calls about the client go there, too, and so does the next connection.
        asking = asyncio.ensure_future(session.api.subscriptions("ann"))
        asked = await home.upgrade()
        assert (asked.request.path, asked.token) == ("/v1/clients/ann/subscriptions", "secret")
        await home.refuse(asked, 200, {}, "[]")
        assert await within(asking) == []
        home.reset()
        second = await home.upgrade()
        assert second.resume == "e1:5"
        await home.refuse(second, 503, {}, "")

        # It is left, and the address of the list is asked again.
        await send_on(door, await door.upgrade(), http(home))
        await home.ready("e1", 5)
        lost = 0
        while not isinstance(state := await within(anext(states)), Ready):
            lost += isinstance(state, Lost)
        assert lost == 2, "a redirect is no failure"
        await session.close()


async def test_what_is_sent_on_from_broker_to_broker_ends() -> None:
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(ScriptedServer()) for _ in range(5)]

        async def send_all_on() -> None:
            # Each names the next one: the fourth is the last that is followed to.
            for server, following in pairwise(servers):
                await send_on(server, await server.upgrade(), http(following))

        async with nearcast.Api(servers[0].url) as api:
            asking = asyncio.ensure_future(api.subscriptions("ann"))
            await send_all_on()
            with pytest.raises(ProblemError) as refused:
                await within(asking)
            assert refused.value.code == "elsewhere"

        connecting = asyncio.ensure_future(_connect(servers[0]))
        await send_all_on()
        await servers[0].ready()
        session = await within(connecting)
        await session.close()


async def test_a_broker_that_names_one_that_is_gone_is_followed_by_a_wait_and_the_next_one() -> None:
    async with ScriptedServer() as first, ScriptedServer() as second, ScriptedServer() as home:
        urls, wait = [first.url, second.url], Backoff(base_s=0.001, cap_s=0.001)
        connecting = asyncio.ensure_future(nearcast.connect(urls, "ann", backoff=wait, chance=Most()))
        # Nobody listens there.
        for door in [first, second, first]:
            await send_on(door, await door.upgrade(), "http://127.0.0.1:1")
        await send_on(second, await second.upgrade(), http(home))
        await home.ready()
        session = await within(connecting)

        # Where the broker that it knows is gone, the list is asked at once.
        states = session.states()
        home.reset()
        await home.refuse(await home.upgrade(), 503, {}, "")
        await send_on(second, await second.upgrade(), http(home))
        await home.refuse(await home.upgrade(), 503, {}, "")
        await send_on(first, await first.upgrade(), http(home))
        await home.ready()
        waits: list[float] = []
        while len(waits) < 3:
            state = await within(anext(states))
            if isinstance(state, Lost):
                waits.append(state.retry_s)
        assert waits == [0.001, 0, 0.001]
        await session.close()


async def _connect(server: ScriptedServer, token: str | None = None) -> nearcast.Session:
    return await nearcast.connect(server.url, "ann", token=token, backoff=NO_BACKOFF)


@pytest.mark.parametrize(
    ("by", "location", "home"),
    [
        ("http://a", "http://b:7070/v1/clients/ann/ws?resume=e1:5", "http://b:7070"),
        ("http://a", "https://b/at/v1/clients/ann/ws", "https://b/at"),
        ("https://a", "https://b/v1/clients/ann/ws", "https://b"),
        ("https://a", "http://b/v1/clients/ann/ws", None),
        ("HTTPS://a", "http://b/v1/clients/ann/ws", None),
        ("wss://a", "ws://b/v1/clients/ann/ws", None),
        ("http://a", "ftp://b/v1/clients/ann/ws", None),
        ("http://a", "/v1/clients/ann/ws", None),
        ("http://a", "http://b/v1/clients/bob/ws", None),
        ("http://a", None, None),
    ],
)
def test_a_broker_that_is_named_is_followed_with_tls_or_to_it(by: str, location: str | None, home: str | None) -> None:
    endpoints = Endpoints(by)
    learned = endpoints.learn(Endpoint.of(by), PATH, location)
    assert (learned and learned.http) == home
    assert endpoints.home("/v1/clients/ann") == learned
    assert endpoints.home("/v1/clients/anna") is None


def test_the_clients_that_are_remembered_have_a_bound() -> None:
    endpoints = Endpoints("http://a")
    for number in range(HOMES + 1):
        path = f"/v1/clients/{number}"
        assert endpoints.learn(Endpoint.of("http://a"), path, f"http://b{path}") == Endpoint.of("http://b")
    assert endpoints.of("/v1/clients/0") == Endpoint.of("http://a")
    assert endpoints.of(f"/v1/clients/{HOMES}") == Endpoint.of("http://b")
