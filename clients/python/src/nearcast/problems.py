"""Problem documents (RFC 9457): what the broker says when it refuses something."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

PREFIX = "urn:nearcast:problem:"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a document."""

    pointer: str
    """Where, as a JSON pointer (RFC 6901); empty for the document itself."""
    detail: str
    """What is wrong there."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the broker refused something."""

    type: str
    """A URN that names the kind of problem."""
    status: int
    """The HTTP status that it has, or would have."""
    title: str
    """The kind in words."""
    detail: str | None = None
    """What happened this time."""
    errors: tuple[Fault, ...] = ()
    """The faults of a document, each where it is."""
    limit: int | float | None = None
    """The limit that was passed."""
    setting: str | None = None
    """The broker's setting that says so."""
    links: tuple[Mapping[str, str], ...] = ()
    """Of the code `inconsistent`: with which events the refused one does not fit, their ids by variable of the check."""
    check: str | None = None
    """Of the same code: the name of the check that refused it."""
    retry_after_s: float | None = None
    """How long to wait before trying again, of the header `Retry-After`."""
    location: str | None = None
    """The same request at the broker that carries it out, of the code `elsewhere`. It is followed; what is left is what leads nowhere."""
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """All of it as it came, further members included."""

    @property
    def code(self) -> str:
        """The last part of `type`: `invalid-document` of `urn:nearcast:problem:invalid-document`."""
        return self.type.removeprefix(PREFIX)

    def __str__(self) -> str:
        # The detail says no more than the faults do, where there are some.
        faults = "; ".join(f"{fault.pointer}: {fault.detail}" for fault in self.errors)
        words = faults or self.detail
        return f"{self.title}: {words}" if words else self.title


def read_problem(document: Mapping[str, Any], status: int | None = None, retry_after_s: float | None = None) -> Problem:
    """Reads a problem document, as far as it is one: members of other types than they should have count as absent.

    Args:
        document: The document.
        status: That of the HTTP answer, which counts whatever the document says; over a WebSocket there is none.
        retry_after_s: What the answer said of when to try again.
    """
    stated = _member(document, "status", int) or 0 if status is None else status
    return Problem(
        type=_member(document, "type", str) or "about:blank",
        status=stated,
        title=_member(document, "title", str) or f"HTTP {stated}",
        detail=_member(document, "detail", str),
        errors=tuple(
            Fault(str(fault.get("pointer", "")), str(fault.get("detail", "")))
            for fault in _member(document, "errors", list) or []
            if isinstance(fault, dict)
        ),
        limit=_member(document, "limit", (int, float)),
        setting=_member(document, "setting", str),
        links=tuple(link for link in _member(document, "links", list) or [] if isinstance(link, dict)),
        check=_member(document, "check", str),
        retry_after_s=retry_after_s,
        document=document,
    )


def read_answer(status: int, headers: Mapping[str, str], body: bytes) -> Problem:
    """Reads the problem of an HTTP answer. What is no problem document, such as a proxy's page, becomes one by its status.

    Args:
        status: The answer's.
        headers: Its headers, by names in small letters.
        body: Its body.
    """
    document: Any = None
    if headers.get("content-type", "").partition(";")[0].strip().lower() == "application/problem+json":
        with contextlib.suppress(ValueError):
            document = json.loads(body)
    problem = read_problem(document if isinstance(document, dict) else {}, status, _seconds(headers.get("retry-after")))
    return replace(problem, location=headers.get("location")) if problem.code == "elsewhere" else problem


def _member(document: Mapping[str, Any], name: str, kind: Any) -> Any:
    value = document.get(name)
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def _seconds(header: str | None) -> float | None:
    """`Retry-After` in seconds; the date that a proxy may send in their place is not read."""
    return float(header) if header and header.isascii() and header.isdigit() else None
