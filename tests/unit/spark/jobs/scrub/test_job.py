"""A scrub reports all damage, and no damage where there is none."""

import pytest

from kafscale.spark.jobs.scrub.contiguity import check_wal
from kafscale.spark.jobs.scrub.listing import LEFTOVER_MS, FindingKind
from kafscale.spark.jobs.scrub.task import GRACE_MS
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.storage.formats import object_keys, segment, wal_object
from kafscale.storage.objects.blocking import BlockingObjectStore
from unit.spark.jobs.keyed_log import NOW_MS as WRITTEN_MS
from unit.spark.jobs.keyed_log import MemoryLocation
from unit.spark.jobs.scrub.local_scrub import NOW_MS, kinds, only, scrub
from unit.spark.stored_log import (
    NAMESPACE,
    TOPIC,
    TOPIC_ID,
    HeadStore,
    batch,
    put_fence,
    put_segment,
    put_wal,
)

pytestmark = pytest.mark.timeout(120)  # The first test compiles, unless the cache is warm.


@pytest.fixture
def location():
    return MemoryLocation()


@pytest.fixture
def store(location):
    with location.open() as opened:
        yield opened


def key_of(base, suffix=object_keys.SEGMENT_SUFFIX):
    return f"{NAMESPACE}/{TOPIC}/0/segment-{base:020d}{suffix}"


def damage(store, key, position, flipped=1):
    data = bytearray(store.get(key))
    data[position] ^= flipped
    store.put(key, [data], create=False)


def put_log(store):
    for base in range(0, 60, 20):
        put_segment(store, range(base, base + 20))
    put_wal(store, 0)
    put_wal(store, 1, range(55, 70))
    put_fence(store, 2)


def test_undamaged_log_has_no_findings(location, store):
    put_log(store)
    store.put(object_keys.catalog_key(NAMESPACE), [b"{}"])
    store.put(f"{NAMESPACE}/_catalog/compaction/{TOPIC}.json", [b"{}"])
    store.put(object_keys.log_start_key(NAMESPACE, TOPIC, 0), [b"5"])
    store.put(f"{NAMESPACE}/_staging/merge-1-0/{TOPIC}/0/segment-0.kfs", [b"x"])
    report = scrub(location, store, now_ms=WRITTEN_MS)
    assert report.findings == ()
    assert report.summary.data()["rows"] == [
        {
            "topic": TOPIC,
            "partitions": 1,
            "segments": 3,
            "records": 60,
            "bytes": sum(store.head(key_of(base)).size_bytes for base in (0, 20, 40)),
            "damaged": 0,
            "repaired": 0,
        }
    ]


@pytest.mark.parametrize(
    ("position", "reason"),
    [
        (0, "magic is"),
        (15, "expected at"),
        (19, "records"),
        (40, "checksum mismatch"),
        (-14, "checksum mismatch"),
        (-6, "last offset is"),
        (-1, "end magic is"),
    ],
)
def test_every_damaged_byte_of_a_segment_is_found(location, store, position, reason):
    put_log(store)
    damage(store, key_of(20), position)
    report = scrub(location, store)
    assert (FindingKind.SEGMENT, key_of(20)) in kinds(report)
    assert any(reason in each.reason for each in report.findings)
    assert report.summary.problems


def test_undecodable_record_is_found(location, store):
    """The checksums of the batch are correct, but its last record is not."""
    wrong = batch(0, 5)
    wrong.buffer[len(wrong.buffer) - 1] = 2  # The last record claims to have a header.
    wrong.write_checksum()
    builder = segment.Builder(0, 1, compression=None, prior_max_timestamp_ms=None)
    builder.append(wrong)
    built = builder.finish()
    store.put(key_of(0), built.parts)
    store.put(key_of(0, object_keys.INDEX_SUFFIX), [built.index])
    assert only(scrub(location, store)).kind is FindingKind.SEGMENT


def test_segment_under_another_key_is_found(location, store):
    put_segment(store, range(20))
    store.put(key_of(5), [store.get(key_of(0))])
    report = scrub(location, store)
    assert (FindingKind.SEGMENT, key_of(5)) in kinds(report)


def test_wal_object_of_several_partitions_is_undamaged(location, store):
    """Offsets ascend within a partition only."""
    created = [
        wal_object.PartitionData(
            TOPIC_ID, TOPIC, number, one.buffer, one.base_offset, one.last_offset, 0
        )
        for number, one in ((0, batch(50, 10)), (1, batch(0, 5)))
    ]
    header = wal_object.Header(0, 0, 0, 0)
    store.put(object_keys.wal_key(NAMESPACE, 0, 0, 0), wal_object.encode(header, created))
    assert kinds(scrub(location, store)) == []


def test_damaged_and_misplaced_wal_objects_are_found(location, store):
    key = put_wal(store, 0, range(10))
    assert scrub(location, store).findings == ()
    damage(store, key, 60)
    assert only(scrub(location, store)).kind is FindingKind.WAL
    data = store.get(put_wal(store, 1, range(10, 20)))
    store.put(key, [data], create=False)
    assert "sequence 1, which differs from its name" in only(scrub(location, store)).reason


def test_undamaged_objects_are_read_without_head_requests():
    objects = HeadStore()
    location = MemoryLocation(objects)
    with location.open() as store:
        put_log(store)
        assert scrub(location, store).findings == ()
    assert objects.head_keys == []


def test_missing_offsets_are_found(location, store):
    put_log(store)
    store.delete([key_of(20), key_of(20, object_keys.INDEX_SUFFIX)])
    gap = only(scrub(location, store))
    assert (gap.kind, gap.topic) == (FindingKind.GAP, TOPIC)
    assert gap.reason == f"{TOPIC}/0 lacks the offsets 20 to 39"


def test_missing_offsets_before_the_wal_are_found(store):
    put_segment(store, range(20))
    put_wal(store, 0, range(25, 30))
    [gap] = check_wal(list_bucket(store, NAMESPACE, [TOPIC]))
    assert gap.reason == f"{TOPIC}/0 lacks the offsets 20 to 24"


def test_segment_that_a_crash_left_beside_its_successor_is_no_damage(location, store):
    put_segment(store, range(40))
    put_segment(store, range(20, 40))
    report = scrub(location, store)
    assert only(report).kind is FindingKind.OVERLAP
    assert report.summary.problems == ()


class SwappingLocation(MemoryLocation):
    """A location where all segments are swapped after the first one was read."""

    def __init__(self, objects):
        self.objects = objects
        self.is_swapped = False

    def __getattr__(self, name):
        return getattr(self.objects, name)

    def open(self):
        return BlockingObjectStore(lambda: self)

    async def get(self, key):
        data = await self.objects.get(key)
        if not self.is_swapped:
            self.is_swapped = True
            builder = segment.Builder(0, 1, compression=None, prior_max_timestamp_ms=None)
            for base in range(0, 60, 5):
                builder.append(batch(base))
            built = builder.finish()
            await self.objects.put(key_of(0), built.parts, create=False)
            await self.objects.put(key_of(0, object_keys.INDEX_SUFFIX), [built.index], create=False)
            await self.objects.delete([key_of(20), key_of(20, object_keys.INDEX_SUFFIX)])
            await self.objects.delete([key_of(40), key_of(40, object_keys.INDEX_SUFFIX)])
        return data


def test_segments_that_are_swapped_during_the_scrub_are_no_findings(location, store):
    put_log(store)
    swapping = SwappingLocation(location.objects)
    report = scrub(swapping, store)
    assert swapping.is_swapped
    assert report.findings == ()


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (f"{NAMESPACE}/{TOPIC}/0/segment-{70:020d}.index", FindingKind.ORPHAN_INDEX),
        (f"{NAMESPACE}/_staging/merge-1-0/{TOPIC}/0/segment-{0:020d}.kfs", FindingKind.STAGED),
        (f"{NAMESPACE}/_probe/0123456789abcdef", FindingKind.STAGED),
        (f"{NAMESPACE}/notes.txt", FindingKind.UNKNOWN),
        (f"{NAMESPACE}/_wal/notes.txt", FindingKind.UNKNOWN),
        (f"{NAMESPACE}/{TOPIC}/0/segment-7.kfs", FindingKind.UNKNOWN),
    ],
)
def test_orphans_are_reported_but_are_no_damage(location, store, key, kind):
    put_log(store)
    store.put(key, [b"x"])
    report = scrub(location, store, now_ms=WRITTEN_MS + LEFTOVER_MS + 1)
    assert kinds(report) == [(kind, key)]
    assert report.summary.problems == ()
    assert report.data()["findings"][0]["kind"] == kind


def test_segments_of_unknown_topics_are_reported(location, store):
    put_segment(store, range(20), topic="gone")
    put_segment(store, range(20), partition=1)
    report = scrub(location, store)
    assert {kind for kind, _ in kinds(report)} == {FindingKind.ORPHAN_TOPIC}
    assert len(report.findings) == 4
    assert scrub(location, store, known={}).findings == (), "there is no catalog"


def test_only_selected_topics_are_verified(location, store):
    put_log(store)
    damage(store, put_segment(store, range(20), topic="other"), 40)
    assert scrub(location, store, topics=(TOPIC,)).findings == ()


def test_index_may_be_written_later_than_its_segment(location, store):
    put_segment(store, range(20), indexed=False)
    assert scrub(location, store, now_ms=WRITTEN_MS + GRACE_MS - 1).findings == ()
    assert only(scrub(location, store, now_ms=NOW_MS)).kind is FindingKind.MISSING_INDEX
