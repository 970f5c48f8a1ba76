"""Connections that break: what goes over the wire, and what the application sees, as the contract has it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

from nearcast import (
    Checkpoint,
    ClosedError,
    Connecting,
    Event,
    Lost,
    Message,
    ProblemError,
    QueueFullError,
    Ready,
    Session,
    State,
)
from tests.scripted import ScriptedServer, connected, within

from .contract import each, vectors
from .test_frames import call


class Conversation:
    """Carries out the steps of a sequence."""

    def __init__(self, server: ScriptedServer, options: dict[str, Any]) -> None:
        self._server = server
        self._options = options
        self._calls: dict[str, asyncio.Future[None]] = {}
        self._refs: dict[str, object] = {}
        self._ids: dict[str, object] = {}
        self._connecting = asyncio.ensure_future(self._connect())
        self._session: Session | None = None
        self._states: AsyncIterator[State] | None = None
        self._seen: State | None = None

    async def _connect(self) -> Session:
        options = self._options
        tokens = iter(options.get("tokens", []))
        return await connected(
            self._server.url,
            options["client"],
            acknowledge=options["ack"],
            token=(lambda: next(tokens)) if "tokens" in options else options.get("token"),
            queue=options.get("queue", 1_000),
            resume=Checkpoint(**options["resume"]) if "resume" in options else None,
        )

    async def session(self) -> Session:
        if self._session is None:
            self._session = await within(self._connecting)
            self._states = self._session.states()
            # That it was ready is known; perhaps it is not any more.
            self._seen = await within(anext(self._states))
        return self._session

    async def ready_again(self) -> None:
        await self.session()
        while not isinstance(await self.next_state(), Ready):
            pass

    async def lost(self) -> None:
        await self.session()
        while not isinstance(self._seen, Lost | Connecting):
            await self.next_state()

    async def next_state(self) -> State:
        assert self._states is not None
        self._seen = await within(anext(self._states))
        return self._seen

    async def run(self, steps: list[dict[str, Any]]) -> None:
        for step, following in itertools.zip_longest(steps, steps[1:]):
            verb = next(iter(step))
            match verb:
                case "accept" | "refuse":
                    await self.upgrade(verb, step[verb])
                case "send":
                    await self.send(step["send"], waits=not following or "drop" not in following)
                case "receive":
                    await self.receive(step["receive"])
                case "receive_until":
                    await self.receive_until(step["receive_until"])
                case "app":
                    await self.app(step["app"], step.get("call"))
                case "done":
                    await within(self._calls.pop(step["done"]))
                case "fails":
                    await self.fails(step["fails"])
                case "deliver":
                    check_delivery(await within((await self.session()).receive()), step["deliver"])
                case "drop":
                    await self.drop(step["drop"])
                case "lost":
                    await self.lost()
                case "checkpoint":
                    assert (await self.session()).checkpoint == Checkpoint(**step["checkpoint"])
                case "closed":
                    assert self._server.connection is not None
                    await within(self._server.connection.wait_closed())
                    assert self._server.connection.protocol.close_code == step["closed"]["code"]
                case "new":
                    await within((await self.session()).close())
                    self.__init__(self._server, {**self._options, **step["new"]})  # type: ignore[misc]
                case "world" | "settled":
                    pass
                case _:
                    raise AssertionError(f"no such step: {step}")

    async def upgrade(self, verb: str, expected: dict[str, Any]) -> None:
        upgrade = await self._server.upgrade()
        assert upgrade.resume == expected["query"].get("resume")
        if "token" in expected:
            assert upgrade.token == expected["token"]
        if verb == "accept":
            await self._server.accept(upgrade)
        else:
            await self._server.refuse(upgrade, expected["status"], expected["headers"], expected["body"])

    async def send(self, frame: dict[str, Any], *, waits: bool) -> None:
        if "$ref" in frame:
            frame = {**frame, "ref": self._refs[frame["$ref"]]}
            del frame["$ref"]
        await self._server.send(frame)
        if frame["op"] == "ready" and waits:
            if self._session is None:
                await self.session()
            else:
                await self.ready_again()

    async def receive(self, expected: dict[str, Any]) -> None:
        frame = await self._server.receive()
        if "$ref" in expected:
            self._refs[expected["$ref"]] = frame.pop("ref")
        if "$id" in expected.get("event", {}):
            made = frame["event"].pop("id")
            assert self._ids.setdefault(expected["event"]["$id"], made) == made
            expected = {**expected, "event": without(expected["event"], "$id")}
        assert frame == without(expected, "$ref")

    async def receive_until(self, expected: dict[str, Any]) -> None:
        last = -1
        while last < expected["offset"]:
            frame = await self._server.receive()
            assert frame["op"] == expected["op"]
            assert last < frame["offset"] <= expected["offset"]
            last = frame["offset"]

    async def app(self, arguments: dict[str, Any], name: str | None) -> None:
        arguments = dict(arguments)
        verb, session = arguments.pop("verb"), await self.session()
        calling = session.close() if verb == "close" else call(session, verb, arguments)
        self._calls[name or f"unnamed {len(self._calls)}"] = asyncio.ensure_future(calling)
        # It begins before the next step.
        await asyncio.sleep(0)

    async def fails(self, expected: dict[str, Any]) -> None:
        failing: Any
        if "call" in expected:
            failing = self._calls.pop(expected["call"])
        elif self._session is None:
            failing = self._connecting
        else:
            failing = self._session.receive()
        try:
            await within(failing)
        except ProblemError as error:
            assert error.code == expected["code"]
            assert error.status == expected.get("status", error.status)
        except ClosedError as error:
            assert error.code == expected["code"]
        except QueueFullError:
            assert expected["kind"] == "queue-full"
        else:
            raise AssertionError("it did not fail")

    async def drop(self, how: str | dict[str, Any]) -> None:
        assert self._server.connection is not None
        if isinstance(how, str):
            self._server.reset()
        else:
            await within(self._server.connection.close(how["close"], how.get("reason", "")))

    async def end(self) -> None:
        for calling in self._calls.values():
            await within(calling)
        if self._session is not None:
            await within(self._session.close())
        elif not self._connecting.done():
            self._connecting.cancel()


def without(document: dict[str, Any], member: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != member}


def check_delivery(message: Message, expected: dict[str, Any]) -> None:
    """The message has these members; others are not looked at."""
    expected = dict(expected)
    if expected.pop("kind") == "event":
        assert isinstance(message, Event)
        for name, value in expected.pop("event", {}).items():
            assert message.feature[name] == value  # type: ignore[literal-required]
    for name, value in expected.items():
        assert getattr(message, {"from": "from_"}.get(name, name)) == value


@each(vectors("resume"))
async def test_a_sequence(vector: dict[str, Any]) -> None:
    async with ScriptedServer() as server:
        conversation = Conversation(server, vector["options"])
        try:
            await conversation.run(vector["steps"])
        finally:
            await conversation.end()
