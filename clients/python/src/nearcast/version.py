"""The version, as pyproject.toml says it."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("nearcast")

USER_AGENT = f"nearcast-python/{__version__}"
