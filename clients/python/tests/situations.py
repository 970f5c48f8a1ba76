"""The calls for checks, rule sets and group definitions, without a broker."""

from __future__ import annotations

import json
from typing import Any

import httpx

from nearcast.situations import SituationCalls
from nearcast.sync_situations import SyncSituationCalls


class Scripted(SituationCalls):
    """A broker that answers all calls alike, and notes what came."""

    def __init__(self, status: int, answer: Any = None) -> None:
        self._status = status
        self._document = answer
        self.asked: list[str] = []
        self.bodies: list[Any] = []

    async def _call(self, method: str, path: str, body: bytes | None = None) -> Any:
        return (await self._answer(method, path, body)).json()

    async def _answer(self, method: str, path: str, body: bytes | None = None) -> httpx.Response:
        self.asked.append(f"{method} {path}")
        self.bodies.append(None if body is None else json.loads(body))
        return httpx.Response(self._status, json=self._document)


class Sync(SyncSituationCalls):
    """The same without asyncio."""

    def __init__(self, calls: SituationCalls) -> None:
        self._made = calls

    def _calls(self) -> SituationCalls:
        return self._made
