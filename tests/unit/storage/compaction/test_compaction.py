"""Compaction by the owner: the latest value of each key survives whatever happens."""

import asyncio
from collections import Counter
from contextlib import suppress
from random import Random

import pytest

from doubles import virtual_time
from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.errors import InvalidRequestError, ObjectNotFoundError, StoreUnavailableError
from kafscale.records import BatchView, Codec, Record, build, iterate, split
from kafscale.records.batch import DELETE_HORIZON_BIT
from kafscale.records.batch_rewrite import keep_last_record
from kafscale.records.compaction import ENTRY_BYTES
from kafscale.storage.bucket import read_segment_footer
from kafscale.storage.compaction import checkpoint
from kafscale.storage.compaction.rules import CompactionRules
from kafscale.storage.compaction.scheduler import CompactionSettings
from kafscale.storage.segments.staging import BuiltSegment
from unit.storage.engines import (
    NAMESPACE,
    TOPIC,
    TOPIC_ID,
    CountingStore,
    log_settings,
    memory_store,
    open_engine,
    roll,
    simulate,
    topic,
)
from unit.storage.sessions import FakeMetadataStore
from unit.storage.staged_segments import PREFIX, segment_of

SETTINGS = CompactionSettings(interval_ms=10**9, memory_bytes_max=10**6, bytes_per_second=10**9)
HORIZON_MS = 60_000
LOGS = 30
RULES = CompactionRules(delete_retention_ms=HORIZON_MS, dirty_ratio_min=0.0)


async def open_compacted(store, metadata, *, rules=RULES, settings=SETTINGS, **changes):
    opened = metadata.to_open(settings=log_settings(compaction=rules, **changes))
    engine = await open_engine(
        store, partitions=[opened], save_state=metadata.save, compaction=settings
    )
    return engine, engine.logs.get(TOPIC, 0)


async def send(log, *pairs, codec=Codec.NONE, transactional=False, timestamp_ms=None):
    """Append one batch of keys and values, and wait until it is durable."""
    now_ms = virtual_time.clock_ms() if timestamp_ms is None else timestamp_ms
    records = [Record(index, now_ms, key, value) for index, (key, value) in enumerate(pairs)]
    fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0} if transactional else {}
    batch = BatchView(build(records, codec=codec, transactional=transactional, **fields))
    guard = log.start_verification(5, 0, 0, adds_partition=False) if transactional else None
    appended = log.append(batch, virtual_time.clock_ms(), guard=guard)
    if appended.durable is not None:
        await appended.durable
    return appended.base_offset


async def read(engine, log):
    """All batches that consumers see."""
    offset, batches = log.start_offset, []
    while offset < log.high_watermark:
        result, _ = await engine.reader.read(log, offset, 1 << 30, first=True)
        batches += split(b"".join(result))
        offset = batches[-1].next_offset
    return batches


async def records_of(engine, log):
    return [record for batch in await read(engine, log) for record in iterate(batch)]


async def only_segment_key(store):
    pages = [page async for page in store.list(f"{NAMESPACE}/{TOPIC}/")]
    (key,) = [item.key for page in pages for item in page if item.key.endswith(".kfs")]
    return key


def pairs(records):
    return [(record.offset, record.key, record.value) for record in records]


# --- what is kept ---------------------------------------------------------------------------------


def test_latest_record_of_each_key_stays_at_its_offset():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await open_compacted(store, metadata)
        for codec in Codec:
            await send(log, (b"a", b"1"), (b"b", b"%d" % codec), (b"c", b"3"), codec=codec)
            await send(log, (b"only %d" % codec, b"x"), (b"c", b"4"), codec=codec)
            await roll(engine)
        await send(log, (b"a", b"in the head"))
        assert len(log.segments) == len(Codec)
        await engine.compaction.compact_due()
        assert len(log.segments) == 1
        assert pairs(await records_of(engine, log)) == [
            (3, b"only 0", b"x"),
            (8, b"only 1", b"x"),
            (13, b"only 2", b"x"),
            (18, b"only 3", b"x"),
            (20, b"a", b"1"),
            (21, b"b", b"4"),
            (23, b"only 4", b"x"),
            (24, b"c", b"4"),
            (25, b"a", b"in the head"),
        ]
        counters = engine.counters.compaction
        assert (counters.runs, counters.failures, counters.records_removed) == (1, 0, 17)
        engine.close()
        engine, log = await open_compacted(store, metadata)
        assert len(await records_of(engine, log)) == 9

    simulate(scenario)


def test_tombstones_stay_until_their_horizon():
    async def scenario():
        engine, log = await open_compacted(memory_store(), FakeMetadataStore())
        await send(log, (b"a", b"1"), (b"b", b"1"))
        await send(log, (b"a", None))
        await roll(engine)
        await engine.compaction.compact_due()
        batches = await read(engine, log)
        assert pairs(await records_of(engine, log)) == [(1, b"b", b"1"), (2, b"a", None)]
        horizons = [each.base_timestamp_ms for each in batches if each.attributes & 64]
        assert DELETE_HORIZON_BIT == 64
        assert horizons == [virtual_time.clock_ms() + HORIZON_MS]
        for wait_ms, left in ((HORIZON_MS // 2, [1, 2, 3]), (HORIZON_MS, [1, 3, 4])):
            await asyncio.sleep(wait_ms / 1000)
            await send(log, (b"c%d" % wait_ms, b"makes it dirty"))
            await roll(engine)
            await engine.compaction.compact_due()
            assert [record.offset for record in await records_of(engine, log)] == left

    simulate(scenario)


def test_records_without_key_are_kept():
    async def scenario():
        engine, log = await open_compacted(memory_store(), FakeMetadataStore())
        await send(log, (None, b"1"), (b"a", b"1"))
        await send(log, (None, b"2"), (b"a", b"3"), (b"a", b"4"))
        await roll(engine)
        await engine.compaction.compact_due()
        assert [record.offset for record in await records_of(engine, log)] == [0, 2, 4]

    simulate(scenario)


def test_nothing_is_compacted_behind_an_open_transaction():
    async def scenario():
        engine, log = await open_compacted(memory_store(), FakeMetadataStore())
        await send(log, (b"a", b"1"))
        await send(log, (b"a", b"2"))
        await roll(engine)
        await send(log, (b"a", b"3"), transactional=True)
        await send(log, (b"a", b"4"))
        await roll(engine)
        await engine.compaction.compact_due()
        assert [record.offset for record in await records_of(engine, log)] == [1, 2, 3]

    simulate(scenario)


def test_a_segment_without_survivors_is_merged_with_the_next():
    """A record must not be kept only because a segment needs one: its tombstone may go first."""

    async def scenario():
        engine, log = await open_compacted(memory_store(), FakeMetadataStore(), segment_bytes=200)
        await send(log, (b"a", b"1" * 150))
        await roll(engine)
        await send(log, (b"b", b"1" * 150))
        await roll(engine)
        await send(log, (b"a", None), (b"b", b"2" * 150))
        await roll(engine)
        await engine.compaction.compact_due()
        assert pairs(await records_of(engine, log)) == [(2, b"a", None), (3, b"b", b"2" * 150)]
        await asyncio.sleep(HORIZON_MS / 1000)
        await send(log, (b"b", b"3"))
        await roll(engine)
        await engine.compaction.compact_due()
        assert pairs(await records_of(engine, log)) == [(4, b"b", b"3")]

    simulate(scenario)


# --- when -----------------------------------------------------------------------------------------


def test_dirty_ratio_decides():
    async def scenario():
        store = CountingStore()
        rules = CompactionRules(dirty_ratio_min=0.5)
        engine, log = await open_compacted(store, FakeMetadataStore(), rules=rules)
        for count, runs in ((4, 1), (1, 1), (1, 2), (1, 2)):
            for _ in range(count):
                await send(log, *((b"%d" % index, b"v" * 100) for index in range(10)))
            await roll(engine)
            await engine.compaction.compact_due()
            assert engine.counters.compaction.runs == runs
        store.requests.clear()
        await engine.compaction.compact_due()
        assert not store.requests, "nothing is read to find that nothing is due"

    simulate(scenario)


def test_lags_decide():
    async def scenario():
        rules = CompactionRules(dirty_ratio_min=0.0, lag_ms_min=60_000)
        engine, log = await open_compacted(memory_store(), FakeMetadataStore(), rules=rules)
        for _ in range(3):
            await send(log, (b"a", b"1"), (b"b", b"1"))
            await roll(engine)
            await asyncio.sleep(30)
        await asyncio.sleep(1)
        await engine.compaction.compact_due()
        assert [record.offset for record in await records_of(engine, log)] == [2, 3, 4, 5]
        engine.close()

        rules = CompactionRules(dirty_ratio_min=1.0, lag_ms_max=60_000)
        engine, log = await open_compacted(memory_store(), FakeMetadataStore(), rules=rules)
        await send(log, (b"a", b"1"), (b"a", b"2"))
        await roll(engine)
        for runs in (0, 1):
            await engine.compaction.compact_due()
            assert engine.counters.compaction.runs == runs
            await asyncio.sleep(61)

    simulate(scenario)


def test_too_many_keys_are_compacted_in_parts():
    async def scenario():
        metadata = FakeMetadataStore()
        memory = CompactionSettings(
            interval_ms=10**9, memory_bytes_max=10 * (ENTRY_BYTES + 4), bytes_per_second=10**9
        )
        engine, log = await open_compacted(memory_store(), metadata, settings=memory)
        for first in range(0, 40, 8):
            for _ in range(2):
                await send(log, *((b"%04d" % index, b"x") for index in range(first, first + 8)))
                await roll(engine)
        counts = []
        for _ in range(6):
            await engine.compaction.compact_due()
            counts.append(len(await records_of(engine, log)))
        assert counts == sorted(counts, reverse=True)
        assert counts[0] > counts[-1] == 40
        assert engine.counters.compaction.runs == 5

    simulate(scenario)


# --- what may happen meanwhile --------------------------------------------------------------------


def test_clean_ends_are_those_of_the_topic():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await open_compacted(store, metadata)
        await send(log, (b"a", b"1"), (b"a", b"2"))
        await roll(engine)
        await checkpoint.write_checkpoint(store, NAMESPACE, TOPIC, TOPIC_ID, {3: 7})
        await engine.compaction.compact_due()
        ends = {0: 2, 3: 7}
        assert await checkpoint.read_checkpoint(store, NAMESPACE, TOPIC, TOPIC_ID) == ends
        assert await checkpoint.read_checkpoint(store, NAMESPACE, TOPIC, bytes(16)) == {}
        engine.close()
        engine, log = await open_compacted(store, metadata)
        await engine.compaction.compact_due()
        assert engine.counters.compaction.runs == 0

    simulate(scenario)


def test_segments_replaced_meanwhile_end_the_run():
    async def scenario():
        engine, log = await open_compacted(memory_store(), FakeMetadataStore())
        await send(log, (b"a", b"1"))
        await roll(engine)
        batches = await read(engine, log)
        built = segment_of(batches)
        content = memoryview(b"".join(bytes(part) for part in built.parts))
        swap = engine._swapper.swap

        async def interfere(log, source):
            with suppress(AttributeError):
                del engine.compaction._compactor._swap
            engine.compaction._compactor._swap = swap
            await swap(log, BuiltSegment(log, content, memoryview(built.index), log.swap_count))
            return await swap(log, source)

        await send(log, (b"a", b"2"))
        await roll(engine)
        engine.compaction._compactor._swap = interfere
        await engine.compaction.compact_due()
        assert engine.counters.compaction.failures == 1
        assert len(await records_of(engine, log)) == 2
        await asyncio.sleep(60)
        await engine.compaction.compact_due()
        assert len(await records_of(engine, log)) == 1

    simulate(scenario)


def test_a_job_cannot_bring_back_what_was_removed_since_it_read_the_segments():
    async def scenario():
        store = memory_store()
        engine, log = await open_compacted(store, FakeMetadataStore(), segment_bytes=1)
        await send(log, (b"a", b"deleted"), (b"b", b"1"))
        await roll(engine)
        key = await only_segment_key(store)
        checksum = (await read_segment_footer(store, key)).checksum
        await store.put(f"{PREFIX}{key.rpartition('/')[2]}", [bytes(await store.get(key))])
        await send(log, (b"a", None))
        await roll(engine)
        await engine.compaction.compact_due()
        await asyncio.sleep(HORIZON_MS / 1000)
        await send(log, (b"c", b"makes it dirty"))
        await roll(engine)
        await engine.compaction.compact_due()
        left = [record.key for record in await records_of(engine, log)]
        assert b"a" not in left
        with pytest.raises(InvalidRequestError, match="changed since the job"):
            await engine.swap_segments(log, PREFIX, [checksum])
        assert [record.key for record in await records_of(engine, log)] == left

    simulate(scenario)


def test_damage_is_kept_and_not_compacted():
    async def scenario():
        store = memory_store()
        engine, log = await open_compacted(store, FakeMetadataStore())
        await send(log, (b"a", b"1"), (b"a", b"2"))
        await roll(engine)
        key = await only_segment_key(store)
        damaged = bytearray(await store.get(key))
        damaged[60] ^= 1
        await store.put(key, [damaged], create=False)
        await engine.compaction.compact_due()
        assert engine.counters.compaction.failures == 1
        assert bytes(await store.get(key)) == damaged
        with pytest.raises(ObjectNotFoundError):
            await store.get(checkpoint.checkpoint_key(NAMESPACE, TOPIC))

    simulate(scenario)


def test_a_truncated_segment_does_not_stop_the_others():
    """Without its first batch, the time of the first dirty record is unknown."""

    async def scenario():
        store = memory_store()
        rules = CompactionRules(dirty_ratio_min=0.0, lag_ms_max=1000)
        engine, log = await open_compacted(store, FakeMetadataStore(), rules=rules)
        await send(log, (b"a", b"1"), (b"a", b"2"))
        await roll(engine)
        key = await only_segment_key(store)
        await store.put(key, [bytes(await store.get(key))[:40]], create=False)
        await engine.compaction.compact_due()
        assert (engine.counters.compaction.runs, engine.counters.compaction.failures) == (0, 1)

    simulate(scenario)


def test_many_due_logs_are_compacted_without_checking_all_of_them_for_each():
    async def scenario():
        rules = CompactionRules(dirty_ratio_min=0.0)
        settings = CompactionSettings(
            interval_ms=60_000, memory_bytes_max=10**6, bytes_per_second=10**9
        )
        engine = await open_engine(
            memory_store(),
            partitions=topic(LOGS, settings=log_settings(compaction=rules)),
            compaction=settings,
        )
        for log in engine.logs:
            await send(log, (b"a", b"1"), (b"a", b"2"))
            await roll(engine, log.partition)
        scheduler, checks = engine.compaction, Counter[int]()
        check = scheduler._dirty

        async def counted(log, *rest):
            checks[log.partition] += 1
            return await check(log, *rest)

        scheduler._dirty = counted
        await scheduler.compact_due()
        assert engine.counters.compaction.runs == LOGS
        assert max(checks.values()) <= 3

    simulate(scenario)


def test_a_store_that_accepts_no_segments_blocks_neither_readers_nor_others():
    """A full disk, or credentials that may only read: retention and transfers need the lock."""

    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        engine, log = await open_compacted(store, FakeMetadataStore())
        await send(log, (b"a", b"1"), (b"a", b"2"))
        await roll(engine)
        store.rules = [Rule(fault=Fault.DENIED, operations=frozenset({"put"}))]
        async with asyncio.timeout(60):
            await engine.compaction.compact_due()
            assert len(await records_of(engine, log)) == 2
        assert not log.segments_lock.locked()
        assert engine.counters.compaction.failures == 1
        store.rules = []
        await asyncio.sleep(60)
        await engine.compaction.compact_due()
        assert pairs(await records_of(engine, log)) == [(1, b"a", b"2")]

    simulate(scenario)


def test_a_segment_that_was_replaced_late_is_compacted_at_the_next_try():
    """By a request of a former owner, or of a swap that had failed."""

    async def scenario():
        store = memory_store()
        engine, log = await open_compacted(store, FakeMetadataStore())
        await send(log, (b"a", b"1" * 100), (b"a", b"2"))
        await roll(engine)
        shorter = map(keep_last_record, await read(engine, log))
        await store.put(
            await only_segment_key(store), segment_of(list(shorter)).parts, create=False
        )
        for _ in range(2):
            await asyncio.sleep(60)
            await engine.compaction.compact_due()
        assert (engine.counters.compaction.failures, engine.counters.compaction.runs) == (1, 1)

    simulate(scenario)


FAULTS = [Fault.REFUSED, Fault.TIMED_OUT, Fault.RESPONSE_LOST, Fault.APPLIED_LATER]


class Model:
    """What the log must say: every record that was sent, and the latest value of each key."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.sent: dict[int, tuple[bytes | None, bytes | None]] = {}

    @property
    def values(self) -> dict[bytes, bytes]:
        values: dict[bytes, bytes | None] = {}
        for _, (key, value) in sorted(self.sent.items()):
            if key is not None:
                values[key] = value
        return {key: value for key, value in values.items() if value is not None}

    async def send(self, log) -> None:
        random = self.random
        records = []
        for _ in range(random.randint(1, 6)):
            key = None if random.random() < 0.02 else b"key %d" % random.randrange(12)
            value = None if key is not None and random.random() < 0.3 else random.randbytes(20)
            records.append((key, value))
        base_offset = await send(log, *records, codec=random.choice(list(Codec)))
        self.sent |= dict(enumerate(records, base_offset))

    def check(self, records) -> None:
        values: dict[bytes, bytes | None] = {}
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets))
        for record in records:
            assert self.sent[record.offset] == (record.key, record.value)
            if record.key is not None:
                values[record.key] = record.value
        assert {key: value for key, value in values.items() if value is not None} == self.values
        keyless = {offset for offset, (key, _) in self.sent.items() if key is None}
        assert keyless <= set(offsets)


@pytest.mark.parametrize("seed", range(60))
def test_no_value_is_lost_or_comes_back(seed):
    """Random records, compactions with little memory, faults of the store, crashes and waits."""

    async def scenario(random: Random) -> None:
        inner, metadata, model = memory_store(), FakeMetadataStore(), Model(random)
        store = FaultyObjectStore(inner, random=random)
        settings = CompactionSettings(
            interval_ms=10**9,
            memory_bytes_max=random.choice([3, 8, 1000]) * ENTRY_BYTES,
            bytes_per_second=10**9,
        )
        options = {"settings": settings, "segment_bytes": random.choice([1, 400, 10**6])}
        engine, log = await open_compacted(store, metadata, **options)
        for _ in range(60):
            step = random.choices(("send", "roll", "compact", "crash", "wait"), (8, 4, 4, 1, 2))[0]
            if step in {"roll", "compact"} and random.random() < 0.3:
                store.rules = [Rule(fault=random.choice(FAULTS), share=0.05, seconds=(0, 50))]
            match step:
                case "send":
                    await model.send(log)
                case "roll":
                    with suppress(StoreUnavailableError):
                        await roll(engine)
                case "compact":
                    await engine.compaction.compact_due()
                case "crash":
                    running = asyncio.create_task(engine.compaction.compact_due())
                    for _ in range(random.randrange(300)):
                        await asyncio.sleep(0)
                    engine.close()
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)
                    engine, log = await open_compacted(store, metadata, **options)
                case "wait":
                    await asyncio.sleep(random.expovariate(1000 / HORIZON_MS))
            store.rules = []
            model.check(await records_of(engine, log))
        engine.close()

    virtual_time.run(scenario, seed=seed)
