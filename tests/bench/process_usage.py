"""CPU time and memory of processes, as the kernel counts them."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_WATCH_S = 0.2
_OWN_CPU_FIELDS = slice(11, 13)
_CPU_FIELDS = slice(11, 15)  # utime, stime, cutime, cstime, counted from after the name.


def cpu_seconds(process_id: int) -> float:
    """The CPU time of a process, its threads and its exited children."""
    stat = Path(f"/proc/{process_id}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[_CPU_FIELDS]) / _TICKS_PER_SECOND


class ProcessTreeUsage:
    """The CPU time of this process and its descendants during the block.

    The CPU time of exited descendants is not always available later, so it is sampled.
    """

    def __init__(self) -> None:
        self._before: dict[int, float] = {}
        self._latest: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._before = _tree_seconds()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._latest |= _tree_seconds()

    @property
    def cpu_seconds(self) -> float:
        return sum(
            used - self._before.get(process_id, 0.0) for process_id, used in self._latest.items()
        )

    def _watch(self) -> None:
        while not self._ended.wait(_WATCH_S):
            self._latest |= _tree_seconds()


def _tree_seconds() -> dict[int, float]:
    """The CPU time of each process of the tree, without its children."""
    used: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            process_id = int(path.name)
            children.setdefault(int(fields[1]), []).append(process_id)
            used[process_id] = sum(map(int, fields[_OWN_CPU_FIELDS])) / _TICKS_PER_SECOND
    tree = [os.getpid()]
    for process_id in tree:  # The list grows during the iteration.
        tree += children.get(process_id, [])
    return {process_id: used[process_id] for process_id in tree if process_id in used}


def resident_bytes(process_id: int) -> int:
    """The resident memory of a process."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(process_id)
