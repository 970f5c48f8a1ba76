"""Group definitions, put in force with a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import nearcast
from nearcast import Feature, Filter, GroupDefinition, ProblemError, attr, event, sync
from tests.broker import Broker

NAME = "pickup/ü"
PICKUP: GroupDefinition = {
    "roles": {"taxi": {"where": attr("type") == "taxi"}, "rider": {"where": attr("type") == "rider"}},
    "where": ["DISTANCE(taxi, rider) <= 800", "taxi.seats >= rider.party"],
    "order": "DISTANCE(taxi, rider)",
}
GROUP = {"taxi": "t1", "rider": "r1"}


def live(key: str, latitude: float, properties: dict[str, Any]) -> Feature:
    """A live object, at a latitude."""
    return event([9.19, latitude], properties, key=key, id=f"{key}@{latitude}")


async def told(session: nearcast.Session) -> nearcast.Event:
    message = await session.receive(timeout_s=15)
    assert isinstance(message, nearcast.Event)
    return message


async def test_a_taxi_and_a_rider_who_fit_together_are_told(brokers: Callable[..., Broker]) -> None:
    async with nearcast.connect(brokers().url, "ann") as session:
        api = session.api
        definition, created = await api.put_group_definition("pickup", PICKUP)
        assert created
        assert (definition["where"], definition["order"]) == (PICKUP["where"], PICKUP["order"])
        assert definition["limit"] == 100
        assert definition["roles"]["taxi"]["where"] == "type = 'taxi'"
        (listed,) = await api.group_definitions()
        assert list(listed["roles"]) == ["taxi", "rider"]
        assert not (await api.put_group_definition("pickup", listed)).created
        await session.subscribe("groups", Filter(where=attr("type") == "group"))
        await session.publish(live("t1", 45.46, {"type": "taxi", "seats": 4}))
        await session.publish(live("r1", 45.461, {"type": "rider", "party": 2}))
        entered = await told(session)
        assert entered.properties == {"type": "group", "group": "pickup", "roles": GROUP, "transition": "enter"}
        assert entered.position == [9.19, 45.46], "the place of the first role's"
        assert entered.feature["derived"] == {"by": "groups/pickup", "from": ["t1@45.46", "r1@45.461"], "depth": 1}
        while (definition := await api.group_definition("pickup")).get("groups") != [GROUP]:
            await asyncio.sleep(0.01)
        activity = definition["activity"]
        assert (activity["candidates"], activity["consistent"]) == ({"taxi": 1, "rider": 1}, {"taxi": 1, "rider": 1})
        why = await api.explain_object("pickup", "t1")
        assert (why["groups"], why["why"]) == (1, "t1 is in one group")
        await session.publish(live("t1", 45.6, {"type": "taxi", "seats": 4}))
        left = await told(session)
        assert (left.properties["roles"], left.properties["transition"]) == (GROUP, "exit")
        # They are listed once they are committed, which may be after their delivery.
        while len(findings := await api.group_definition_findings("pickup")) < 2:
            await asyncio.sleep(0.01)
        assert [finding["properties"]["transition"] for finding in findings] == ["exit", "enter"]
        why = await api.explain_object("pickup", "t1")
        (role,) = why["roles"]
        assert why["why"].startswith("t1 is in no group: as taxi, of 1 of role rider none fits")
        assert (role["role"], role["consistent"], role.get("failed")) == ("taxi", False, None)
        assert [left["candidates"] for left in role["partners"][0]["left"]] == [0, 1]
        with pytest.raises(ProblemError) as refused:
            await api.put_group_definition("pickup", {**PICKUP, "where": ["DISTANCE(taxi, bus) < 5"]})
        assert refused.value.problem.errors[0].pointer == "/where/0"


def test_the_same_without_asyncio(brokers: Callable[..., Broker]) -> None:
    with sync.Api(brokers().url) as api:
        assert api.put_group_definition(NAME, PICKUP).created
        assert [definition["name"] for definition in api.group_definitions()] == [NAME]
        api.pause_group_definition(NAME)
        assert api.group_definition(NAME)["activity"]["paused"]
        api.resume_group_definition(NAME)
        assert not api.group_definition(NAME)["activity"]["paused"]
        assert api.group_definition_findings(NAME) == []
        api.delete_group_definition(NAME)
        for call in (
            api.group_definition,
            api.group_definition_findings,
            api.delete_group_definition,
            api.pause_group_definition,
            api.resume_group_definition,
        ):
            with pytest.raises(ProblemError, match="not found"):
                call(NAME)
        with pytest.raises(ProblemError, match="not found"):
            api.explain_object(NAME, "t1")
