"""The segments of a partition, listed from a bucket."""

import asyncio

import msgspec
import pytest

from kafscale.admin.topics import segments
from kafscale.admin.topics.describe import TopicDescription
from kafscale.errors import StoreUnavailableError
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.objects.memory import MemoryObjectStore
from unit.storage.engines import simulate
from unit.storage.samples import CREATED_MS, contiguous_batches

NAMESPACE = "default"
STORED_MS = 1_700_000_123_456
ORDERS = TopicDescription(
    name="orders",
    topic_id="00" * 16,
    internal=False,
    partition_count=11,
    leaderless_count=0,
    record_count=0,
    size_bytes=0,
    partitions=[],
)


def test_segment_ends_at_the_next_one_and_the_newest_at_its_footer():
    async def scenario():
        store = MemoryObjectStore(clock=lambda: STORED_MS)
        sizes = {base: await put(store, base, [3, 2]) for base in (0, 5, 10)}
        await store.delete([object_keys.index_key(NAMESPACE, "orders", 0, 5)])
        listed = await list_segments(store)
        assert listed.total == 3
        assert listed.size_bytes == sum(sizes.values())
        assert [each.base_offset for each in listed.items] == [10, 5, 0]
        assert [each.last_offset for each in listed.items] == [14, 9, 4]
        assert [each.has_index for each in listed.items] == [True, False, True]
        assert msgspec.to_builtins(listed.items[0]) == {
            "baseOffset": 10,
            "lastOffset": 14,
            "sizeBytes": sizes[10],
            "createdAtMs": STORED_MS,
            "key": "default/orders/0/segment-00000000000000000010.kfs",
            "hasIndex": True,
        }

    asyncio.run(scenario())


def test_other_objects_and_partitions_are_ignored():
    async def scenario():
        store = MemoryObjectStore()
        await put(store, 0, [1])
        await put(store, 0, [1], partition=1)
        await put(store, 0, [1], partition=10)
        await store.put(object_keys.log_start_key(NAMESPACE, "orders", 0), [b"0"])
        await store.put("default/orders/0/notes.txt", [b"0"])
        assert (await list_segments(store)).total == 1
        assert (await list_segments(store, partition=2)).items == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("first", "count", "bases"),
    [(0, 2, [4, 3]), (2, 2, [2, 1]), (4, 2, [0]), (5, 2, []), (0, 500, [4, 3, 2, 1, 0])],
)
def test_pages_start_with_the_newest(first, count, bases):
    async def scenario():
        store = MemoryObjectStore()
        for base in range(5):
            await put(store, base, [1])
        listed = await list_segments(store, first=first, count=count)
        assert [each.base_offset for each in listed.items] == bases
        assert [each.last_offset for each in listed.items] == bases
        assert listed.total == 5

    asyncio.run(scenario())


def test_damaged_footer_leaves_last_offset_unknown():
    async def scenario():
        store = MemoryObjectStore()
        await store.put(object_keys.segment_key(NAMESPACE, "orders", 0, 7), [b"x" * 100])
        (listed,) = (await list_segments(store)).items
        assert listed.last_offset is None
        assert listed.has_index is False

    asyncio.run(scenario())


def test_hanging_store_times_out():
    class Hanging(MemoryObjectStore):
        async def list(self, _prefix):
            await asyncio.sleep(3600)
            yield []

    async def scenario():
        with pytest.raises(StoreUnavailableError, match=r"orders/0 were not listed .* try again"):
            await list_segments(Hanging())

    simulate(scenario)


async def list_segments(store, *, partition=0, first=0, count=50):
    return await segments.list_segments(
        store, NAMESPACE, ORDERS, partition, first=first, count=count
    )


async def put(store, base_offset, counts, *, partition=0) -> int:
    """Store a segment with its index; return its size."""
    builder = segment.Builder(CREATED_MS, 4096, compression=None, prior_max_timestamp_ms=-1)
    for each in contiguous_batches(base_offset, counts):
        builder.append(each)
    built = builder.finish()
    place = NAMESPACE, "orders", partition, base_offset
    await store.put(object_keys.segment_key(*place), built.parts)
    await store.put(object_keys.index_key(*place), [built.index])
    return built.size_bytes
