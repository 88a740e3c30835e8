"""A Spark job in a driver of its own, which can be killed together with its workers.

    with SparkDriver([sys.executable, "-m", "job"], log) as driver:
        driver.kill_repeatedly(3, Random(1), progress)
        driver.finish()

A driver is Spark's JVM and the Python process that started it; it is started again when it has been
killed or has failed. Python workers of a killed driver live on until they notice.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final, Self

from services.waiting import wait_until

RUN_S_MAX: Final = 240
PROGRESS_S_MAX: Final = 180
PAUSE_S_MAX: Final = 2

_TESTS: Final = Path(__file__).parents[1]
_DAEMON: Final = "kafscale.spark.runtime.worker_daemon"


class SparkDriver:
    """One job, over all of its drivers."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        self.starts = 0
        self.workers_killed = 0
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def kill(self) -> None:
        """Kill the driver, as by a loss of power, and start another one."""
        self._kill()
        self._start()

    def kill_worker(self, random: Random) -> None:
        """Kill a Python worker: that of a task, or of the commit of a micro-batch."""
        if workers := list(self._workers()):
            with suppress(ProcessLookupError):
                os.kill(random.choice(workers), signal.SIGKILL)
                self.workers_killed += 1

    def is_over(self) -> bool:
        """Whether the job has succeeded; a driver that failed is started again."""
        assert self._process is not None
        code = self._process.poll()
        if code:
            self._start()
        return code == 0

    def finish(self) -> None:
        """Wait until the job has succeeded."""
        deadline = time.monotonic() + RUN_S_MAX
        while not self.is_over():
            assert time.monotonic() < deadline, self.logged()
            time.sleep(0.1)

    def kill_repeatedly(self, times: int, random: Random, progress: Callable[[], int]) -> None:
        """Kill the driver and a worker in turn, each at a random moment after some progress."""
        for number in range(times):
            reached = progress()
            wait_until(
                lambda reached=reached: self.is_over() or progress() > reached,
                "progress",
                seconds_max=PROGRESS_S_MAX,
                seen=self.logged,
            )
            time.sleep(random.uniform(0, PAUSE_S_MAX))
            if number % 2:
                self.kill_worker(random)
            else:
                self.kill()

    def logged(self, characters_max: int = 6000) -> str:
        return self.log.read_text(errors="replace")[-characters_max:]

    def _start(self) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the command is our own.
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(_TESTS)},
                start_new_session=True,
            )
        self.starts += 1

    def _kill(self) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _workers(self) -> Iterator[int]:
        """The workers of the current driver: the processes that its daemon forked."""
        assert self._process is not None
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with suppress(OSError):
                    parent, session = _family(entry)
                    is_ours = _DAEMON.encode() in (entry / "cmdline").read_bytes()
                    if is_ours and session == self._process.pid:
                        parents[int(entry.name)] = parent
        return (process for process, parent in parents.items() if parent in parents)


def _family(process: Path) -> tuple[int, int]:
    """The parent and the session of a process."""
    _, parent, _, session, *_ = (process / "stat").read_text().rpartition(")")[2].split()
    return int(parent), int(session)
