"""What a process takes from its machine, as the kernel counts it."""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_WATCH_S = 0.2
_OWN_CPU_FIELDS = slice(11, 13)
_CPU_FIELDS = slice(11, 15)  # utime, stime, cutime, cstime, counted from behind the name.


def cpu_seconds(process_id: int) -> float:
    """What the process, its threads and its ended children have used so far."""
    stat = Path(f"/proc/{process_id}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[_CPU_FIELDS]) / _TICKS_PER_SECOND


class FamilyUsage:
    """What this process and all that it has started use, while the block lasts.

    Processes come and go, and what those have used that are gone is not told by anybody for sure;
    so everybody is asked again and again.
    """

    def __init__(self) -> None:
        self._before: dict[int, float] = {}
        self._latest: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._before = _family_seconds()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._latest |= _family_seconds()

    @property
    def cpu_seconds(self) -> float:
        return sum(
            used - self._before.get(process_id, 0.0) for process_id, used in self._latest.items()
        )

    def _watch(self) -> None:
        while not self._ended.wait(_WATCH_S):
            self._latest |= _family_seconds()


def _family_seconds() -> dict[int, float]:
    """What each process of the family has used so far, without its children."""
    used: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            process_id = int(path.name)
            children.setdefault(int(fields[1]), []).append(process_id)
            used[process_id] = sum(map(int, fields[_OWN_CPU_FIELDS])) / _TICKS_PER_SECOND
    family = [os.getpid()]
    for process_id in family:  # It grows while it is gone through.
        family += children.get(process_id, [])
    return {process_id: used[process_id] for process_id in family if process_id in used}


def resident_bytes(process_id: int) -> int:
    """How much of the machine's memory it holds."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(process_id)
