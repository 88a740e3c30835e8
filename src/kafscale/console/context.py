"""The dependencies of API handlers."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from kafscale.admin import jobs
from kafscale.admin.connection import ClusterConnections
from kafscale.aio.clock import clock
from kafscale.config import Config
from kafscale.console.monitor.poller import ClusterMonitor
from kafscale.storage.job_runs import JobRun

CACHE_SECONDS: Final = 15.0
READ_SECONDS_MAX: Final = 20.0


@dataclass
class JobRunCache:
    """Caches the runs of pipeline jobs, to limit reads of the bucket.

    Concurrent callers wait for one read.
    """

    connections: ClusterConnections
    _runs: dict[str, list[JobRun]] = field(default_factory=dict)
    _read_at: float = float("-inf")
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def by_job(self) -> dict[str, Sequence[JobRun]]:
        """The runs of each job, newest first."""
        async with self._lock:
            if time.monotonic() - self._read_at > CACHE_SECONDS:
                async with asyncio.timeout(READ_SECONDS_MAX):
                    self._runs = await jobs.recent_runs(self.connections, clock())
                self._read_at = time.monotonic()
            return dict(self._runs)


@dataclass(frozen=True)
class ApiContext:
    """Created once, when the console starts."""

    config: Config
    connections: ClusterConnections
    monitor: ClusterMonitor

    @cached_property
    def job_runs(self) -> JobRunCache:
        """The runs of pipeline jobs."""
        return JobRunCache(self.connections)
