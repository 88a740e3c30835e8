"""A scrub finds everything that is wrong, and nothing that is not."""

import pytest

from kafscale.spark.jobs.scrub.contiguity import wal_holes
from kafscale.spark.jobs.scrub.findings import Kind
from kafscale.spark.jobs.scrub.listing import LEFT_MS
from kafscale.spark.jobs.scrub.task import GRACE_MS
from kafscale.spark.log.bucket_listing import list_bucket
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.objects.blocking import BlockingObjectStore
from unit.spark.jobs.keyed_log import NOW_MS as WRITTEN_MS
from unit.spark.jobs.keyed_log import MemoryLocation
from unit.spark.jobs.scrubbing import NOW_MS, kinds, only, scrubbed
from unit.spark.stored_log import NAMESPACE, TOPIC, batch, put_fence, put_segment, put_wal

pytestmark = pytest.mark.timeout(120)  # The first test compiles, if nobody did before.


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


def test_a_whole_log_has_no_findings(location, store):
    put_log(store)
    store.put(object_keys.catalog_key(NAMESPACE), [b"{}"])
    store.put(f"{NAMESPACE}/_catalog/compaction/{TOPIC}.json", [b"{}"])
    store.put(object_keys.log_start_key(NAMESPACE, TOPIC, 0), [b"5"])
    store.put(f"{NAMESPACE}/_staging/merge-1-0/{TOPIC}/0/segment-0.kfs", [b"x"])
    report = scrubbed(location, store, now_ms=WRITTEN_MS)
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
        (0, "begins with"),
        (15, "should be at"),
        (19, "records"),
        (40, "checksum is"),
        (-14, "checksum is"),
        (-6, "last offset is"),
        (-1, "ends with"),
    ],
)
def test_every_damaged_byte_of_a_segment_is_found(location, store, position, reason):
    put_log(store)
    damage(store, key_of(20), position)
    report = scrubbed(location, store)
    assert (Kind.SEGMENT, key_of(20)) in kinds(report)
    assert any(reason in each.reason for each in report.findings)
    assert report.summary.problems


def test_records_are_read_to_the_last(location, store):
    """A batch whose checksums hold, but not what it says of itself."""
    wrong = batch(0, 5)
    wrong.buffer[len(wrong.buffer) - 1] = 2  # The last record says it has a header.
    wrong.write_checksum()
    builder = segment.Builder(0, 1, compression=None, prior_max_timestamp_ms=None)
    builder.append(wrong)
    built = builder.finish()
    store.put(key_of(0), built.parts)
    store.put(key_of(0, object_keys.INDEX_SUFFIX), [built.index])
    assert only(scrubbed(location, store)).kind is Kind.SEGMENT


def test_a_segment_under_another_name_is_found(location, store):
    put_segment(store, range(20))
    store.put(key_of(5), [store.get(key_of(0))])
    report = scrubbed(location, store)
    assert (Kind.SEGMENT, key_of(5)) in kinds(report)


def test_wal_objects_are_read(location, store):
    key = put_wal(store, 0, range(10))
    assert scrubbed(location, store).findings == ()
    damage(store, key, 60)
    assert only(scrubbed(location, store)).kind is Kind.WAL
    data = store.get(put_wal(store, 1, range(10, 20)))
    store.put(key, [data], create=False)
    assert "another place" in only(scrubbed(location, store)).reason


def test_missing_offsets_are_found(location, store):
    put_log(store)
    store.delete([key_of(20), key_of(20, object_keys.INDEX_SUFFIX)])
    hole = only(scrubbed(location, store))
    assert (hole.kind, hole.topic) == (Kind.HOLE, TOPIC)
    assert hole.reason == f"{TOPIC}/0 lacks the offsets 20 to 39"


def test_missing_offsets_before_the_wal_are_found(store):
    put_segment(store, range(20))
    put_wal(store, 0, range(25, 30))
    [hole] = wal_holes(list_bucket(store, NAMESPACE, [TOPIC]))
    assert hole.reason == f"{TOPIC}/0 lacks the offsets 20 to 24"


def test_what_a_crash_has_left_beside_its_successor_is_no_damage(location, store):
    put_segment(store, range(40))
    put_segment(store, range(20, 40))
    report = scrubbed(location, store)
    assert only(report).kind is Kind.OVERLAP
    assert report.summary.problems == ()


class Swapping(MemoryLocation):
    """A location where the whole log is swapped after its first segment was read."""

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


def test_segments_that_are_swapped_meanwhile_are_no_findings(location, store):
    put_log(store)
    swapping = Swapping(location.objects)
    report = scrubbed(swapping, store)
    assert swapping.is_swapped
    assert report.findings == ()


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (f"{NAMESPACE}/{TOPIC}/0/segment-{70:020d}.index", Kind.ORPHAN_INDEX),
        (f"{NAMESPACE}/_staging/merge-1-0/{TOPIC}/0/segment-{0:020d}.kfs", Kind.STAGED),
        (f"{NAMESPACE}/_probe/0123456789abcdef", Kind.STAGED),
        (f"{NAMESPACE}/notes.txt", Kind.UNKNOWN),
        (f"{NAMESPACE}/_wal/notes.txt", Kind.UNKNOWN),
        (f"{NAMESPACE}/{TOPIC}/0/segment-7.kfs", Kind.UNKNOWN),
    ],
)
def test_what_belongs_to_nobody_is_told_and_no_damage(location, store, key, kind):
    put_log(store)
    store.put(key, [b"x"])
    report = scrubbed(location, store, now_ms=WRITTEN_MS + LEFT_MS + 1)
    assert kinds(report) == [(kind, key)]
    assert report.summary.problems == ()
    assert report.data()["findings"][0]["kind"] == kind


def test_what_is_of_no_topic_is_told(location, store):
    put_segment(store, range(20), topic="gone")
    put_segment(store, range(20), partition=1)
    report = scrubbed(location, store)
    assert {kind for kind, _ in kinds(report)} == {Kind.ORPHAN_TOPIC}
    assert len(report.findings) == 4
    assert scrubbed(location, store, known={}).findings == (), "nobody knows which topics exist"


def test_only_some_topics_are_checked(location, store):
    put_log(store)
    damage(store, put_segment(store, range(20), topic="other"), 40)
    assert scrubbed(location, store, topics=(TOPIC,)).findings == ()


def test_an_index_may_come_later_than_its_segment(location, store):
    put_segment(store, range(20), indexed=False)
    assert scrubbed(location, store, now_ms=WRITTEN_MS + GRACE_MS - 1).findings == ()
    assert only(scrubbed(location, store, now_ms=NOW_MS)).kind is Kind.MISSING_INDEX
