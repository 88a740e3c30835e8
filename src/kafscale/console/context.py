"""The dependencies of API handlers."""

from dataclasses import dataclass
from functools import cached_property

from kafscale.admin.connection import ClusterConnections
from kafscale.config import Config
from kafscale.console.monitor.job_runs import JobRunCache
from kafscale.console.monitor.poller import ClusterMonitor


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
