"""The calls for rule sets, as they go over HTTP."""

from __future__ import annotations

from nearcast import Feature, RuleSet, attr, circle, everywhere
from tests.situations import Scripted, Sync

MERGING: RuleSet = {
    "facts": {
        "report": {"where": attr("type") == "accident", "area": circle([9, 45], 100), "args": ["@id", "@lon", "@lat"]},
        "seen": {"area": everywhere()},
    },
    "program": "report(A, X, Y) \\ report(_, U, V) <=> distance(X, Y, U, V) < 100 | accident(A, X, Y).",
    "publish": {"accident": {"at": [1, 2], "properties": {"type": "accidents", "first": "{0}"}}},
}


async def test_a_rule_set_is_written_as_the_builders_make_it() -> None:
    broker = Scripted(201, {**MERGING, "facts": {}, "activity": {"constraints": 0}})
    rule_set, created = await broker.put_rule_set("merge/ü", MERGING)
    assert broker.asked == ["PUT /v1/rules/merge%2F%C3%BC"]
    area = {"center": [9, 45], "radius_m": 100}
    report = {"where": "type = 'accident'", "area": area, "args": ["@id", "@lon", "@lat"]}
    assert broker.bodies[0] == {**MERGING, "facts": {"report": report, "seen": {}}}
    assert created
    assert rule_set["activity"].get("constraints") == 0
    assert not (await Scripted(200, {}).put_rule_set("merge", MERGING)).created


async def test_a_finding_may_lack_what_it_follows_from() -> None:
    found: Feature = {
        "type": "Feature",
        "id": "f",
        "geometry": {"type": "Point", "coordinates": [9, 45]},
        "properties": {"type": "accidents"},
        "derived": {"by": "rules/a", "depth": 1},
    }
    (finding,) = await Scripted(200, [found]).rule_set_findings("a")
    assert finding["derived"].get("from") is None


def test_rule_sets_are_asked_for_paused_and_ended() -> None:
    broker = Scripted(200, [])
    calls = Sync(broker)
    assert calls.rule_sets() == []
    calls.rule_set("a")
    calls.rule_set_findings("a")
    calls.pause_rule_set("a")
    calls.resume_rule_set("a")
    calls.delete_rule_set("a")
    of_a = "/v1/rules/a"
    assert broker.asked == [
        "GET /v1/rules",
        f"GET {of_a}",
        f"GET {of_a}/findings",
        f"POST {of_a}/pause",
        f"POST {of_a}/resume",
        f"DELETE {of_a}",
    ]
