"""Uniform: everybody gets equally many partitions, and keeps what it has as far as that allows.

The laws, the first before the second:

    balance      no member has two partitions more than another one that could take one of them;
                 with equal subscriptions, nobody has two more than anybody
    stickiness   a partition moves only if its owner no longer reads it, or for the sake of balance

Topics that the same members read are alike to the assignor, and make up one pool of partitions.
First everybody keeps what it owns; then what nobody owns is dealt out, always to the reader with
the least; then whoever has too much gives some to whoever has too little. Where all subscribe to
the same, there is a single pool, and one round of giving makes the balance perfect.
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
"""Pools that overlap disturb each other's balance; each round about halves what is left of it."""

Owned = Mapping[str, Mapping[Topic, Collection[int]]]


def uniform_assignment(
    subscriptions: Subscriptions[Topic],
    partition_counts: PartitionCounts[Topic],
    owned: Owned[Topic] | None = None,
) -> Assignment[Topic]:
    """Spread partitions evenly; `owned` is who has what so far.

    >>> uniform_assignment({"a": ["x"], "b": ["x"]}, {"x": 3}, owned={"b": {"x": [0, 1, 2]}})
    {'a': {'x': [2]}, 'b': {'x': [0, 1]}}
    """
    loads = dict.fromkeys(sorted(subscriptions), 0)
    in_order = {member: subscriptions[member] for member in loads}
    pools = _pools(in_order, partition_counts)
    _keep(pools, owned or {}, loads)
    by_choice = sorted(pools, key=lambda pool: len(pool.held))
    for pool in by_choice:
        pool.deal(loads)
    for _ in range(ROUNDS_MAX):
        if sum(pool.level(loads) for pool in by_choice) == 0:
            break
    return _collected(pools, loads)


class _Pool(Generic[Topic]):
    """The partitions of topics that the same members read."""

    __slots__ = ("free", "held")

    def __init__(self, readers: Iterable[str]) -> None:
        self.held: dict[str, list[tuple[Topic, int]]] = {member: [] for member in readers}
        self.free: set[tuple[Topic, int]] = set()

    def deal(self, loads: dict[str, int]) -> None:
        """Give each free partition to the reader with the least."""
        poorest = [(loads[member], member) for member in self.held]
        heapify(poorest)
        for partition in sorted(self.free):
            load, member = poorest[0]
            self.held[member].append(partition)
            loads[member] = load + 1
            heapreplace(poorest, (load + 1, member))

    def level(self, loads: dict[str, int]) -> int:
        """Let those with the most give to those with the least; how many partitions have moved.

        Only the top of each heap is kept up to date, which is enough: as a giver is one with the
        most, it never becomes the poorest before all is level, nor does a taker become the richest.
        """
        poorest = [(loads[member], member) for member in self.held]
        richest = [(-loads[member], member) for member, held in self.held.items() if held]
        heapify(poorest)
        heapify(richest)
        moved_count = 0
        while richest and -richest[0][0] - poorest[0][0] > 1:
            (most, giver), (least, taker) = richest[0], poorest[0]
            self.held[taker].append(self.held[giver].pop())
            loads[giver] -= 1
            loads[taker] += 1
            heapreplace(poorest, (least + 1, taker))
            # Who has nothing of this pool left to give sinks to the bottom.
            heapreplace(richest, (most + 1 if self.held[giver] else 0, giver))
            moved_count += 1
        return moved_count


def _pools(
    subscriptions: Subscriptions[Topic], partition_counts: PartitionCounts[Topic]
) -> list[_Pool[Topic]]:
    """All partitions that somebody reads, none of them given to anybody yet."""
    pools: dict[tuple[str, ...], _Pool[Topic]] = {}
    for topic, readers in subscribers(subscriptions, partition_counts).items():
        pool = pools.get(readers)
        if pool is None:
            pool = pools[readers] = _Pool(readers)
        pool.free.update((topic, partition) for partition in range(partition_counts[topic]))
    return list(pools.values())


def _keep(pools: list[_Pool[Topic]], owned: Owned[Topic], loads: dict[str, int]) -> None:
    """Give everybody what it owns already, unless it no longer reads it or it is gone."""
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


def _collected(pools: list[_Pool[Topic]], members: Iterable[str]) -> Assignment[Topic]:
    assignment: Assignment[Topic] = {member: {} for member in members}
    for pool in pools:
        for member, held in pool.held.items():
            for topic, partition in sorted(held):
                assignment[member].setdefault(topic, []).append(partition)
    return assignment
