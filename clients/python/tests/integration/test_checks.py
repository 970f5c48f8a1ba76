"""Checks, put in force with a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import nearcast
from nearcast import Api, Filter, ProblemError, attr, circle, event, everywhere, sync
from tests.broker import Broker

NAME = "jump/ü"
SPEED: nearcast.SpeedCheck = {"preset": "speed", "object": "taxi", "max_m_per_s": 55, "clock": "event"}
REPORTS = [
    event([longitude, 22.5], {"taxi": "t1"}, id=f"r{n}", time=f"2026-03-01T08:00:{n}0Z")
    for n, longitude in enumerate([114.0, 114.005, 114.305])
]


async def test_a_check_tells_what_does_not_fit(brokers: Callable[..., Broker]) -> None:
    async with nearcast.connect(brokers().url, "ann") as session:
        api = session.api
        check, created = await api.put_check("jump", SPEED)
        assert created
        assert (check["clock"], check["on_violation"], check["activity"]["inputs"]) == ("event", "tell", 0)
        assert not (await api.put_check("jump", (await api.checks())[0])).created
        await session.subscribe("jumps", Filter(where=attr("check") == "jump"))
        for report in REPORTS:
            await session.publish(report)
        told = [await session.receive(timeout_s=15) for _ in range(2)]
        # They are listed once the check has committed them, which may be after their delivery.
        while len(findings := await api.check_findings("jump")) < 2:
            await asyncio.sleep(0.01)
        assert sorted(finding["properties"]["bindings"]["a"] for finding in findings) == ["r0", "r1"]
        for message in told:
            assert isinstance(message, nearcast.Event)
            assert message.violates == ()
            assert message.properties["type"] == "violation"
            derived = message.feature["derived"]
            assert (derived["by"], derived["depth"], derived["from"][1]) == ("checks/jump", 1, "r2")
        assert [finding["id"] for finding in findings] == [message.id for message in reversed(told)]  # type: ignore[union-attr]
        with pytest.raises(ProblemError, match="derived"):
            await session.publish({**REPORTS[0], "derived": findings[0]["derived"]})


async def test_an_event_that_breaks_a_check_is_marked_or_refused(
    brokers: Callable[..., Broker], tmp_path: Path
) -> None:
    # A verdict is waited for on any machine.
    settings = tmp_path / "settings.toml"
    settings.write_text("[checks]\nhold_ms = 60000\n")
    async with nearcast.connect(brokers("--config", str(settings)).url, "ann") as session:
        api = session.api
        await session.subscribe("all", Filter(everywhere()))
        await api.put_check("jump", {**SPEED, "on_violation": "mark"})
        for report in (REPORTS[0], REPORTS[2]):
            await session.publish(report)
        delivered = [await session.receive(timeout_s=15) for _ in range(2)]
        assert [message.violates for message in delivered if isinstance(message, nearcast.Event)] == [(), ("jump",)]
        activity = (await api.check("jump"))["activity"]
        assert (activity["marked"], activity["passed"]) == (1, 0)

        await api.put_check("jump", {**SPEED, "on_violation": "drop"})
        await session.publish(REPORTS[0])
        with pytest.raises(ProblemError) as refused:
            await session.publish(REPORTS[2])
        problem = refused.value.problem
        assert (problem.code, problem.status, problem.check) == ("inconsistent", 422, "jump")
        assert problem.links == ({"a": "r0", "b": "r2"},)
        properties = (await api.check_findings("jump"))[0]["properties"]
        assert (properties["outcome"], properties["event"]) == ("dropped", "r2")


async def test_a_check_as_the_builders_make_it(brokers: Callable[..., Broker]) -> None:
    async with Api(brokers().url) as api:
        formula: nearcast.Formula = {"forall": "a", "in": "here", "that": {"not": "a.accuracy_m > 50"}}
        put = await api.put_check(
            NAME,
            {
                "contexts": {
                    "here": {"for_s": 9, "where": attr("status") != 0, "area": circle([9, 45], 100)},
                    "all": {"for_s": 9, "area": everywhere()},
                },
                "formula": formula,
            },
        )
        contexts = put.check["contexts"]
        assert (contexts["here"]["where"], contexts["here"]["area"]["radius_m"]) == ("status <> 0", 100)
        assert contexts["all"] == {"for_s": 9}
        assert put.check["formula"] == formula
        with pytest.raises(ProblemError) as refused:
            await api.put_check("wrong", {"preset": "speed", "object": "taxi"})
        assert refused.value.problem.errors[0].pointer == "/max_m_per_s"


def test_the_same_without_asyncio(brokers: Callable[..., Broker]) -> None:
    with sync.Api(brokers().url) as api:
        assert api.put_check(NAME, SPEED).created
        assert [check["name"] for check in api.checks()] == [NAME]
        api.pause_check(NAME)
        assert api.check(NAME)["activity"]["paused"]
        api.resume_check(NAME)
        assert not api.check(NAME)["activity"]["paused"]
        assert api.check_findings(NAME) == []
        api.delete_check(NAME)
        for call in (api.check, api.check_findings, api.delete_check, api.pause_check, api.resume_check):
            with pytest.raises(ProblemError, match="not found"):
                call(NAME)
