"""What a process takes from its machine, as the kernel counts it."""

import os
from contextlib import suppress
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_CPU_FIELDS = slice(11, 15)  # utime, stime, cutime, cstime, counted from behind the name.


def cpu_seconds(process_id: int) -> float:
    """What the process, its threads and its ended children have used so far."""
    stat = Path(f"/proc/{process_id}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[_CPU_FIELDS]) / _TICKS_PER_SECOND


def tree_cpu_seconds() -> float:
    """What this process and all that it has started have used so far, and those they started."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(path.name))
    family = [os.getpid()]
    for process_id in family:  # It grows while it is gone through.
        family += children.get(process_id, [])
    total = 0.0
    for process_id in family:
        with suppress(FileNotFoundError, ProcessLookupError):
            total += cpu_seconds(process_id)
    return total


def resident_bytes(process_id: int) -> int:
    """How much of the machine's memory it holds."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(process_id)
