"""Range assignor: each topic is split into contiguous ranges, one for each subscriber.

The first members get one partition more if they do not divide evenly. Because every topic is split
in the same order of members, topics with equal partition counts and subscribers are co-partitioned:
the member that reads partition 3 of one reads partition 3 of the others, so that they can be
joined. Only the order of the members is sticky.
"""

from collections.abc import Mapping

from kafscale.groups.assignors.base import (
    Assignment,
    PartitionCounts,
    Subscriptions,
    Topic,
    subscribers,
)


def range_assignment(
    subscriptions: Subscriptions[Topic],
    partition_counts: PartitionCounts[Topic],
    instances: Mapping[str, str] | None = None,
) -> Assignment[Topic]:
    """Split topics into ranges, members in the order of their ids.

    Static members, whose instance ids `instances` gives, come first and in the order of those: a
    member id changes with every restart, an instance id does not.

    >>> range_assignment({"b": ["x", "y"], "a": ["x"]}, {"x": 3, "y": 2})
    {'a': {'x': [0, 1]}, 'b': {'x': [2], 'y': [0, 1]}}
    """
    instance_of = instances or {}
    in_order = sorted(
        subscriptions,
        key=lambda member: (member not in instance_of, instance_of.get(member, member)),
    )
    assignment: Assignment[Topic] = {member: {} for member in in_order}
    ordered = {member: subscriptions[member] for member in in_order}
    for topic, readers in subscribers(ordered, partition_counts).items():
        quota, extra_count = divmod(partition_counts[topic], len(readers))
        start = 0
        for index, member in enumerate(readers):
            end = start + quota + (index < extra_count)
            if start < end:
                assignment[member][topic] = list(range(start, end))
            start = end
    return assignment
