"""A scrub rebuilds what lost indexes said about transactions, and finds indexes that hide some."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.records import BatchView
from kafscale.spark.jobs.scrub.listing import FindingKind
from kafscale.spark.jobs.scrub.transactions import missing_aborted
from kafscale.storage.formats import index, object_keys
from kafscale.storage.formats.index_section import PRODUCERS_SECTION, TRANSACTIONS_SECTION
from kafscale.storage.log.state.producer_state import Producers
from kafscale.storage.log.state.transactions import TransactionSection
from unit.spark.jobs.keyed_log import TOPIC
from unit.spark.jobs.scrub.local_scrub import kinds, only, scrub
from unit.spark.transactional_log import ABORT, COMMIT, IndexKind, TransactionalLog

pytestmark = pytest.mark.timeout(120)  # The first test compiles, unless the cache is warm.

steps = st.lists(
    st.tuples(st.just("append"), st.integers(1, 3), st.integers(1, 3))
    | st.tuples(st.just("end"), st.integers(1, 3), st.sampled_from([ABORT, COMMIT])),
    min_size=8,
    max_size=40,
)


def build(log: TransactionalLog, history, sizes) -> list[int]:
    """Write segments of these numbers of batches; return their base offsets."""
    for kind, producer_id, what in history:
        if kind == "append":
            log.append(producer_id, what)
        else:
            log.end(producer_id, what)
    log.flush()
    bases = []
    for size in sizes:
        if size <= len(log.batches) - log.rolled_count:
            bases.append(log.batches[log.rolled_count].base_offset)
            log.roll(size)
    return bases


def index_key(log: TransactionalLog, base: int) -> str:
    return object_keys.index_key(log.location.namespace, TOPIC, 0, base)


def sections_of(log: TransactionalLog, base: int) -> TransactionSection:
    key = index_key(log, base)
    sections = index.decode(key, log.store.get(key)).sections
    encoded = sections.get(TRANSACTIONS_SECTION)
    return TransactionSection.decode(key, encoded) if encoded else TransactionSection.empty()


def facts(section: TransactionSection) -> tuple[list, list]:
    return [each.first_offset for each in section.open], list(section.aborted)


@given(steps, st.lists(st.integers(1, 6), min_size=1, max_size=8), st.data())
def test_lost_sections_are_rebuilt(history, sizes, data):
    with TransactionalLog() as log:
        bases = build(log, history, sizes)
        expected = {base: facts(sections_of(log, base)) for base in bases}
        committed = log.committed()
        for base in bases:
            kind = data.draw(st.sampled_from(["kept", "lost", "cut"]))
            if kind == "lost":
                log.store.delete([index_key(log, base)])
            elif kind == "cut":  # The damage is behind the section with the producers.
                whole = bytes(log.store.get(index_key(log, base)))
                end = whole.find(TRANSACTIONS_SECTION)
                log.store.put(index_key(log, base), [whole[: max(end, 0) or -12]], create=False)
        scrub(log.location, log.store, repair=True, known={}, bytes_max=300)
        for base in bases:
            assert facts(sections_of(log, base)) == expected[base]
        assert not scrub(log.location, log.store, known={}).findings
        lister = log.lister()
        offset_map = lister.list([TOPIC], committed=True)
        end = offset_map.partitions[TOPIC, 0].end_offset
        assert log.read(lister, offset_map, 0, end) == committed


def test_an_index_that_hides_an_aborted_transaction_is_damaged():
    with TransactionalLog() as log:
        log.append(1, 2)
        log.end(1, ABORT)
        log.flush()
        log.roll(2)
        assert not kinds(scrub(log.location, log.store, known={}))
        key = index_key(log, 0)
        entries = index.decode(key, log.store.get(key))
        entries.sections = {PRODUCERS_SECTION: Producers().snapshot_at(3)}
        log.store.put(key, [entries.encode()], create=False)
        finding = only(scrub(log.location, log.store, known={}))
        assert finding.kind is FindingKind.INDEX
        assert "lacks the aborted transaction of producer 1 at offsets 0 to 2" in finding.reason
        assert only(scrub(log.location, log.store, known={}, repair=True)).is_repaired
        assert facts(sections_of(log, 0)) == ([], [(1, 0, 2)])


@pytest.mark.parametrize("bytes_max", [1, 1 << 20])
def test_an_index_is_repaired_while_segments_overlap(bytes_max):
    """The index of a segment that is being merged speaks of its own end, not of the next start."""
    with TransactionalLog() as log:
        log.append(1, 2)
        log.append(7, 1, transactional=False)
        log.append(1, 2)
        log.end(1, ABORT)
        log.append(1, 2)
        log.append(7, 1, transactional=False)
        log.flush()
        log.roll(2)
        log.roll(4, IndexKind.MISSING)
        log.merge(0, 1, IndexKind.COMPLETE, is_complete=False)
        log.end(1, COMMIT)
        log.flush()
        scrub(log.location, log.store, known={}, repair=True, bytes_max=bytes_max)
        lister = log.lister()
        offset_map = lister.list([TOPIC], committed=True)
        for start in range(log.next_offset):
            found = log.read(lister, offset_map, start, log.next_offset)
            assert found == [each for each in log.committed() if each[0] >= start]


def test_compaction_moved_the_beginning_of_an_aborted_transaction():
    """A batch may take over the offsets of dropped ones before it."""
    with TransactionalLog() as log:
        log.append(7, 2, transactional=False)
        log.append(1, 2)
        log.end(1, ABORT)
        section = log.section(0, 5)
        moved = BatchView(bytearray(log.batches[1].buffer))
        moved.stamp(1, 0)
        assert missing_aborted(section, [moved, log.batches[2]]) is None
        assert missing_aborted(TransactionSection.empty(), [moved, log.batches[2]]) is not None


def test_without_the_segment_before_an_index_says_nothing():
    """An index with producers and without transactions would say that there are none."""
    with TransactionalLog() as log:
        for producer_id in (1, 2):
            log.append(producer_id, 2)
        log.end(1, ABORT)
        log.flush()
        log.roll(2)
        log.roll(1)
        first = index_key(log, 0)
        entries = index.decode(first, log.store.get(first))
        entries.sections = {}
        log.store.put(first, [entries.encode()], create=False)
        second = index_key(log, 4)
        whole = bytes(log.store.get(second))
        log.store.put(second, [whole[: whole.find(TRANSACTIONS_SECTION)]], create=False)
        report = scrub(log.location, log.store, known={}, repair=True, bytes_max=1)
        assert only(report).is_repaired
        assert index.decode(second, log.store.get(second)).sections == {}
        lister = log.lister()
        offset_map = lister.list([TOPIC], committed=True)
        assert offset_map.partitions[TOPIC, 0].end_offset == 2
        assert log.read(lister, offset_map, 0, 2) == []
