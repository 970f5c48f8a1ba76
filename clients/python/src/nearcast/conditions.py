"""A builder for conditions, which writes CQL2 text.

    (attr("severity") >= 2) & attr("type").in_("fire", "flood")
    attr("severity").ge(2).and_(attr("type").in_("fire", "flood"))

are the same. What a condition means is in docs/semantics.md: an attribute that is not there makes a constraint unknown, and only what is
true matches.
"""

from __future__ import annotations

import json
import re
import sys
from enum import IntEnum
from typing import NoReturn

Value = str | int | float | bool
"""What attributes are compared with: a text, a number (a 64-bit float at the broker) or a truth value."""

KEYWORDS = frozenset(("and", "or", "not", "between", "in", "like", "is", "null", "true", "false", "casei"))

# CQL2 takes many more letters without quotes; in quotes every name is a name.
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


class _Binds(IntEnum):
    """How strongly the outermost operator of a condition binds."""

    OR = 0
    AND = 1
    NOT = 2
    CONSTRAINT = 3


class Condition:
    """A condition on the attributes of an event. `str()` of it is CQL2 text."""

    __slots__ = ("_binds", "_text")

    def __init__(self, text: str, binds: _Binds) -> None:
        self._text = text
        self._binds = binds

    def and_(self, *others: Condition) -> Condition:
        """True when this one and all others are."""
        return _joined(_Binds.AND, (self, *others))

    def or_(self, *others: Condition) -> Condition:
        """True when this one or one of the others is."""
        return _joined(_Binds.OR, (self, *others))

    def not_(self) -> Condition:
        """True when this one is false; unknown, and so without a match, when this one is."""
        return Condition(f"NOT {self._inside(_Binds.CONSTRAINT)}", _Binds.NOT)

    def __and__(self, other: Condition) -> Condition:
        return self.and_(other)

    def __or__(self, other: Condition) -> Condition:
        return self.or_(other)

    def __invert__(self) -> Condition:
        return self.not_()

    def __bool__(self) -> NoReturn:
        # `a and b` and `1 < attr("x") < 5` would silently drop a half.
        raise TypeError("a condition is true or false of an event only: join conditions by & | ~, or and_ or_ not_")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Condition {self._text}>"

    def _inside(self, binds: _Binds) -> str:
        return f"({self._text})" if self._binds < binds else self._text


class Attribute:
    """An attribute of events; members of nested objects have names joined by dots. Made by `attr`."""

    __slots__ = ("_folded", "_name")
    __hash__ = None  # type: ignore[assignment] # `==` makes a condition, so that it cannot be a key

    def __init__(self, name: str, *, folded: bool = False) -> None:
        self._name = name
        self._folded = folded

    def casei(self) -> Attribute:
        """The attribute without regard to case; what it is compared with is folded, too."""
        return Attribute(self._name, folded=True)

    def eq(self, value: Value) -> Condition:
        """`=`"""
        return self._compared("=", value)

    def ne(self, value: Value) -> Condition:
        """`<>`: unknown where the attribute is not there or of another type."""
        return self._compared("<>", value)

    def lt(self, value: Value) -> Condition:
        """`<`"""
        return self._compared("<", value)

    def le(self, value: Value) -> Condition:
        """`<=`"""
        return self._compared("<=", value)

    def gt(self, value: Value) -> Condition:
        """`>`"""
        return self._compared(">", value)

    def ge(self, value: Value) -> Condition:
        """`>=`"""
        return self._compared(">=", value)

    def between(self, low: Value, high: Value) -> Condition:
        """`low <= attribute <= high`, of one element of an array."""
        return self._constraint(f"BETWEEN {self._value(low)} AND {self._value(high)}")

    def in_(self, *values: Value) -> Condition:
        """One of the values; at least one is given."""
        if not values:
            raise ValueError("IN has at least one value")
        return self._constraint(f"IN ({', '.join(map(self._value, values))})")

    def like(self, pattern: str) -> Condition:
        r"""The whole text fits: `%` is any number of characters, `_` is one, `\` takes the next one literally."""
        return self._constraint(f"LIKE {self._value(pattern)}")

    def is_null(self) -> Condition:
        """The attribute is not there."""
        return self._constraint("IS NULL")

    def is_not_null(self) -> Condition:
        """The attribute is there."""
        return self._constraint("IS NOT NULL")

    def __eq__(self, value: Value) -> Condition:  # type: ignore[override]
        return self.eq(value)

    def __ne__(self, value: Value) -> Condition:  # type: ignore[override]
        return self.ne(value)

    def __lt__(self, value: Value) -> Condition:
        return self.lt(value)

    def __le__(self, value: Value) -> Condition:
        return self.le(value)

    def __gt__(self, value: Value) -> Condition:
        return self.gt(value)

    def __ge__(self, value: Value) -> Condition:
        return self.ge(value)

    def __repr__(self) -> str:
        return f"<Attribute {self._name}>"

    def _compared(self, operator: str, value: Value) -> Condition:
        return self._constraint(f"{operator} {self._value(value)}")

    def _constraint(self, rest: str) -> Condition:
        name = _written_name(self._name)
        return Condition(f"CASEI({name}) {rest}" if self._folded else f"{name} {rest}", _Binds.CONSTRAINT)

    def _value(self, value: Value) -> str:
        written = _written_value(value)
        return f"CASEI({written})" if self._folded and isinstance(value, str) else written


def attr(name: str) -> Attribute:
    """The attribute of that name, of which conditions are made: `attr("road.name") == "A4"`."""
    return Attribute(name)


def _joined(binds: _Binds, parts: tuple[Condition, ...]) -> Condition:
    if len(parts) == 1:
        return parts[0]
    return Condition(f" {binds.name} ".join(part._inside(binds) for part in parts), binds)


def _written_name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def _written_value(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        # A backslash before a quote would escape it. U&'..' has a spelling for backslashes, too.
        if value.endswith("\\") or "\\'" in value:
            return "U&'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, int | float):
        if not -sys.float_info.max <= value <= sys.float_info.max:
            raise ValueError("a condition compares with finite 64-bit floats only")
        return json.dumps(value)
    raise TypeError(f"a condition compares with texts, numbers and truth values, not with {type(value).__name__}")
