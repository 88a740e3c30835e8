"""Indexes are rebuilt without disturbing an owner that swaps segments at the same time."""

import pytest

from kafscale.spark.jobs.scrub import index_repair
from kafscale.spark.jobs.scrub.listing import FindingKind
from kafscale.storage.formats import index, object_keys, segment
from kafscale.storage.formats.index_section import EPOCHS_SECTION, PRODUCERS_SECTION
from kafscale.storage.formats.verification import verify_segment
from kafscale.storage.log.state.leader_epochs import LeaderEpochs
from kafscale.storage.log.state.producer_state import Producers
from unit.spark.jobs.keyed_log import MemoryLocation
from unit.spark.jobs.scrub.local_scrub import only, scrub
from unit.spark.stored_log import NAMESPACE, TOPIC, batch, batches, put_segment

pytestmark = pytest.mark.timeout(120)  # The first test compiles, unless the cache is warm.

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
    """Write a segment whose index has producer state and a leader epoch."""
    builder = segment.Builder(0, 1, compression=None, prior_max_timestamp_ms=999)
    for one in batches(range(count)):
        builder.append(one)
    built = builder.finish(sections())
    store.put(KEY, built.parts, create=False)
    store.put(INDEX_KEY, [built.index], create=False)
    return index.decode(INDEX_KEY, built.index)


def check_index(store):
    decoded = index.decode(INDEX_KEY, store.get(INDEX_KEY))
    index.verify(INDEX_KEY, decoded, verify_segment(KEY, store.get(KEY), 0).batches)
    return decoded


def test_missing_index_is_rebuilt(location, store):
    put_segment(store, range(100), indexed=False)
    before = bytes(store.get(KEY))
    report = scrub(location, store, repair=True)
    assert (only(report).kind, only(report).is_repaired) == (FindingKind.MISSING_INDEX, True)
    assert report.summary.problems == ()
    check_index(store)
    assert bytes(store.get(KEY)) == before
    assert scrub(location, store).findings == ()


@pytest.mark.parametrize("position", [-5, 20])
def test_rebuilt_index_keeps_readable_sections(location, store, position):
    was = put_with_sections(store)
    data = bytearray(store.get(INDEX_KEY))
    data[position] ^= 1
    store.put(INDEX_KEY, [data], create=False)
    assert only(scrub(location, store)).kind is FindingKind.INDEX
    assert only(scrub(location, store, repair=True)).is_repaired
    assert check_index(store).sections == was.sections


def test_rebuilt_index_drops_a_damaged_section(location, store):
    was = put_with_sections(store)
    data = bytearray(store.get(INDEX_KEY))
    at = data.index(was.sections[EPOCHS_SECTION])
    data[at + len(was.sections[EPOCHS_SECTION]) - 1] ^= 1
    store.put(INDEX_KEY, [data], create=False)
    scrub(location, store, repair=True)
    assert check_index(store).sections == {PRODUCERS_SECTION: was.sections[PRODUCERS_SECTION]}


def test_sections_of_another_segments_index_are_dropped(location, store):
    """They describe the log at another offset."""
    put_with_sections(store)
    builder = segment.Builder(0, 1, compression=None, prior_max_timestamp_ms=None)
    for base in range(0, 98, 7):
        builder.append(batch(base, 7))
    store.put(KEY, builder.finish().parts, create=False)
    assert only(scrub(location, store, repair=True)).is_repaired
    assert check_index(store).sections == {}


def test_rebuilt_index_has_the_greatest_timestamp_of_earlier_segments(location, store):
    put_segment(store, range(50))
    put_segment(store, range(50, 100), indexed=False)
    scrub(location, store, repair=True, bytes_max=1 << 20)
    key = object_keys.index_key(NAMESPACE, TOPIC, 0, 50)
    before = index.decode(INDEX_KEY, store.get(INDEX_KEY))
    decoded = index.decode(key, store.get(key))
    assert decoded.prior_max_timestamp_ms == before.log_max_timestamp_ms == 1049


class SwappingStore:
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
def test_concurrent_swap_wins(store, is_missing, when):
    put_segment(store, range(100), indexed=not is_missing)
    verified = verify_segment(KEY, store.get(KEY), 0)
    rebuilt = index_repair.rebuild_index(INDEX_KEY, verified.batches, b"", None, None)
    index_repair.install_index(
        SwappingStore(store, when),
        KEY,
        verified.footer.checksum,
        INDEX_KEY,
        rebuilt,
        is_missing=is_missing,
    )
    if INDEX_KEY in {item.key for item in store.list(f"{NAMESPACE}/")}:
        check_index(store)  # No index is correct, too: readers rebuild it.


def test_index_of_a_swapped_segment_is_not_written(store):
    put_segment(store, range(100))
    verified = verify_segment(KEY, store.get(KEY), 0)
    rebuilt = index_repair.rebuild_index(INDEX_KEY, verified.batches, b"", None, None)
    put_segment(store, range(200))
    assert not index_repair.install_index(
        store, KEY, verified.footer.checksum, INDEX_KEY, rebuilt, is_missing=False
    )
    check_index(store)
