"""Round-robin: all partitions of all topics are dealt out like cards, one to each member in turn.

With equal subscriptions, partition i goes to member i modulo their count. A member that does not
read the topic at hand is passed over, and is the next one to be asked again only a round later.
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
    """Deal out partitions, topics and members in order.

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
