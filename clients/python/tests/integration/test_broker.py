"""Sessions and calls against a real broker."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import secrets
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import nearcast
from nearcast import (
    Backoff,
    BatchError,
    ClosedError,
    Condition,
    Event,
    Filter,
    Fix,
    Gap,
    Lost,
    Message,
    ProblemError,
    Ready,
    State,
    TimedOutError,
    UnreachableError,
    around,
    attr,
    circle,
    corridor,
    event,
    everywhere,
    polygon,
)
from tests.broker import Broker
from tests.clock import FakeClock
from tests.scripted import within

HERE = [9.19, 45.46]


async def test_everything_that_goes_over_http(broker: Broker, client: str) -> None:
    async with nearcast.connect(broker.url, client) as session:
        await session.subscribe("near", Filter(around(500), attr("severity") >= 2))
        await session.move(HERE, confirm=True)
        mine = event(HERE, {"severity": 3}, id=f"of {client}", ttl_s=3600)
        await session.publish(mine, traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        message = await within(session.receive())
        assert isinstance(message, Event)
        assert (message.id, message.properties, message.position) == (mine["id"], {"severity": 3}, HERE)
        assert message.traceparent == "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

        explanation = await session.explain("near", f"of {client}", position=[9.2, 45.46])
        assert not explanation["matched"]
        assert "outside of the circle around the client" in explanation["why"]
        deliveries = await session.deliveries(f"of {client}")
        assert [(each["client"], each["offset"]) for each in deliveries["deliveries"]] == [(client, message.offset)]
        (subscription,) = await session.subscriptions()
        assert subscription["filters"] == [{"area": {"radius_m": 500}, "where": "severity >= 2"}]
        assert subscription["activity"]["deliveries"] == 1
        await session.revoke(f"of {client}")
        with pytest.raises(ProblemError) as refused:
            await session.revoke(f"of {client}")
        assert (refused.value.code, refused.value.status) == ("not-found", 404)
        outcome = await session.move_many([(client, [9.3, 45.46]), (f"{client} 2", [900, 0])])
        assert (outcome.accepted, [each.index for each in outcome.rejected]) == (1, [1])
        await session.api.publish(event(HERE, {"severity": 5}))  # it was moved away
        await session.move(HERE, confirm=True)
        await session.api.publish(event(HERE, {"severity": 4}))
        message = await within(session.receive())
        assert isinstance(message, Event)
        assert message.properties == {"severity": 4}
        await within(session.ping())


async def test_a_client_that_is_forgotten_begins_anew(broker: Broker, client: str) -> None:
    async with nearcast.connect(broker.url, client, backoff=Backoff(0, 0)) as session:
        await session.subscribe("all", Filter(where=attr("to") == client), durable=True)
        states = session.states()
        first = await anext(states)
        await session.api.forget(client)
        gap = await within(session.receive())
        assert isinstance(gap, Gap)
        assert gap.reason == "epoch"
        assert [type(await within(anext(states))) for _ in range(2)] == [Lost, nearcast.Connecting]
        again = await within(anext(states))
        assert isinstance(first, Ready)
        assert isinstance(again, Ready)
        assert again.epoch != first.epoch
        await session.publish(event(HERE, {"to": client}))
        assert isinstance(await within(session.receive()), Event)


async def test_each_area(broker: Broker, client: str) -> None:
    ring = [[9.18, 45.45], [9.20, 45.45], [9.20, 45.47]]
    areas = {
        "around": around(500),
        "circle": circle(HERE, 500),
        "polygon": polygon([ring]),
        "corridor": corridor([[9.18, 45.46], [9.20, 45.46]], 100),
        "everywhere": everywhere(),
        "nearest": everywhere().nearest(1),
    }
    async with nearcast.connect(broker.url, client) as session:
        await session.move([9.1901, 45.4599])
        for name, area in areas.items():
            await session.subscribe(name, Filter(area, attr("to") == client))
        await session.publish(event([9.1901, 45.4599], {"to": client}, key=f"object of {client}"))
        message = await within(session.receive())
        assert isinstance(message, Event)
        assert set(message.subscriptions) == set(areas)
        with pytest.raises(ProblemError) as refused:
            await session.subscribe("bad", [Filter(), Filter(around(-1), "severity >=")])
        assert {fault.pointer for fault in refused.value.problem.errors} == {
            "/filters/1/area/radius_m",
            "/filters/1/where",
        }


async def test_a_source_that_is_followed_brings_what_comes_into_reach(broker: Broker, client: str) -> None:
    async def drive() -> Any:
        for step in range(50):
            yield Fix([9.0 + step / 100, 45])

    async with nearcast.connect(broker.url, client) as session:
        await session.subscribe("ahead", Filter(around(300), attr("to") == client))
        for longitude in (9.1, 9.2, 9.3):
            await session.publish(event([longitude, 45], {"to": client}, ttl_s=60))
        await session.follow(drive(), min_distance_m=500, min_interval_s=0)
        met = [await within(session.receive()) for _ in range(3)]
        assert [(each.cause, each.position[0]) for each in met if isinstance(each, Event)] == [
            ("moved", 9.1),
            ("moved", 9.2),
            ("moved", 9.3),
        ]


async def test_publish_many_tells_what_was_rejected(broker: Broker, client: str) -> None:
    events = [event(HERE, {"to": client, "number": number}) for number in range(2_500)]
    events[1_700]["geometry"]["coordinates"] = [900, 0]
    async with nearcast.connect(broker.url, client) as session:
        await session.subscribe("mine", Filter(where=attr("to") == client))
        outcome = await session.publish_many(events)
        assert outcome.accepted == 2_499
        (rejected,) = outcome.rejected
        assert rejected.index == 1_700
        assert rejected.problem.errors[0].pointer.startswith("/geometry/coordinates")
        numbers = [numbered(await within(session.receive())) for _ in range(2_499)]
        assert numbers == [number for number in range(2_500) if number != 1_700]


async def test_a_rate_holds_a_batch_back(brokers: Callable[..., Broker], tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text("[limits]\nevents_per_second = 100\n")
    broker = brokers("--config", str(tmp_path / "slow.toml"))
    async with nearcast.connect(broker.url, "ann") as session:
        await session.subscribe("all", Filter())
        events = [event(HERE, {"number": number}) for number in range(250)]
        for wrong in events[1::7]:
            wrong["geometry"]["coordinates"] = [900, 0]
        outcome = await session.publish_many(events, batch=80)
        assert [rejected.index for rejected in outcome.rejected] == list(range(1, 250, 7))
        assert (outcome.accepted, outcome.rejected_unlisted) == (214, 0)
        await session.publish(event(HERE, {"number": 250}))
        numbers = [numbered(await within(session.receive())) for _ in range(215)]
        assert numbers == [number for number in range(251) if number % 7 != 1]


def numbered(message: Message) -> int:
    assert isinstance(message, Event)
    number: int = message.properties["number"]
    return number


class Keys:
    """A key of a broker that wants tokens."""

    def __init__(self, folder: Path) -> None:
        self._secret = secrets.token_bytes(48)
        self.file = folder / "keys.json"
        self.file.write_text(json.dumps({"keys": [{"kty": "oct", "kid": "k1", "k": encoded(self._secret)}]}))

    def token(self, sub: str, scope: str, exp: float) -> str:
        head = encoded(json.dumps({"alg": "HS256", "kid": "k1"}).encode())
        text = head + "." + encoded(json.dumps({"sub": sub, "scope": scope, "exp": int(exp)}).encode())
        return text + "." + encoded(hmac.digest(self._secret, text.encode(), "sha256"))


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


async def test_tokens(brokers: Callable[..., Broker], tmp_path: Path) -> None:
    keys, clock = Keys(tmp_path), nearcast.SystemClock()
    (tmp_path / "strict.toml").write_text("[auth]\nleeway_s = 0\n")
    broker = brokers("--auth", "jwt", "--jwks", str(keys.file), "--config", str(tmp_path / "strict.toml"))
    with pytest.raises(ProblemError) as refused:
        await nearcast.connect(broker.url, "ann")
    assert refused.value.code == "unauthenticated"
    with pytest.raises(ProblemError) as refused:
        await nearcast.connect(broker.url, "bob", token=keys.token("ann", "subscribe", clock.time() + 600))
    assert refused.value.code == "forbidden"

    made: list[str] = []

    async def provider() -> str:
        # So short that it is renewed at once, and again and again: its life ends where the next one's begins.
        made.append(keys.token("ann", "subscribe publish", clock.time() + 4))
        return made[-1]

    async with nearcast.connect(broker.url, "ann", token=provider) as session:
        states: list[State] = []
        watching = asyncio.ensure_future(collect(session, states))
        await session.subscribe("all", Filter())
        while len(made) < 4:
            await session.publish(event(HERE))
            assert isinstance(await within(session.receive()), Event)
            await asyncio.sleep(0.05)
        await session.api.publish(event(HERE))
        assert isinstance(await within(session.receive()), Event)
    await within(watching)
    # One connection all the time, although no token lasted.
    assert [type(state) for state in states] == [Ready, nearcast.Closed]

    with pytest.raises(ClosedError) as closed:
        async with nearcast.connect(
            broker.url, "ann", token=keys.token("ann", "subscribe", clock.time() + 8)
        ) as session:
            await within(session.receive())
    assert closed.value.code == 4401
    assert closed.value.problem is not None
    assert closed.value.problem.code == "token-expired"

    async with nearcast.Api(broker.url, token=keys.token("ann", "subscribe", clock.time() + 600)) as api:
        with pytest.raises(BatchError, match="does not permit this"):
            await api.publish_many([event(HERE)])


async def collect(session: nearcast.Session, states: list[State]) -> None:
    states.extend([state async for state in session.states()])


async def test_a_call_whose_token_has_ended_is_made_again_with_the_next(
    brokers: Callable[..., Broker], tmp_path: Path
) -> None:
    keys, clock = Keys(tmp_path), nearcast.SystemClock()
    broker = brokers("--auth", "jwt", "--jwks", str(keys.file))
    # This machine's clock is an hour late, so that the token seems to live.
    late = FakeClock(clock.time() - 3600)
    ends = iter([clock.time() - 120, clock.time() + 600])
    tokens = nearcast.tokens.Tokens(lambda: keys.token("ann", "publish", next(ends)), late)
    options = nearcast.options.Options(clock=late)
    api = nearcast.Api.of(nearcast.endpoint.Endpoints(broker.url), tokens, options)
    await api.publish(event(HERE))
    await api.close()


async def test_tls(brokers: Callable[..., Broker], tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued = authority.issue_cert("127.0.0.1")
    certificate.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    broker = brokers("--tls-cert", str(certificate), "--tls-key", str(key))
    assert broker.url.startswith("https:")

    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with nearcast.connect(broker.url, "ann", tls=trusting) as session:
        await session.subscribe("all", Filter())
        await session.publish(event(HERE))
        assert isinstance(await within(session.receive()), Event)
        assert (await session.publish_many([event(HERE)])).accepted == 1
    with pytest.raises(TimedOutError, match="certificate verify failed"):
        await nearcast.connect(broker.url, "ann", connect_timeout_s=5)
    async with nearcast.Api(broker.url) as api:
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            await api.publish(event(HERE))


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
VALUES = TEXTS | NUMBERS | st.booleans()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, value=VALUES)
@example(name="and", value="'")
@example(name='"', value='"')
@example(name="a.b", value=-0.0)
@example(name="CaseI", value=5e-324)
@example(name="\u1680", value="\ufeff")
def test_every_name_and_value_is_quoted_so_that_the_broker_finds_it(broker: Broker, name: str, value: Any) -> None:
    """A condition that a builder writes is true of an event that has just this attribute, whatever its name and value are."""
    condition = (attr(name) == value) & ~attr(name).in_(*others(value)) & attr(name).is_not_null()
    assert matches(broker, condition, {name: value})
    assert not matches(broker, ~condition, {name: value})
    assert matches(broker, attr(name).is_null(), {name + "x": value})


def others(value: object) -> list[Any]:
    """Values of the same type that are not this one."""
    if isinstance(value, bool):
        return [not value]
    return [value + "x", "x" + value] if isinstance(value, str) else [1e308 if value != 1e308 else 1]


API: dict[str, nearcast.sync.Api] = {}


def matches(broker: Broker, condition: Condition, properties: dict[str, Any]) -> bool:
    api = API.setdefault(broker.url, nearcast.sync.Api(broker.url))
    subscription = {"filters": [Filter(where=condition).document()]}
    return api.explain("nobody", subscription, event(HERE, properties))["matched"]
