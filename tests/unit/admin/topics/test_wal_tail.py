"""The part of a partition that is only in the WAL."""

import asyncio

import msgspec
import pytest

from kafscale.admin.topics import segments
from kafscale.admin.topics.describe import PartitionDescription
from kafscale.errors import StoreUnavailableError
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.objects.memory import MemoryObjectStore
from unit.storage.engines import simulate
from unit.storage.samples import CREATED_MS, batch

NAMESPACE = "default"
ORDERS, EARLIER_ORDERS = b"o" * 16, b"e" * 16


def partition(rolled, end, *, start=0):
    return PartitionDescription(
        partition=0,
        leader=1,
        leader_epoch=0,
        state="online",
        start_offset=start,
        rolled_offset=rolled,
        high_watermark=end,
        record_count=None,
    )


def test_tail_is_counted_up_to_the_high_watermark():
    """Offsets 0 to 9 are rolled; another partition and a deleted topic are ignored."""

    async def scenario():
        store = MemoryObjectStore()
        await put(store, 0, [(ORDERS, 0, 0, 10)])
        sizes = await put(store, 1, [(ORDERS, 0, 10, 5), (ORDERS, 1, 0, 5)])
        sizes |= await put(store, 2, [(ORDERS, 0, 15, 1), (EARLIER_ORDERS, 0, 12, 1)])
        await put(store, 3, [(ORDERS, 0, 16, 4)])
        assert msgspec.to_builtins(await tail(store, partition(10, 16))) == {
            "fromOffset": 10,
            "toOffset": 16,
            "recordCount": 6,
            "objectCount": 2,
            "sizeBytes": sizes[ORDERS, 0, 10] + sizes[ORDERS, 0, 15],
        }

    asyncio.run(scenario())


def test_fully_rolled_partition_has_an_empty_tail():
    assert msgspec.to_builtins(asyncio.run(tail(Broken(), partition(10, 10)))) == {
        "fromOffset": 10,
        "toOffset": 10,
        "recordCount": 0,
        "objectCount": 0,
        "sizeBytes": 0,
    }


def test_tail_starts_at_the_log_start():
    """Records were deleted up to 8, while segments end at 5."""
    result = asyncio.run(tail(MemoryObjectStore(), partition(5, 10, start=8)))
    assert (result.from_offset, result.record_count) == (8, 2)


def test_tail_is_unknown_without_owner():
    assert asyncio.run(tail(MemoryObjectStore(), partition(None, 10))) is None


def test_many_objects_are_not_read():
    async def scenario():
        store = MemoryObjectStore()
        count = segments.OBJECTS_MAX + 1
        for sequence in range(count):
            await put(store, sequence, [(ORDERS, 0, sequence, 1)])
        result = await tail(store, partition(0, count))
        assert result.record_count == count
        assert result.object_count is result.size_bytes is None

    asyncio.run(scenario())


def test_fences_and_damaged_objects_are_ignored():
    async def scenario():
        store = MemoryObjectStore()
        await put(store, 0, [(ORDERS, 0, 0, 1)])
        fence = wal_object.Header(0, 1, 1, CREATED_MS, is_fence=True)
        await store.put(object_keys.wal_key(NAMESPACE, 0, 1, 1), wal_object.encode_empty(fence))
        await store.put(object_keys.wal_key(NAMESPACE, 0, 1, 2), [b"x" * 500])
        assert (await tail(store, partition(0, 1))).object_count == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("trouble", ["failing", "hanging"])
def test_store_failure_keeps_the_record_count(trouble):
    async def scenario():
        result = await tail(Broken() if trouble == "failing" else Hanging(), partition(0, 3))
        assert result.record_count == 3
        assert result.object_count is None

    simulate(scenario)


class Broken(MemoryObjectStore):
    async def list(self, _prefix):
        raise StoreUnavailableError("it is away")
        yield []


class Hanging(MemoryObjectStore):
    async def list(self, _prefix):
        await asyncio.sleep(3600)
        yield []


async def tail(store, described):
    return await segments.wal_tail(store, NAMESPACE, ORDERS, described)


async def put(store, sequence, ranges) -> "dict[tuple[bytes, int, int], int]":
    """Store a WAL object; return the size of each range."""
    sizes = {}
    pieces = []
    for topic_id, number, base_offset, count in ranges:
        body = bytes(batch(base_offset, count).buffer)
        sizes[topic_id, number, base_offset] = len(body)
        pieces.append(
            wal_object.PartitionData(
                topic_id, "orders", number, body, base_offset, base_offset + count - 1, CREATED_MS
            )
        )
    header = wal_object.Header(0, 1, sequence, CREATED_MS)
    await store.put(
        object_keys.wal_key(NAMESPACE, 0, 1, sequence), wal_object.encode(header, pieces)
    )
    return sizes
