"""The contract's vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "contract/vectors"


def vectors(name: str) -> Any:
    """A file of vectors."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def each(cases: list[dict[str, Any]]) -> pytest.MarkDecorator:
    """A test for each of them, as its argument `vector`."""
    return pytest.mark.parametrize("vector", [pytest.param(case, id=case["name"]) for case in cases])
