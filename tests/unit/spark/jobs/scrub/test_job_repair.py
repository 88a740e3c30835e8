"""Indexes are made anew, and an owner that is at work at the same time is not disturbed."""

import pytest

from kafscale.spark.jobs.scrub import index_repair
from kafscale.spark.jobs.scrub.findings import Kind
from kafscale.spark.jobs.scrub.verify import prove_segment
from kafscale.storage.formats import index, object_keys, segment
from kafscale.storage.log.state.leader_epochs import LeaderEpochs
from kafscale.storage.log.state.producer_state import Producers
from kafscale.storage.segments.segment_writer import EPOCHS_SECTION, PRODUCERS_SECTION
from unit.spark.jobs.keyed_log import MemoryLocation
from unit.spark.jobs.scrubbing import only, scrubbed
from unit.spark.stored_log import NAMESPACE, TOPIC, batch, batches, put_segment

pytestmark = pytest.mark.timeout(120)  # The first test compiles, if nobody did before.

KEY = object_keys.segment_key(NAMESPACE, TOPIC, 0, 0)
INDEX_KEY = object_keys.index_key(NAMESPACE, TOPIC, 0, 0)


@pytest.fixture
def location():
    return MemoryLocation()


@pytest.fixture
def store(location):
    with location.open() as opened:
        yield opened


def sections():
    producers, epochs = Producers(), LeaderEpochs()
    producers.record(7, 0, 0, 4, 0, 4, 1000, 0)
    epochs.assign(3, 0)
    return {PRODUCERS_SECTION: producers.snapshot_at(100), EPOCHS_SECTION: epochs.snapshot_at(100)}


def put_with_sections(store, count=100):
    """A segment whose index tells of a producer and an epoch."""
    builder = segment.Builder(0, 1, compression=None, prior_max_timestamp_ms=999)
    for one in batches(range(count)):
        builder.append(one)
    built = builder.finish(sections())
    store.put(KEY, built.parts, create=False)
    store.put(INDEX_KEY, [built.index], create=False)
    return index.decode(INDEX_KEY, built.index)


def check_index(store):
    found = index.decode(INDEX_KEY, store.get(INDEX_KEY))
    index.verify(INDEX_KEY, found, prove_segment(KEY, 0, store.get(KEY)).batches)
    return found


def test_a_missing_index_is_made_anew(location, store):
    put_segment(store, range(100), indexed=False)
    before = bytes(store.get(KEY))
    report = scrubbed(location, store, repair=True)
    assert (only(report).kind, only(report).is_repaired) == (Kind.MISSING_INDEX, True)
    assert report.summary.problems == ()
    check_index(store)
    assert bytes(store.get(KEY)) == before
    assert scrubbed(location, store).findings == ()


@pytest.mark.parametrize("position", [-5, 20])
def test_a_damaged_index_keeps_what_can_be_read_of_it(location, store, position):
    was = put_with_sections(store)
    data = bytearray(store.get(INDEX_KEY))
    data[position] ^= 1
    store.put(INDEX_KEY, [data], create=False)
    assert only(scrubbed(location, store)).kind is Kind.INDEX
    assert only(scrubbed(location, store, repair=True)).is_repaired
    assert check_index(store).sections == was.sections


def test_a_damaged_section_is_left_out(location, store):
    was = put_with_sections(store)
    data = bytearray(store.get(INDEX_KEY))
    at = data.index(was.sections[EPOCHS_SECTION])
    data[at + len(was.sections[EPOCHS_SECTION]) - 1] ^= 1
    store.put(INDEX_KEY, [data], create=False)
    scrubbed(location, store, repair=True)
    assert check_index(store).sections == {PRODUCERS_SECTION: was.sections[PRODUCERS_SECTION]}


def test_the_index_of_another_segment_is_not_believed(location, store):
    """What it tells is what the log knew elsewhere."""
    put_with_sections(store)
    builder = segment.Builder(0, 1, compression=None, prior_max_timestamp_ms=None)
    for base in range(0, 98, 7):
        builder.append(batch(base, 7))
    store.put(KEY, builder.finish().parts, create=False)
    assert only(scrubbed(location, store, repair=True)).is_repaired
    assert check_index(store).sections == {}


def test_the_greatest_time_before_is_known_from_the_segment_before(location, store):
    put_segment(store, range(50))
    put_segment(store, range(50, 100), indexed=False)
    scrubbed(location, store, repair=True, bytes_max=1 << 20)
    key = object_keys.index_key(NAMESPACE, TOPIC, 0, 50)
    before = index.decode(INDEX_KEY, store.get(INDEX_KEY))
    found = index.decode(key, store.get(key))
    assert found.prior_max_timestamp_ms == before.log_max_timestamp_ms == 1049


class Swapping:
    """A store in which an owner swaps the segment before or after an index is written."""

    def __init__(self, store, when) -> None:
        self._store = store
        self._when = when

    def __getattr__(self, name):
        return getattr(self._store, name)

    def put(self, key, parts, *, create=True):
        if self._when == "before":
            self._swap()
        self._store.put(key, parts, create=create)
        if self._when == "after":
            self._swap()

    def _swap(self):
        put_segment(self._store, range(200))


@pytest.mark.parametrize("is_missing", [True, False])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_swap_at_the_same_time_wins(store, is_missing, when):
    put_segment(store, range(100), indexed=not is_missing)
    proven = prove_segment(KEY, 0, store.get(KEY))
    made = index_repair.remade(INDEX_KEY, proven.batches, b"", None)
    index_repair.install(
        Swapping(store, when), KEY, proven.checksum, INDEX_KEY, made, is_missing=is_missing
    )
    if INDEX_KEY in {item.key for item in store.list(f"{NAMESPACE}/")}:
        check_index(store)  # None is as good: readers make it anew.


def test_an_index_of_a_segment_that_was_swapped_is_not_written(store):
    put_segment(store, range(100))
    proven = prove_segment(KEY, 0, store.get(KEY))
    made = index_repair.remade(INDEX_KEY, proven.batches, b"", None)
    put_segment(store, range(200))
    assert not index_repair.install(store, KEY, proven.checksum, INDEX_KEY, made, is_missing=False)
    check_index(store)
