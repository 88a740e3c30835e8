"""Markers in the logs of one broker: each partition has its own result, once that is known."""

import asyncio

import pytest

from kafscale.broker.transaction_coordinator.marker import Marker
from kafscale.broker.transaction_coordinator.marker_writer import WRITE_SECONDS_MAX
from kafscale.errors import NotOwnerError, OverloadedError
from kafscale.metadata.schema.model import SHARDS_TOPIC
from kafscale.records import BatchView, Record, build
from kafscale.transactions.model import EPOCH_MAX
from unit.broker.in_memory_broker import run_with_broker

PARTITIONS = [("orders", 0), ("orders", 1), ("orders", 2)]


def marker(partitions):
    return Marker(7, 0, 0, True, partitions)


def test_markers_that_share_an_object_of_the_wal_are_all_late_if_it_is():
    async def body(broker):
        await broker.topic("orders", 3)
        broker.stores.objects.is_down = True
        loop = asyncio.get_running_loop()
        started = loop.time()
        results = await broker.services.transactions.writer.write(marker(PARTITIONS))
        assert loop.time() - started == pytest.approx(WRITE_SECONDS_MAX)
        assert [type(each) for each in results] == [OverloadedError] * 3
        broker.stores.objects.is_down = False
        results = await broker.services.transactions.writer.write(marker(PARTITIONS))
        assert list(results) == [None] * 3
        assert [broker.log(*each).high_watermark for each in PARTITIONS] == [1, 1, 1]

    run_with_broker(body)


def test_every_partition_has_its_own_result():
    async def body(broker):
        await broker.topic("orders", 1)
        partitions = [("orders", 5), (SHARDS_TOPIC, 3), ("orders", 0), ("payments", 0)]
        results = await broker.services.transactions.writer.write(marker(partitions))
        assert [type(each) for each in results] == [
            NotOwnerError,
            type(None),
            type(None),
            NotOwnerError,
        ]
        assert broker.log("orders").high_watermark == 1

    run_with_broker(body)


def test_transaction_with_the_last_epoch_can_be_ended():
    """A marker has no higher one then."""

    async def body(broker):
        await broker.topic("orders")
        log = broker.log("orders")
        batch = build(
            [Record(0, 1000, None, b"value")],
            producer_id=7,
            producer_epoch=EPOCH_MAX,
            base_sequence=0,
            transactional=True,
        )
        guard = log.start_verification(7, EPOCH_MAX, 0, adds_partition=False)
        await log.append(BatchView(batch), 1000, guard=guard).durable
        assert log.last_stable_offset == 0
        last = Marker(7, EPOCH_MAX, 0, False, [("orders", 0)], bumps_epoch=True)
        assert list(await broker.services.transactions.writer.write(last)) == [None]
        assert log.last_stable_offset == 2

    run_with_broker(body)
