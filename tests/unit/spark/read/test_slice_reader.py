"""Tests of the slice reader: every batch once, in order, while objects change."""

import pytest

from kafscale.errors import DamagedObjectError, OffsetOutOfRangeError
from kafscale.spark.read import slice_reader
from kafscale.spark.read.slice_reader import SliceReader
from kafscale.storage.formats import object_keys
from unit.spark.stored_log import (
    NAMESPACE,
    TOPIC,
    HeadStore,
    batch,
    blocking,
    offsets_of,
    put_segment,
    put_wal,
    slices,
)


@pytest.fixture
def store():
    with blocking() as opened:
        yield opened


def reader(store, **options):
    return SliceReader(store, NAMESPACE, sleep=lambda _seconds: None, **options)


def read(store, parts=None, **options):
    """Return the offsets of the batches that are read."""
    return offsets_of(
        one
        for part in (parts or slices(store))
        for group in reader(store, **options).read(part)
        for one in group.batches
    )


def segment_key(base):
    return object_keys.segment_key(NAMESPACE, TOPIC, 0, base)


def test_reader_joins_segments_and_wal(store):
    put_segment(store, range(30))
    put_segment(store, range(30, 50))
    put_wal(store, 0)
    put_wal(store, 1, range(45, 60))
    put_wal(store, 2, range(60, 75))
    assert read(store) == list(range(75))


def test_wal_is_read_without_head_requests():
    objects = HeadStore()
    with blocking(objects) as store:
        put_segment(store, range(30))
        put_wal(store, 1, range(30, 60))
        assert read(store) == list(range(60))
    assert objects.head_keys == [object_keys.catalog_key(NAMESPACE)]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_reader_starts_within_a_segment(store, is_indexed, monkeypatch):
    monkeypatch.setitem(slice_reader.__dict__, "INDEXED_BYTES_MIN", 0)
    put_segment(store, range(100), indexed=is_indexed)
    assert read(store, slices(store, range(33, 61))) == list(range(30, 65))


@pytest.mark.parametrize("chunk_bytes", [50, 64, 137, 300, 1000])
def test_reader_joins_batches_across_chunks(store, chunk_bytes, monkeypatch):
    monkeypatch.setitem(slice_reader.__dict__, "CHUNK_BYTES", chunk_bytes)
    put_segment(store, range(100))
    put_wal(store, 0, range(100, 140))
    assert read(store) == list(range(140))


def test_reader_follows_records_that_are_rolled(store):
    keys = [put_wal(store, number, range(number * 10, number * 10 + 10)) for number in range(4)]
    parts = slices(store)
    put_segment(store, range(40))
    store.delete(keys[:3])
    assert read(store, parts) == list(range(40))


@pytest.mark.parametrize("after", [0, 1, 3])
def test_reader_reads_batches_once_while_segments_are_merged(store, after):
    for base in range(0, 50, 10):
        put_segment(store, range(base, base + 10))
    (part,) = slices(store)
    reading = reader(store).read(part)
    batches = [one for _ in range(after) for one in next(reading).batches]
    put_segment(store, range(50))
    store.delete([segment_key(base) for base in range(10, 50, 10)])
    batches += [one for group in reading for one in group.batches]
    assert offsets_of(batches) == list(range(50))


def test_reader_lists_again_if_a_segment_was_replaced(store, monkeypatch):
    monkeypatch.setitem(slice_reader.__dict__, "INDEXED_BYTES_MIN", 0)
    monkeypatch.setitem(slice_reader.__dict__, "CHUNK_BYTES", 100)
    put_segment(store, range(10))
    put_segment(store, range(10, 20))
    put_segment(store, range(20, 30))
    (part,) = slices(store, range(12, 28))
    reading = reader(store).read(part)
    batches = list(next(reading).batches)
    put_segment(store, range(30))
    store.delete([segment_key(10), segment_key(20)])
    batches += [one for group in reading for one in group.batches]
    assert offsets_of(batches) == list(range(10, 30))


def test_offsets_deleted_by_retention_are_a_loss(store):
    for base in (0, 10, 20):
        put_segment(store, range(base, base + 10))
    parts = slices(store)
    store.delete([segment_key(0), segment_key(10)])
    with pytest.raises(OffsetOutOfRangeError, match=r"offsets 0 to 19 of orders/0.*failOnDataLoss"):
        read(store, parts)
    assert read(store, parts, fail_on_data_loss=False) == list(range(20, 30))


def test_a_deleted_topic_is_a_loss(store):
    put_segment(store, range(10))
    parts = slices(store)
    store.delete([segment_key(0)])
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 9"):
        read(store, parts)
    assert read(store, parts, fail_on_data_loss=False) == []


def test_a_gap_in_the_log_is_a_loss(store):
    put_segment(store, range(10))
    put_segment(store, range(15, 30))
    with pytest.raises(OffsetOutOfRangeError, match="offsets 10 to 14"):
        read(store)
    assert read(store, fail_on_data_loss=False) == [*range(10), *range(15, 30)]


def test_a_damaged_object_is_an_error(store):
    key = put_segment(store, range(30))
    data = bytearray(store.get(key))
    data[200] ^= 0xFF
    store.put(key, [bytes(data)], create=False)
    with pytest.raises(DamagedObjectError, match=key):
        read(store, fail_on_data_loss=False)


def test_an_invalid_batch_length_is_an_error(store):
    key = put_segment(store, range(30))
    data = bytearray(store.get(key))
    data[32 + 8 : 32 + 12] = (3).to_bytes(4, "big")
    store.put(key, [bytes(data)], create=False)
    with pytest.raises(DamagedObjectError, match=key):
        read(store)


def test_stored_batches_have_the_given_offsets():
    assert offsets_of([batch(7, 3)]) == [7, 8, 9]
