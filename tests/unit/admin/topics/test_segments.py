"""The segments of a partition, as a bucket shows them."""

import asyncio

import pytest

from kafscale.admin.topics import segments
from kafscale.errors import StoreUnavailableError
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.objects.memory import MemoryObjectStore
from unit.storage.engines import simulate
from unit.storage.samples import CREATED_MS, run

NAMESPACE = "default"
STORED_MS = 1_700_000_123_456


def test_segments_end_where_the_next_one_begins_and_the_newest_where_its_footer_says():
    async def story():
        store = MemoryObjectStore(clock=lambda: STORED_MS)
        sizes = {base: await put(store, base, [3, 2]) for base in (0, 5, 10)}
        await store.delete([object_keys.index_key(NAMESPACE, "orders", 0, 5)])
        found = await inventory(store)
        assert found["total"] == 3
        assert found["sizeBytes"] == sum(sizes.values())
        assert [each["baseOffset"] for each in found["items"]] == [10, 5, 0]
        assert [each["lastOffset"] for each in found["items"]] == [14, 9, 4]
        assert [each["hasIndex"] for each in found["items"]] == [True, False, True]
        assert found["items"][0] == {
            "baseOffset": 10,
            "lastOffset": 14,
            "sizeBytes": sizes[10],
            "createdAtMs": STORED_MS,
            "key": "default/orders/0/segment-00000000000000000010.kfs",
            "hasIndex": True,
        }

    asyncio.run(story())


def test_other_objects_and_other_partitions_do_not_count():
    async def story():
        store = MemoryObjectStore()
        await put(store, 0, [1])
        await put(store, 0, [1], partition=1)
        await put(store, 0, [1], partition=10)
        await store.put(object_keys.log_start_key(NAMESPACE, "orders", 0), [b"0"])
        await store.put("default/orders/0/notes.txt", [b"0"])
        assert (await inventory(store))["total"] == 1
        assert (await inventory(store, partition=2))["items"] == []

    asyncio.run(story())


@pytest.mark.parametrize(
    ("first", "count", "bases"),
    [(0, 2, [4, 3]), (2, 2, [2, 1]), (4, 2, [0]), (5, 2, []), (0, 500, [4, 3, 2, 1, 0])],
)
def test_pages_begin_with_the_newest(first, count, bases):
    async def story():
        store = MemoryObjectStore()
        for base in range(5):
            await put(store, base, [1])
        found = await inventory(store, first=first, count=count)
        assert [each["baseOffset"] for each in found["items"]] == bases
        assert [each["lastOffset"] for each in found["items"]] == bases
        assert found["total"] == 5

    asyncio.run(story())


def test_a_footer_that_is_none_says_nothing():
    async def story():
        store = MemoryObjectStore()
        await store.put(object_keys.segment_key(NAMESPACE, "orders", 0, 7), [b"x" * 100])
        (found,) = (await inventory(store))["items"]
        assert found["lastOffset"] is None
        assert found["hasIndex"] is False

    asyncio.run(story())


def test_a_store_that_hangs_is_given_up():
    class Hanging(MemoryObjectStore):
        async def list(self, _prefix):
            await asyncio.sleep(3600)
            yield []

    async def story():
        with pytest.raises(StoreUnavailableError, match=r"orders/0 were not listed .* try again"):
            await inventory(Hanging())

    simulate(story)


async def inventory(store, *, partition=0, first=0, count=50):
    return await segments.inventory(store, NAMESPACE, "orders", partition, first=first, count=count)


async def put(store, base_offset, counts, *, partition=0) -> int:
    """Store a segment with its index; how large it is."""
    builder = segment.Builder(CREATED_MS, 4096, compression=None, prior_max_timestamp_ms=-1)
    for each in run(base_offset, counts):
        builder.append(each)
    built = builder.finish()
    place = NAMESPACE, "orders", partition, base_offset
    await store.put(object_keys.segment_key(*place), built.parts)
    await store.put(object_keys.index_key(*place), [built.index])
    return built.size_bytes
