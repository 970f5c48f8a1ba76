"""When a broker is tried again."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from nearcast import Backoff, ClosedError, ProblemError, TimedOutError, UnreachableError
from nearcast.backoff import Waits, is_away
from nearcast.problems import Problem


class Share(random.Random):
    """Always the same share of what there may be."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self._share = share

    def uniform(self, a: float, b: float) -> float:
        return a + self._share * (b - a)


def tries(outage_s: float, *, away: bool) -> list[float]:
    """When it is tried within an outage, where each wait is as long as it may be."""
    waits = Waits(Backoff(), Share(1))
    tried: list[float] = []
    now_s = waits.next(away=away)
    while now_s <= outage_s:
        tried.append(now_s)
        now_s += waits.next(away=away)
    return tried


def test_a_broker_that_is_away_is_tried_every_three_seconds_for_a_minute() -> None:
    assert tries(20, away=True) == [1, 3, 6, 9, 12, 15, 18]
    later = [63, 69, 81, 105, 135, 165, 195, 225, 255, 285]
    assert tries(300, away=True) == [1, *range(3, 61, 3), *later]


def test_a_broker_that_has_too_much_to_do_is_tried_less_and_less_often() -> None:
    assert tries(20, away=False) == [1, 3, 7, 15]
    assert tries(300, away=False) == [1, 3, 7, 15, 31, 61, 91, 121, 151, 181, 211, 241, 271]


def test_ten_thousand_clients_are_back_within_seconds_of_a_takeover() -> None:
    chance = random.Random(1)
    back_s: list[float] = []
    attempts: Counter[int] = Counter()
    for _ in range(10_000):
        waits = Waits(Backoff(), chance)
        now_s = 0.0
        while now_s < 9:  # The standby is ready then.
            now_s += waits.next(away=True)
            attempts[int(now_s)] += 1
        back_s.append(now_s)
    back_s.sort()
    assert back_s[5000] < 10
    assert back_s[9900] < 11.8
    assert back_s[-1] < 12
    assert max(attempts.values()) < 13_000
    assert max(count for second, count in attempts.items() if second >= 9) < 6000


def test_each_wait_is_random_up_to_its_bound() -> None:
    chance = random.Random(2)
    outages = [Waits(Backoff(), chance) for _ in range(2000)]
    for bound_s in [1, 2, 3, 3]:
        waits = [outage.next(away=True) for outage in outages]
        assert 0 <= min(waits) < bound_s * 0.02
        assert bound_s * 0.98 < max(waits) < bound_s


def test_no_wait_is_shorter_than_the_broker_asked_for_and_the_application_sets_the_bounds() -> None:
    waits = Waits(Backoff(base_s=1, cap_s=4), Share(0.9))
    assert waits.next(away=True, retry_after_s=5) == 5
    assert waits.next(away=True) == 1.8
    assert waits.next(away=False, retry_after_s=1) == 2.7
    waits.reset()
    assert waits.next(away=True) == 0.9
    slow = Waits(Backoff(base_s=60, cap_s=60), Share(1))
    assert [slow.next(away=True) for _ in range(2)] == [60, 60]
    quick = Waits(Backoff(base_s=0.1, cap_s=0.2), Share(1))
    assert [quick.next(away=True) for _ in range(3)] == [0.1, 0.2, 0.2]


def test_a_broker_that_was_too_busy_and_then_is_away_is_tried_soon() -> None:
    waits = Waits(Backoff(), Share(1))
    away = [False, False, False, False, True, True, False]
    assert [waits.next(away=value) for value in away] == [1, 2, 4, 8, 3, 3, 3]


def problem(status: int, code: str) -> ProblemError:
    return ProblemError(Problem(f"urn:nearcast:problem:{code}", status, "not now"))


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (UnreachableError("refused"), True),
        (ClosedError(1001, "the broker is stopping"), True),
        (ClosedError(1013, "overflow"), False),
        (ClosedError(4401, "the token has ended"), False),
        (TimedOutError("no answer"), True),
        (problem(503, "recovering"), True),
        (problem(503, "stopping"), True),
        (problem(503, "storage"), True),
        (problem(307, "elsewhere"), True),
        (problem(502, "about:blank"), True),
        (problem(503, "limit-reached"), False),
        (problem(429, "overloaded"), False),
        (problem(429, "too-many-events"), False),
        (problem(500, "internal"), False),
        (ValueError("something else"), False),
    ],
)
def test_a_broker_is_away(error: Exception, away: bool) -> None:
    assert is_away(error) is away
