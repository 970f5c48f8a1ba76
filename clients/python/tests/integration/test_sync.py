"""The face without asyncio."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import nearcast
from nearcast import (
    ClosedError,
    Event,
    Filter,
    Fix,
    NearcastError,
    ProblemError,
    Ready,
    TimedOutError,
    around,
    attr,
    event,
    sync,
)
from tests.broker import Broker

HERE = [9.19, 45.46]


@pytest.fixture
def session(broker: Broker, client: str) -> Iterator[sync.Session]:
    with sync.connect(broker.url, client) as session:
        session.subscribe("mine", Filter(where=attr("to") == client))
        yield session


def test_the_same_names() -> None:
    """Whatever a session for asyncio has this one has, too, but what only `connect`, `with` and this face call."""
    names = {name for name in vars(nearcast.Session) if not name.startswith("_")}
    assert names - {"arrival", "finish", "take_now", "until_ready"} <= set(dir(sync.Session))
    calls = {name for name in vars(nearcast.Api) if not name.startswith("_")}
    assert calls - {"event_batches", "event_lines", "event_pages", "of", "position_batches"} <= set(dir(sync.Api))


def test_everything(session: sync.Session, client: str) -> None:
    session.move(HERE, confirm=True)
    session.publish(event(HERE, {"to": client}, id=f"of {client}", ttl_s=60))
    message = session.receive(timeout_s=15)
    assert isinstance(message, Event)
    assert session.checkpoint == (message.epoch, message.offset)
    with pytest.raises(TimedOutError, match="no message within"):
        session.receive(timeout_s=0.05)
    assert session.explain("mine", f"of {client}")["matched"]
    assert session.deliveries(f"of {client}")["deliveries"]
    session.revoke(f"of {client}")
    assert [each["id"] for each in session.subscriptions()] == ["mine"]
    assert session.publish_many(event(HERE, {"to": client, "n": n}) for n in range(2_500)).accepted == 2_500
    assert [session.receive(timeout_s=15).properties["n"] for _ in range(2_500)] == list(range(2_500))  # type: ignore[union-attr]
    assert session.move_many([(client, HERE)]).accepted == 1
    session.track([(9.1, 45, 0.0), (9.2, 45, 1.0)], confirm=True)
    session.ack(message)
    assert session.ping(timeout_s=15) > 0
    assert isinstance(session.state, Ready)
    session.unsubscribe("mine")
    with pytest.raises(ProblemError, match="not found"):
        session.unsubscribe("mine")
    states = session.states()
    assert isinstance(next(states), Ready)
    session.close()
    assert [type(state) for state in states] == [nearcast.Closed]
    assert list(session) == []
    with pytest.raises(ClosedError):
        session.publish(event(HERE))


def test_following(session: sync.Session, client: str) -> None:
    session.subscribe("mine", Filter(around(300), attr("to") == client))
    for longitude in (9.1, 9.2):
        session.publish(event([longitude, 45], {"to": client}, ttl_s=60))
    session.follow((Fix([9 + step / 100, 45]) for step in range(30)), min_distance_m=500, min_interval_s=0)
    assert [session.receive(timeout_s=15).position[0] for _ in range(2)] == [9.1, 9.2]  # type: ignore[union-attr]

    def broken() -> Iterator[Fix]:
        yield Fix(HERE)
        raise OSError("no receiver")

    with pytest.raises(OSError, match="no receiver"):
        session.follow(broken())


def test_several_threads(session: sync.Session, client: str) -> None:
    def publish(thread: int) -> None:
        for number in range(50):
            session.publish(event(HERE, {"to": client, "thread": thread, "number": number}))

    with ThreadPoolExecutor(8) as threads:
        is_published = threading.Event()
        taking = [threads.submit(take, session, 100, is_published) for _ in range(4)]
        try:
            list(threads.map(publish, range(4, 8)))
        finally:
            is_published.set()
        taken = [pair for each in taking for pair in each.result(30)]
    # Each message went to one of those who take them.
    assert sorted(taken) == [(thread, number) for thread in range(4, 8) for number in range(50)] * 1
    assert len(taken) == 200


def take(session: sync.Session, most: int, is_published: threading.Event) -> list[tuple[int, int]]:
    """Takes what comes, until all is published and nothing more comes."""
    taken: list[tuple[int, int]] = []
    while len(taken) < most:
        try:
            message = session.receive(timeout_s=2)
        except TimedOutError:
            if is_published.is_set():
                break
            continue
        assert isinstance(message, Event)
        taken.append((message.properties["thread"], message.properties["number"]))
    return taken


def test_a_token_that_takes_its_time_holds_nobody_up(broker: Broker, session: sync.Session, client: str) -> None:
    asked, answer = threading.Event(), threading.Event()

    def provider() -> str:
        asked.set()
        assert answer.wait(15)
        return "t1"

    with ThreadPoolExecutor(1) as threads:
        connecting = threads.submit(sync.connect, broker.url, client + " 2", token=provider)
        assert asked.wait(15)
        session.ping(timeout_s=15)
        answer.set()
        connecting.result(15).close()


def test_its_own_thread_does_not_wait_for_itself(session: sync.Session) -> None:
    failed: list[BaseException] = []

    def from_within() -> None:
        try:
            session.ping()
        except RuntimeError as error:
            failed.append(error)

    done = threading.Event()
    nearcast.background.background.soon(from_within)
    nearcast.background.background.soon(done.set)
    assert done.wait(15)
    assert "waits for its own thread" in str(failed[0])


def test_a_process_ends_with_sessions_open(broker: Broker, client: str) -> None:
    """As in a REPL that is left: what was taken before the last message is acknowledged, and nothing is said."""
    program = f"""
import nearcast.sync
from nearcast import Filter, attr, event
session = nearcast.sync.connect({broker.url!r}, {client!r})
session.subscribe("mine", Filter(where=attr("to") == {client!r}), durable=True)
for number in range(3):
    session.publish(event([9, 45], {{"to": {client!r}, "number": number}}))
    session.receive(timeout_s=15)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with sync.connect(broker.url, client) as session:
        message = session.receive(timeout_s=15)
        assert isinstance(message, Event)
        assert message.properties["number"] == 2
        session.forget()


def test_an_interrupt_ends_what_waits(broker: Broker, client: str) -> None:
    # A shell has programs in the background ignore interrupts, and they pass that on.
    program = f"""
import signal
import nearcast.sync
signal.signal(signal.SIGINT, signal.default_int_handler)
with nearcast.sync.connect({broker.url!r}, {client!r}) as session:
    try:
        print("waiting", flush=True)
        session.receive()
    except KeyboardInterrupt:
        session.ping(timeout_s=15)
        print("interrupted", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        try:
            said, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, said) == (0, "interrupted\n")


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="there is no fork")
def test_a_fork_has_a_thread_of_its_own(broker: Broker, client: str) -> None:
    program = f"""
import os
import nearcast.sync
with nearcast.sync.connect({broker.url!r}, {client!r}) as session:
    session.ping(timeout_s=15)
    child = os.fork()
    if child == 0:
        with nearcast.sync.connect({broker.url!r}, {client + " 2"!r}) as session:
            session.ping(timeout_s=15)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    session.ping(timeout_s=15)
"""
    # From Python 3.12 on it says that a fork among threads may lead to deadlocks; here it does not.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr


def test_nobody_is_there() -> None:
    with pytest.raises(NearcastError, match="cannot be reached"):
        sync.connect("http://127.0.0.1:9", "ann", connect_timeout_s=2)
    with sync.Api("http://127.0.0.1:9") as api, pytest.raises(NearcastError, match="cannot be reached"):
        api.publish(event(HERE))
