"""A stranger's ten minutes: the wheel, installed where nothing else is, runs the README's first sample."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from .broker import Broker
from .test_readme import PRINTED, PROJECT, SAMPLES


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(200)
def test_the_first_sample_from_the_wheel(broker: Broker, tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, cwd=PROJECT)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "README.md",
        "CHANGELOG.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "samples/resume.py",
        "src/nearcast/py.typed",
    } <= packed
    with zipfile.ZipFile(wheel) as archive:
        assert "nearcast/py.typed" in archive.namelist()

    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    (tmp_path / "first.py").write_text(SAMPLES["samples/publish.py"])
    assert run(python, "first.py", broker.url, cwd=tmp_path).splitlines() == PRINTED["publish"]
