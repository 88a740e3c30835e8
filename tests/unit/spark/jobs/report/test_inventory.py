"""What is counted of topics: everything once, whatever it is stored as."""

from collections.abc import Iterator

import pytest

from kafscale.records import Codec, Record, build
from kafscale.records.batch import BatchView
from kafscale.spark.jobs.report import inventory
from kafscale.spark.jobs.report.inventory import DAY_MS, Tally
from kafscale.spark.log.bucket_listing import list_bucket
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
    """A segment with a batch for each time; its bytes."""
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


def counted(store: BlockingObjectStore) -> dict[tuple[str, int], Tally]:
    offset_map = list_bucket(store, NAMESPACE)
    tallies = [
        store.run(lambda opened, looks=looks: inventory.count_in(opened, NAMESPACE, looks))
        for looks in inventory.plan(offset_map)
    ]
    return inventory.add_up(offset_map, tallies)


def test_segments_and_the_wal_are_counted_together(store):
    segments = [put_segment(store, range(30)), put_segment(store, range(30, 50))]
    put_segment(store, range(7), partition=1)
    put_wal(store, 0, range(50, 60), range(60, 65))
    found = counted(store)
    first, second = found[TOPIC, 0], found[TOPIC, 1]
    assert (first.records, first.segments) == (65, 2)
    assert first.segment_bytes == sum(store.head(key).size_bytes for key in segments)
    assert first.index_bytes > 0
    assert first.wal_bytes > 0
    assert first.stored_bytes == first.segment_bytes + first.index_bytes + first.wal_bytes
    assert (first.oldest_ms, first.newest_ms) == (1000, 1064)
    assert (second.records, second.segments, second.wal_bytes) == (7, 1, 0)


def test_what_the_wal_still_holds_of_a_segment_is_not_counted_again(store):
    put_segment(store, range(20))
    put_wal(store, 0, range(20), range(20, 30))
    assert counted(store)[TOPIC, 0].records == 30


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_compression_is_what_decompressing_shows(store, codec):
    put(store, codec=codec, times=[NOON_MS] * 3)
    tally = counted(store)[TOPIC, 0]
    assert tally.codecs.keys() == {codec.name.lower()}
    assert 30 * len(VALUE) < tally.inflated_bytes < 33 * len(VALUE)
    assert tally.inflated_bytes > 5 * tally.sampled_bytes


def test_without_compression_nothing_is_larger_than_it_is(store):
    stored = put(store)
    tally = counted(store)[TOPIC, 0]
    overhead_bytes = segment.HEADER_BYTES + segment.FOOTER_BYTES
    assert tally.inflated_bytes == tally.sampled_bytes == len(stored) - overhead_bytes


def test_a_batch_that_is_larger_than_a_sample_is_read_whole(store):
    stored = put(store, count=1, value=bytes(2 * inventory.SAMPLE_BYTES))
    assert counted(store)[TOPIC, 0].sampled_bytes == len(stored) - 48


def test_only_some_segments_are_decompressed_and_of_the_others_the_codec_is_known(store):
    for base_offset in range(0, 400, 10):
        put(store, base_offset, codec=Codec.LZ4 if base_offset else Codec.ZSTD)
    offset_map = list_bucket(store, NAMESPACE)
    looks = [look for task in inventory.plan(offset_map) for look in task]
    assert sum(look.is_sampled for look in looks) == inventory.SAMPLES_MAX
    tally = counted(store)[TOPIC, 0]
    assert tally.segments == 40
    assert tally.codecs.keys() == {"lz4", "zstd"}
    assert tally.codecs["lz4"] > 30 * tally.codecs["zstd"]


def test_bytes_belong_to_the_days_of_their_records(store):
    stored = put(store, times=[NOON_MS - DAY_MS, NOON_MS, NOON_MS])
    days = counted(store)[TOPIC, 0].days
    assert days.keys() == {19_999, 20_000}
    assert days.total() == len(stored) - segment.HEADER_BYTES
    assert days[20_000] > 1.9 * days[19_999]


@pytest.mark.parametrize("time_ms", [-1, 0, NOON_MS + 900 * DAY_MS])
def test_times_that_cannot_be_true_are_those_of_the_segment(store, time_ms):
    put(store, times=[time_ms])
    assert counted(store)[TOPIC, 0].days.keys() == {20_000}


@pytest.mark.parametrize("is_damaged", [False, True])
def test_without_an_index_a_segment_is_from_when_it_was_made(store, is_damaged):
    stored = put(store, times=[NOON_MS - 5 * DAY_MS], indexed=False)
    if is_damaged:
        store.put(object_keys.index_key(NAMESPACE, TOPIC, 0, 0), [b"IDX"])
    tally = counted(store)[TOPIC, 0]
    assert tally.days == {20_000: len(stored)}
    assert (tally.oldest_ms, tally.newest_ms) == (NOON_MS - 5 * DAY_MS,) * 2
    assert not tally.damaged


def test_segments_are_sorted_by_the_power_of_two_below_their_size(store):
    stored = put(store)
    put(store, 10)
    put(store, 20, count=1, value=b"")
    sizes = counted(store)[TOPIC, 0].sizes
    assert sizes.total() == 3
    assert sizes[len(stored).bit_length()] == 2


def test_a_segment_that_has_gone_is_left_out(store):
    put(store)
    put(store, 10)
    offset_map = list_bucket(store, NAMESPACE)
    store.delete([object_keys.segment_key(NAMESPACE, TOPIC, 0, 0)])
    (looks,) = inventory.plan(offset_map)
    (tally,) = store.run(lambda opened: inventory.count_in(opened, NAMESPACE, looks))
    assert (tally.segments, tally.records) == (1, 10)


@pytest.mark.parametrize(
    ("position", "byte", "reason"),
    [
        (0, ord("X"), "magic is"),
        (segment.HEADER_BYTES + 8, 0x7F, "its first batch says it has"),
        (segment.HEADER_BYTES + 100, ord("X"), "the CRC of a batch is"),
    ],
)
def test_a_damaged_segment_is_named_and_counted_by_its_size(store, position, byte, reason):
    key = object_keys.segment_key(NAMESPACE, TOPIC, 0, 0)
    damaged = bytearray(put(store))
    damaged[position] = byte
    store.put(key, [damaged], create=False)
    tally = counted(store)[TOPIC, 0]
    assert tally.segment_bytes == len(damaged)
    (said,) = tally.damaged
    assert said.startswith(f"{key}: {reason}")


def test_many_segments_are_shared_out(store):
    for base_offset in range(2 * inventory.TASK_SEGMENTS + 1):
        put(store, base_offset, count=1, value=b"")
    tasks = inventory.plan(list_bucket(store, NAMESPACE))
    assert [len(looks) for looks in tasks] == [inventory.TASK_SEGMENTS] * 2 + [1]
    assert counted(store)[TOPIC, 0].records == 2 * inventory.TASK_SEGMENTS + 1
