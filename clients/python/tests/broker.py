"""A real broker, of its own for a test."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import threading
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROGRAM = Path(os.environ.get("NEARCAST", ROOT / "target/debug/nearcast"))
DEADLINE_S = 60.0


class Broker:
    """A broker on loopback, which can be killed and started again on the same port and data."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._folder = folder
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._address = "127.0.0.1:0"
        self.url = ""
        self.log: list[str] = []

    def start(self) -> Broker:
        command = [str(PROGRAM), "serve", "--listen", self._address, *self._arguments]
        self._process = subprocess.Popen(
            command, cwd=self._folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._lines = queue.Queue()
        threading.Thread(target=self._drain, args=(self._process, self._lines), daemon=True).start()
        prefix = "nearcast listens on "
        while True:
            line = self._lines.get(timeout=DEADLINE_S)
            assert line is not None, f"the broker ended:\n{''.join(self.log)}"
            if line.startswith(prefix):
                self.url = line.removeprefix(prefix).strip()
                self._address = self.url.partition("//")[2]
                return self

    def kill(self) -> None:
        """Ends it as a power cut would, as far as a process goes."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)
        shutil.rmtree(self._folder, ignore_errors=True)
        assert not any("panicked" in line for line in self.log), "".join(self.log)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(DEADLINE_S)
            self._process = None

    def _drain(self, process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self.log.append(line)
                lines.put(line)
        lines.put(None)
