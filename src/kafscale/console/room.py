"""What handlers of the API work with: the ways to the cluster, and what is watched of it."""

from dataclasses import dataclass

from kafscale.admin.reach import Reach
from kafscale.config import Config
from kafscale.console.watch.watch import Watch


@dataclass(frozen=True)
class Room:
    """Made once, when the console starts."""

    config: Config
    reach: Reach
    watch: Watch
