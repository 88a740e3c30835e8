"""Compaction keeps exactly the latest record of each key."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doubles.end_marker import ControlType, build_end_marker
from kafscale.errors import InvalidRequestError
from kafscale.records import BatchView, Codec, Record, build
from kafscale.spark.jobs.compact import job
from kafscale.spark.jobs.compact.job import CompactSettings
from kafscale.storage.compaction.checkpoint import read_checkpoint
from kafscale.storage.formats import object_keys, segment
from unit.spark.jobs.keyed_log import NOW_MS, TOPIC, TOPIC_ID, KeyedLog, delete_horizon_ms

pytestmark = pytest.mark.timeout(120)  # The first test compiles, unless the cache is warm.

DAY_MS = 86_400_000
KEYS = st.none() | st.sampled_from([b"", b"a", b"b", b"c", b"d" * 20])
VALUES = st.none() | st.binary(max_size=5)
PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=6)
BATCHES = st.tuples(PAIRS, st.sampled_from(Codec), st.booleans())
SEGMENTS = st.lists(st.lists(BATCHES, min_size=1, max_size=3), min_size=1, max_size=5)


@pytest.fixture
def log():
    with KeyedLog() as built:
        yield built


def pairs(log):
    return [(record.key, record.value) for record in log.records()]


def survivors(log):
    return [(record.offset, record.key, record.value) for record in log.records()]


def clean_ends(log):
    namespace = log.location.namespace
    return log.store.run(lambda store: read_checkpoint(store, namespace, TOPIC, TOPIC_ID))


def segments(log):
    partition = log.offset_map().partitions[TOPIC, 0]
    return [
        segment.read(each.key, log.store.get(each.key))
        for each in partition.extents
        if not each.is_wal
    ]


def check_whole(log, end_offset):
    """Check that the log has no offset gap and no invalid batch."""
    whole = segments(log)
    for before, after in pairwise(whole):
        assert before.footer.last_offset + 1 == after.header.base_offset
    for batch in log.batches():
        batch.validate(from_producer=False)
    assert log.batches()[-1].next_offset == end_offset


def latest(records):
    """Return the last record of each key, and all records without a key."""
    newest = {record.key: record.offset for record in records}
    return [
        record for record in records if record.key is None or newest[record.key] == record.offset
    ]


@settings(max_examples=60)
@given(plan=SEGMENTS, head=st.lists(PAIRS, max_size=2), target_bytes=st.sampled_from([0, 200, 400]))
def test_latest_record_of_each_key_is_kept_unchanged(plan, head, target_bytes):
    with KeyedLog() as log:
        for batches in plan:
            built = []
            for some, codec, is_stamped in batches:
                built.append(log.batch(some, codec=codec))
                if is_stamped:
                    built[-1].stamp_append_time(log.time_ms)
            log.put_segment(built)
        clean_end = log.next_offset
        if head:
            log.put_wal([log.batch(some) for some in head])
        before = log.records()
        log.compact(is_forced=True, target_bytes=target_bytes)
        after = log.records()
        check_whole(log, log.next_offset)
        assert set(after) <= set(before)
        assert set(latest(before)) <= set(after)
        assert all(record in after for record in before if record.offset >= clean_end)
        for record in set(after) - set(latest(before)):
            assert record.offset >= clean_end or is_only_record(log, record.offset)
        assert not list(log.store.list("default/_staging/"))
        log.compact(is_forced=True, target_bytes=target_bytes)
        # Small segments are merged, so that the only records of empty segments can be dropped.
        assert set(latest(before)) <= set(log.records()) <= set(after)
        check_whole(log, log.next_offset)


def is_only_record(log, offset):
    """Whether a record was kept because its segment would be empty otherwise."""
    return any(
        each.header.count == 1
        for each in segments(log)
        if each.header.base_offset <= offset <= each.footer.last_offset
    )


def test_tombstones_stay_until_their_delete_horizon(log):
    log.configure(delete_retention_ms=str(DAY_MS))
    log.put_pairs([(b"a", b"1"), (b"b", b"1")], [(b"a", None), (b"c", b"1")])
    before = log.records()
    log.compact(NOW_MS)
    assert pairs(log) == [(b"b", b"1"), (b"a", None), (b"c", b"1")]
    horizons = [delete_horizon_ms(batch) for batch in log.batches()]
    assert horizons == [None, NOW_MS + DAY_MS]
    assert set(log.records()) <= set(before), "timestamps are unchanged"
    log.compact(NOW_MS + DAY_MS - 1, is_forced=True)
    assert (b"a", None) in pairs(log)
    log.compact(NOW_MS + DAY_MS, is_forced=True)
    assert pairs(log) == [(b"b", b"1"), (b"c", b"1")]
    check_whole(log, 4)


def test_tombstone_is_dropped_only_after_the_records_that_it_deletes(log):
    """A run may die between the swap of the tombstone and that of the deleted records."""
    log.configure(delete_retention_ms="0")
    log.put_pairs([(b"a", b"1"), (b"b", b"1")])
    tombstone = log.batch([(b"a", None), (b"c", b"1")])
    log.put_segment([tombstone])
    log.compact(NOW_MS, target_bytes=1)
    assert (b"a", None) in pairs(log)
    # As if the first segment had never been swapped.
    log.next_offset = 0
    log.put_pairs([(b"a", b"1"), (b"b", b"1")])
    log.compact(NOW_MS + 10, is_forced=True, target_bytes=1)
    assert pairs(log) == [(b"b", b"1"), (b"a", None), (b"c", b"1")]
    log.compact(NOW_MS + 20, is_forced=True, target_bytes=1)
    assert pairs(log) == [(b"b", b"1"), (b"c", b"1")]


def test_record_kept_for_its_segment_alone_is_not_clean(log):
    """An owner that compacts next must not drop the tombstone and leave the obsolete record."""
    log.put_pairs([(b"a", b"1")])
    log.put_pairs([(b"b", b"1")])
    log.put_pairs([(b"b", b"2"), (b"a", None)])
    log.compact(target_bytes=1)
    assert [offset for offset, _, _ in survivors(log)] == [0, 1, 2, 3]
    assert clean_ends(log) == {0: 0}
    log.compact()
    assert [offset for offset, _, _ in survivors(log)] == [2, 3]
    assert clean_ends(log) == {0: 4}


def test_head_makes_records_obsolete_and_is_not_rewritten(log):
    log.configure(min_compaction_lag_ms="1000")
    log.put_pairs([(b"a", b"1"), (b"b", b"1")])
    log.time_ms = NOW_MS + 60_000
    log.put_pairs([(b"b", b"2"), (b"b", b"3")])
    log.put_wal([log.batch([(b"a", b"2"), (b"a", b"3")])])
    before = log.records()
    assert not log.compact(NOW_MS + 900, is_forced=True)
    assert log.records() == before
    log.compact(NOW_MS + 60_900, is_forced=True)
    # One record of the first segment stays, because a segment must have one.
    assert pairs(log) == [(b"b", b"1"), (b"b", b"2"), (b"b", b"3"), (b"a", b"2"), (b"a", b"3")]
    check_whole(log, 6)


def test_aborted_records_are_dropped_and_make_no_record_obsolete(log):
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    first = log.batch([(b"a", b"1")])
    inside = log.batch([(b"a", b"2"), (None, b"3")], **producer)
    marker = build_end_marker(
        ControlType.ABORT, offset=3, timestamp_ms=NOW_MS, producer_id=1, producer_epoch=0
    )
    log.next_offset += 1
    last = log.batch([(b"b", b"1"), (b"b", b"2")])
    log.put_segment([first, inside, BatchView(marker), last])
    log.store.put(object_keys.transactions_key(log.location.namespace, TOPIC, 0), [b"1"])
    log.compact(is_forced=True)
    assert [record.offset for record in log.records()] == [0, 3, 5]
    log.compact(is_forced=True)  # The marker gets a horizon, because nothing is left.
    (horizon_ms,) = [delete_horizon_ms(batch) for batch in log.batches() if batch.is_control]
    assert horizon_ms == NOW_MS + 24 * 3600 * 1000
    log.compact(horizon_ms, is_forced=True)
    assert [record.offset for record in log.records()] == [0, 5]


def test_damaged_partition_is_not_rewritten(log):
    log.put_pairs([(b"a", b"1"), (b"a", b"2")])
    key = log.put_pairs([(b"a", b"3")])
    data = bytearray(log.store.get(key))
    data[100] ^= 1
    log.store.put(key, [data], create=False)
    assert not log.compact(is_forced=True)
    assert log.segment_bases() == [0, 2]


def test_only_dirty_partitions_are_compacted(log):
    log.put_pairs([(b"%d" % number, b"1") for number in range(20)])
    log.put_pairs([(b"0", b"2"), (b"1", b"2")])
    assert log.compact()
    assert not log.compact()
    log.put_pairs([(b"0", b"3")])
    assert not log.compact(), "too little is dirty"
    log.configure(max_compaction_lag_ms="1000")
    assert not log.compact(NOW_MS + 900)
    assert log.compact(NOW_MS + 5000)
    log.configure(min_cleanable_dirty_ratio="0.01")
    log.put_pairs([(b"0", b"4")])
    assert log.compact()


def test_topics_with_another_policy_are_compacted_only_if_forced(log):
    log.configure(cleanup_policy="delete")
    log.put_pairs([(b"a", b"1"), (b"a", b"2")])
    with pytest.raises(InvalidRequestError, match="has to be forced"):
        log.compact()
    assert log.compact(is_forced=True)


def test_force_requires_topic_names(log):
    everything = CompactSettings(location=log.location, control=(), is_forced=True)
    with pytest.raises(InvalidRequestError, match="name the topics"):
        job.run(None, everything, clock=lambda: 0, random=None)


def test_batch_that_loses_no_record_is_copied(log):
    """Recompressing may yield other bytes; copying does not."""
    records = [Record(number, NOW_MS, b"%d" % number, b"x" * 50) for number in range(30)]
    batch = BatchView(build(records, codec=Codec.GZIP))
    log.put_segment([batch])
    log.next_offset = 30
    log.put_pairs([(b"new", b"1")])
    log.compact(is_forced=True)
    assert bytes(log.batches()[0].buffer) == bytes(batch.buffer)
