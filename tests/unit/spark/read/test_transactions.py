"""Committed records are read exactly, from segments and the WAL: comparison with a model."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafscale.records import Codec
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.storage.objects.memory import MemoryObjectStore
from unit.spark.jobs.keyed_log import NOW_MS, TOPIC
from unit.spark.stored_log import blocking, put_segment, put_wal
from unit.spark.transactional_log import ABORT, COMMIT, IndexKind, TransactionalLog

PRODUCERS = range(1, 4)

append = st.tuples(
    st.just("append"), st.sampled_from(PRODUCERS), st.integers(1, 4), st.sampled_from(Codec)
)
plain = st.tuples(st.just("plain"), st.sampled_from([-1, 7]), st.integers(1, 3))
end = st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.sampled_from([ABORT, COMMIT]))
flush = st.just(("flush",))
roll = st.tuples(st.just("roll"), st.integers(1, 8), st.sampled_from(IndexKind))
merge = st.tuples(
    st.just("merge"),
    st.integers(0, 5),
    st.integers(1, 3),
    st.sampled_from(IndexKind),
    st.booleans(),
)
steps = st.lists(
    append | append | plain | end | end | flush | roll | merge, min_size=1, max_size=40
)


def take(log: TransactionalLog, step: tuple) -> None:
    match step:
        case ("append", producer_id, count, codec):
            log.append(producer_id, count, codec=codec)
        case ("plain", producer_id, count):
            log.append(producer_id, count, transactional=False)
        case ("end", producer_id, control_type):
            log.end(producer_id, control_type)
        case ("flush",):
            log.flush()
        case ("roll", count, index):
            log.flush()
            left = len(log.batches) - log.rolled_count
            if left:
                log.roll(min(count, left), index)
        case ("merge", first, count, index, is_complete):
            last = min(first + count, len(log.segments) - 1)
            if first < last:
                log.merge(first, last, index, is_complete=is_complete)


@given(steps, st.data())
@settings(deadline=None)
def test_a_query_reads_the_committed_records_of_its_offsets(history, data):
    with TransactionalLog() as log:
        for step in history:
            take(log, step)
        log.flush()
        if not log.batches:
            return
        lister = log.lister()
        offset_map = lister.list([TOPIC], committed=True)
        partition = offset_map.partitions[TOPIC, 0]
        assert partition.end_offset == log.last_stable_offset
        assert partition.high_watermark == log.next_offset
        start = data.draw(st.integers(0, partition.end_offset))
        stop = data.draw(st.integers(start, partition.end_offset))
        size = data.draw(st.integers(1, 500))
        found = log.read(lister, offset_map, start, stop, task_bytes=size)
        assert found == [each for each in log.committed() if start <= each[0] < stop]
        uncommitted = lister.list([TOPIC])
        end = uncommitted.partitions[TOPIC, 0].end_offset
        assert end == log.next_offset
        assert log.read(lister, uncommitted, 0, end, with_open=True) == log.decided()


@given(steps)
@settings(deadline=None)
def test_a_stream_neither_skips_nor_repeats(history):
    with TransactionalLog() as log:
        lister = log.lister()
        found, position = [], 0
        for step in [*history, *(("end", each, COMMIT) for each in PRODUCERS), ("flush",)]:
            take(log, step)
            if step[0] not in {"flush", "roll"} or not log.batches:
                continue
            offset_map = lister.list([TOPIC], committed=True)
            reached = offset_map.partitions[TOPIC, 0].end_offset
            assert reached >= position
            found += log.read(lister, offset_map, position, reached)
            position = reached
        assert found == log.committed()
        assert position == log.next_offset


@pytest.mark.parametrize("start", [0, 3, 4, 6])
@pytest.mark.parametrize("index", IndexKind)
def test_segments_overlap_while_they_are_merged(start, index):
    """The index of the second one is lost, and that of the merged one speaks of its own end."""
    with TransactionalLog() as log:
        log.append(1, 2)
        log.append(7, 1, transactional=False)
        log.append(1, 2)  # The second segment begins in the middle of a transaction.
        log.end(1, ABORT)
        log.append(1, 2)
        log.append(7, 1, transactional=False)
        log.flush()
        log.roll(2)
        log.roll(4, IndexKind.MISSING)
        log.merge(0, 1, index, is_complete=False)
        log.end(1, COMMIT)
        log.flush()
        lister = log.lister()
        offset_map = lister.list([TOPIC], committed=True)
        found = log.read(lister, offset_map, start, log.next_offset)
        assert found == [each for each in log.committed() if each[0] >= start]


def test_segments_are_merged_between_the_listing_and_the_search():
    """The batches of the first one were read already: the merged one has more, under its key."""
    with TransactionalLog() as log:
        log.append(7, 2, transactional=False)
        log.append(1, 2)
        log.end(1, ABORT)
        log.append(2, 1)
        log.end(2, COMMIT)
        log.flush()
        log.roll(1, IndexKind.WITHOUT_SECTIONS)
        log.roll(2)
        log.roll(2)
        lister = log.lister()
        offset_map = lister.list([TOPIC], committed=True)
        log.merge(0, 1, IndexKind.WITHOUT_SECTIONS, is_complete=True)
        assert log.read(lister, offset_map, 0, log.next_offset) == log.committed()


def test_a_producer_without_an_id_has_no_transactions():
    with TransactionalLog() as log:
        log.append(-1, 2)
        log.opened.clear()
        log.flush()
        lister = log.lister()
        offset_map = lister.list([TOPIC], committed=True)
        assert log.read(lister, offset_map, 0, 2) == log.everything()
        assert offset_map.partitions[TOPIC, 0].end_offset == 2


class CountingStore(MemoryObjectStore):
    """Counts reads."""

    def __init__(self) -> None:
        super().__init__(lambda: NOW_MS)
        self.reads: list[str] = []

    async def get(self, key):
        self.reads.append(key)
        return await super().get(key)

    async def get_range(self, key, start, end):
        self.reads.append(key)
        return await super().get_range(key, start, end)

    async def get_suffix(self, key, length):
        self.reads.append(key)
        return await super().get_suffix(key, length)


def test_a_plain_partition_costs_no_request():
    objects = CountingStore()
    with blocking(objects) as store:
        put_segment(store, range(30))
        put_wal(store, 0, range(30, 60))

        def reads(*, committed: bool) -> list[str]:
            objects.reads.clear()
            lister = BucketLister(store, "default")
            listing = lister.list(committed=committed)
            lister.load_aborted(listing, [])
            return sorted(objects.reads)

        assert reads(committed=True) == reads(committed=False)


def test_each_wal_range_with_transactions_is_read_once():
    with TransactionalLog() as log:
        objects = log.location.objects = CountingStore()
        log.store = log.location.open()
        log.append(1, 3)
        log.flush()
        log.append(7, 3, transactional=False)
        log.flush()
        lister = log.lister()
        lister.list([TOPIC], committed=True)
        log.end(1, ABORT)
        log.flush()
        objects.reads.clear()
        offset_map = lister.list([TOPIC], committed=True)
        assert offset_map.partitions[TOPIC, 0].end_offset == 7
        lister.load_aborted(offset_map, [OffsetRange(TOPIC, 0, 0, 7)])
        wal = [key[-5:] for key in objects.reads if key.endswith(".kfw")]
        assert wal == ["2.kfw", "2.kfw"]  # Its footer, then its range.
        assert log.read(lister, offset_map, 0, 7) == log.committed()
