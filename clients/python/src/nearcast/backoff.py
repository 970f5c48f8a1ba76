"""When to try again."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .errors import ClosedError, ProblemError, TimedOutError, UnreachableError

AWAY_CAP_S = 3.0
"""While a broker has been away for less than `AWAY_S` no wait is longer than this."""
AWAY_S = 60.0
"""So long the waits for a broker that is away are together before they grow: several times as long as a takeover takes."""
AWAY_STATUS = (307, 502, 503, 504)
"""The status of answers that say that a broker, or the one behind a proxy, is away."""
GOING_AWAY = 1001
"""The code of a close by a broker that stops, or has heard nothing for long."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Full jitter: each wait is a random time up to a bound that doubles with every try, so that clients do not come back in step.

    Where the broker is away, the bound stays low for a minute: its standby takes over within seconds.
    """

    base_s: float = 1.0
    """Bound of the first wait."""
    cap_s: float = 30.0
    """Bound of all of them."""
    steady_s: float = 10.0
    """A connection that was ready for so long lets the next failure count as the first one."""


class Waits:
    """The waits of an outage."""

    def __init__(self, backoff: Backoff, chance: random.Random) -> None:
        self._backoff = backoff
        self._chance = chance
        self.reset()

    def reset(self) -> None:
        """Begins anew, with short ones."""
        self._bound_s = self._backoff.base_s
        # What the waits are together. The time of a machine that sleeps does not count.
        self._waited_s = 0.0

    def next(self, *, away: bool, retry_after_s: float | None = None) -> float:
        """The next one, no shorter than what the broker asked for. `away`: see `is_away`."""
        cap_s = self._backoff.cap_s
        if away and self._waited_s < AWAY_S:
            cap_s = min(cap_s, max(self._backoff.base_s, AWAY_CAP_S))
        bound_s = min(self._bound_s, cap_s)
        wait_s = max(self._chance.uniform(0, bound_s), retry_after_s or 0)
        # A bound that was low for a minute grows from there.
        self._bound_s = min(bound_s * 2, cap_s)
        self._waited_s += wait_s
        return wait_s


def is_away(error: Exception) -> bool:
    """Whether the broker is away, so that a takeover or a restart may bring it back soon. One that refuses for its load is there."""
    if isinstance(error, ClosedError):
        return error.code == GOING_AWAY
    if isinstance(error, ProblemError):
        return error.status in AWAY_STATUS and error.code != "limit-reached"
    return isinstance(error, UnreachableError | TimedOutError)
