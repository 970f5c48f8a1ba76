"""Rule sets, put in force with a real broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import nearcast
from nearcast import Filter, ProblemError, RuleSet, attr, event, sync
from tests.broker import Broker

NAME = "merge/ü"
MERGING: RuleSet = {
    "facts": {"report": {"where": attr("type") == "accident", "args": ["@id", "@lon", "@lat"], "for_s": 300}},
    "program": "report(A, X, Y) \\ report(_, U, V) <=> distance(X, Y, U, V) < 100 | accident(A, X, Y).",
    "publish": {"accident": {"at": [1, 2], "properties": {"type": "accidents", "first": "{0}"}}},
}


async def test_reports_of_one_accident_are_merged(brokers: Callable[..., Broker]) -> None:
    async with nearcast.connect(brokers().url, "ann") as session:
        api = session.api
        rule_set, created = await api.put_rule_set("merge", MERGING)
        assert created
        assert (rule_set["clock"], rule_set["facts"]["report"]["where"]) == ("arrival", "type = 'accident'")
        assert rule_set["activity"].get("constraints") == 0
        assert not (await api.put_rule_set("merge", (await api.rule_sets())[0])).created
        await session.subscribe("accidents", Filter(where=attr("type") == "accidents"))
        for n, latitude in enumerate([45.464, 45.4641, 45.6]):
            await session.publish(event([9.19, latitude], {"type": "accident"}, id=f"r{n}"))
        told = await session.receive(timeout_s=15)
        assert isinstance(told, nearcast.Event)
        assert told.properties == {"type": "accidents", "first": "r0"}
        derived = told.feature["derived"]
        assert (derived["by"], derived["depth"]) == ("rules/merge", 1)
        with pytest.raises(ProblemError) as refused:
            await api.put_rule_set("merge", {**MERGING, "program": "report("})
        assert refused.value.problem.errors[0].pointer == "/program"


def test_the_same_without_asyncio(brokers: Callable[..., Broker]) -> None:
    with sync.Api(brokers().url) as api:
        assert api.put_rule_set(NAME, MERGING).created
        assert [rule_set["name"] for rule_set in api.rule_sets()] == [NAME]
        api.pause_rule_set(NAME)
        assert api.rule_set(NAME)["activity"]["paused"]
        api.resume_rule_set(NAME)
        assert not api.rule_set(NAME)["activity"]["paused"]
        assert api.rule_set_findings(NAME) == []
        api.delete_rule_set(NAME)
        for call in (
            api.rule_set,
            api.rule_set_findings,
            api.delete_rule_set,
            api.pause_rule_set,
            api.resume_rule_set,
        ):
            with pytest.raises(ProblemError, match="not found"):
                call(NAME)
