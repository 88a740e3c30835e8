"""Uniform assignor: members get equally many partitions, and keep theirs if balance allows.

Invariants, the first before the second:

    balance      no member has two partitions more than another one that could take one of them;
                 with equal subscriptions, no member has two more than any other
    stickiness   a partition moves only if its owner no longer reads it, or for balance

Topics with the same subscribers form one pool of partitions. First each member keeps what it owns.
Then partitions without owner are assigned, always to the least loaded subscriber. Then members with
too many give some to members with too few. With equal subscriptions there is a single pool, and one
round makes the balance perfect.
"""

from collections.abc import Collection, Iterable, Mapping
from heapq import heapify, heapreplace
from typing import Final, Generic

from kafscale.groups.assignors.base import (
    Assignment,
    PartitionCounts,
    Subscriptions,
    Topic,
    subscribers,
)

ROUNDS_MAX: Final = 16
"""Overlapping pools disturb each other's balance; each round about halves the rest."""

Owned = Mapping[str, Mapping[Topic, Collection[int]]]


def uniform_assignment(
    subscriptions: Subscriptions[Topic],
    partition_counts: PartitionCounts[Topic],
    owned: Owned[Topic] | None = None,
) -> Assignment[Topic]:
    """Spread partitions evenly; `owned` is the current assignment.

    >>> uniform_assignment({"a": ["x"], "b": ["x"]}, {"x": 3}, owned={"b": {"x": [0, 1, 2]}})
    {'a': {'x': [2]}, 'b': {'x': [0, 1]}}
    """
    loads = dict.fromkeys(sorted(subscriptions), 0)
    in_order = {member: subscriptions[member] for member in loads}
    pools = _pools(in_order, partition_counts)
    _keep(pools, owned or {}, loads)
    by_size = sorted(pools, key=lambda pool: len(pool.held))
    for pool in by_size:
        pool.assign_free(loads)
    for _ in range(ROUNDS_MAX):
        if sum(pool.balance(loads) for pool in by_size) == 0:
            break
    return _collect(pools, loads)


class _Pool(Generic[Topic]):
    """The partitions of topics with the same subscribers."""

    __slots__ = ("free", "held")

    def __init__(self, readers: Iterable[str]) -> None:
        self.held: dict[str, list[tuple[Topic, int]]] = {member: [] for member in readers}
        self.free: set[tuple[Topic, int]] = set()

    def assign_free(self, loads: dict[str, int]) -> None:
        """Assign each free partition to the least loaded subscriber."""
        least_loaded = [(loads[member], member) for member in self.held]
        heapify(least_loaded)
        for partition in sorted(self.free):
            load, member = least_loaded[0]
            self.held[member].append(partition)
            loads[member] = load + 1
            heapreplace(least_loaded, (load + 1, member))

    def balance(self, loads: dict[str, int]) -> int:
        """Move partitions from the most to the least loaded members; return the number of moves.

        Only the top of each heap is kept up to date, which is enough: a giver has the most, so it
        never becomes the least loaded before all are balanced, nor does a taker become the most
        loaded.
        """
        least_loaded = [(loads[member], member) for member in self.held]
        most_loaded = [(-loads[member], member) for member, held in self.held.items() if held]
        heapify(least_loaded)
        heapify(most_loaded)
        moved_count = 0
        while most_loaded and -most_loaded[0][0] - least_loaded[0][0] > 1:
            (most, source), (least, target) = most_loaded[0], least_loaded[0]
            self.held[target].append(self.held[source].pop())
            loads[source] -= 1
            loads[target] += 1
            heapreplace(least_loaded, (least + 1, target))
            # A member with nothing of this pool left sinks to the bottom.
            heapreplace(most_loaded, (most + 1 if self.held[source] else 0, source))
            moved_count += 1
        return moved_count


def _pools(
    subscriptions: Subscriptions[Topic], partition_counts: PartitionCounts[Topic]
) -> list[_Pool[Topic]]:
    """All subscribed partitions by pool, none of them assigned yet."""
    pools: dict[tuple[str, ...], _Pool[Topic]] = {}
    for topic, readers in subscribers(subscriptions, partition_counts).items():
        pool = pools.get(readers)
        if pool is None:
            pool = pools[readers] = _Pool(readers)
        pool.free.update((topic, partition) for partition in range(partition_counts[topic]))
    return list(pools.values())


def _keep(pools: list[_Pool[Topic]], owned: Owned[Topic], loads: dict[str, int]) -> None:
    """Let each member keep what it owns, if it still subscribes to it and it exists."""
    pool_of = {topic: pool for pool in pools for topic, partition in pool.free if partition == 0}
    for member in loads:
        for topic, partitions in owned.get(member, {}).items():
            pool = pool_of.get(topic)
            if pool is None or member not in pool.held:
                continue
            for partition in sorted(partitions):
                if (topic, partition) in pool.free:
                    pool.free.remove((topic, partition))
                    pool.held[member].append((topic, partition))
                    loads[member] += 1


def _collect(pools: list[_Pool[Topic]], members: Iterable[str]) -> Assignment[Topic]:
    assignment: Assignment[Topic] = {member: {} for member in members}
    for pool in pools:
        for member, held in pool.held.items():
            for topic, partition in sorted(held):
                assignment[member].setdefault(topic, []).append(partition)
    return assignment
