"""Random histories of transactions, with faults of the store and sudden changes of the owner."""

import asyncio
from functools import partial
from random import Random

import pytest

from doubles import virtual_time
from doubles.faulty_metadata_store import FaultyMetadataStore, MetadataFaults
from kafscale.broker.shards.writer import WRITES_MAX
from kafscale.errors import KafscaleError, OperatingError
from kafscale.metadata.schema.model import shard_of
from unit.broker.group_coordinator.nodes import GROUP, Cluster, Node
from unit.broker.group_coordinator.shard_guards import assign_shards

PRODUCERS = 3
TRANSACTIONS = 6
FAULTS = MetadataFaults(refused=0.1, response_lost=0.1, applied_later=0.1, timeout=(0.0, 0.5))


class History:
    """Producers that commit or abort, an owner that changes, and a reader that checks."""

    def __init__(self, cluster: Cluster, random: Random) -> None:
        self.cluster = cluster
        self.random = random
        self.nodes = []
        self.owner = None
        """The node that owns the shard and serves it; None while it moves."""
        self.aborted: set[int] = set()
        self.ended: dict[int, int] = {}
        """The newest value by producer whose commit was acknowledged."""
        self.seen: dict[int, int] = {}
        self.moves = 0

    def partitions(self, producer):
        """Each producer commits the offsets of partitions of its own."""
        count = 3 * WRITES_MAX if producer == 0 else WRITES_MAX // 2
        return range(1000 * producer, 1000 * producer + count)

    async def run(self):
        for _ in range(2):
            store = FaultyMetadataStore(self.cluster.store, FAULTS, random=self.random)
            self.nodes.append(await self.cluster.node(store))
        moving = asyncio.create_task(self._move())
        reading = asyncio.create_task(self._read())
        await asyncio.gather(*(self._produce(each) for each in range(PRODUCERS)))
        for task in (moving, reading):
            assert not task.done() or task.result() is None
            task.cancel()
        await asyncio.wait([moving, reading])
        await asyncio.sleep(60)
        self.owner = None
        node = await self._open(self.cluster.store)
        assert node.unstable() == set()
        self.check(node)

    async def _produce(self, producer):
        for number in range(TRANSACTIONS):
            value = 100 * producer + number
            partitions = self.partitions(producer)
            half = len(partitions) // 2
            # The third commit has what the first one has: their records are merged.
            for part in (partitions[:half], partitions[half:], partitions[:half]):
                offsets = dict.fromkeys(part, value)
                await self._until_done(
                    partial(Node.commit_in_transaction, epoch=number), producer, offsets
                )
            is_commit = self.random.random() < 0.6
            if not is_commit:
                self.aborted.add(value)
            await self._until_done(partial(Node.end, epoch=number, is_commit=is_commit), producer)
            if is_commit:
                self.ended[producer] = value

    async def _until_done(self, request, *arguments):
        while True:
            await asyncio.sleep(self.random.uniform(0, 0.1))
            try:
                if self.owner is not None:
                    await request(self.owner, *arguments)
                    return
            except KafscaleError:
                continue

    async def _move(self):
        while True:
            node = await self._open()
            self.owner, self.moves = node, self.moves + 1
            await asyncio.sleep(self.random.uniform(0, 1))
            self.owner = None

    async def _open(self, store=None):
        while True:
            node = self.random.choice(self.nodes)
            guards = await assign_shards(
                store or self.cluster.store, node.broker_id, 1, [shard_of(GROUP)]
            )
            try:
                await node.shards.open(guards)
            except OperatingError:
                continue
            return node

    async def _read(self):
        while True:
            await asyncio.sleep(0.01)
            if self.owner is not None:
                self.check(self.owner)

    def check(self, node):
        try:
            committed = node.committed()
        except KafscaleError:
            return
        for producer in range(PRODUCERS):
            values = {committed.get(each) for each in self.partitions(producer)}
            assert len(values) == 1, (producer, values)
            [value] = values
            assert value not in self.aborted
            before = max(self.seen.get(producer, -1), self.ended.get(producer, -1))
            assert (-1 if value is None else value) >= before, (producer, value, before)
            if value is not None:
                self.seen[producer] = value


@pytest.mark.parametrize("seed", range(12))
def test_transactions_are_atomic(seed):
    async def scenario(random):
        cluster = Cluster()
        history = History(cluster, random)
        try:
            await history.run()
        finally:
            await cluster.close()
        assert history.moves > 3

    virtual_time.run(scenario, seed=seed)
