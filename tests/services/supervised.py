"""A program that is started again whenever it exits, as by a supervisor.

with SupervisedProcess(["java", ...], log) as process:
    process.kill()
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

RESTART_S: Final = 0.2
WAIT_S_MAX: Final = 120


class SupervisedProcess:
    """One program; its output, over all starts, is in `log`."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self.log = log
        self.starts = 0
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._restart_when_exited)

    def __enter__(self) -> Self:
        self._start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def kill(self) -> None:
        """Kill the process; it is started again soon."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)

    def logged(self, characters_max: int = 6000) -> str:
        return self.log.read_text(errors="replace")[-characters_max:]

    def count(self, word: str) -> int:
        """How many lines begin with a word."""
        lines = self.log.read_text(errors="replace").splitlines()
        return sum(line.startswith(word) for line in lines)

    def wait_for(self, word: str, more: int) -> None:
        """Wait until that many more lines begin with a word."""
        enough = self.count(word) + more
        deadline = time.monotonic() + WAIT_S_MAX
        while self.count(word) < enough:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {more} lines {word!r}: {self.logged()}")
            time.sleep(0.05)

    def _start(self) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the command is our own.
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ},
            )
        self.starts += 1

    def _restart_when_exited(self) -> None:
        while not self._is_over.wait(RESTART_S):
            assert self._process is not None
            if self._process.poll() is not None:
                self._start()
