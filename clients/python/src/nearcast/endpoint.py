"""Where a broker is."""

from __future__ import annotations

import re
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


HOPS = 3
"""Brokers that one request is sent on to, at most: with more they send it round in circles."""
HOMES = 1_000
"""Clients whose brokers are remembered. Beyond that all are forgotten, and learned again."""


class Endpoints:
    """Where the brokers of a cluster are, and which of them serves a client. The one in use stays so until it is left."""

    def __init__(self, urls: str | Sequence[str]) -> None:
        """Reads one address, or several.

        Raises:
            ValueError: There is none, or one of them is none.
        """
        self._all = [Endpoint.of(url) for url in ([urls] if isinstance(urls, str) else urls)]
        if not self._all:
            raise ValueError("a broker has an address")
        self._at = 0
        self._homes: dict[str, Endpoint] = {}
        """Where clients are served, by their names as paths have them. These addresses need not be in the list."""
        self._tls: ssl.SSLContext | None = None

    def __len__(self) -> int:
        return len(self._all)

    def home(self, path: str) -> Endpoint | None:
        """The broker that serves the client of a path, where that is known."""
        return self._homes.get(_client(path))

    def of(self, path: str) -> Endpoint:
        """Where a request of this path goes: to the broker that serves its client, else to the one in use."""
        return self.home(path) or self._all[self._at]

    def learn(self, named_by: Endpoint, path: str, location: str | None) -> Endpoint | None:
        """Reads which broker another one names for a request of this path, and remembers that for the client.

        `None` where it names no broker, or where a token would leave TLS.
        """
        # Only the address is taken over, and the request stays the same.
        named, _, _ = (location or "").partition("?")
        own, _, _ = path.partition("?")
        try:
            home = Endpoint.of(named.removesuffix(own)) if named.endswith(own) else None
        except ValueError:
            home = None
        if home is None or (named_by.has_tls and not home.has_tls):
            return None
        client = _client(path)
        if client:
            if len(self._homes) >= HOMES:
                self._homes.clear()
            self._homes[client] = home
        return home

    def leave(self, endpoint: Endpoint) -> None:
        """Goes on to the next one, unless this one has been left already. Clients that were served there are looked for anew."""
        self._homes = {client: home for client, home in self._homes.items() if home != endpoint}
        if endpoint == self._all[self._at]:
            self._at = (self._at + 1) % len(self._all)

    def tls(self, given: ssl.SSLContext | None) -> ssl.SSLContext:
        """How the certificates of brokers with TLS are checked: as is given, or as the system does."""
        self._tls = given or self._tls or ssl.create_default_context()
        return self._tls


def _client(path: str) -> str:
    """The client of a path, as it is written there; nothing where there is none."""
    _, found, rest = path.partition("/v1/clients/")
    return re.split("[/?]", rest, maxsplit=1)[0] if found else ""


def _is_one(parts: SplitResult) -> bool:
    return parts.scheme in _SCHEMES and bool(parts.netloc) and not parts.query and not parts.fragment


def segment(name: str | float) -> str:
    """A name, or an id, as one segment of a path."""
    return quote(str(name), safe="")
