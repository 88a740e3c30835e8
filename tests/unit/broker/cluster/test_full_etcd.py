"""etcd out of space: writes are refused for a while, and every duty continues afterwards."""

import asyncio

import grpc
import pytest

from doubles import virtual_time
from kafscale.errors import OperatingError
from kafscale.metadata.store.etcd.errors import to_etcd_error
from unit.broker.in_memory_broker import Stores, running_broker

NO_SPACE = to_etcd_error(
    "a", grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded"
)
OUTAGE_SECONDS = 1800


async def refuse(*_arguments):
    raise NO_SPACE


def test_error_is_retriable_and_says_what_to_do():
    assert isinstance(NO_SPACE, OperatingError)
    for part in ("compact", "defragment", "disarm", "NOSPACE"):
        assert part in str(NO_SPACE)


def test_all_duties_of_a_broker_go_on_after_etcd_was_full():
    async def scenario(_random):
        stores = Stores()
        async with running_broker(stores) as broker:
            await broker.topic("orders")
            await broker.write("orders", virtual_time.clock_ms())
            metadata, commit, grant = stores.metadata, stores.metadata.commit, stores.metadata.grant
            metadata.commit, metadata.grant = refuse, refuse
            with pytest.raises(OperatingError, match="database space exceeded"):
                await broker.roll("orders")
            for _ in range(OUTAGE_SECONDS // 60):
                await broker.write("orders", virtual_time.clock_ms())
                await asyncio.sleep(60)
            metadata.commit, metadata.grant = commit, grant
            await asyncio.sleep(120)

            await broker.roll("orders")
            log = broker.log("orders")
            assert log.high_watermark == 1 + OUTAGE_SECONDS // 60
            assert log.is_saved
            await broker.topic("later")  # The controller assigns it, and an owner opens it.
            await broker.write("later", virtual_time.clock_ms())
            assert broker.log("later").high_watermark == 1

    virtual_time.run(scenario, seed=0)
