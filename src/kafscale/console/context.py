"""What handlers of the API work with: the ways to the cluster, and what is watched of it."""

from dataclasses import dataclass
from functools import cached_property

from kafscale.admin.connection import Reach
from kafscale.config import Config
from kafscale.console.monitor.job_runs import RecentRuns
from kafscale.console.monitor.poller import Watch


@dataclass(frozen=True)
class Room:
    """Made once, when the console starts."""

    config: Config
    reach: Reach
    watch: Watch

    @cached_property
    def runs(self) -> RecentRuns:
        """Of the jobs of the pipeline."""
        return RecentRuns(self.reach)
