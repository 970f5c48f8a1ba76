"""Questions for live events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypedDict
from urllib.parse import quote, urlencode

from .areas import Position
from .conditions import Condition
from .events import Feature, delivered

PAGE = 1000
"""Number of events that one request asks for, unless said."""


Near = tuple[Position, float] | Sequence[float]
"""A place and a distance in metres: `([9.19, 45.464], 500)`, or `[9.19, 45.464, 500]`."""


class _Coordinates(TypedDict):
    coordinates: list[float]


class ClientPosition(_Coordinates, total=False):
    """Where a client is, and when the broker was told (RFC 3339). Only the client itself is told how far off that may be."""

    accuracy_m: float
    time: str


def question(
    bbox: tuple[float, float, float, float] | None,
    near: Near | None,
    where: Condition | str | None,
    client: str | None,
    page: int,
) -> dict[str, str]:
    """The question as parameters."""
    parameters = {"limit": str(page)}
    if bbox is not None:
        parameters["bbox"] = ",".join(repr(float(number)) for number in bbox)
    if near is not None:
        parameters["near"] = ",".join(repr(number) for number in _circle(near))
    if where is not None:
        parameters["where"] = str(where)
    if client is not None:
        parameters["client"] = client
    return parameters


def _circle(near: Near) -> tuple[float, float, float]:
    given: Any = near
    try:
        # What has three members is flat.
        place, radius_m = (given[:2], given[2]) if len(given) == 3 else given
        return float(place[0]), float(place[1]), float(radius_m)
    except (TypeError, ValueError, LookupError):
        raise TypeError(
            "near is a place and a distance in metres: ([9.19, 45.464], 500), or [9.19, 45.464, 500]"
        ) from None


async def pages(
    ask: Callable[[str], Awaitable[dict[str, Any]]], parameters: dict[str, str]
) -> AsyncIterator[list[Feature]]:
    """The pages of an answer, each when it is asked for."""
    after: dict[str, str] = {}
    while True:
        page = await ask("/v1/events?" + urlencode({**parameters, **after}, quote_via=quote))
        yield [delivered(feature) for feature in page["features"]]
        if "next" not in page:
            return
        after = {"after": page["next"]}
