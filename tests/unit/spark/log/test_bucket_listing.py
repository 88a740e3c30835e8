"""What a look at a store shows: all that is durable, none of it twice, nothing beyond."""

import pytest

from kafscale.errors import DamagedObjectError
from kafscale.spark.log.bucket_listing import BucketLister, list_bucket
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.topic_catalog import CatalogTopic
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


def look(store, **how):
    return list_bucket(store, NAMESPACE, **how).partitions


def extents(found):
    return [(one.start_offset, one.end_offset, one.is_wal) for one in found.extents]


def test_a_segment_ends_where_the_next_begins_and_the_last_says_where(store):
    put_segment(store, range(30))
    put_segment(store, range(30, 50))
    found = look(store)[TOPIC, 0]
    assert extents(found) == [(0, 30, False), (30, 50, False)]
    assert (found.start_offset, found.end_offset) == (0, 50)


def test_the_wal_goes_on_where_segments_end(store):
    put_segment(store, range(30))
    put_wal(store, 0)
    put_wal(store, 1, range(20, 30))
    put_wal(store, 2, range(25, 40))
    put_wal(store, 3, range(40, 45))
    assert extents(look(store)[TOPIC, 0]) == [(0, 30, False), (30, 40, True), (40, 45, True)]


def test_what_comes_after_a_missing_object_of_a_living_stream_does_not_count(store):
    put_wal(store, 4, range(10))
    put_wal(store, 6, range(10, 20))
    assert look(store)[TOPIC, 0].end_offset == 10


def test_below_a_fence_everything_counts_and_nothing_beyond(store):
    put_wal(store, 4, range(10))
    put_wal(store, 6, range(10, 20))
    put_fence(store, 7)
    put_wal(store, 8, range(20, 30))
    assert look(store)[TOPIC, 0].end_offset == 20


def test_several_streams_add_up_to_one_log(store):
    put_wal(store, 0, range(10, 20), epoch=1, broker_id=3)
    put_wal(store, 0, range(10), epoch=7, broker_id=1)
    assert extents(look(store)[TOPIC, 0]) == [(0, 10, True), (10, 20, True)]


def test_a_gap_ends_what_is_shown_until_it_is_seen_to_stay(store):
    put_segment(store, range(10))
    put_wal(store, 0, range(15, 20))
    assert extents(look(store)[TOPIC, 0]) == [(0, 10, False), (15, 20, True)]


def test_merged_segments_beside_old_ones_show_nothing_twice(store):
    for base in (0, 10, 20):
        put_segment(store, range(base, base + 10))
    put_segment(store, range(30))
    assert extents(look(store)[TOPIC, 0]) == [(0, 10, False), (10, 20, False), (20, 30, False)]


def ticking():
    """A store whose every object is younger than the one before."""
    clock = iter(range(1000))
    return blocking(MemoryObjectStore(lambda: next(clock)))


def put_catalog(store, *topics):
    store.put(object_keys.catalog_key(NAMESPACE), [topic_catalog.encode(topics)])


def test_of_two_topics_with_one_name_the_last_one_written_is_meant():
    with ticking() as store:
        put_wal(store, 0, range(50), topic_id=b"o" * 16)
        put_wal(store, 1, range(10))
        assert look(store)[TOPIC, 0].end_offset == 10


def test_the_catalog_tells_which_topic_is_meant_and_knows_empty_ones():
    with ticking() as store:
        put_wal(store, 0, range(50), topic_id=b"o" * 16)
        put_catalog(
            store, CatalogTopic(TOPIC, TOPIC_ID.hex(), 2), CatalogTopic("empty", "00" * 16, 1)
        )
        found = list_bucket(store, NAMESPACE)
        assert [found.partitions[TOPIC, number].extents for number in (0, 1)] == [(), ()]
        assert found.topics == ["empty", TOPIC]
        assert found.catalog["empty"].partitions == 1


def test_a_catalog_that_is_behind_is_not_believed():
    with ticking() as store:
        put_catalog(store, CatalogTopic(TOPIC, "00" * 16, 1))
        put_wal(store, 0, range(10))
        assert look(store)[TOPIC, 0].end_offset == 10


def test_a_mark_that_is_no_offset_is_named(store):
    store.put(object_keys.log_start_key(NAMESPACE, TOPIC, 0), [b"twelve"])
    with pytest.raises(DamagedObjectError, match="log-start"):
        look(store)


def test_a_damaged_catalog_is_named(store):
    store.put(object_keys.catalog_key(NAMESPACE), [b"{"])
    with pytest.raises(DamagedObjectError, match=r"_catalog/topics\.json"):
        look(store)


def test_a_log_starts_where_its_mark_says(store):
    put_segment(store, range(30))
    store.put(object_keys.log_start_key(NAMESPACE, TOPIC, 0), [b"12"])
    assert look(store)[TOPIC, 0].start_offset == 12


def test_an_empty_log_that_is_marked_ends_where_it_starts(store):
    put_catalog(store, CatalogTopic(TOPIC, "00" * 16, 1))
    store.put(object_keys.log_start_key(NAMESPACE, TOPIC, 0), [b"500"])
    found = look(store)[TOPIC, 0]
    assert (found.start_offset, found.end_offset) == (500, 500)


def test_only_what_is_asked_for_is_shown_and_the_rest_is_not_ours(store):
    put_segment(store, range(10))
    put_segment(store, range(10), topic="other")
    store.put(f"{NAMESPACE}/orders/0/notes.txt", [b"x"])
    store.put(f"{NAMESPACE}/_staging/job/orders/0/segment-{0:020d}.kfs", [b"x"])
    assert set(look(store, topics=["other"])) == {("other", 0)}
    assert set(look(store, matches=lambda name: name == TOPIC)) == {(TOPIC, 0)}


def test_tables_are_read_once(store):
    put_wal(store, 0, range(10))
    lister = BucketLister(store, NAMESPACE)
    assert lister.list().partitions[TOPIC, 0].end_offset == 10
    put_wal(store, 1, range(10, 20))
    assert lister.list().partitions[TOPIC, 0].end_offset == 20


def test_a_damaged_wal_object_is_left_out(store):
    put_wal(store, 0, range(10))
    store.put(object_keys.wal_key(NAMESPACE, 0, 0, 1), [b"rubbish " * 20])
    assert look(store)[TOPIC, 0].end_offset == 10
