"""What of a partition is in the WAL only."""

import asyncio

import pytest

from kafscale.admin.topics import wal_tail
from kafscale.errors import StoreUnavailableError
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.objects.memory import MemoryObjectStore
from unit.storage.engines import simulate
from unit.storage.samples import CREATED_MS, batch

NAMESPACE = "default"
ORDERS, EARLIER_ORDERS = b"o" * 16, b"e" * 16


def partition(rolled, end, *, start=0):
    return {"partition": 0, "startOffset": start, "rolledOffset": rolled, "highWatermark": end}


def test_ranges_from_the_last_segment_to_the_high_watermark_are_counted():
    """Rolled are 0 to 9; another partition and a deleted topic of this name do not count."""

    async def story():
        store = MemoryObjectStore()
        await put(store, 0, [(ORDERS, 0, 0, 10)])
        sizes = await put(store, 1, [(ORDERS, 0, 10, 5), (ORDERS, 1, 0, 5)])
        sizes |= await put(store, 2, [(ORDERS, 0, 15, 1), (EARLIER_ORDERS, 0, 12, 1)])
        await put(store, 3, [(ORDERS, 0, 16, 4)])
        assert await tail(store, partition(10, 16)) == {
            "fromOffset": 10,
            "toOffset": 16,
            "recordCount": 6,
            "objectCount": 2,
            "sizeBytes": sizes[ORDERS, 0, 10] + sizes[ORDERS, 0, 15],
        }

    asyncio.run(story())


def test_nothing_is_looked_for_where_everything_is_in_segments():
    assert asyncio.run(tail(Broken(), partition(10, 10))) == {
        "fromOffset": 10,
        "toOffset": 10,
        "recordCount": 0,
        "objectCount": 0,
        "sizeBytes": 0,
    }


def test_what_lies_before_the_start_is_no_part_of_it():
    """Records were deleted up to 8, while segments end at 5."""
    found = asyncio.run(tail(MemoryObjectStore(), partition(5, 10, start=8)))
    assert (found["fromOffset"], found["recordCount"]) == (8, 2)


def test_an_owner_that_does_not_tell_leaves_it_unknown():
    assert asyncio.run(tail(MemoryObjectStore(), partition(None, 10))) is None


def test_too_many_objects_are_not_looked_into():
    async def story():
        store = MemoryObjectStore()
        count = wal_tail.OBJECTS_MAX + 1
        for sequence in range(count):
            await put(store, sequence, [(ORDERS, 0, sequence, 1)])
        found = await tail(store, partition(0, count))
        assert found["recordCount"] == count
        assert found["objectCount"] is found["sizeBytes"] is None

    asyncio.run(story())


def test_fences_and_damaged_objects_hold_nothing():
    async def story():
        store = MemoryObjectStore()
        await put(store, 0, [(ORDERS, 0, 0, 1)])
        fence = wal_object.Header(0, 1, 1, CREATED_MS, is_fence=True)
        await store.put(object_keys.wal_key(NAMESPACE, 0, 1, 1), wal_object.encode_fence(fence))
        await store.put(object_keys.wal_key(NAMESPACE, 0, 1, 2), [b"x" * 500])
        assert (await tail(store, partition(0, 1)))["objectCount"] == 1

    asyncio.run(story())


@pytest.mark.parametrize("trouble", ["failing", "hanging"])
def test_a_store_in_trouble_does_not_hide_what_the_owner_said(trouble):
    async def story():
        found = await tail(Broken() if trouble == "failing" else Hanging(), partition(0, 3))
        assert found["recordCount"] == 3
        assert found["objectCount"] is None

    simulate(story)


class Broken(MemoryObjectStore):
    async def list(self, _prefix):
        raise StoreUnavailableError("it is away")
        yield []


class Hanging(MemoryObjectStore):
    async def list(self, _prefix):
        await asyncio.sleep(3600)
        yield []


async def tail(store, described):
    return await wal_tail.wal_tail(store, NAMESPACE, ORDERS, described)


async def put(store, sequence, ranges) -> "dict[tuple[bytes, int, int], int]":
    """Store a WAL object; how large each of its ranges is."""
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
