"""When to try again."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Full jitter: a random time up to `min(cap_s, base_s * 2 ** n)` before the attempt after `n` failed ones.

    Many clients that lost their broker at the same moment so come back spread over the time.
    """

    base_s: float = 0.25
    cap_s: float = 30.0
    steady_s: float = 10.0
    """A connection that was ready for so long lets the next failure count as the first one."""

    def delay_s(self, failures: int, chance: random.Random) -> float:
        """How long to wait now."""
        # The exponent is bounded because a float's is.
        return chance.uniform(0, min(self.cap_s, self.base_s * 2.0 ** min(failures, 64)))
