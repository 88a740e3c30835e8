"""Restored transactional ids are older than the logs: their producers can go on nevertheless."""

import asyncio
from random import Random

import pytest

from doubles import virtual_time
from kafscale.errors import ConcurrentTransactionsError
from kafscale.transactions.model import TransactionVersion
from unit.broker.cluster.restorable_cluster import RestorableCluster
from unit.storage.engines import values_batch

TOPIC = "orders"
V2 = TransactionVersion.V2


class Producer:
    """A transactional producer of one partition, which begins again with every transaction."""

    def __init__(self, cluster: RestorableCluster, name: str) -> None:
        self._cluster = cluster
        self._name = name

    async def begin(self) -> None:
        broker = self._cluster.any_broker
        self._coordinator = broker.services.transactions.coordinator
        while True:
            try:
                given = await self._coordinator.init_producer(self._name, 60_000)
                break
            except ConcurrentTransactionsError:
                await asyncio.sleep(0.1)
        self._identity = (self._name, given.producer_id, given.epoch)
        await self._coordinator.add_partitions(*self._identity, [(TOPIC, 0)], V2)
        log = broker.log(TOPIC)
        guard = log.start_verification(given.producer_id, given.epoch, 0, adds_partition=True)
        batch = values_batch(
            [b"value"],
            producer_id=given.producer_id,
            producer_epoch=given.epoch,
            base_sequence=0,
            transactional=True,
        )
        await log.append(batch, virtual_time.clock_ms(), guard=guard).durable

    async def end(self) -> None:
        await self._coordinator.end(*self._identity, is_commit=True, version=V2)

    async def transact(self, count: int) -> None:
        for _ in range(count):
            await self.begin()
            await self.end()


@pytest.mark.parametrize("leap", [True, False], ids=["leap", "mark"])
def test_producers_continue_after_a_restore(leap):
    async def scenario(_random: Random) -> None:
        cluster = RestorableCluster()
        await cluster.start(1)
        await cluster.topic(TOPIC, 1)
        idle, opened, decided = (Producer(cluster, each) for each in ("idle", "open", "decided"))
        for producer in (idle, opened, decided):
            await producer.transact(2)
        await asyncio.sleep(2)
        await opened.begin()
        await decided.begin()
        await decided.end()
        backup = cluster.metadata.backup()
        await asyncio.sleep(2)
        await opened.end()
        for producer in (idle, opened, decided):
            await producer.transact(3)
        await asyncio.sleep(2)
        await cluster.kill()
        await cluster.restore(backup, leap=leap)
        await cluster.start(1)
        for producer in (idle, opened, decided):
            await producer.transact(3)
        await asyncio.sleep(2)
        log = cluster.any_broker.log(TOPIC)
        assert log.last_stable_offset == log.high_watermark
        await cluster.kill()

    virtual_time.run(scenario, seed=0, time_max_s=3600)
