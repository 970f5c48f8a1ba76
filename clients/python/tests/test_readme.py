"""What the README shows runs, as it stands there."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    "publish": ["near: {'type': 'accident', 'severity': 3} at [9.1901, 45.465]"],
    "moving_area": ["moved: roadworks 1", "moved: roadworks 2", "moved: roadworks 3"],
    "resume": ["here: Event(offset=1", "missed: Event(offset=2", "missed: Event(offset=3"],
    "transitions": ["enter: line 7", "exit: line 7"],
}


def run(code: str, *arguments: str) -> list[str]:
    """Runs a program as its reader would."""
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("sample", sorted((PROJECT / "samples").glob("*.py")), ids=lambda sample: sample.stem)
def test_a_sample(broker: Broker, sample: Path) -> None:
    assert SAMPLES[f"samples/{sample.name}"] == sample.read_text()
    printed = run(sample.read_text(), broker.url)
    expected = PRINTED[sample.stem]
    assert [line[: len(start)] for line, start in zip(printed, expected, strict=True)] == expected


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program(broker: Broker, program: str) -> None:
    assert run(program.replace("http://localhost:7070", broker.url))


@pytest.mark.parametrize("snippet", SNIPPETS, ids=[snippet.splitlines()[0] for snippet in SNIPPETS])
async def test_a_snippet(broker: Broker, client: str, snippet: str) -> None:
    """In a coroutine, with a session to which something has come already."""
    names: dict[str, Any] = {
        "asyncio": asyncio,
        "nearcast": nearcast,
        **{name: getattr(nearcast, name) for name in nearcast.__all__},
    }
    tree = compile(
        snippet.replace("http://localhost:7070", broker.url), "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
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
    assert len(SAMPLES) == 4
    assert PROGRAMS
    assert len(SNIPPETS) > 10
