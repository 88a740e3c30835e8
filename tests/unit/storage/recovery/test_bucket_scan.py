"""The bucket scan finds all topics in segments and fenced WAL streams."""

from doubles import virtual_time
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.recovery.bucket_scan import PARTITION_COUNT_MAX, BucketScanner
from kafscale.storage.topic_catalog import CatalogTopic
from kafscale.storage.wal.streams import Streams
from unit.storage.engines import NAMESPACE, memory_store, simulate
from unit.storage.samples import joined

FIRST_ID, SECOND_ID, THIRD_ID = (bytes(15) + bytes([number]) for number in (1, 2, 3))


def scanner(store):
    return BucketScanner(store, NAMESPACE, Streams(store, NAMESPACE, virtual_time.clock_ms))


async def put_wal(store, broker_id, epoch, sequence, *held):
    """Put a WAL object with a record of each (topic, id, partition)."""
    pieces = [
        wal_object.PartitionData(topic_id, topic, partition, b"records", 5, 6, 0)
        for topic, topic_id, partition in held
    ]
    header = wal_object.Header(broker_id, epoch, sequence, 0)
    parts = wal_object.encode(header, pieces) if pieces else wal_object.encode_empty(header)
    await store.put(object_keys.wal_key(NAMESPACE, broker_id, epoch, sequence), [joined(parts)])


def test_empty_bucket():
    async def scenario():
        result = await scanner(memory_store()).scan()
        assert (result.topics, result.log_starts, result.catalog) == ({}, {}, None)

    simulate(scenario)


def test_segments_indexes_and_log_starts_are_found_by_topic_name():
    async def scenario():
        store = memory_store()
        for key in (
            object_keys.segment_key(NAMESPACE, "orders", 2, 0),
            object_keys.index_key(NAMESPACE, "audit", 0, 0),
            f"{NAMESPACE}/orders/readme.txt",
            object_keys.segment_key(NAMESPACE, "orders", PARTITION_COUNT_MAX, 0),
            f"{object_keys.staging_prefix(NAMESPACE, 'job', 'staged', 0)}segment-{0:020d}.kfs",
        ):
            await store.put(key, [b"bytes"])
        began_ms = virtual_time.clock_ms()
        await store.put(object_keys.log_start_key(NAMESPACE, "deleted", 4), [b"123"])
        await store.put(object_keys.log_start_key(NAMESPACE, "audit", 0), [b"many"])
        result = await scanner(store).scan()
        counts = {
            name: topic.objects[name].partition_count for name, topic in result.topics.items()
        }
        assert counts == {"orders": 3, "audit": 1, "deleted": 5}
        assert result.topics["deleted"].objects["deleted"].newest_ms >= began_ms
        assert result.log_starts == {("deleted", 4): 123}
        assert not any(topic.in_wal for topic in result.topics.values())

    simulate(scenario)


def test_fenced_streams_are_found_by_topic_id():
    async def scenario():
        store = memory_store()
        streams = Streams(store, NAMESPACE, virtual_time.clock_ms)
        await put_wal(store, 1, 0, 0)
        await put_wal(store, 1, 0, 1, ("orders", FIRST_ID, 0), ("audit", THIRD_ID, 0))
        await put_wal(store, 1, 0, 2, ("orders", SECOND_ID, 3))
        await streams.fence(1, 0)
        # One after the fence, and one of a live broker.
        await put_wal(store, 1, 0, 4, ("late", FIRST_ID, 0))
        await put_wal(store, 2, 0, 0, ("living", FIRST_ID, 0))
        result = await scanner(store).scan()
        assert {
            name: {key: trace.partition_count for key, trace in topic.in_wal.items()}
            for name, topic in result.topics.items()
        } == {"orders": {FIRST_ID: 1, SECOND_ID: 4}, "audit": {THIRD_ID: 1}}
        assert result.wal_object_count == 2

    simulate(scenario)


def test_damaged_wal_object_does_not_hide_others():
    async def scenario():
        store = memory_store()
        await put_wal(store, 1, 0, 0, ("orders", FIRST_ID, 0))
        await store.put(object_keys.wal_key(NAMESPACE, 1, 0, 1), [b"no such thing" * 10])
        await put_wal(store, 1, 0, 2, ("audit", FIRST_ID, 0))
        await Streams(store, NAMESPACE, virtual_time.clock_ms).fence(1, 0)
        result = await scanner(store).scan()
        assert result.topics.keys() == {"orders", "audit"}

    simulate(scenario)


def test_catalog_is_read_with_its_time_and_ignored_if_damaged():
    async def scenario():
        store = memory_store()
        key = object_keys.catalog_key(NAMESPACE)
        data = topic_catalog.encode(
            [CatalogTopic("orders", FIRST_ID.hex(), 3)], cluster_id="ours", revision=7
        )
        await store.put(key, [data])
        result = await scanner(store).scan()
        assert (result.catalog.cluster_id, result.catalog.revision) == ("ours", 7)
        assert result.catalog_ms == (await store.head(key)).modified_ms
        await store.put(key, [b"{"], create=False)
        result = await scanner(store).scan()
        assert (result.catalog, result.catalog_ms) == (None, -1)

    simulate(scenario)
