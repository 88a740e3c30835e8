"""Round-robin assignor: all partitions of all topics are assigned to the members in turn.

With equal subscriptions, partition i goes to member i modulo their number. A member that does not
subscribe to the topic is skipped until the next round.
"""

from itertools import cycle

from kafscale.groups.assignors.base import (
    Assignment,
    PartitionCounts,
    Subscriptions,
    Topic,
    subscribers,
)


def round_robin_assignment(
    subscriptions: Subscriptions[Topic], partition_counts: PartitionCounts[Topic]
) -> Assignment[Topic]:
    """Assign partitions in turn, topics and members in order.

    >>> round_robin_assignment({"a": ["x", "y"], "b": ["x", "y"]}, {"x": 3, "y": 1})
    {'a': {'x': [0, 2]}, 'b': {'x': [1], 'y': [0]}}
    """
    assignment: Assignment[Topic] = {member: {} for member in sorted(subscriptions)}
    turns = cycle(assignment)
    for topic, names in subscribers(subscriptions, partition_counts).items():
        readers = set(names)
        for partition in range(partition_counts[topic]):
            member = next(member for member in turns if member in readers)
            assignment[member].setdefault(topic, []).append(partition)
    return assignment
