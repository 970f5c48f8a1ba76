"""What the builders refuse, and the operators that stand for methods."""

from __future__ import annotations

import math

import pytest

from nearcast import Attribute, Condition, attr


def test_operators_are_the_methods() -> None:
    speed, limit = attr("speed"), 30
    for operator, method in [
        (speed == limit, speed.eq(limit)),
        (speed != limit, speed.ne(limit)),
        (speed < limit, speed.lt(limit)),
        (speed <= limit, speed.le(limit)),
        (speed > limit, speed.gt(limit)),
        (speed >= limit, speed.ge(limit)),
    ]:
        assert str(operator) == str(method)
    slow, fast = speed < limit, speed > limit
    assert str(slow | fast) == str(slow.or_(fast))
    assert str(slow & fast) == str(slow.and_(fast))
    assert str(~slow) == str(slow.not_())
    assert repr(slow) == "<Condition speed < 30>"


def test_a_condition_is_not_true_by_itself() -> None:
    with pytest.raises(TypeError, match="join conditions by"):
        bool(attr("a") == 1)
    with pytest.raises(TypeError, match="join conditions by"):
        1 < attr("a") < 5  # noqa: B015
    with pytest.raises(TypeError, match="unhashable"):
        {attr("a")}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_a_number_that_is_none(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        attr("a").eq(value)


@pytest.mark.parametrize("value", [None, [1], attr("b")])
def test_a_value_that_is_none(value: object) -> None:
    with pytest.raises(TypeError, match="compares with texts, numbers and truth values"):
        attr("a").eq(value)  # type: ignore[arg-type]


def test_a_list_of_nothing() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        attr("a").in_()


def test_types() -> None:
    assert isinstance(attr("a"), Attribute)
    assert isinstance(attr("a") == 1, Condition)
