"""Push subscriptions: where a client is woken while no connection reads."""

from __future__ import annotations

from typing import TypedDict


class PushState(TypedDict):
    """The push subscription of a client, without its address. Times are RFC 3339."""

    endpoint_origin: str
    since: str
    last_push: str | None
    failures: int
