"""ListOffsets: special timestamps, timestamps, and versions."""

import pytest

from kafscale.broker.handlers.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    VERSION_MIN,
)
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsRequest,
    PartitionToList,
    TopicToList,
)
from unit.broker.in_memory_broker import run_with_broker


async def listed(broker, time, *, topic="orders", version=LIST_OFFSETS.version_max, **fields):
    """The result for partition 0."""
    requested = PartitionToList(timestamp_ms=time, **fields)
    request = ListOffsetsRequest(replica_id=-1, topics=[TopicToList(topic, [requested])])
    response = await broker.ask(LIST_OFFSETS, request, version)
    assert [found.name for found in response.topics] == [topic]
    [partition] = response.topics[0].partitions
    assert partition.index == 0
    return partition


async def offset_at(broker, time, **fields):
    response = await listed(broker, time, **fields)
    assert response.error_code == ErrorCode.NONE
    return response.offset, response.timestamp_ms


@pytest.mark.parametrize("version", LIST_OFFSETS.versions)
def test_earliest_and_latest_offsets(version):
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000, 2000, 3000)
        broker.log("orders").advance_start(1)
        earliest = await listed(broker, EARLIEST, version=version)
        latest = await listed(broker, LATEST, version=version)

        assert earliest.error_code == latest.error_code == ErrorCode.NONE
        if version == 0:
            assert (earliest.offsets, latest.offsets) == ([1], [3])
        else:
            assert (earliest.offset, latest.offset) == (1, 3)
            assert earliest.timestamp_ms == latest.timestamp_ms == -1
        if version >= 4:
            assert earliest.leader_epoch == latest.leader_epoch == broker.log("orders").leader_epoch

    run_with_broker(body)


def test_latest_offset_excludes_records_that_are_not_durable():
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)
        broker.append("orders", 2000)

        assert broker.log("orders").end_offset == 2
        assert await offset_at(broker, LATEST) == (1, -1)

    run_with_broker(body)


@pytest.mark.parametrize("version", range(1, LIST_OFFSETS.version_max + 1))
@pytest.mark.parametrize("rolled", [False, True])
def test_timestamp_finds_the_first_record_at_or_after_it(version, rolled):
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000, 3000, 2000)
        if rolled:
            await broker.roll("orders")
        await broker.write("orders", 4000)

        times = {0: (0, 1000), 1000: (0, 1000), 1001: (1, 3000), 3000: (1, 3000), 3001: (3, 4000)}
        for time, expected in times.items():
            assert await offset_at(broker, time, version=version) == expected
        assert await offset_at(broker, 4001, version=version) == (-1, -1)
        if version >= 4:
            response = await listed(broker, 4000, version=version)
            assert response.leader_epoch == broker.log("orders").leader_epoch
            assert (await listed(broker, 4001, version=version)).leader_epoch == -1

    run_with_broker(body)


def test_max_timestamp_need_not_be_the_last_record():
    async def body(broker):
        await broker.topic("orders")
        assert await offset_at(broker, MAX_TIMESTAMP) == (-1, -1)
        await broker.write("orders", 1000, 3000, 2000)
        assert await offset_at(broker, MAX_TIMESTAMP) == (1, 3000)

    run_with_broker(body)


def test_tiered_offsets_are_unknown():
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000, 2000)
        broker.log("orders").advance_start(1)

        assert await offset_at(broker, EARLIEST_LOCAL) == (1, -1)
        assert await offset_at(broker, LATEST_TIERED) == (-1, -1)
        assert await offset_at(broker, EARLIEST_PENDING) == (-1, -1)

    run_with_broker(body)


@pytest.mark.parametrize("version", LIST_OFFSETS.versions)
def test_unsupported_special_timestamp_is_refused(version):
    async def body(broker):
        await broker.topic("orders")
        for time, version_min in {**VERSION_MIN, -7: 99}.items():
            response = await listed(broker, time, version=version)
            refused = response.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert refused == (version < version_min)

    run_with_broker(body)


def test_v0_lists_base_offsets_of_segments():
    async def body(broker):
        await broker.topic("orders")
        for time in (1000, 2000, 3000):
            await broker.write("orders", time)
            await broker.roll("orders")
        await broker.write("orders", 4000)

        async def starts(time, count):
            response = await listed(broker, time, version=0, max_offset_count=count)
            assert response.error_code == ErrorCode.NONE
            return response.offsets

        assert await starts(LATEST, 1) == [4]
        assert await starts(LATEST, 99) == [4, 3, 2, 1, 0]
        assert await starts(EARLIEST, 99) == [0]
        assert await starts(2500, 2) == [2, 1]
        assert await starts(9000, 1) == [4]
        assert await starts(LATEST, 0) == []
        assert await starts(LATEST, -1) == []
        broker.log("orders").advance_start(2)
        assert await starts(LATEST, 99) == [4, 3, 2]

    run_with_broker(body)


def test_other_leader_epoch_is_refused():
    async def body(broker):
        await broker.topic("orders")
        partition = broker.log("orders")
        partition.leader_epoch = 5
        codes = [
            (await listed(broker, LATEST, current_leader_epoch=epoch)).error_code
            for epoch in (-1, 4, 5, 6)
        ]

        assert codes == [
            ErrorCode.NONE,
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_LEADER_EPOCH,
        ]

    run_with_broker(body)


@pytest.mark.parametrize("version", LIST_OFFSETS.versions)
def test_each_partition_succeeds_or_fails_on_its_own(version):
    async def body(broker):
        await broker.topic("orders")
        request = ListOffsetsRequest(
            topics=[
                TopicToList("orders", [PartitionToList(index, -1, LATEST) for index in (0, 1, -1)]),
                TopicToList("missing", [PartitionToList(0, -1, 1000)]),
            ]
        )
        response = await broker.ask(LIST_OFFSETS, request, version)

        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [
            [(found.index, found.error_code) for found in topic.partitions]
            for topic in response.topics
        ] == [[(0, ErrorCode.NONE), (1, unknown), (-1, unknown)], [(0, unknown)]]

    run_with_broker(body)


def test_duplicate_partition_is_refused():
    async def body(broker):
        await broker.topic("orders", 2)
        requested = [PartitionToList(index, -1, LATEST) for index in (0, 0, 1)]
        request = ListOffsetsRequest(topics=[TopicToList("orders", requested)])
        response = await broker.ask(LIST_OFFSETS, request)

        invalid = ErrorCode.INVALID_REQUEST
        codes = [found.error_code for found in response.topics[0].partitions]
        assert codes == [invalid, invalid, ErrorCode.NONE]

    run_with_broker(body)


def test_object_store_error_is_retriable():
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)
        await broker.roll("orders")
        broker.stores.objects.is_down = True

        assert (await listed(broker, 0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert await offset_at(broker, LATEST) == (1, -1)
        broker.stores.objects.is_down = False
        assert await offset_at(broker, 0) == (0, 1000)

    run_with_broker(body)
