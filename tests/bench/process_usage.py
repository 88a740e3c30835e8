"""What a process takes from its machine, as the kernel counts it."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_CPU_FIELDS = slice(11, 15)  # utime, stime, cutime, cstime, counted from behind the name.


def cpu_seconds(process_id: int) -> float:
    """What the process, its threads and its ended children have used so far."""
    stat = Path(f"/proc/{process_id}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[_CPU_FIELDS]) / _TICKS_PER_SECOND


def resident_bytes(process_id: int) -> int:
    """How much of the machine's memory it holds."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(process_id)
