"""Where a checkpoint is kept for the next process."""

from __future__ import annotations

import os
from pathlib import Path

from .messages import Checkpoint


class CheckpointFile:
    """Keeps a checkpoint in a file, which a crash leaves as it was before or as it is after. One process at a time writes it.

    `connect(.., resume=file.load())`, and `file.save(session.checkpoint)` once the message that was taken last is processed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def load(self) -> Checkpoint | None:
        """The checkpoint that was saved last; `None` where there is no file.

        Raises:
            ValueError: The file has something else.
            OSError: It cannot be read.
        """
        try:
            text = self._path.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None
        epoch, _, offset = text.rpartition(":")
        if not epoch or not offset.isdecimal():
            raise ValueError(f"{self._path}: a checkpoint is <epoch>:<offset>")
        return Checkpoint(epoch, int(offset))

    def save(self, checkpoint: Checkpoint | None) -> None:
        """Writes a checkpoint. `None`, of a session that had no connection yet, changes nothing.

        Raises:
            OSError: It cannot be written.
        """
        if checkpoint is None:
            return
        new = self._path.with_name(f"{self._path.name}.new")
        with new.open("w", encoding="ascii") as file:
            file.write(f"{checkpoint.epoch}:{checkpoint.offset}")
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
