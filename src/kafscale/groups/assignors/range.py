"""Range: every topic on its own is cut into contiguous ranges, one for each of its readers.

The first members get one partition more where they do not divide evenly. Because every topic is cut
in the same order of members, topics with equally many partitions and the same readers are
co-partitioned: whoever reads partition 3 of one reads partition 3 of the others, so that they can
be joined. Nothing is sticky but the order of the members.
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
    """Cut topics into ranges, members in the order of their ids.

    Static members, whose instance ids `instances` gives, come first and in the order of those: a
    member id is new after every restart, an instance id is not.

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
