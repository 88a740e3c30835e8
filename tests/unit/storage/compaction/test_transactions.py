"""Compaction of transactions: what consumers of committed records see, compared with a model."""

import asyncio
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from doubles import virtual_time
from kafscale.records import BatchView, Record, build, iterate, split
from kafscale.records.control import ControlType, read_end_marker
from unit.storage.compaction.test_compaction import HORIZON_MS, open_compacted
from unit.storage.engines import memory_store, roll, simulate
from unit.storage.sessions import FakeMetadataStore

COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT
PRODUCERS = (1, 2)
KEYS = (b"a", b"b")

records = st.lists(
    st.tuples(st.sampled_from([*KEYS, None]), st.booleans()), min_size=1, max_size=3
).map(tuple)
steps = st.lists(
    st.tuples(st.just("append"), st.sampled_from(PRODUCERS), records)
    | st.tuples(st.just("append"), st.just(-1), records)
    | st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.sampled_from([COMMIT, ABORT]))
    | st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.sampled_from([COMMIT, ABORT]))
    | st.just(("roll",))
    | st.tuples(st.just("compact"), st.sampled_from([0, HORIZON_MS]))
    | st.just(("crash",)),
    min_size=20,
    max_size=60,
)


class Written(NamedTuple):
    """A record as it was written, and the transaction that it belongs to."""

    offset: int
    key: bytes | None
    value: bytes | None
    transaction: tuple[int, int] | None


class History:
    """Writes to a log, and knows what is committed."""

    def __init__(self) -> None:
        self.written: list[Written] = []
        self.outcomes: dict[tuple[int, int], ControlType] = {}
        self._sequences: dict[int, int] = {}
        self._numbers: dict[int, int] = {}

    async def append(self, log, producer_id, chosen) -> None:
        values = [
            (key, None if key and is_tombstone else b"%d" % (len(self.written) + number))
            for number, (key, is_tombstone) in enumerate(chosen)
        ]
        now_ms = virtual_time.clock_ms()
        sequence = self._sequences.get(producer_id, 0)
        fields = (
            {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": sequence,
                "transactional": True,
            }
            if producer_id >= 0
            else {}
        )
        batch = BatchView(
            build([Record(number, now_ms, *value) for number, value in enumerate(values)], **fields)
        )
        guard = None
        if log.needs_verification(batch.header()):
            guard = log.start_verification(producer_id, 0, sequence, adds_partition=False)
        appended = log.append(batch, now_ms, guard=guard)
        await appended.durable
        self._sequences[producer_id] = sequence + len(values)
        transaction = None
        if producer_id >= 0:
            transaction = producer_id, self._numbers.get(producer_id, 0)
        self.written += [
            Written(appended.base_offset + number, *value, transaction)
            for number, value in enumerate(values)
        ]

    async def end(self, log, producer_id, control_type) -> None:
        appended = log.append_end_marker(producer_id, 0, control_type, 0, virtual_time.clock_ms())
        await appended.durable
        number = self._numbers.get(producer_id, 0)
        self.outcomes[producer_id, number] = control_type
        self._numbers[producer_id] = number + 1

    def committed(self, stable_offset) -> list[Written]:
        return [
            each
            for each in self.written
            if each.offset < stable_offset
            and (each.transaction is None or self.outcomes[each.transaction] is COMMIT)
        ]


async def consume(engine, log, offset, bytes_max):
    """Read committed records as a consumer does, in several fetches."""
    found = []
    while offset < log.last_stable_offset:
        chunks, _ = await engine.reader.read(
            log, offset, bytes_max, first=True, end_offset=log.last_stable_offset
        )
        batches = split(b"".join(chunks))
        end = batches[-1].next_offset
        pending = sorted(
            await engine.reader.aborted_transactions(log, offset, end),
            key=lambda each: each.first_offset,
        )
        aborted = set()
        for batch in batches:
            if batch.producer_id >= 0:
                while pending and pending[0].first_offset <= batch.last_offset:
                    aborted.add(pending.pop(0).producer_id)
                marker = read_end_marker(batch)
                if marker is not None and marker.control_type is ABORT:
                    aborted.discard(batch.producer_id)
                elif batch.is_transactional and batch.producer_id in aborted:
                    continue
            if not batch.is_control:
                found += [each for each in iterate(batch) if each.offset >= offset]
        offset = end
    return [(each.offset, each.key, each.value) for each in found]


async def check(engine, log, history, offset, bytes_max) -> None:
    committed = history.committed(log.last_stable_offset)
    found = await consume(engine, log, offset, bytes_max)
    expected = [each[:3] for each in committed if each.offset >= offset]
    assert set(found) <= set(expected)
    assert found == sorted(found)
    latest = {each.key: each[:3] for each in committed if each.key is not None}
    kept = set(found)
    for key, record in latest.items():
        # A tombstone may be gone; then the records before it are gone, too.
        assert record in kept or record[0] < offset or record[2] is None, key
        if record[2] is None and offset == 0 and record not in kept:
            assert not [each for each in found if each[1] == key]
    assert {each for each in expected if each[1] is None} <= kept


@given(steps, st.integers(0, 30), st.integers(1, 3000))
@settings(max_examples=100)
def test_consumers_of_committed_records_see_the_latest_of_each_key(history, offset, bytes_max):
    async def scenario():
        store, metadata, written = memory_store(), FakeMetadataStore(), History()
        engine, log = await open_compacted(store, metadata)
        ends = [("end", producer_id, ABORT) for producer_id in PRODUCERS]
        tail = [("append", -1, ((b"z", False),)), ("roll",), ("compact", HORIZON_MS)]
        for step in [*history, *ends, *tail, *tail, *tail]:
            match step:
                case ("append", producer_id, chosen):
                    await written.append(log, producer_id, chosen)
                case ("end", producer_id, control_type):
                    await written.end(log, producer_id, control_type)
                case ("roll",):
                    await roll(engine)
                case ("compact", wait_ms):
                    await asyncio.sleep(wait_ms / 1000)
                    await engine.compaction.compact_due()
                case ("crash",):
                    engine.close()
                    engine, log = await open_compacted(store, metadata)
            for start in {0, min(offset, log.last_stable_offset)}:
                await check(engine, log, written, start, bytes_max)
        assert engine.counters.compaction.failures == 0
        stored = split(b"".join((await engine.reader.read(log, 0, 1 << 30, first=True))[0]))
        aborted = {each for each, outcome in written.outcomes.items() if outcome is ABORT}
        gone = {each.offset for each in written.written if each.transaction in aborted}
        left = [
            record.offset for batch in stored if not batch.is_control for record in iterate(batch)
        ]
        assert len(gone.intersection(left)) <= 1  # A segment needs a record.

    simulate(scenario, time_max_s=10**6)


def test_markers_stay_until_their_horizon_after_the_data_is_gone():
    async def scenario():
        engine, log = await open_compacted(memory_store(), FakeMetadataStore())
        written = History()

        async def markers() -> list[int]:
            chunks, _ = await engine.reader.read(log, 0, 1 << 30, first=True)
            return [each.base_offset for each in split(b"".join(chunks)) if each.is_control]

        async def compact(wait_ms: int) -> None:
            await asyncio.sleep(wait_ms / 1000)
            await written.append(log, -1, ((b"z", False),))
            await roll(engine)
            await engine.compaction.compact_due()

        for producer_id, control_type in [(1, COMMIT), (2, ABORT)]:
            await written.append(log, producer_id, ((b"a", False),))
            await written.end(log, producer_id, control_type)
        await compact(0)  # The records of 2 are dropped, that of 1 stays.
        assert len(await markers()) == 2
        assert len(await engine.reader.aborted_transactions(log, 0, log.last_stable_offset)) == 1
        await compact(0)  # The marker of 2 gets a horizon.
        assert len(await markers()) == 2
        await compact(HORIZON_MS)
        assert len(await markers()) == 1
        assert not await engine.reader.aborted_transactions(log, 0, log.last_stable_offset)
        await written.append(log, -1, ((b"a", False),))
        await compact(0)  # The record of 1 is dropped.
        await compact(0)
        assert len(await markers()) == 1
        await compact(HORIZON_MS)
        assert not await markers()

    simulate(scenario, time_max_s=10**6)
