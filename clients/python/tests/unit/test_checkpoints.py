"""A checkpoint is kept for the next process."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearcast import Checkpoint, CheckpointFile


def test_a_checkpoint_outlives_its_process(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    assert CheckpointFile(path).load() is None
    CheckpointFile(path).save(Checkpoint("e:1", 7))
    CheckpointFile(path).save(None)
    CheckpointFile(path).save(Checkpoint("e:1", 9))
    assert CheckpointFile(str(path)).load() == Checkpoint("e:1", 9)
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]


@pytest.mark.parametrize("text", ["", "7", ":7", "e1:", "e1:-7", "e1:x"])
def test_something_else_is_no_checkpoint(tmp_path: Path, text: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(text)
    with pytest.raises(ValueError, match="a checkpoint is"):
        CheckpointFile(path).load()
