"""Tests of bucket listing: all durable offsets, each once, and nothing else."""

import pytest

from kafscale.errors import DamagedObjectError
from kafscale.spark.read.bucket_listing import BucketLister, list_bucket
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.topic_catalog import CatalogTopic
from kafscale.text.topic_partition import topic_directory
from unit.spark.stored_log import (
    NAMESPACE,
    TOPIC,
    TOPIC_ID,
    blocking,
    put_fence,
    put_segment,
    put_wal,
)


@pytest.fixture
def store():
    with blocking() as opened:
        yield opened


def listed(store, **options):
    return list_bucket(store, NAMESPACE, **options).partitions


def extents(partition):
    return [(each.start_offset, each.end_offset, each.is_wal) for each in partition.extents]


def test_segments_end_where_the_next_one_begins(store):
    put_segment(store, range(30))
    put_segment(store, range(30, 50))
    result = listed(store)[TOPIC, 0]
    assert extents(result) == [(0, 30, False), (30, 50, False)]
    assert (result.start_offset, result.end_offset) == (0, 50)


def test_wal_continues_after_the_segments(store):
    put_segment(store, range(30))
    put_wal(store, 0)
    put_wal(store, 1, range(20, 30))
    put_wal(store, 2, range(25, 40))
    put_wal(store, 3, range(40, 45))
    assert extents(listed(store)[TOPIC, 0]) == [(0, 30, False), (30, 40, True), (40, 45, True)]


def test_wal_objects_after_a_gap_of_a_live_stream_are_ignored(store):
    put_wal(store, 4, range(10))
    put_wal(store, 6, range(10, 20), trimmed_to=4)
    assert listed(store)[TOPIC, 0].end_offset == 10


def test_wal_objects_that_came_back_after_they_were_trimmed_are_ignored(store):
    put_segment(store, range(10))
    put_wal(store, 1, range(10))
    put_wal(store, 4, range(10, 20), trimmed_to=4)
    assert extents(listed(store)[TOPIC, 0]) == [(0, 10, False), (10, 20, True)]


def test_only_the_current_directory_of_a_recreated_topic_is_read(store):
    put_segment(store, range(5))
    current = CatalogTopic(TOPIC, TOPIC_ID.hex(), 1, id_in_keys=True)
    put_segment(store, range(3), topic=current.directory)
    put_catalog(store, current)
    for names in ([TOPIC], None):
        assert listed(store, topics=names)[TOPIC, 0].end_offset == 3
    store.delete([object_keys.catalog_key(NAMESPACE)])
    assert listed(store)[TOPIC, 0].end_offset == 3, "the one that was written last"


def test_fenced_stream_counts_up_to_its_fence(store):
    put_wal(store, 4, range(10))
    put_wal(store, 6, range(10, 20))
    put_fence(store, 7)
    put_wal(store, 8, range(20, 30))
    assert listed(store)[TOPIC, 0].end_offset == 20


def test_streams_of_several_brokers_are_combined(store):
    put_wal(store, 0, range(10, 20), epoch=1, broker_id=3)
    put_wal(store, 0, range(10), epoch=7, broker_id=1)
    assert extents(listed(store)[TOPIC, 0]) == [(0, 10, True), (10, 20, True)]


def test_a_gap_is_accepted_after_all_attempts(store):
    put_segment(store, range(10))
    put_wal(store, 0, range(15, 20))
    assert extents(listed(store)[TOPIC, 0]) == [(0, 10, False), (15, 20, True)]


def test_merged_segments_beside_their_sources_do_not_overlap(store):
    for base in (0, 10, 20):
        put_segment(store, range(base, base + 10))
    put_segment(store, range(30))
    assert extents(listed(store)[TOPIC, 0]) == [(0, 10, False), (10, 20, False), (20, 30, False)]


def ticking_store():
    """A store in which every object is newer than the one before."""
    clock = iter(range(1000))
    return blocking(MemoryObjectStore(lambda: next(clock)))


def put_catalog(store, *topics, deleted_ids=()):
    data = topic_catalog.encode(topics, deleted_ids=deleted_ids)
    store.put(object_keys.catalog_key(NAMESPACE), [data])


def test_the_newest_topic_id_of_a_name_is_used():
    with ticking_store() as store:
        put_wal(store, 0, range(50), topic_id=b"o" * 16)
        put_wal(store, 1, range(10))
        assert listed(store)[TOPIC, 0].end_offset == 10


OLD_ID = b"o" * 16


def test_late_write_of_a_deleted_topic_is_ignored():
    """A former owner's WAL object appears after the topic was created again."""
    for listed_topics in ([CatalogTopic(TOPIC, TOPIC_ID.hex(), 1, id_in_keys=True)], []):
        with ticking_store() as store:
            put_wal(store, 0, range(3))
            put_catalog(store, *listed_topics, deleted_ids=[OLD_ID])
            put_wal(store, 1, range(50), topic_id=OLD_ID)
            put_segment(store, range(50), topic=topic_directory(TOPIC, OLD_ID))
            for names in ([TOPIC], None):
                assert extents(listed(store, topics=names)[TOPIC, 0]) == [(0, 3, True)]


def test_topic_that_is_newer_than_the_catalog_has_its_own_directory():
    with ticking_store() as store:
        put_segment(store, range(50))
        put_catalog(store, CatalogTopic(TOPIC, OLD_ID.hex(), 1))
        put_wal(store, 0, range(3, 5))
        put_segment(store, range(3), topic=topic_directory(TOPIC, TOPIC_ID))
        put_wal(store, 1, range(50, 60), topic_id=OLD_ID)
        for names in ([TOPIC], None):
            assert extents(listed(store, topics=names)[TOPIC, 0]) == [(0, 3, False), (3, 5, True)]


def test_unlisted_topic_is_read_from_the_directory_of_its_id():
    with ticking_store() as store:
        put_catalog(store, deleted_ids=[OLD_ID])
        put_segment(store, range(3), topic=topic_directory(TOPIC, TOPIC_ID))
        put_wal(store, 0, range(3, 5))
        assert extents(listed(store)[TOPIC, 0]) == [(0, 3, False), (3, 5, True)]


def test_catalog_decides_topic_ids_and_lists_empty_topics():
    with ticking_store() as store:
        put_wal(store, 0, range(50), topic_id=b"o" * 16)
        put_catalog(
            store, CatalogTopic(TOPIC, TOPIC_ID.hex(), 2), CatalogTopic("empty", "00" * 16, 1)
        )
        result = list_bucket(store, NAMESPACE)
        assert [result.partitions[TOPIC, number].extents for number in (0, 1)] == [(), ()]
        assert result.topics == ["empty", TOPIC]
        assert result.catalog["empty"].partition_count == 1


def test_an_outdated_catalog_is_ignored():
    with ticking_store() as store:
        put_catalog(store, CatalogTopic(TOPIC, "00" * 16, 1))
        put_wal(store, 0, range(10))
        assert listed(store)[TOPIC, 0].end_offset == 10


def test_an_invalid_log_start_is_an_error(store):
    store.put(object_keys.log_start_key(NAMESPACE, TOPIC, 0), [b"twelve"])
    with pytest.raises(DamagedObjectError, match="log-start"):
        listed(store)


def test_a_damaged_catalog_is_an_error(store):
    store.put(object_keys.catalog_key(NAMESPACE), [b"{"])
    with pytest.raises(DamagedObjectError, match=r"_catalog/topics\.json"):
        listed(store)


def test_log_start_object_sets_the_start_offset(store):
    put_segment(store, range(30))
    store.put(object_keys.log_start_key(NAMESPACE, TOPIC, 0), [b"12"])
    assert listed(store)[TOPIC, 0].start_offset == 12


def test_an_empty_partition_ends_at_its_log_start(store):
    put_catalog(store, CatalogTopic(TOPIC, "00" * 16, 1))
    store.put(object_keys.log_start_key(NAMESPACE, TOPIC, 0), [b"500"])
    result = listed(store)[TOPIC, 0]
    assert (result.start_offset, result.end_offset) == (500, 500)


def test_only_requested_topics_are_listed(store):
    put_segment(store, range(10))
    put_segment(store, range(10), topic="other")
    store.put(f"{NAMESPACE}/orders/0/notes.txt", [b"x"])
    store.put(f"{NAMESPACE}/_staging/job/orders/0/segment-{0:020d}.kfs", [b"x"])
    assert set(listed(store, topics=["other"])) == {("other", 0)}
    assert set(listed(store, matches=lambda name: name == TOPIC)) == {(TOPIC, 0)}


def test_lister_sees_new_wal_objects(store):
    put_wal(store, 0, range(10))
    lister = BucketLister(store, NAMESPACE)
    assert lister.list().partitions[TOPIC, 0].end_offset == 10
    put_wal(store, 1, range(10, 20))
    assert lister.list().partitions[TOPIC, 0].end_offset == 20


def test_a_damaged_wal_object_is_skipped(store):
    put_wal(store, 0, range(10))
    store.put(object_keys.wal_key(NAMESPACE, 0, 0, 1), [b"garbage " * 20])
    assert listed(store)[TOPIC, 0].end_offset == 10
