"""Where a broker is."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

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
        if not _is_one(parts):
            hint = f": is http://{url} meant?" if "://" not in url and _is_one(urlsplit(f"http://{url}")) else ""
            raise ValueError(f"a broker is at http(s):// or ws(s)://host:port, not at {url!r}{hint}")
        http, ws = _SCHEMES[parts.scheme]
        path = parts.path.rstrip("/")
        return cls(urlunsplit((http, parts.netloc, path, "", "")), urlunsplit((ws, parts.netloc, path, "", "")))

    def tls(self, given: ssl.SSLContext | None) -> ssl.SSLContext | None:
        """How its certificate is checked: as is given, or as the system does; `None` where it speaks no TLS."""
        return (given or ssl.create_default_context()) if self.ws.startswith("wss:") else None


def _is_one(parts: SplitResult) -> bool:
    return parts.scheme in _SCHEMES and bool(parts.netloc) and not parts.query and not parts.fragment


def segment(name: str | float) -> str:
    """A name, or an id, as one segment of a path."""
    return quote(str(name), safe="")
