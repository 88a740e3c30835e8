"""Partition assignors: pure functions, for the coordinator and for clients.

They take the subscriptions and the partition counts, and return the partitions of every member. A
topic is identified by whatever the caller uses, its name or its id.
"""

from kafscale.groups.assignors.base import Assignor
from kafscale.groups.assignors.range import range_assignment
from kafscale.groups.assignors.round_robin import round_robin_assignment
from kafscale.groups.assignors.uniform import uniform_assignment

__all__ = ["Assignor", "range_assignment", "round_robin_assignment", "uniform_assignment"]
