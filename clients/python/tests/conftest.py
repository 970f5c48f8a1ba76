"""Fixtures of all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .broker import Broker


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Starts brokers, which end with the test."""
    started: list[Broker] = []

    def start(*arguments: str) -> Broker:
        folder = tmp_path / f"broker-{len(started)}"
        folder.mkdir()
        started.append(Broker(folder, *arguments).start())
        return started[-1]

    yield start
    for broker in started:
        broker.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker in memory that tests share, each by clients of its own."""
    started = Broker(tmp_path_factory.mktemp("broker")).start()
    yield started
    started.stop()


@pytest.fixture
def client(request: pytest.FixtureRequest) -> str:
    """A name that is this test's."""
    return str(request.node.nodeid)[-120:]
