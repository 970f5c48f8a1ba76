"""How a session behaves."""

from __future__ import annotations

import random
import ssl
from dataclasses import dataclass, field
from typing import Literal

from .backoff import Backoff
from .clock import Clock, SystemClock
from .messages import Checkpoint


@dataclass(frozen=True, slots=True)
class Options:
    """What `connect` was told, which explains it."""

    acknowledge: Literal["auto", "manual"] = "auto"
    resume: Checkpoint | None = None
    buffer: int = 1_000
    queue: int = 1_000
    connect_timeout_s: float | None = 10.0
    close_timeout_s: float = 5.0
    backoff: Backoff = field(default_factory=Backoff)
    tls: ssl.SSLContext | None = None
    clock: Clock = field(default_factory=SystemClock)
    chance: random.Random = field(default_factory=random.SystemRandom)

    def __post_init__(self) -> None:
        if self.buffer < 1 or self.queue < 1:
            raise ValueError("buffer and queue hold one at least")
