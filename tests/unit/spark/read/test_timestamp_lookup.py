"""Tests of the lookup of offsets by timestamp."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.records import BatchView, Record, build
from kafscale.spark.plan.offset_map import PartitionOffsets
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.spark.read.timestamp_lookup import offset_for_timestamp, offsets_for_timestamps
from kafscale.storage.formats import object_keys, segment, wal_object
from unit.spark.stored_log import NAMESPACE, TOPIC, TOPIC_ID, blocking, put_segment, put_wal

NEVER_MS = 10**15


@pytest.fixture
def store():
    with blocking() as opened:
        yield opened


def look_up(store, timestamp_ms):
    partition = list_bucket(store, NAMESPACE).partitions[TOPIC, 0]
    return offset_for_timestamp(store, NAMESPACE, partition, timestamp_ms)


def test_ascending_timestamps(store):
    """The timestamp of a stored record is 1000 + its offset."""
    for base in range(0, 60, 20):
        put_segment(store, range(base, base + 20))
    put_wal(store, 0)
    put_wal(store, 1, range(60, 70))
    put_wal(store, 2, range(70, 85))
    for offset in (0, 1, 4, 5, 19, 20, 39, 59, 60, 69, 70, 84):
        assert look_up(store, 1000 + offset) == offset
    assert look_up(store, 0) == 0
    assert look_up(store, 1085) is None


@pytest.mark.parametrize("lost", ["all", "one", "damaged"])
def test_records_are_read_if_an_index_is_missing(store, lost):
    for base in range(0, 60, 20):
        put_segment(store, range(base, base + 20), indexed=lost != "all")
    key = object_keys.index_key(NAMESPACE, TOPIC, 0, 20)
    if lost == "one":
        store.delete([key])
    if lost == "damaged":
        store.put(key, [b"nonsense"], create=False)
    assert [look_up(store, 1000 + offset) for offset in (0, 25, 59, 60)] == [0, 25, 59, None]


def test_records_below_the_log_start_are_ignored(store):
    put_segment(store, range(20))
    store.put(object_keys.log_start_key(NAMESPACE, TOPIC, 0), [b"13"])
    assert look_up(store, 1005) == 13


def test_records_rolled_after_the_listing_are_found(store):
    put_wal(store, 0)
    keys = [put_wal(store, 1, range(10)), put_wal(store, 2, range(10, 20))]
    listed = list_bucket(store, NAMESPACE).partitions[TOPIC, 0]
    put_segment(store, range(20))
    store.delete(keys)
    assert offset_for_timestamp(store, NAMESPACE, listed, 1013) == 13


def test_lookup_of_many_partitions(store):
    for partition in range(40):
        put_segment(store, range(partition, partition + 20), partition=partition)
    partitions = list_bucket(store, NAMESPACE).partitions
    timestamps_ms = {(TOPIC, number): 1025 for number in range(40)} | {(TOPIC, 3): NEVER_MS}
    result = offsets_for_timestamps(store, NAMESPACE, timestamps_ms, partitions)
    assert result == {
        (TOPIC, number): None if number < 6 else max(25, number) for number in range(40)
    }


def test_an_empty_partition_has_no_offset(store):
    assert offset_for_timestamp(store, NAMESPACE, PartitionOffsets(TOPIC, 0, 7, 7), 0) is None


times = st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), min_size=1, max_size=6)


@given(st.lists(times, max_size=3), times)
def test_timestamps_that_do_not_ascend(segments, tail):
    """Batches with any timestamps, in segments and then in the WAL."""
    flat = [time for batches in [*segments, tail] for batch in batches for time in batch]
    with blocking() as store:
        next_offset, greatest = 0, -1
        for batches in segments:
            builder = segment.Builder(0, 1, compression=None, prior_max_timestamp_ms=greatest)
            base = next_offset
            for one in batches:
                builder.append(_batch(next_offset, one))
                next_offset += len(one)
                greatest = max(greatest, *one)
            built = builder.finish()
            store.put(object_keys.segment_key(NAMESPACE, TOPIC, 0, base), built.parts)
            store.put(object_keys.index_key(NAMESPACE, TOPIC, 0, base), [built.index])
        pieces = []
        for one in tail:
            created = _batch(next_offset, one)
            pieces.append(
                wal_object.PartitionData(
                    TOPIC_ID,
                    TOPIC,
                    0,
                    created.buffer,
                    created.base_offset,
                    created.last_offset,
                    max(one),
                )
            )
            next_offset += len(one)
        store.put(
            object_keys.wal_key(NAMESPACE, 0, 0, 0),
            wal_object.encode(wal_object.Header(0, 0, 0, 0), pieces),
        )
        for timestamp_ms in range(32):
            expected = [offset for offset, time in enumerate(flat) if time >= timestamp_ms]
            assert look_up(store, timestamp_ms) == (expected[0] if expected else None)


def _batch(offset, timestamps):
    created = BatchView(
        build([Record(offset + n, time, b"", b"") for n, time in enumerate(timestamps)])
    )
    created.stamp(offset, 0)
    return created
