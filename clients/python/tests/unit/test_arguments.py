"""What is probably meant is taken, or said."""

from __future__ import annotations

from typing import Any

import pytest

import nearcast
from nearcast import Filter, around, attr
from nearcast.endpoint import Endpoint
from nearcast.queries import question
from nearcast.subscriptions import subscription

DOCUMENT = {"filters": [{"area": {"radius_m": 500}, "where": "severity >= 2"}]}


@pytest.mark.parametrize("address", ["localhost:7070", "127.0.0.1:7070", "broker.example/events"])
def test_an_address_without_a_scheme_is_told_with_the_one_that_is_meant(address: str) -> None:
    with pytest.raises(ValueError, match=f"not at '{address}': is http://{address} meant"):
        nearcast.connect(address, "ann")


@pytest.mark.parametrize("address", ["", "http://", "ftp://localhost:7070", "localhost:7070?a=b"])
def test_what_is_no_address_is_not_guessed_at(address: str) -> None:
    with pytest.raises(ValueError, match=r"not at '[^ ]*'$"):
        Endpoint.of(address)


@pytest.mark.parametrize(
    "filters",
    [
        Filter(around(500), "severity >= 2"),
        [Filter(around(500), "severity >= 2")],
        DOCUMENT["filters"],
        DOCUMENT,
        {"filters": [Filter(around(500), "severity >= 2")]},
        {**DOCUMENT, "id": "near", "activity": {"matches": 1}, "warnings": []},
    ],
)
def test_a_subscription_is_taken_in_each_of_its_forms(filters: Any) -> None:
    assert subscription(filters) == DOCUMENT


def test_what_is_said_besides_goes_before_the_document() -> None:
    made = subscription({**DOCUMENT, "durable": True, "overflow": "drop-oldest"}, durable=False, on="enter")
    assert made == {**DOCUMENT, "durable": False, "overflow": "drop-oldest", "on": ["enter"]}


@pytest.mark.parametrize(
    ("filters", "kind"),
    [
        ("severity >= 2", "str"),
        (around(500), "Area"),
        (attr("severity") >= 2, "Condition"),
        ([around(500)], "Area"),
        ({"area": {"radius_m": 500}}, "NoneType"),
        ({"filters": {"area": {"radius_m": 500}}}, "dict"),
        (None, "NoneType"),
    ],
)
def test_what_are_no_filters_is_told_with_what_to_pass(filters: Any, kind: str) -> None:
    with pytest.raises(
        TypeError, match=rf"takes a Filter, .* as the protocol writes it, not a {kind}: .* Filter\(where=\.\.\)"
    ):
        subscription(filters)


def test_a_condition_in_the_place_of_an_area_is_told() -> None:
    misplaced: Any = attr("severity") >= 2
    with pytest.raises(TypeError, match=r"not a Condition: a condition alone is Filter\(where=\.\.\)"):
        subscription(Filter(misplaced))


@pytest.mark.parametrize("near", [([9.19, 45.4], 500), ((9.19, 45.4, 120), 500), [9.19, 45.4, 500], (9.19, 45.4, 500)])
def test_a_circle_is_taken_in_each_of_its_forms(near: Any) -> None:
    assert question(None, near, None, None, 10)["near"] == "9.19,45.4,500.0"


@pytest.mark.parametrize(
    "near", [[9.19, 45.4], [9.19, 45.4, 120, 500], "Milano", 500, {"center": [9, 45], "radius_m": 5}]
)
def test_what_is_no_circle_is_told_with_what_to_pass(near: Any) -> None:
    with pytest.raises(TypeError, match=r"near is a place and a distance in metres: \(\[9.19, 45.464\], 500\), or"):
        question(None, near, None, None, 10)
