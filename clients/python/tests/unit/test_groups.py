"""The calls for group definitions, as they go over HTTP."""

from __future__ import annotations

from nearcast import GroupDefinition, GroupFinding, attr, circle, everywhere
from tests.situations import Scripted, Sync

PICKUP: GroupDefinition = {
    "roles": {
        "taxi": {"where": attr("type") == "taxi", "area": circle([9, 45], 100)},
        "rider": {"where": "type = 'rider'", "area": everywhere()},
    },
    "where": ["DISTANCE(taxi, rider) <= 800"],
    "order": "DISTANCE(taxi, rider)",
}


async def test_a_group_definition_is_written_as_the_builders_make_it_its_roles_in_their_order() -> None:
    broker = Scripted(201, {**PICKUP, "roles": {}, "activity": {"candidates": {"taxi": 0, "rider": 0}}})
    group_definition, created = await broker.put_group_definition("pickup/ü", PICKUP)
    assert broker.asked == ["PUT /v1/groups/pickup%2F%C3%BC"]
    taxi = {"where": "type = 'taxi'", "area": {"center": [9, 45], "radius_m": 100}}
    assert broker.bodies[0] == {**PICKUP, "roles": {"taxi": taxi, "rider": {"where": "type = 'rider'"}}}
    assert list(broker.bodies[0]["roles"]) == ["taxi", "rider"]
    assert created
    assert group_definition["activity"].get("candidates") == {"taxi": 0, "rider": 0}
    assert not (await Scripted(200, {}).put_group_definition("pickup", PICKUP)).created


async def test_a_finding_may_lack_which_objects_it_is_about() -> None:
    found: GroupFinding = {
        "type": "Feature",
        "id": "f",
        "time": "2026-03-01T08:00:00Z",
        "geometry": {"type": "Point", "coordinates": [9, 45]},
        "properties": {"type": "group", "group": "a", "transition": "enter"},
        "derived": {"by": "groups/a", "depth": 1},
    }
    (finding,) = await Scripted(200, [found]).group_definition_findings("a")
    assert finding["properties"].get("roles") is None


def test_group_definitions_are_asked_for_paused_and_ended() -> None:
    broker = Scripted(200, [])
    calls = Sync(broker)
    assert calls.group_definitions() == []
    calls.group_definition("a")
    calls.group_definition_findings("a")
    calls.explain_object("a", "t/1")
    calls.pause_group_definition("a")
    calls.resume_group_definition("a")
    calls.delete_group_definition("a")
    of_a = "/v1/groups/a"
    assert broker.asked == [
        "GET /v1/groups",
        f"GET {of_a}",
        f"GET {of_a}/findings",
        f"GET {of_a}/objects/t%2F1",
        f"POST {of_a}/pause",
        f"POST {of_a}/resume",
        f"DELETE {of_a}",
    ]
