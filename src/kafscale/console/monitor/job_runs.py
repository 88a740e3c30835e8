"""The runs of jobs, read from the bucket not more often than anybody could tell the difference."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kafscale.admin import jobs
from kafscale.admin.connection import Reach
from kafscale.storage.job_runs import JobRun

KEPT_SECONDS: Final = 15.0
READ_SECONDS_MAX: Final = 20.0


@dataclass
class RecentRuns:
    """Made once; whoever comes while they are read waits for that, and does not read again."""

    reach: Reach
    _runs: dict[str, list[JobRun]] = field(default_factory=dict)
    _read_at: float = float("-inf")
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def by_job(self) -> dict[str, Sequence[JobRun]]:
        """The runs of every job, the newest first."""
        async with self._reading:
            if time.monotonic() - self._read_at > KEPT_SECONDS:
                async with asyncio.timeout(READ_SECONDS_MAX):
                    self._runs = await jobs.recent_runs(self.reach, _clock_ms())
                self._read_at = time.monotonic()
            return dict(self._runs)


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000
