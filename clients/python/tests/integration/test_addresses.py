"""The addresses of a cluster's brokers: one away, one a standby, one that carries out what is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import nearcast
from nearcast import Backoff, Event, Filter, ProblemError, UnreachableError

from ..broker import Broker

AWAY = "http://127.0.0.1:1"
"""Nobody listens there."""
REFUSAL = {"type": "urn:nearcast:problem:recovering", "title": "The broker reads what it has stored", "status": 503}


class Standby(BaseHTTPRequestHandler):
    def answer(self) -> None:
        body = json.dumps(REFUSAL).encode()
        self.send_response(503)
        self.send_header("content-type", "application/problem+json")
        self.send_header("retry-after", "60")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def standby() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Standby)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_session_finds_the_broker_that_carries_out_requests(
    brokers: Callable[..., Broker], standby: str
) -> None:
    first, second = brokers(), brokers()
    addresses = [AWAY, standby, first.url, second.url]
    # A minute is what the standby asks for: it is not waited.
    backoff = Backoff(base_s=0.05, cap_s=0.05)
    async with nearcast.connect(addresses, "ann", connect_timeout_s=20, backoff=backoff) as session:
        await session.subscribe("all", Filter())
        assert [document["id"] for document in await session.api.subscriptions("ann")] == ["all"]
        first.kill()
        # The second broker knows nothing of it: the session makes its subscription again.
        async for state in session.states():
            if isinstance(state, nearcast.Ready):
                break
        event_id = await session.publish(nearcast.event((9, 45)))
        async for message in session:
            if isinstance(message, Event):
                assert message.feature["id"] == event_id
                break


async def test_calls_go_to_the_broker_that_carries_them_out(broker: Broker, standby: str) -> None:
    async with nearcast.Api([standby, broker.url]) as api:
        await api.publish(nearcast.event((9, 45)))
    async with nearcast.Api([AWAY, broker.url]) as api:
        # It is not known whether it was carried out: that is the application's to say. What can be repeated is.
        with pytest.raises(UnreachableError):
            await api.publish(nearcast.event((9, 45)))
        await api.publish(nearcast.event((9, 45)))
    async with nearcast.Api([AWAY, broker.url]) as api:
        assert await api.subscriptions("ann") == []
    async with nearcast.Api([standby, standby]) as api:
        with pytest.raises(ProblemError, match="reads what it has stored"):
            await api.subscriptions("ann")


def test_a_list_has_an_address() -> None:
    with pytest.raises(ValueError, match="an address"):
        nearcast.Api([])
    with pytest.raises(ValueError, match=r"is http://example\.org meant"):
        nearcast.Api([AWAY, "example.org"])
