"""Small segments are merged into one with the same batches."""

from functools import partial
from operator import attrgetter

import pytest

from kafscale.errors import OffsetOutOfRangeError
from kafscale.spark.jobs.merge import job
from kafscale.spark.jobs.shared.segment_install import build_or_skip
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.storage.formats import object_keys, segment
from unit.spark.jobs.keyed_log import MemoryLocation
from unit.spark.stored_log import NAMESPACE, TOPIC, put_segment

RUN = "1234abcd"
NOW_MS = 1_750_000_000_000


@pytest.fixture
def location():
    return MemoryLocation()


@pytest.fixture
def store(location):
    with location.open() as opened:
        yield opened


def batches_of(store, *keys):
    return [
        bytes(batch.buffer) for key in keys for batch in segment.read(key, store.get(key)).batches
    ]


def planned(store):
    [group] = job.plan(list_bucket(store, NAMESPACE, [TOPIC]))
    return group


def test_batches_are_copied_unchanged(location, store):
    keys = [put_segment(store, range(base, base + 25)) for base in range(0, 100, 25)]
    staged = job.merge_group(location, RUN, NOW_MS, planned(store))
    assert staged.key == object_keys.segment_key(
        f"{NAMESPACE}/_staging/merge-{RUN}-{0:020d}", TOPIC, 0, 0
    )
    assert batches_of(store, staged.key) == batches_of(store, *keys)
    merged = segment.read(staged.key, store.get(staged.key))
    assert (merged.header.base_offset, merged.footer.last_offset) == (0, 99)
    assert (staged.record_count, staged.records_before, len(staged.checksums)) == (100, 100, 4)
    assert staged.checksum == merged.footer.checksum
    assert staged.size_bytes == len(store.get(staged.key))


def test_sources_that_were_swapped_in_the_meantime_leave_no_checksums(location, store):
    keys = [put_segment(store, range(base, base + 25)) for base in range(0, 100, 25)]
    group = planned(store)
    put_segment(store, range(100))
    store.delete(keys[1:])
    staged = job.merge_group(location, RUN, NOW_MS, group)
    assert staged.record_count == 100
    assert staged.checksums == ()


def test_group_whose_segments_were_deleted_by_retention_is_skipped(location, store):
    keys = [put_segment(store, range(base, base + 25)) for base in range(0, 100, 25)]
    group = planned(store)
    store.delete(keys[:2])
    build = partial(job.merge_group, location, RUN, NOW_MS)
    with pytest.raises(OffsetOutOfRangeError):
        build(group)
    skipped = build_or_skip(build, attrgetter("topic_partition"), group)
    assert (skipped.topic_partition, skipped.is_outdated) == ((TOPIC, 0), True)


def test_group_with_a_damaged_segment_is_skipped(location, store):
    keys = [put_segment(store, range(base, base + 25)) for base in range(0, 100, 25)]
    group = planned(store)
    data = bytearray(store.get(keys[2]))
    data[60] ^= 1
    store.put(keys[2], [data], create=False)
    build = partial(job.merge_group, location, RUN, NOW_MS)
    skipped = build_or_skip(build, attrgetter("topic_partition"), group)
    assert not skipped.is_outdated
    assert keys[2] in skipped.reason


def test_segment_that_a_crash_left_beside_its_successor_is_merged_once(location, store):
    put_segment(store, range(60))
    put_segment(store, range(40, 60))
    put_segment(store, range(60, 80))
    staged = job.merge_group(location, RUN, NOW_MS, planned(store))
    merged = segment.read(staged.key, store.get(staged.key))
    assert (merged.header.count, merged.footer.last_offset) == (80, 79)
