"""The usage of topics counts every record once, in segments and in the WAL."""

from collections.abc import Iterator

import pytest

from kafscale.records import Codec, Record, build
from kafscale.records.batch import BatchView
from kafscale.spark.jobs.report import inventory
from kafscale.spark.jobs.report.inventory import DAY_MS, PartitionUsage
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.objects.blocking import BlockingObjectStore
from unit.spark.stored_log import NAMESPACE, TOPIC, blocking, put_segment, put_wal

NOON_MS = 20_000 * DAY_MS + DAY_MS // 2
VALUE = b"the same again and again " * 40


@pytest.fixture
def store() -> Iterator[BlockingObjectStore]:
    with blocking() as opened:
        yield opened


def put(
    store,
    base_offset=0,
    *,
    times=(NOON_MS,),
    codec=Codec.NONE,
    created_ms=NOON_MS + 1,
    count=10,
    partition=0,
    indexed=True,
    value=VALUE,
) -> bytes:
    """Write a segment with a batch for each time; return its bytes."""
    builder = segment.Builder(created_ms, 1, compression=None, prior_max_timestamp_ms=-1)
    offset = base_offset
    for time_ms in times:
        records = [Record(offset + number, time_ms, None, value) for number in range(count)]
        builder.append(BatchView(build(records, codec=codec)))
        offset += count
    built = builder.finish()
    store.put(object_keys.segment_key(NAMESPACE, TOPIC, partition, base_offset), built.parts)
    if indexed:
        store.put(object_keys.index_key(NAMESPACE, TOPIC, partition, base_offset), [built.index])
    return b"".join(built.parts)


def measure(store: BlockingObjectStore) -> dict[tuple[str, int], PartitionUsage]:
    offset_map = list_bucket(store, NAMESPACE)
    results = [
        store.run(lambda objects, items=items: inventory.measure_segments(objects, items))
        for items in inventory.plan(offset_map)
    ]
    return inventory.sum_usages(offset_map, results)


def test_usage_includes_segments_and_wal(store):
    segments = [put_segment(store, range(30)), put_segment(store, range(30, 50))]
    put_segment(store, range(7), partition=1)
    put_wal(store, 0, range(50, 60), range(60, 65))
    usages = measure(store)
    first, second = usages[TOPIC, 0], usages[TOPIC, 1]
    assert (first.records, first.segments) == (65, 2)
    assert first.segment_bytes == sum(store.head(key).size_bytes for key in segments)
    assert first.index_bytes > 0
    assert first.wal_bytes > 0
    assert first.stored_bytes == first.segment_bytes + first.index_bytes + first.wal_bytes
    assert (first.oldest_ms, first.newest_ms) == (1000, 1064)
    assert (second.records, second.segments, second.wal_bytes) == (7, 1, 0)


def test_records_in_segment_and_wal_are_counted_once(store):
    put_segment(store, range(20))
    put_wal(store, 0, range(20), range(20, 30))
    assert measure(store)[TOPIC, 0].records == 30


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_compression_is_measured_by_decompressing(store, codec):
    put(store, codec=codec, times=[NOON_MS] * 3)
    usage = measure(store)[TOPIC, 0]
    assert usage.codecs.keys() == {codec.name.lower()}
    assert 30 * len(VALUE) < usage.inflated_bytes < 33 * len(VALUE)
    assert usage.inflated_bytes > 5 * usage.sampled_bytes


def test_uncompressed_segment_has_equal_sizes(store):
    stored = put(store)
    usage = measure(store)[TOPIC, 0]
    overhead_bytes = segment.HEADER_BYTES + segment.FOOTER_BYTES
    assert usage.inflated_bytes == usage.sampled_bytes == len(stored) - overhead_bytes


def test_batch_larger_than_a_sample_is_read_completely(store):
    stored = put(store, count=1, value=bytes(2 * inventory.SAMPLE_BYTES))
    assert measure(store)[TOPIC, 0].sampled_bytes == len(stored) - 48


def test_only_some_segments_are_sampled_but_all_codecs_are_counted(store):
    for base_offset in range(0, 400, 10):
        put(store, base_offset, codec=Codec.LZ4 if base_offset else Codec.ZSTD)
    offset_map = list_bucket(store, NAMESPACE)
    items = [item for task in inventory.plan(offset_map) for item in task]
    assert sum(item.is_sampled for item in items) == inventory.SAMPLES_MAX
    usage = measure(store)[TOPIC, 0]
    assert usage.segments == 40
    assert usage.codecs.keys() == {"lz4", "zstd"}
    assert usage.codecs["lz4"] > 30 * usage.codecs["zstd"]


def test_bytes_are_counted_by_the_day_of_their_records(store):
    stored = put(store, times=[NOON_MS - DAY_MS, NOON_MS, NOON_MS])
    days = measure(store)[TOPIC, 0].days
    assert days.keys() == {19_999, 20_000}
    assert days.total() == len(stored) - segment.HEADER_BYTES
    assert days[20_000] > 1.9 * days[19_999]


@pytest.mark.parametrize("time_ms", [-1, 0, NOON_MS + 900 * DAY_MS])
def test_implausible_timestamps_are_replaced_by_the_segment_time(store, time_ms):
    put(store, times=[time_ms])
    assert measure(store)[TOPIC, 0].days.keys() == {20_000}


@pytest.mark.parametrize("is_damaged", [False, True])
def test_segment_without_an_index_counts_for_the_day_of_its_creation(store, is_damaged):
    stored = put(store, times=[NOON_MS - 5 * DAY_MS], indexed=False)
    if is_damaged:
        store.put(object_keys.index_key(NAMESPACE, TOPIC, 0, 0), [b"IDX"])
    usage = measure(store)[TOPIC, 0]
    assert usage.days == {20_000: len(stored)}
    assert (usage.oldest_ms, usage.newest_ms) == (NOON_MS - 5 * DAY_MS,) * 2
    assert not usage.damaged


def test_segments_are_counted_by_the_power_of_two_of_their_size(store):
    stored = put(store)
    put(store, 10)
    put(store, 20, count=1, value=b"")
    sizes = measure(store)[TOPIC, 0].sizes
    assert sizes.total() == 3
    assert sizes[len(stored).bit_length()] == 2


def test_deleted_segment_is_omitted(store):
    put(store)
    put(store, 10)
    offset_map = list_bucket(store, NAMESPACE)
    store.delete([object_keys.segment_key(NAMESPACE, TOPIC, 0, 0)])
    (items,) = inventory.plan(offset_map)
    (usage,) = store.run(lambda objects: inventory.measure_segments(objects, items))
    assert (usage.segments, usage.records) == (1, 10)


@pytest.mark.parametrize(
    ("position", "byte", "reason"),
    [
        (0, ord("X"), "magic is"),
        (segment.HEADER_BYTES + 8, 0x7F, "its first batch has an invalid length"),
        (segment.HEADER_BYTES + 100, ord("X"), "batch CRC mismatch"),
    ],
)
def test_damaged_segment_is_reported_and_counted_by_its_size(store, position, byte, reason):
    key = object_keys.segment_key(NAMESPACE, TOPIC, 0, 0)
    damaged = bytearray(put(store))
    damaged[position] = byte
    store.put(key, [damaged], create=False)
    usage = measure(store)[TOPIC, 0]
    assert usage.segment_bytes == len(damaged)
    (problem,) = usage.damaged
    assert problem.startswith(f"{key}: {reason}")


def test_many_segments_are_split_into_tasks(store):
    for base_offset in range(2 * inventory.TASK_SEGMENTS + 1):
        put(store, base_offset, count=1, value=b"")
    tasks = inventory.plan(list_bucket(store, NAMESPACE))
    assert [len(items) for items in tasks] == [inventory.TASK_SEGMENTS] * 2 + [1]
    assert measure(store)[TOPIC, 0].records == 2 * inventory.TASK_SEGMENTS + 1
