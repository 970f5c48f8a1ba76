"""Tokens: who the client says that it is."""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Awaitable, Callable

from .clock import Clock

TokenProvider = Callable[[], "str | Awaitable[str]"]
"""Makes or fetches a JSON Web Token; is asked before each connection, and a minute before the last one ends."""

EARLY_S = 60.0
"""So long before its end a token is replaced by a new one."""


class Tokens:
    """The token that is in use: always the same, or from a provider."""

    def __init__(self, token: str | TokenProvider | None, clock: Clock) -> None:
        self._provider = token if callable(token) else None
        self._token = None if callable(token) else token
        self._clock = clock

    @property
    def renewable(self) -> bool:
        """Whether there can be another one than this."""
        return self._provider is not None

    async def fresh(self) -> str | None:
        """A new one from the provider, or the one that there is."""
        if self._provider is not None:
            token = self._provider()
            self._token = await token if inspect.isawaitable(token) else token
        return self._token

    async def current(self) -> str | None:
        """The one in use, or a new one where it is about to end."""
        if self._token is None or self.renew_in_s() == 0:
            return await self.fresh()
        return self._token

    def renew_in_s(self) -> float | None:
        """When a new one should be asked for; `None` where there is nobody to ask, or the token does not say when it ends."""
        ends = ends_at(self._token) if self._token is not None and self.renewable else None
        if ends is None:
            return None
        left = ends - self._clock.time()
        # One that lives for less than that minute is renewed halfway.
        return max(0.0, left - EARLY_S if left > 2 * EARLY_S else left / 2)


def ends_at(token: str) -> float | None:
    """The claim `exp` of a JSON Web Token, in seconds since 1970; nothing is verified."""
    try:
        claims = token.split(".")[1]
        document = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        return float(document["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return None
