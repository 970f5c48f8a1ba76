"""Where a broker is."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import quote, urlsplit, urlunsplit

_SCHEMES = {"http": ("http", "ws"), "https": ("https", "wss"), "ws": ("http", "ws"), "wss": ("https", "wss")}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The two addresses of a broker, without a slash at their ends."""

    http: str
    ws: str

    @classmethod
    def of(cls, url: str) -> Endpoint:
        """Reads `http://..`, `https://..`, `ws://..` or `wss://..`; a path before `/v1` stays.

        Raises:
            ValueError: It is none of these.
        """
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not parts.netloc or parts.query or parts.fragment:
            raise ValueError(f"a broker is at http(s):// or ws(s)://host:port, not at {url!r}")
        http, ws = _SCHEMES[parts.scheme]
        path = parts.path.rstrip("/")
        return cls(urlunsplit((http, parts.netloc, path, "", "")), urlunsplit((ws, parts.netloc, path, "", "")))

    def tls(self, given: ssl.SSLContext | None) -> ssl.SSLContext | None:
        """How its certificate is checked: as is given, or as the system does; `None` where it speaks no TLS."""
        return (given or ssl.create_default_context()) if self.ws.startswith("wss:") else None


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")
