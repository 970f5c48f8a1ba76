"""What the README shows runs, as it stands there."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import nearcast
from nearcast import Filter, event

from .broker import Broker
from .scripted import within

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text()
BLOCKS = re.findall(r"^(?:<!-- (\S+) -->\n)?```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
SAMPLES = {name: code for name, code in BLOCKS if name}
PROGRAMS = [code for name, code in BLOCKS if not name and code.startswith("import ")]
SNIPPETS = [code for name, code in BLOCKS if not name and not code.startswith("import ")]
PRINTED = {
    name: re.findall(r"`([^`]+)`", cell)
    for name, cell in re.findall(r"^\| \[(\w+)\]\(samples/\1\.py\) \|.*\| (`.*`) \|$", README, re.MULTILINE)
}
"""What the README's table says that each sample prints."""


def run(*command: str | Path, url: str = "http://127.0.0.1:1") -> list[str]:
    """Runs a program as its reader would."""
    command = (sys.executable, "-W", "error", *command)
    environment = {**os.environ, "NEARCAST_URL": url}
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_readme_has_each_sample() -> None:
    samples = {f"samples/{sample.name}": sample.read_text() for sample in (PROJECT / "samples").glob("*.py")}
    assert samples == SAMPLES
    assert {f"samples/{name}.py" for name in PRINTED} == set(samples)


@pytest.mark.timeout(300)
def test_the_samples_print_what_the_readme_promises(brokers: Callable[..., Broker]) -> None:
    """Each before and after each other one, and after itself; and they leave nothing behind."""
    url = brokers("--data", "data").url
    for name, expected in PRINTED.items():
        assert run(PROJECT / f"samples/{name}.py", url) == expected
    for name, expected in reversed(PRINTED.items()):
        assert run(PROJECT / f"samples/{name}.py", url=url) == expected
    assert httpx.get(f"{url}/v1/clients").json() == {"clients": []}
    assert httpx.get(f"{url}/v1/events").json()["features"] == []


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program(broker: Broker, program: str) -> None:
    assert run("-c", program.replace("http://127.0.0.1:7070", broker.url))


@pytest.mark.parametrize("snippet", SNIPPETS, ids=[snippet.splitlines()[0] for snippet in SNIPPETS])
async def test_a_snippet(broker: Broker, client: str, snippet: str) -> None:
    """In a coroutine, with a session to which something has come already."""
    names: dict[str, Any] = {
        "asyncio": asyncio,
        "nearcast": nearcast,
        **{name: getattr(nearcast, name) for name in nearcast.__all__},
    }
    tree = compile(
        snippet.replace("http://127.0.0.1:7070", broker.url), "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    printed = io.StringIO()
    async with nearcast.connect(broker.url, client) as session:
        await session.move([9.19, 45.46])
        await session.subscribe("first", Filter())
        await session.publish(event([9.19, 45.46], {"hello": "world"}))
        names["session"] = session
        with contextlib.redirect_stdout(printed):
            running = eval(tree, names)  # noqa: S307
            task = asyncio.ensure_future(running) if inspect.isawaitable(running) else None
            if task is not None and "async for" in snippet:
                # It would go on for as long as there is a session.
                while not printed.getvalue() and not task.done():
                    await asyncio.sleep(0.005)
                await session.close()
            if task is not None:
                await within(task)
    assert bool(printed.getvalue()) == ("print(" in snippet)


def test_there_is_something_to_run() -> None:
    assert len(SAMPLES) == 5
    assert PROGRAMS
    assert len(SNIPPETS) > 10
