"""Markers in the logs of one broker: each partition has its own result, once that is known."""

import asyncio

import pytest

from kafscale.broker.transaction_coordinator.marker import Marker
from kafscale.broker.transaction_coordinator.marker_writer import WRITE_SECONDS_MAX
from kafscale.errors import NotOwnerError, OverloadedError
from kafscale.metadata.schema.model import SHARDS_TOPIC
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
