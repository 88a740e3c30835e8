"""A broker whose files fill their disk: deletions work, and producers go on when there is space."""

import asyncio
import os
import subprocess
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from doubles import virtual_time
from kafscale.broker import stores as broker_stores
from kafscale.config import Config
from kafscale.config.sections.broker import Broker
from kafscale.config.sections.storage import Storage
from kafscale.metadata.store.base import Put
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsRequest,
    PartitionToTrim,
    TopicToTrim,
)
from kafscale.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    TopicToDelete,
)
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import Record, build
from unit.broker.in_memory_broker import running_broker

DISK_MIB = 96
RECORD_BYTES = 500_000


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own."""
    directory = tmp_path / "disk"
    directory.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(directory)]
    try:
        mounted = subprocess.run(options, capture_output=True, text=True, check=False)  # noqa: S603
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)  # noqa: S603, S607


def fill(disk: Path) -> Path:
    """Take up all free space, as a core dump does."""
    path = disk / "core"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return path


def free_mib(disk: Path) -> float:
    status = os.statvfs(disk)
    return status.f_bavail * status.f_frsize / 2**20


async def produce(broker, topic, count=1):
    now_ms = virtual_time.clock_ms()
    for _ in range(count):
        batch = build([Record(0, now_ms, None, os.urandom(RECORD_BYTES))])
        records = PartitionToProduce(index=0, records=memoryview(batch))
        response = await broker.ask(
            PRODUCE,
            ProduceRequest(
                acks=-1, timeout_ms=5000, topics=[TopicToProduce(topic, partitions=[records])]
            ),
            9,
        )
    return response.topics[0].partitions[0].error_code


async def delete_topic(broker, name):
    request = DeleteTopicsRequest(topics=[TopicToDelete(name=name)], timeout_ms=5000)
    response = await broker.ask(DELETE_TOPICS, request)
    return response.topics[0].error_code


async def delete_records(broker, topic, offset):
    trimmed = TopicToTrim(topic, [PartitionToTrim(index=0, offset=offset)])
    response = await broker.ask(DELETE_RECORDS, DeleteRecordsRequest([trimmed], timeout_ms=5000))
    return response.topics[0].partitions[0].error_code


def run_on(disk, body):
    config = Config(broker=Broker(data_dir=str(disk / "data")), storage=Storage(local_fsync=False))

    async def scenario(random: Random) -> None:
        clock = virtual_time.clock_ms
        stores = SimpleNamespace(
            objects=await broker_stores.open_objects(config, lambda *_: None, clock, random),
            metadata=await broker_stores.open_metadata(config, clock),
        )
        try:
            async with running_broker(stores, config) as broker:
                await body(broker)
        finally:
            await stores.metadata.close()
            await stores.objects.close()

    virtual_time.run(scenario, seed=0)


def test_deletions_work_on_a_full_disk_and_make_space_for_producers(disk):
    async def body(broker):
        for name in ("first", "second", "third"):
            await broker.topic(name, compression_type="none")
            assert await produce(broker, name, 16) == ErrorCode.NONE
            await broker.roll(name)
        fill(disk)
        assert free_mib(disk) < 0.1
        assert await produce(broker, "third") == ErrorCode.REQUEST_TIMED_OUT

        for number in range(2000):  # Commits of groups go on.
            offset = Put(f"/offset/{number % 10}", b"%d" % number)
            assert (await broker.stores.metadata.commit([], [offset])).succeeded
        assert await delete_records(broker, "first", 16) == ErrorCode.NONE
        await broker.services.storage.retention.enforce(broker.log("first"))
        assert not len(broker.log("first").segments)
        assert await delete_topic(broker, "second") == ErrorCode.NONE

        await asyncio.sleep(60)
        assert await produce(broker, "third") == ErrorCode.NONE
        assert broker.log("third").high_watermark == 18  # And what had to wait.
        assert (disk / "data" / broker_stores.RESERVE_FILE).exists()

    run_on(disk, body)


def test_producers_go_on_when_something_else_makes_space(disk):
    async def body(broker):
        await broker.topic("orders", compression_type="none")
        assert await produce(broker, "orders", 2) == ErrorCode.NONE
        core = fill(disk)
        assert await produce(broker, "orders") == ErrorCode.REQUEST_TIMED_OUT
        await broker.topic("other")  # From now on there is no reserve.
        assert await produce(broker, "other") == ErrorCode.REQUEST_TIMED_OUT
        assert not (disk / "data" / broker_stores.RESERVE_FILE).exists()
        core.unlink()
        await asyncio.sleep(60)
        assert await produce(broker, "orders") == ErrorCode.NONE
        assert broker.log("orders").high_watermark == 4
        assert broker.log("other").high_watermark == 1

    run_on(disk, body)
