"""A session and a server that does what the test says: what the vectors do not ask."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

import nearcast
from nearcast import (
    Backoff,
    Closed,
    ClosedError,
    Connecting,
    Event,
    Filter,
    Fix,
    Lost,
    ProblemError,
    QueueFullError,
    Ready,
    Refused,
    RequestWarned,
    Session,
    State,
    TimedOutError,
    UnreachableError,
    event,
)
from tests.clock import FakeClock, settle
from tests.scripted import NO_BACKOFF, Most, ScriptedServer, connected, within

PROBLEM = {"type": "urn:nearcast:problem:invalid-document", "title": "not valid", "status": 400}


def delivery(offset: int, **members: Any) -> dict[str, Any]:
    return {
        "op": "event",
        "offset": offset,
        "subscriptions": ["s1"],
        "cause": "published",
        "event": {"type": "Feature", "id": str(offset), "geometry": {"type": "Point", "coordinates": [9, 45]}},
        **members,
    }


async def until(session: Session, kind: type[State]) -> State:
    """The first state of a kind, from now on."""

    async def watch() -> State:
        async for state in session.states():
            if isinstance(state, kind):
                return state
        raise AssertionError(f"it is never {kind.__name__}")

    return await within(watch())


async def test_the_socket_is_not_read_while_nobody_takes_messages() -> None:
    async with ScriptedServer() as server, server.session("ann", buffer=10) as session:
        text = "x" * 100_000
        flooding = asyncio.ensure_future(flood(server, 1_000, text))
        conversation = session._conversation
        await within(asyncio.to_thread(wait_for, lambda: conversation.inbox.paused))
        assert len(conversation.inbox._waiting) == 10
        # It stays so: the rest waits at the server, which cannot write any more.
        assert server.connection is not None
        transport = server.connection.transport
        await within(asyncio.to_thread(wait_for, lambda: transport.get_write_buffer_size() > 0))
        assert not flooding.done()
        assert len(conversation.inbox._waiting) == 10
        for offset in range(1, 1_001):
            message = await within(session.receive())
            assert isinstance(message, Event)
            assert message.offset == offset
        await within(flooding)


async def flood(server: ScriptedServer, count: int, text: str = "") -> None:
    for offset in range(1, count + 1):
        await server.send(delivery(offset, note=text))


def wait_for(condition: Any) -> None:
    """Waits in a thread for what happens in the loop."""
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


async def test_who_publishes_while_messages_wait_gets_his_answer() -> None:
    async with ScriptedServer() as server, server.session("ann", buffer=10) as session:
        for offset in range(1, 31):
            await server.send(delivery(offset))
        publishing = asyncio.ensure_future(session.publish(event([9, 45])))
        frame = await server.receive()
        for offset in range(31, 61):
            await server.send(delivery(offset))
        await server.send({"op": "ok", "ref": frame["ref"]})
        await within(publishing)
        assert [(await within(session.receive())).offset for _ in range(60)] == list(range(1, 61))  # type: ignore[union-attr]


async def test_a_client_that_nobody_reads_for_is_not_silent() -> None:
    clock = FakeClock()
    async with ScriptedServer() as server, server.session("ann", buffer=1, clock=clock) as session:
        await server.send(delivery(1))
        await server.send(delivery(2))
        await within(asyncio.to_thread(wait_for, lambda: session._conversation.inbox.paused))
        for _ in range(10):  # pongs that nobody asked for, and no pings whose pongs nobody would read
            await clock.advance(20)
        assert isinstance(session.state, Ready)


async def test_a_broker_that_is_silent_is_left() -> None:
    clock = FakeClock()
    async with ScriptedServer() as server, server.session("ann", clock=clock, close_timeout_s=0) as session:
        assert server.connection is not None
        server.connection.transport.pause_reading()
        states = session.states()
        assert isinstance(await anext(states), Ready)
        await clock.advance(20)
        await clock.advance(20)
        lost = await within(anext(states))
        assert isinstance(lost, Lost)
        assert "silent" in str(lost.error)


async def test_who_waits_for_a_position_waits_for_a_newer_one() -> None:
    async with ScriptedServer() as server, server.session("ann") as session:
        first = asyncio.ensure_future(session.move([9, 45], confirm=True))
        assert (await server.receive())["coordinates"] == [9, 45]
        server.reset()
        await until(session, Lost)
        second = asyncio.ensure_future(session.move([9.1, 45], confirm=True))
        await server.ready()
        frame = await server.receive()
        assert frame["coordinates"] == [9.1, 45]
        await server.send({"op": "ok", "ref": frame["ref"]})
        await within(first)
        await within(second)


async def test_a_track_that_was_not_answered_is_told_again_and_its_end_is_not() -> None:
    points = [(9.0, 45.0, 1.0), (9.1, 45.0, 2.0)]
    async with ScriptedServer() as server, server.session("ann") as session:
        telling = asyncio.ensure_future(session.track(points, confirm=True))
        await server.receive()
        server.reset()
        await server.ready()
        frame = await server.receive()
        assert frame["track"] == [[9.0, 45.0, 1.0], [9.1, 45.0, 2.0]]
        await server.send({"op": "ok", "ref": frame["ref"]})
        await within(telling)
        server.reset()
        await server.ready()
        assert await server.receive() == {"op": "move", "coordinates": [9.1, 45.0]}
        with pytest.raises(ValueError, match="at least one point"):
            await session.track([])


async def test_what_a_source_says_without_a_connection_is_told_as_a_track() -> None:
    clock = FakeClock()
    fixes: asyncio.Queue[Fix] = asyncio.Queue()

    async def source() -> Any:
        while True:
            yield await fixes.get()

    async with ScriptedServer() as server, server.session("ann", clock=clock, close_timeout_s=0) as session:
        following = asyncio.ensure_future(session.follow(source(), min_distance_m=100))
        fixes.put_nowait(Fix([9.00, 45]))
        assert await server.receive() == {"op": "move", "coordinates": [9.00, 45]}
        upgrade = asyncio.ensure_future(server.upgrade())
        server.reset()
        assert isinstance(await until(session, Lost), Lost)
        began = clock.time()
        for step in (1, 2, 3):
            await clock.advance(10)
            fixes.put_nowait(Fix([9 + step / 100, 45], accuracy_m=step))
            await settle()
        await server.ready(upgrade=await within(upgrade))
        frame = await server.receive()
        assert frame.pop("ref")
        track = [[9, 45, began + 10], *([9 + step / 100, 45, began + step * 10] for step in (1, 2, 3))]
        assert frame == {"op": "move", "track": track, "accuracy_m": 3}
        following.cancel()


async def test_what_is_refused_and_nobody_waits_for_is_a_state() -> None:
    async with ScriptedServer() as server, server.session("ann") as session:
        states = session.states()
        await session.move([900, 45])
        await server.receive()
        await server.send({"op": "problem", "problem": PROBLEM})
        making = asyncio.ensure_future(session.subscribe("s1", Filter()))
        frame = await server.receive()
        await server.send({"op": "ok", "ref": frame["ref"]})
        await within(making)
        server.reset()
        await server.ready()
        await server.receive()
        frame = await server.receive()
        await server.send({"op": "problem", "ref": frame["ref"], "problem": PROBLEM})
        seen = [await within(anext(states)) for _ in range(6)]
        assert [type(state) for state in seen] == [Ready, Refused, Lost, Connecting, Ready, Refused]
        assert isinstance(seen[1], Refused)
        assert seen[1].error.code == "invalid-document"
        assert isinstance(seen[5], Refused)
        assert seen[5].subscription == "s1"


async def test_a_call_that_is_cancelled_is_not_sent_again() -> None:
    async with ScriptedServer() as server, server.session("ann") as session:
        with pytest.raises(TimedOutError, match="not accepted within"):
            await session.publish(event([9, 45], id="a"), timeout_s=0.05)
        assert (await server.receive())["event"]["id"] == "a"
        server.reset()
        await until(session, Lost)
        late = asyncio.ensure_future(session.publish(event([9, 45], id="b")))
        early = asyncio.ensure_future(session.publish(event([9, 45], id="c")))
        await settle()
        late.cancel()
        await server.ready()
        frame = await server.receive()
        assert frame["event"]["id"] == "c"
        await server.send({"op": "ok", "ref": frame["ref"]})
        await within(early)


async def test_events_that_json_cannot_say() -> None:
    async with ScriptedServer() as server, server.session("ann") as session:
        with pytest.raises(ValueError, match="JSON compliant"):
            await session.publish(event([float("nan"), 45]))
        with pytest.raises(TypeError, match="not JSON serializable"):
            await session.publish(event([9, 45], {"a": object()}))
        with pytest.raises(UnicodeEncodeError):
            await session.publish(event([9, 45], {"a": "\ud800"}))
        # None of them counts among those that wait.
        assert session._window._value == 1_000
        assert server.connection is not None


async def test_as_many_as_may_wait_for_an_answer() -> None:
    async with ScriptedServer() as server, server.session("ann", queue=3) as session:
        publishing = [asyncio.ensure_future(session.publish(event([9, 45], id=str(number)))) for number in range(5)]
        refs = [(await server.receive())["ref"] for _ in range(3)]
        await server.send({"op": "ok", "ref": refs[0]})
        assert (await server.receive())["event"]["id"] == "3"
        server.reset()
        await until(session, Lost)
        with pytest.raises(QueueFullError, match="3 events wait"):
            await session.publish(event([9, 45]))
        await server.ready()
        for _ in range(4):
            await server.send({"op": "ok", "ref": (await server.receive())["ref"]})
        await within(asyncio.gather(*publishing))


async def test_what_nobody_waits_for_is_logged_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    async with ScriptedServer() as server, server.session("ann") as session:
        states = session.states()
        assert isinstance(await within(anext(states)), Ready)
        await session.move([34.05, -118.24])
        await server.receive()
        fault = {"pointer": "/coordinates", "detail": "latitude -118.24 is outside of -90 to 90"}
        await server.send({"op": "problem", "problem": {**PROBLEM, "errors": [fault]}})
        assert isinstance(await within(anext(states)), Refused)
    assert "refused a move or an ack, and nobody waits for it: invalid-document at /coordinates" in caplog.text
    assert "118" not in caplog.text


async def test_a_source_that_fails_is_seen(caplog: pytest.LogCaptureFixture) -> None:
    async def source() -> AsyncIterator[Fix]:
        yield Fix([9.0, 45.0])
        raise ValueError("at [9.0, 45.0]")

    async with ScriptedServer() as server, server.session("ann") as session:
        following = asyncio.ensure_future(session.follow(source()))
        await within(asyncio.wait((following,)))
        assert isinstance(following.exception(), ValueError)
    assert "follow has ended: ValueError" in caplog.text
    assert "45" not in caplog.text


async def test_a_broker_that_stops_says_when_to_come_back() -> None:
    clock = FakeClock()
    # Waits of its own would be long.
    waits = Backoff(base_s=1000, cap_s=1000)
    async with ScriptedServer() as server, server.session("ann", clock=clock, backoff=waits) as session:
        await server.send({"op": "retry", "retry_ms": 730})
        assert server.connection is not None
        await server.connection.close(1001, "the broker is stopping")
        lost = await until(session, Lost)
        assert isinstance(lost, Lost)
        assert lost.retry_s == 0.73
        await clock.advance(0.73)
        await server.ready()
        assert isinstance(await until(session, Ready), Ready)


async def test_a_session_that_is_woken_does_not_wait() -> None:
    waits = Backoff(base_s=1000, cap_s=1000)
    async with ScriptedServer() as server, server.session("ann", clock=FakeClock(), backoff=waits) as session:
        server.reset()
        await until(session, Lost)
        session.wake()
        await server.ready()
        assert isinstance(await until(session, Ready), Ready)


async def test_when_to_try_again_is_the_brokers_to_say() -> None:
    clock = FakeClock()
    async with ScriptedServer() as server, server.session("ann", clock=clock) as session:
        server.reset()
        upgrade = await server.upgrade()
        await server.refuse(upgrade, 503, {"retry-after": "7"}, "")
        lost = await until(session, Lost)
        while isinstance(lost, Lost) and not isinstance(lost.error, ProblemError):
            lost = await until(session, Lost)
        assert isinstance(lost, Lost)
        assert lost.retry_s == 7
        await clock.advance(6.9)
        assert session.state == lost
        await clock.advance(0.1)
        await server.ready()
        assert isinstance(await until(session, Ready), Ready)


@pytest.mark.parametrize(
    ("status", "code", "headers", "expected"),
    [
        pytest.param(None, "", {}, [1, 2, 3, 3], id="a broker that cannot be reached"),
        pytest.param(503, "recovering", {"retry-after": "1"}, [1, 2, 3, 3], id="a standby"),
        pytest.param(429, "overloaded", {"retry-after": "1"}, [1, 2, 4, 8], id="one that is too busy"),
        pytest.param(503, "limit-reached", {"retry-after": "5"}, [1, 5, 5, 8], id="one that is full"),
    ],
)
async def test_how_long_a_session_waits(
    status: int | None, code: str, headers: dict[str, str], expected: list[float]
) -> None:
    clock = FakeClock()
    body = json.dumps({"type": f"urn:nearcast:problem:{code}", "title": "not now", "status": status})
    options = {"clock": clock, "chance": Most(), "backoff": Backoff()}
    async with ScriptedServer() as server, server.session("ann", **options) as session:
        # A connection that held for less than ten seconds is the first failure.
        states = session.states()
        server.reset()
        waits = [await _wait(states)]
        while len(waits) < len(expected):
            await clock.advance(waits[-1])
            upgrade = await server.upgrade()
            if status is None:
                await server.accept(upgrade)
                server.reset()
            else:
                await server.refuse(upgrade, status, {"content-type": "application/problem+json", **headers}, body)
            waits.append(await _wait(states))
        assert waits == expected


async def _wait(states: AsyncIterator[State]) -> float:
    """How long the session waits when it is lost the next time."""
    while not isinstance(state := await within(anext(states)), Lost):
        pass
    return state.retry_s


async def test_a_session_that_holds_begins_its_backoff_anew() -> None:
    clock = FakeClock()
    backoff = Backoff(base_s=1, cap_s=64, steady_s=10)
    delays: list[float] = []

    class Chance(random.Random):
        def uniform(self, a: float, b: float) -> float:
            delays.append(max(a, b))
            return 0.0

    options = {"clock": clock, "backoff": backoff, "chance": Chance()}
    async with ScriptedServer() as server, server.session("ann", **options) as session:
        for holds_s in [0, 0, 0, 10, 0]:
            await clock.advance(holds_s)
            server.reset()
            await server.ready()
            await until(session, Ready)
        assert delays == [1, 2, 3, 1, 2]


async def test_no_token_is_tried_again() -> None:
    asked = 0

    def provider() -> str:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise OSError("no network")
        return f"t{asked}"

    async with ScriptedServer() as server, server.session("ann", token=provider):
        assert asked == 2


async def test_a_session_waits_longer_and_longer_for_a_token_and_tries_no_other_address_at_once() -> None:
    asked = 0

    def provider() -> str:
        nonlocal asked
        asked += 1
        if 1 < asked < 6:
            raise OSError("no network")
        return f"t{asked}"

    clock = FakeClock()
    async with ScriptedServer() as first, ScriptedServer() as second:
        urls = [first.url, second.url]
        connecting = asyncio.ensure_future(
            nearcast.connect(urls, "ann", token=provider, clock=clock, chance=Most(), connect_timeout_s=None)
        )
        await first.refuse(await first.upgrade(), 503, {}, "")

        async def sleeps(wait_s: float) -> None:
            while clock.sleeping != [clock.monotonic() + wait_s]:
                await asyncio.sleep(0.001)

        # The second address is due at once, and there is no token for it.
        for wait_s in [1, 2, 4, 8]:
            await within(sleeps(wait_s))
            await clock.advance(wait_s)
        upgrade = await second.ready()
        assert (asked, upgrade.token) == (6, f"t{asked}")
        await (await within(connecting)).close()


async def test_nobody_is_there() -> None:
    async with ScriptedServer() as server:
        url = server.url
    with pytest.raises(TimedOutError, match=r"no connection within 2 s: the broker cannot be reached") as failed:
        await connected(url, "ann", connect_timeout_s=2, backoff=Backoff(0.01, 0.01))
    assert isinstance(failed.value.__cause__, UnreachableError)
    with pytest.raises(ValueError, match="a broker is at http"):
        nearcast.connect("localhost:7070", "ann")


async def test_what_speaks_another_protocol() -> None:
    async with ScriptedServer() as server:
        connecting = asyncio.ensure_future(connected(server.url, "ann", connect_timeout_s=3, backoff=Backoff(1, 1)))
        await server.accept()
        await server.send({"op": "ready"})
        with pytest.raises(TimedOutError, match="no broker that this version understands"):
            await within(connecting)


async def test_a_closed_session() -> None:
    async with ScriptedServer() as server, server.session("ann") as session:
        taking = asyncio.ensure_future(anext(session))
        receiving = asyncio.ensure_future(session.receive())
        states = session.states()
        await settle()
        await session.close()
        await session.close()
        with pytest.raises(StopAsyncIteration):
            await within(taking)
        with pytest.raises(ClosedError, match="closed with 1000: the session is closed"):
            await within(receiving)
        for call in (
            session.publish(event([9, 45])),
            session.move([9, 45]),
            session.move([9, 45], confirm=True),
            session.subscribe("s1", Filter()),
            session.ping(),
            session.ack(1),
            session.track([(9, 45, 0)]),
        ):
            with pytest.raises(ClosedError):
                await call
        assert [type(state) async for state in states] == [Ready, Closed]


async def test_close_does_not_wait_for_ever() -> None:
    async with ScriptedServer() as server, server.session("ann", close_timeout_s=0.05) as session:
        publishing = asyncio.ensure_future(session.publish(event([9, 45])))
        await server.receive()
        await within(session.close())
        with pytest.raises(ClosedError):
            await publishing


async def test_messages_before_an_end_are_taken_first() -> None:
    async with ScriptedServer() as server, server.session("ann") as session:
        await server.send(delivery(1))
        assert server.connection is not None
        await server.connection.close(1008, "too many problems in a row")
        assert await until(session, Closed)
        assert isinstance(await within(session.receive()), Event)
        for _ in range(2):
            with pytest.raises(ClosedError, match="1008: too many problems in a row"):
                await within(session.receive())


async def test_the_last_message_is_processed_when_its_block_is_left_without_an_error() -> None:
    for error in (None, ValueError("the application's")):
        async with ScriptedServer() as server:
            leaving = asyncio.ensure_future(take_one(server, error))
            await server.ready()
            await server.send(delivery(1))
            if error is None:
                assert await server.receive() == {"op": "ack", "offset": 1}
                await within(leaving)
            else:
                with pytest.raises(ValueError, match="the application's"):
                    await within(leaving)
                assert server.connection is not None
                with pytest.raises(Exception, match="1000"):
                    await server.receive()


async def take_one(server: ScriptedServer, error: Exception | None) -> None:
    async with nearcast.connect(server.url, "ann", backoff=NO_BACKOFF) as session:
        async for _ in session:
            if error is not None:
                raise error
            break


async def test_ping() -> None:
    async with ScriptedServer() as server, server.session("ann") as session:
        pinging = asyncio.ensure_future(session.ping())
        assert await server.receive() == {"op": "ping"}
        await server.send({"op": "pong"})
        assert await within(pinging) >= 0
        pinging = asyncio.ensure_future(session.ping())
        await server.receive()
        server.reset()
        with pytest.raises(UnreachableError):
            await within(pinging)


async def test_a_warning_is_told_each_time_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", logger="nearcast")
    async with ScriptedServer() as server, server.session("ann") as session:
        states = session.states()
        assert isinstance(await within(anext(states)), Ready)
        for _ in range(2):
            publishing = asyncio.ensure_future(session.publish(event([9, 45], {})))
            frame = await server.receive()
            warnings = [{"pointer": "/event/ttl", "detail": "did you mean ttl_s?"}]
            await server.send({"op": "ok", "ref": frame["ref"], "warnings": warnings})
            await within(publishing)
            assert await within(anext(states)) == RequestWarned("/event/ttl", "did you mean ttl_s?")
    assert [record.message for record in caplog.records] == ["the broker warns of /event/ttl: did you mean ttl_s?"]
