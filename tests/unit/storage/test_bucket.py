"""Listings of a bucket: segments that a merged one has replaced."""

import asyncio

from kafscale.storage.bucket import list_objects, list_segments
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.memory import MemoryObjectStore

NAMESPACE = "ns"


def segment(directory, partition, base_offset):
    return object_keys.segment_key(NAMESPACE, directory, partition, base_offset)


def index(directory, partition, base_offset):
    return object_keys.index_key(NAMESPACE, directory, partition, base_offset)


def merged(directory, partition, base_offset, end_offset):
    return object_keys.merged_key(NAMESPACE, directory, partition, base_offset, end_offset)


def listed(keys):
    async def scenario():
        store = MemoryObjectStore()
        for key in keys:
            await store.put(key, [b"x"])
        prefix = f"{NAMESPACE}/"
        return (
            [item.key async for _, item in list_segments(store, NAMESPACE, prefix)],
            [
                item.key
                async for ref, item in list_objects(store, NAMESPACE, prefix)
                if isinstance(ref, object_keys.ReplacedRef)
            ],
        )

    return asyncio.run(scenario())


def test_segments_within_a_merged_one_are_replaced():
    current = [segment("a", 0, base) for base in (0, 20, 40)] + [segment("a", 1, 5)]
    late = [segment("a", 0, 5), index("a", 0, 5), segment("a", 0, 10)]
    assert listed([*current, *late, merged("a", 0, 0, 20)]) == (current, sorted(late))


def test_ranges_may_be_nested_and_outlive_their_segments():
    current = [segment("a", 0, 30), segment("b", 0, 10)]
    late = [segment("a", 0, base) for base in (10, 20, 25)]
    markers = [merged("a", 0, *range_) for range_ in ((0, 30), (10, 20), (20, 30), (30, 40))]
    assert listed([*current, *late, *markers]) == (current, late)
