"""Transactions in the storage engine: what readers of committed records get, whatever happens."""

import asyncio
from itertools import pairwise
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.broker.shared import fetch_reads
from kafscale.errors import OperatingError
from kafscale.records import split
from kafscale.storage.formats import object_keys
from kafscale.storage.formats.index_section import PRODUCERS_SECTION, TRANSACTIONS_SECTION
from kafscale.storage.formats.segment_output import SegmentOutput
from kafscale.storage.log.state.transactions import AbortedTransaction, TransactionSection
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from unit.storage.engines import (
    NAMESPACE,
    TOPIC,
    CountingStore,
    append,
    keys,
    log_settings,
    memory_store,
    open_engine,
    roll,
    simulate,
)
from unit.storage.samples import CREATED_MS
from unit.storage.sessions import FakeMetadataStore
from unit.storage.staged_segments import PREFIX
from unit.storage.transactions import (
    ABORT,
    COMMIT,
    Producer,
    Written,
    all_committed,
    read_committed,
)


async def opened(store, metadata=None, **settings):
    metadata = metadata or FakeMetadataStore()
    engine = await open_engine(
        store,
        partitions=[metadata.to_open(settings=log_settings(**settings))],
        save_state=metadata.save,
    )
    return engine, engine.logs.get(TOPIC, 0)


async def section(engine, log, number=-1):
    """The section in the index of a segment."""
    entries = await engine.reader.index(log, log.segments[number])
    encoded = entries.sections.get(TRANSACTIONS_SECTION)
    return None if encoded is None else TransactionSection.decode("", encoded)


def evict(log):
    while log.tail.evict():
        pass


def test_readers_of_committed_records_wait_for_the_end_of_transactions():
    async def scenario():
        engine, log = await opened(memory_store())
        written = Written()
        first, second = Producer(1, written), Producer(2, written)
        await append(engine, b"plain")
        await first.send(engine, b"a", b"b")
        assert (log.last_stable_offset, log.high_watermark) == (1, 3)
        await second.send(engine, b"c")
        await first.end(engine, COMMIT)
        assert (log.last_stable_offset, log.high_watermark) == (3, 5)
        assert await all_committed(engine, log, 0) == {0: b"plain", 1: b"a", 2: b"b"}
        await second.end(engine, ABORT)
        assert log.last_stable_offset == log.high_watermark == 6
        assert await all_committed(engine, log, 3) == {}
        assert await engine.reader.aborted_transactions(log, 0, 6) == [AbortedTransaction(2, 3, 5)]

    simulate(scenario)


def test_last_stable_offset_waits_until_the_marker_is_durable():
    async def scenario():
        engine, log = await opened(memory_store())
        producer = Producer(1, Written())
        await producer.send(engine, b"a")
        log.append_end_marker(1, 0, COMMIT, 0, 0)
        assert not log.transactions.open
        assert log.last_stable_offset == 0
        await engine.wal.flush()
        assert log.last_stable_offset == 2

    simulate(scenario)


def test_deleted_records_of_a_transaction_do_not_hold_the_last_stable_offset_back():
    async def scenario():
        engine, log = await opened(memory_store())
        await Producer(1, Written()).send(engine, b"a", b"b")
        await Producer(2, Written()).send(engine, b"c")
        await engine.retention.delete_records(log, 2)
        assert log.last_stable_offset == 2

    simulate(scenario)


@pytest.mark.parametrize("is_rolled", [False, True])
def test_records_are_deleted_up_to_the_middle_of_an_open_transactions_batch(is_rolled):
    """The last stable offset is within the batch then, whose records are not to be read."""

    async def scenario():
        engine, log = await opened(memory_store())
        await Producer(1, Written()).send(engine, b"a", b"b", b"c")
        if is_rolled:
            await roll(engine)
            evict(log)
        await engine.retention.delete_records(log, 1)
        assert log.last_stable_offset == 1
        read = await engine.reader.read(log, 1, 1 << 20, first=True, end_offset=1)
        assert read == ([], 1)
        assert log.tail.bytes_from(1, 1, end_offset=1) == 0
        if not is_rolled:
            from_tail = fetch_reads.from_tail(log, 1, 1 << 20, first=True, is_committed=True)
            assert not from_tail.slices

    simulate(scenario)


def test_sections_say_what_is_open_aborted_and_marked():
    async def scenario():
        store = memory_store()
        engine, log = await opened(store)
        await append(engine, b"plain")
        await roll(engine)
        assert await section(engine, log) is None
        written = Written()
        first, second = Producer(1, written, coordinator_epoch=4), Producer(2, written)
        await first.send(engine, b"a")
        await second.send(engine, b"b")
        await first.end(engine, ABORT, bumps=True)
        await roll(engine)
        said = await section(engine, log)
        assert [each[:3] for each in said.open] == [(2, 0, 2)]
        assert list(said.aborted) == [(1, 1, 3)]
        assert [each[:3] for each in said.marked] == [(1, 1, 4)]
        await second.end(engine, COMMIT)
        await roll(engine)
        said = await section(engine, log)
        assert (said.open, len(said.aborted)) == ([], 0)
        assert [each[:3] for each in said.marked] == [(1, 1, 4), (2, 0, 0)]

    simulate(scenario)


def test_partitions_without_transactions_cost_no_requests():
    async def scenario():
        store = CountingStore()
        engine, log = await opened(store)
        for value in (b"a", b"b", b"c"):
            await append(engine, value)
            await roll(engine)
        evict(log)
        slices, next_offset = await engine.reader.read(log, 0, 1 << 30, first=True)
        assert len(slices) == 3
        before = store.requests.copy()
        assert await engine.reader.aborted_transactions(log, 0, next_offset) == []
        assert store.requests == before

    simulate(scenario)


def test_reads_end_at_the_given_offset_also_within_segments():
    async def scenario():
        engine, log = await opened(memory_store())
        for number in range(10):
            await append(engine, b"%d" % number)
        await roll(engine)
        for is_cached in (True, False):
            for start in range(10):
                for end in range(start, 11):
                    slices, next_offset = await engine.reader.read(
                        log, start, 1 << 30, first=True, end_offset=end
                    )
                    offsets = [each.base_offset for each in split(b"".join(slices))]
                    assert offsets == list(range(start, end))
                    assert next_offset == end
                    expected = sum(map(len, slices))
                    if is_cached:
                        assert log.tail.bytes_from(start, 1 << 30, end) == expected
            assert await engine.reader.read(log, 3, 1, first=False, end_offset=9) == ([], 3)
            evict(log)

    simulate(scenario)


# --- histories ------------------------------------------------------------------------------------


class History:
    """Random transactions in a partition that is rolled, merged, damaged, and changes brokers."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.faulty = FaultyObjectStore(memory_store(), random=self.random)
        self.store = RetryingObjectStore(self.faulty, attempts_max=20, random=Random(0))
        self.metadata = FakeMetadataStore()
        self.written = Written()
        self.producers = [Producer(each, self.written) for each in range(1, 5)]
        self.count = 0
        self.last_stable_offset = 0

    async def run(self, steps: int) -> None:
        await self._open()
        actions = {
            self.send: 30,
            self.end: 14,
            self.append_plain: 4,
            self.roll: 6,
            self.evict: 4,
            self.crash: 2,
            self.lose_index: 2,
            self.merge: 2,
            self.check_somewhere: 10,
        }
        for _ in range(steps):
            (action,) = self.random.choices(list(actions), list(actions.values()))
            await action()
            self.check_state()
        await self.check(0, 1 << 30)
        await self.check(0, 1)
        for producer in self.producers:
            await producer.end(self.engine, COMMIT)
        await self.check(0, 1 << 30)
        assert self.log.last_stable_offset == self.log.high_watermark

    async def _open(self) -> None:
        settings = {"segment_bytes": self.random.choice([150, 400, 1_000_000])}
        self.engine, self.log = await opened(self.store, self.metadata, **settings)

    def values(self) -> list[bytes]:
        count = self.random.randint(1, 3)
        self.count += count
        return [b"%d" % number for number in range(self.count - count, self.count)]

    async def send(self) -> None:
        await self.random.choice(self.producers).send(self.engine, *self.values())

    async def end(self) -> None:
        producer = self.random.choice(self.producers)
        control_type = self.random.choice([COMMIT, ABORT])
        await producer.end(self.engine, control_type, bumps=self.random.random() < 0.5)

    async def append_plain(self) -> None:
        values = self.values()
        base_offset = await append(self.engine, *values)
        self.written.committed |= dict(enumerate(values, base_offset))

    async def roll(self) -> None:
        self.faulty.rules = [Rule(fault=Fault.RESPONSE_LOST, share=0.2)]
        await roll(self.engine)
        self.faulty.rules = []

    async def evict(self) -> None:
        evict(self.log)

    async def crash(self) -> None:
        self.engine.close()
        await self._open()

    async def lose_index(self) -> None:
        indexes = await keys(self.store, ".index")
        if indexes:
            await self.store.delete([self.random.choice(indexes)])
            self.engine.reader.forget(f"{NAMESPACE}/")
            if self.random.random() < 0.5:
                await self.crash()

    async def merge(self) -> None:
        """Replace some neighbouring segments by one, as the job does."""
        segments = list(self.log.segments)
        if len(segments) < 2:
            return
        first, last = sorted(self.random.sample(range(len(segments)), 2))
        base_offset, end_offset = segments[first].base_offset, segments[last].next_offset
        output = SegmentOutput(base_offset, end_offset, CREATED_MS)
        for each in segments[first : last + 1]:
            position = 32
            while batches := await self.engine.reader.batches(self.log, each, position):
                for batch in batches:
                    output.append("", batch)
                    position += len(batch)
        key = f"{PREFIX}segment-{base_offset:020d}.kfs"
        await self.store.put(key, output.finish().parts, create=False)
        await self.engine.swap_segments(self.log, PREFIX)

    async def check_somewhere(self) -> None:
        offset = self.random.randint(0, self.log.last_stable_offset)
        await self.check(offset, self.random.choice([1, 200, 1000, 1 << 30]))

    async def check(self, offset: int, bytes_max: int) -> None:
        found = await all_committed(self.engine, self.log, offset, bytes_max)
        end_offset = self.log.last_stable_offset
        assert found == {
            each: value
            for each, value in sorted(self.written.committed.items())
            if offset <= each < end_offset
        }

    def check_state(self) -> None:
        log, written = self.log, self.written
        first_undecided = written.last_stable_offset
        expected = log.high_watermark if first_undecided is None else first_undecided
        assert log.last_stable_offset == expected
        assert log.last_stable_offset >= self.last_stable_offset
        self.last_stable_offset = log.last_stable_offset
        known = {each.producer_id: each.epoch for each in log.producers.describe()}
        for producer in self.producers:
            assert known.get(producer.producer_id, producer.epoch) == producer.epoch
            marker = log.transactions.marker_of(producer.producer_id)
            assert marker is None or marker.epoch <= producer.epoch


@pytest.mark.parametrize("seed", range(20))
def test_exactly_the_committed_records_are_read_in_any_history(seed):
    simulate(lambda: History(seed).run(250))


# --- segments without sections --------------------------------------------------------------------


async def lose_indexes(engine, log, *numbers):
    place = (NAMESPACE, log.directory, log.partition)
    lost = [object_keys.index_key(*place, log.segments[each].base_offset) for each in numbers]
    await engine._store.delete(lost)
    engine.reader.forget(f"{NAMESPACE}/")


async def three_segments(store):
    """The transactions of two producers that span three segments."""
    engine, log = await opened(store)
    written = Written()
    first, second = Producer(1, written), Producer(2, written)
    await first.send(engine, b"a")
    await second.send(engine, b"b")
    await roll(engine)
    await first.send(engine, b"c")
    await first.end(engine, COMMIT)
    await first.send(engine, b"d")
    await roll(engine)
    await second.end(engine, ABORT)
    await first.end(engine, ABORT)
    await roll(engine)
    evict(log)
    return engine, log, written


@pytest.mark.parametrize("lost", [(), (0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_transactions_are_found_without_indexes(lost):
    async def scenario():
        engine, log, written = await three_segments(memory_store())
        await lose_indexes(engine, log, *lost)
        for offset in range(log.high_watermark):
            for bytes_max in (1, 1 << 30):
                expected = {at: value for at, value in written.committed.items() if at >= offset}
                assert await all_committed(engine, log, offset, bytes_max) == expected
        entries = await engine.reader.index(log, log.segments[0])
        assert (PRODUCERS_SECTION in entries.sections) == (0 not in lost)

    simulate(scenario)


def test_damaged_section_is_replaced_by_the_batches():
    async def scenario():
        engine, log, written = await three_segments(memory_store())
        entries = await engine.reader.index(log, log.segments[1])
        damaged = bytearray(entries.sections[TRANSACTIONS_SECTION])
        damaged[-1] ^= 1
        entries.sections[TRANSACTIONS_SECTION] = bytes(damaged)
        assert await all_committed(engine, log, 0) == written.committed

    simulate(scenario)


def test_search_ends_where_no_transaction_is_open():
    async def scenario():
        store = CountingStore()
        engine, log = await opened(store)
        producer = Producer(1, Written())
        for number in range(20):
            await producer.send(engine, b"a")
            await producer.end(engine, ABORT if number % 2 else COMMIT)
            await roll(engine)
        evict(log)
        for first, last in pairwise(range(0, 41, 8)):
            engine.reader.forget(f"{NAMESPACE}/")
            store.requests.clear()
            found = await engine.reader.aborted_transactions(log, first, last)
            assert [each.first_offset for each in found] == list(range(first + 2, last, 4))
            assert store.requests == {"get": 4}, "one index for each segment of the range"

    simulate(scenario)


def test_search_fails_if_an_index_cannot_be_read_and_succeeds_later():
    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        engine, log, written = await three_segments(store)
        engine.reader.forget(f"{NAMESPACE}/")
        store.is_down = True
        with pytest.raises(OperatingError):
            await engine.reader.aborted_transactions(log, 0, 2)
        store.is_down = False
        assert await all_committed(engine, log, 0) == written.committed

    simulate(scenario)


def test_search_during_a_swap_returns_what_holds_before_and_after():
    async def scenario():
        engine, log, written = await three_segments(memory_store())
        expected = await engine.reader.aborted_transactions(log, 0, log.high_watermark)
        history = History(0)
        history.engine, history.log, history.store = engine, log, engine._store
        swap = asyncio.ensure_future(history.merge())
        while not swap.done():
            engine.reader.forget(f"{NAMESPACE}/")
            found = await engine.reader.aborted_transactions(log, 0, log.high_watermark)
            assert found == expected
        await swap
        assert (await read_committed(engine, log, 0, 1 << 30))[0] == written.committed

    simulate(scenario)
