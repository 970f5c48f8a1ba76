"""Conditions and areas are written as the contract has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nearcast import Area, Condition, Filter, along_route, around, attr, circle, corridor, everywhere, polygon

from .contract import each, vectors

CONDITIONS: dict[str, Callable[..., Condition]] = {
    "=": lambda name, value: attr(name).eq(value),
    "<>": lambda name, value: attr(name).ne(value),
    "<": lambda name, value: attr(name).lt(value),
    "<=": lambda name, value: attr(name).le(value),
    ">": lambda name, value: attr(name).gt(value),
    ">=": lambda name, value: attr(name).ge(value),
    "between": lambda name, low, high: attr(name).between(low, high),
    "in": lambda name, values: attr(name).in_(*values),
    "like": lambda name, pattern: attr(name).like(pattern),
    "isnull": lambda name: attr(name).is_null(),
    "isnotnull": lambda name: attr(name).is_not_null(),
    "casei=": lambda name, text: attr(name).casei().eq(text),
    "casei<>": lambda name, text: attr(name).casei().ne(text),
    "caseiin": lambda name, texts: attr(name).casei().in_(*texts),
    "caseilike": lambda name, pattern: attr(name).casei().like(pattern),
    "and": lambda first, *others: built(first).and_(*map(built, others)),
    "or": lambda first, *others: built(first).or_(*map(built, others)),
    "not": lambda condition: built(condition).not_(),
}
AREAS: dict[str, Callable[..., Area]] = {
    "around": around,
    "circle": circle,
    "polygon": polygon,
    "corridor": corridor,
    "along_route": along_route,
    "everywhere": everywhere,
}


def built(form: list[Any]) -> Condition:
    return CONDITIONS[form[0]](*form[1:])


@each([vector for vector in vectors("conditions") if "builder" in vector])
def test_a_condition(vector: dict[str, Any]) -> None:
    assert str(built(vector["builder"])) == vector["text"]


@each([*vectors("areas"), *vectors("route_areas")])
def test_an_area(vector: dict[str, Any]) -> None:
    name, *arguments = vector["builder"]
    nearest = (
        arguments.pop() if arguments and isinstance(arguments[-1], list) and arguments[-1][:1] == ["nearest"] else None
    )
    area = AREAS[name](*arguments)
    if nearest:
        area = area.nearest(nearest[1])
    assert Filter(area).document().get("area") == vector["area"]
