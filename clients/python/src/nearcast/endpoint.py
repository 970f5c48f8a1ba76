"""Where a broker is."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
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

    @property
    def has_tls(self) -> bool:
        """Whether it speaks TLS."""
        return self.ws.startswith("wss:")


class Endpoints:
    """Where the brokers of a cluster are, of which one carries out requests. The one in use stays so until it is left."""

    def __init__(self, urls: str | Sequence[str]) -> None:
        """Reads one address, or several.

        Raises:
            ValueError: There is none, or one of them is none.
        """
        self._all = [Endpoint.of(url) for url in ([urls] if isinstance(urls, str) else urls)]
        if not self._all:
            raise ValueError("a broker has an address")
        self._at = 0

    def __len__(self) -> int:
        return len(self._all)

    @property
    def current(self) -> Endpoint:
        """The one in use."""
        return self._all[self._at]

    def leave(self, endpoint: Endpoint) -> None:
        """Goes on to the next one, unless this one has been left already."""
        if endpoint is self.current:
            self._at = (self._at + 1) % len(self._all)

    def tls(self, given: ssl.SSLContext | None) -> ssl.SSLContext | None:
        """How certificates are checked: as is given, or as the system does; `None` where none of them speaks TLS."""
        return (given or ssl.create_default_context()) if any(endpoint.has_tls for endpoint in self._all) else None


def _is_one(parts: SplitResult) -> bool:
    return parts.scheme in _SCHEMES and bool(parts.netloc) and not parts.query and not parts.fragment


def segment(name: str | float) -> str:
    """A name, or an id, as one segment of a path."""
    return quote(str(name), safe="")
