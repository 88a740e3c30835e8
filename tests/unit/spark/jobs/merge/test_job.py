"""Small segments become one, with the same batches in it."""

from functools import partial
from operator import attrgetter

import pytest

from kafscale.errors import OffsetOutOfRangeError
from kafscale.spark.jobs.merge import job
from kafscale.spark.jobs.shared.segment_install import attempt
from kafscale.spark.log.bucket_listing import list_bucket
from kafscale.storage.formats import object_keys, segment
from unit.spark.jobs.keyed import MemoryLocation
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


def test_all_batches_are_copied_as_they_are(location, store):
    keys = [put_segment(store, range(base, base + 25)) for base in range(0, 100, 25)]
    staged = job.merge_one(location, RUN, NOW_MS, planned(store))
    assert staged.key == object_keys.segment_key(
        f"{NAMESPACE}/_staging/merge-{RUN}-{0:020d}", TOPIC, 0, 0
    )
    assert batches_of(store, staged.key) == batches_of(store, *keys)
    found = segment.read(staged.key, store.get(staged.key))
    assert (found.header.base_offset, found.footer.last_offset) == (0, 99)
    assert (staged.record_count, staged.records_before, len(staged.checksums)) == (100, 100, 4)
    assert staged.checksum == found.footer.checksum
    assert staged.size_bytes == len(store.get(staged.key))


def test_what_was_swapped_meanwhile_is_read_and_its_proof_does_not_hold(location, store):
    keys = [put_segment(store, range(base, base + 25)) for base in range(0, 100, 25)]
    group = planned(store)
    put_segment(store, range(100))
    store.delete(keys[1:])
    staged = job.merge_one(location, RUN, NOW_MS, group)
    assert staged.record_count == 100
    assert staged.checksums == ()


def test_what_retention_has_passed_is_not_made_up(location, store):
    keys = [put_segment(store, range(base, base + 25)) for base in range(0, 100, 25)]
    group = planned(store)
    store.delete(keys[:2])
    make = partial(job.merge_one, location, RUN, NOW_MS)
    with pytest.raises(OffsetOutOfRangeError):
        make(group)
    skipped = attempt(make, attrgetter("place"), group)
    assert (skipped.place, skipped.is_outdated) == ((TOPIC, 0), True)


def test_a_damaged_segment_is_told(location, store):
    keys = [put_segment(store, range(base, base + 25)) for base in range(0, 100, 25)]
    group = planned(store)
    data = bytearray(store.get(keys[2]))
    data[60] ^= 1
    store.put(keys[2], [data], create=False)
    make = partial(job.merge_one, location, RUN, NOW_MS)
    skipped = attempt(make, attrgetter("place"), group)
    assert not skipped.is_outdated
    assert keys[2] in skipped.reason


def test_what_a_crash_has_left_beside_its_successor_is_merged_once(location, store):
    put_segment(store, range(60))
    put_segment(store, range(40, 60))
    put_segment(store, range(60, 80))
    staged = job.merge_one(location, RUN, NOW_MS, planned(store))
    found = segment.read(staged.key, store.get(staged.key))
    assert (found.header.count, found.footer.last_offset) == (80, 79)
