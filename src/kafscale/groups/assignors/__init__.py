"""Who of a group reads which partition: pure functions, for the coordinator and for clients.

All of them take who subscribes to what and how many partitions there are, and answer with the
partitions of every member. A topic is named by whatever the caller knows it by, its name or its id.
"""

from kafscale.groups.assignors.range import range_assignment
from kafscale.groups.assignors.round_robin import round_robin_assignment
from kafscale.groups.assignors.uniform import uniform_assignment

__all__ = ["range_assignment", "round_robin_assignment", "uniform_assignment"]
