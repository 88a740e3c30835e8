"""Compaction of transactions by the job: what readers of committed records see, as before it."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafscale.records import Record, iterate
from kafscale.records.control import ControlType
from kafscale.spark.jobs.compact.job import CompactSettings, find_due
from kafscale.storage.formats import object_keys
from kafscale.storage.topic_catalog import CatalogTopic, encode
from unit.spark.jobs.keyed_log import NOW_MS, TOPIC, TOPIC_ID, compact
from unit.spark.stored_log import put_segment
from unit.spark.transactional_log import ABORT, COMMIT, IndexKind, TransactionalLog

HORIZON_MS = 1000
PRODUCERS = (1, 2)
IDS = {TOPIC: TOPIC_ID, "healthy": b"h" * 16}

keys = st.lists(st.sampled_from([b"a", b"b", None]), min_size=1, max_size=3)
steps = st.lists(
    st.tuples(st.just("append"), st.sampled_from(PRODUCERS), keys)
    | st.tuples(st.just("plain"), st.just(-1), keys)
    | st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.sampled_from([COMMIT, ABORT]))
    | st.tuples(st.just("roll"), st.integers(1, 8), st.sampled_from(IndexKind))
    | st.tuples(st.just("compact"), st.sampled_from([0, HORIZON_MS])),
    min_size=15,
    max_size=50,
)


class KeyedTransactions(TransactionalLog):
    """A compacted topic with transactions."""

    def __init__(self) -> None:
        super().__init__()
        configs = {"cleanup.policy": "compact", "delete.retention.ms": str(HORIZON_MS)}
        catalog = encode([CatalogTopic(TOPIC, TOPIC_ID.hex(), 1, configs)])
        self.store.put(object_keys.catalog_key(self.location.namespace), [catalog])
        self.now_ms = NOW_MS

    def expected(self) -> list[Record]:
        offsets = {offset for offset, _ in self.committed()}
        return [
            record
            for batch in self.batches
            if not batch.is_control
            for record in iterate(batch)
            if record.offset in offsets
        ]

    def compact(self, wait_ms: int) -> None:
        self.now_ms += wait_ms
        compact(self.location, self.store, self.now_ms, is_forced=True, target_bytes=400)

    def check(self) -> None:
        lister = self.lister()
        offset_map = lister.list([TOPIC], committed=True)
        end = offset_map.partitions[TOPIC, 0].end_offset
        assert end == self.last_stable_offset
        found = self.read(lister, offset_map, 0, end)
        expected = self.expected()
        assert set(found) <= {(each.offset, each.value) for each in expected}
        assert found == sorted(found)
        latest = {each.key: each.offset for each in expected}
        needed = {
            each.offset for each in expected if each.key is None or latest[each.key] == each.offset
        }
        assert needed <= {offset for offset, _ in found}


def take(log: KeyedTransactions, step: tuple) -> None:
    match step:
        case ("append", producer_id, chosen):
            log.append(producer_id, keys=chosen)
        case ("plain", producer_id, chosen):
            log.append(producer_id, keys=chosen, transactional=False)
        case ("end", producer_id, control_type):
            log.end(producer_id, control_type)
        case ("roll", count, index):
            log.flush()
            left = len(log.batches) - log.rolled_count
            if left:
                log.roll(min(count, left), index)
        case ("compact", wait_ms):
            log.flush()
            if log.batches:
                log.compact(wait_ms)
                log.check()


@given(steps)
@settings(max_examples=40)
def test_readers_of_committed_records_see_the_latest_of_each_key(history):
    with KeyedTransactions() as log:
        ends = [("end", producer_id, ControlType.ABORT) for producer_id in PRODUCERS]
        tail = [("plain", -1, [b"a"]), ("roll", 1000, IndexKind.COMPLETE), ("compact", HORIZON_MS)]
        for step in [*history, *ends, *tail, *tail, *tail]:
            take(log, step)
        aborted = {offset for offset, _ in log.everything()} - {
            each.offset for each in log.expected()
        }
        offset_map = log.lister().list([TOPIC])
        segments = offset_map.partitions[TOPIC, 0].extents
        left = aborted.intersection(log.stored_offsets())
        assert len(left) <= len(segments)  # Each needs a record.


@pytest.mark.parametrize("is_rolled", [False, True])
def test_a_partition_with_damaged_transactions_is_skipped(is_rolled):
    """In the WAL, they hide the last stable offset; in a segment, which are aborted."""
    with TransactionalLog() as log:
        log.append(1, keys=[b"a", b"b"])
        log.end(1, ABORT)
        log.append(-1, keys=[b"a"], transactional=False)
        log.flush()
        if is_rolled:
            log.roll(2, IndexKind.MISSING)
            log.roll(1)
        damage(log, b"value 0")
        put_segment(log.store, range(10), topic="healthy")
        configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
        catalog = encode([CatalogTopic(name, id_.hex(), 1, configs) for name, id_ in IDS.items()])
        log.store.put(object_keys.catalog_key(log.location.namespace), [catalog])
        for names in ((), (TOPIC,)):
            chosen = CompactSettings(location=log.location, control=(), topics=names)
            _, due, skipped = find_due(log.store, log.lister(), chosen, NOW_MS)
            assert [each.topic_partition for each in due] == ([] if names else [("healthy", 0)])
            ((partition, reason, is_outdated),) = map(msgspec.structs.astuple, skipped)
            assert (partition, is_outdated) == ((TOPIC, 0), False)
            assert reason.startswith("not compacted: ")


def damage(log: TransactionalLog, data: bytes) -> None:
    """Damage every object that contains these bytes."""
    for each in log.store.list("default/"):
        content = bytes(log.store.get(each.key))
        if data in content:
            log.store.put(each.key, [content.replace(data, data[::-1])], create=False)
