"""Frames and problems are read, and written, as the contract has them."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
from typing import Any

from nearcast import Area, Event, Filter, Gap, Problem, Session
from nearcast.messages import Frame, OkFrame, PongFrame, ProblemFrame, ReadyFrame, RetryFrame, UnknownFrame, read_frame
from nearcast.problems import read_answer
from tests.clock import FakeClock
from tests.scripted import ScriptedServer

from .contract import each, vectors


def shown(frame: Frame) -> dict[str, Any]:
    """A frame as the vectors show it."""
    if isinstance(frame, Event):
        members = {
            "offset": frame.offset,
            "subscriptions": list(frame.subscriptions),
            "cause": frame.cause,
            "event": frame.feature,
            "transition": frame.transition,
            "ahead": frame.ahead or None,
            "traceparent": frame.traceparent,
            "tracestate": frame.tracestate,
            "violates": list(frame.violates) or None,
        }
        return {"kind": "event", **{name: value for name, value in members.items() if value is not None}}
    if isinstance(frame, Gap):
        return {"kind": "gap", "from": frame.from_, "to": frame.to, "count": frame.count, "reason": frame.reason}
    if isinstance(frame, ReadyFrame):
        return {"kind": "ready", **dataclasses.asdict(frame)}
    if isinstance(frame, RetryFrame):
        return {"kind": "retry", "retry_ms": frame.retry_ms}
    if isinstance(frame, ProblemFrame):
        return {"kind": "problem", "problem": frame.problem.document, **ref(frame.ref)}
    if isinstance(frame, OkFrame):
        warnings = [{"pointer": pointer, "detail": detail} for pointer, detail in frame.warnings]
        return {"kind": "ok", **ref(frame.ref), **({"warnings": warnings} if warnings else {})}
    return {"kind": {PongFrame: "pong", UnknownFrame: "unknown"}[type(frame)]}


def ref(value: object) -> dict[str, object]:
    return {} if value is None else {"ref": value}


@each(vectors("frames")["server"])
def test_a_frame_of_the_broker(vector: dict[str, Any]) -> None:
    frame = read_frame(vector["text"])
    expect = vector["expect"]
    if "event" in expect:
        # An application may rely on an object.
        expect = {**expect, "event": {**expect["event"], "properties": expect["event"].get("properties") or {}}}
    assert shown(frame) == expect
    if isinstance(frame, ProblemFrame):
        expected = vector["expect"]["problem"]
        assert frame.problem.type == expected["type"]
        assert frame.problem.status == expected["status"]
        assert frame.problem.detail == expected.get("detail")
        assert faults(frame.problem) == expected.get("errors", [])
        assert frame.problem.limit == expected.get("limit")


def faults(problem: Problem) -> list[dict[str, Any]]:
    return [dataclasses.asdict(fault) for fault in problem.errors]


@each(vectors("problems"))
def test_a_problem(vector: dict[str, Any]) -> None:
    problem = read_answer(vector["status"], vector["headers"], vector["body"].encode())
    named = {
        "code": problem.code,
        "status": problem.status,
        "title": problem.title,
        "detail": problem.detail,
        "errors": faults(problem) or None,
        "limit": problem.limit,
        "setting": problem.setting,
        "retry_after_s": problem.retry_after_s,
    }
    further = {name: value for name, value in problem.document.items() if name not in {*named, "type"}}
    assert {name: value for name, value in {**named, **further}.items() if value is not None} == vector["expect"]


def filters(documents: list[dict[str, Any]]) -> list[Filter]:
    return [Filter(Area(document.get("area", {})), document.get("where")) for document in documents]


async def call(session: Session, verb: str, arguments: dict[str, Any]) -> None:
    """Makes a call of the vectors. One without `ref` is one whose answer nobody waits for."""
    confirm = arguments.pop("ref", None) is not None
    match verb:
        case "subscribe":
            await session.subscribe(arguments.pop("id"), filters(arguments.pop("filters")), **arguments)
        case "unsubscribe":
            await session.unsubscribe(arguments["id"])
        case "move":
            await session.move(arguments.pop("coordinates"), **arguments, confirm=confirm)
        case "track":
            await session.track(arguments.pop("track"), **arguments, confirm=confirm)
        case "publish":
            await session.publish(arguments.pop("event"), **arguments)
        case "ack":
            await session.ack(arguments["offset"])
        case "ping":
            await session.ping()
        case _:
            raise AssertionError(f"no such verb: {verb}")


@each([vector for vector in vectors("frames")["client"] if vector["call"]["verb"] != "auth"])
async def test_a_frame_of_the_client(vector: dict[str, Any]) -> None:
    arguments = dict(vector["call"])
    async with ScriptedServer() as server, server.session("ann", acknowledge="manual") as session:
        calling = asyncio.ensure_future(call(session, arguments.pop("verb"), arguments))
        frame = await server.receive()
        expected = dict(vector["frame"])
        assert ("ref" in frame) == ("ref" in expected)
        assert {**frame, "ref": None} == {**expected, "ref": None}
        if "ref" in frame:
            await server.send({"op": "ok", "ref": frame["ref"]})
        elif frame["op"] == "ping":
            await server.send({"op": "pong"})
        await calling


@each([vector for vector in vectors("frames")["client"] if vector["call"]["verb"] == "auth"])
async def test_a_token_of_the_client(vector: dict[str, Any]) -> None:
    """There is no call for it: it is sent before the one before ends."""
    clock = FakeClock()
    tokens = iter([token_until(clock.time() + 30), vector["call"]["token"]])
    async with ScriptedServer() as server, server.session("ann", token=lambda: next(tokens), clock=clock):
        await clock.advance(15)
        frame = await server.receive()
        assert {**frame, "ref": None} == {**vector["frame"], "ref": None}
        await server.send({"op": "ok", "ref": frame["ref"]})


def token_until(unix_s: float) -> str:
    """A token of which nothing but its end is looked at."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": unix_s}).encode()).rstrip(b"=").decode()
    return f"e30.{claims}.signature"
