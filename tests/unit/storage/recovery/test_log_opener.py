"""`LogOpener`: after a crash the next owner has every acknowledged record."""

import asyncio
from random import Random

import pytest
from structlog.testing import capture_logs

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from doubles.virtual_time import clock_ms
from kafscale.errors import FencedError, StoreUnavailableError
from kafscale.records import split
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.recovery.log_opener import LOST_OWNER_MS
from kafscale.storage.recovery.segment_recovery import WHOLE_TOPIC_MIN
from kafscale.storage.wal.dead_stream_cleaner import DeadStreamCleaner
from kafscale.storage.wal.streams import Streams
from unit.storage.engines import (
    BROKER_ID,
    NAMESPACE,
    TOPIC,
    CountingStore,
    Epochs,
    append,
    keys,
    memory_store,
    open_engine,
    read_offsets,
    roll,
    simulate,
    start_engine,
    to_open,
    topic,
)
from unit.storage.sessions import (
    OTHER_ID,
    THIRD_ID,
    FakeMetadataStore,
    InterferingStore,
    key_of,
    sessions,
)


async def fence(store, broker_id: int, epoch: int = 0) -> None:
    await Streams(store, NAMESPACE, clock_ms).fence(broker_id, epoch)


async def taken_over(store, metadata, broker_id: int, *, from_id: int):
    """An engine that has taken over the logs of another broker."""
    await fence(store, from_id)
    return await open_engine(
        store, broker_id=broker_id, partitions=[metadata.to_open()], save_state=metadata.save
    )


async def owner(store, metadata, broker_id: int = BROKER_ID):
    return await open_engine(
        store, broker_id=broker_id, partitions=[metadata.to_open()], save_state=metadata.save
    )


def test_records_of_several_former_owners_are_ordered():
    """The second owner crashes before it has rolled; the third recovers the records of both."""

    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        first = await owner(store, metadata, THIRD_ID)
        await append(first, b"a")
        second = await taken_over(store, metadata, BROKER_ID, from_id=THIRD_ID)
        assert await append(second, b"b") == 1
        third = await taken_over(store, metadata, OTHER_ID, from_id=BROKER_ID)
        assert await read_offsets(third) == [0, 1]
        assert await append(third, b"c") == 2
        result, _ = await third.reader.read(third.logs.get(TOPIC, 0), 0, 1000, first=True)
        assert [batch.leader_epoch for batch in split(b"".join(result))] == [0, 1, 2]

    simulate(scenario)


def test_former_owner_that_wakes_up_late_makes_nothing_durable():
    async def scenario():
        inner, metadata = memory_store(), FakeMetadataStore()
        store = FaultyObjectStore(inner, random=Random(0))
        sleeper = await owner(store, metadata)
        await append(sleeper, b"a")
        store.rules = [Rule(fault=Fault.SLOW, seconds=(20, 20))]
        waiting = [asyncio.ensure_future(append(sleeper, b"lost"))]
        await asyncio.sleep(1)
        waiting.append(asyncio.ensure_future(append(sleeper, b"lost, too")))
        await asyncio.sleep(1)
        successor = await taken_over(inner, metadata, OTHER_ID, from_id=BROKER_ID)
        assert await append(successor, b"b") == 1
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [FencedError, FencedError]
        assert sleeper.wal.fenced.done()
        assert key_of(0, 3) in await keys(inner), "an object beyond the fence"
        successor.close()
        third = await taken_over(inner, metadata, THIRD_ID, from_id=OTHER_ID)
        assert await read_offsets(third) == [0, 1]
        assert third.logs.get(TOPIC, 0).end_offset == 2

    simulate(scenario)


def test_late_segment_of_a_former_owner_is_adopted():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        before = await owner(store, metadata)
        await append(before, b"a")
        after = await taken_over(store, metadata, OTHER_ID, from_id=BROKER_ID)
        await append(after, b"b")
        await roll(before)
        assert metadata.ends == {}, "it is not the owner any more"
        await roll(after)
        assert [result.base_offset for result in after.logs.get(TOPIC, 0).segments] == [0, 1]
        assert metadata.ends == {0: 2}
        third = await taken_over(store, metadata, THIRD_ID, from_id=OTHER_ID)
        assert await read_offsets(third) == [0, 1]

    simulate(scenario)


def test_streams_of_live_brokers_are_ignored():
    async def scenario():
        store, metadata = CountingStore(), FakeMetadataStore()
        await owner(store, metadata)
        other = await open_engine(store, broker_id=OTHER_ID, partitions=[to_open(1)])
        await append(other, b"x", partition=1)
        await fence(store, BROKER_ID)
        third = await start_engine(store, broker_id=THIRD_ID)
        store.requests.clear()
        await third.open([metadata.to_open()])
        assert store.requests["get"] == 1, "the fence"

    simulate(scenario)


@pytest.mark.parametrize("fully_rolled", [True, False])
def test_offsets_continue_after_retention_deleted_everything(fully_rolled):
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        before = await owner(store, metadata)
        for _ in range(3):
            await append(before, b"x")
        await roll(before)
        log = before.logs.get(TOPIC, 0)
        await before.retention.delete_records(log, 3)
        await before.retention.enforce(log)
        assert await keys(store, ".kfs") == []
        await fence(store, BROKER_ID)
        after = await start_engine(store, broker_id=OTHER_ID)
        (log,) = await after.open([metadata.to_open(fully_rolled=fully_rolled)])
        assert (log.start_offset, log.tail.rolled_offset, log.end_offset) == (3, 3, 3)
        assert await append(after, b"y") == 3

    simulate(scenario)


def test_records_deleted_before_they_were_rolled_are_no_gap():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        before = await owner(store, metadata)
        await append(before, b"a")
        await roll(before)
        await before.trim()
        for value in (b"b", b"c", b"d"):
            await append(before, value)
        log = before.logs.get(TOPIC, 0)
        await before.retention.delete_records(log, 3)
        await before.retention.enforce(log)
        assert await keys(store, ".kfs") == []
        after = await taken_over(store, metadata, OTHER_ID, from_id=BROKER_ID)
        log = after.logs.get(TOPIC, 0)
        assert (log.start_offset, log.tail.rolled_offset, log.end_offset) == (3, 1, 4)
        assert await read_offsets(after) == [3]
        await roll(after)
        assert [result.base_offset for result in log.segments] == [1], "as the former owner would"

    simulate(scenario)


@pytest.mark.parametrize("lost", ["wal", "segment"])
def test_gap_is_logged_and_the_rest_is_served(lost):
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        before = await owner(store, metadata)
        for value in (b"a", b"b", b"c"):
            await append(before, value)
            if lost == "segment":
                await roll(before)
        if lost == "wal":
            await fence(store, BROKER_ID)
            await store.delete([key_of(0, 2)])
        else:
            await store.delete(await keys(store, ".kfw"))
            await store.delete([object_keys.segment_key(NAMESPACE, TOPIC, 0, 2)])
        after = await taken_over(store, metadata, OTHER_ID, from_id=BROKER_ID)
        assert await append(after, b"d") == 3
        assert await read_offsets(after, 0) == ([0, 2, 3] if lost == "wal" else [0, 1, 3])

    with capture_logs() as logs:
        simulate(scenario)
    (missing,) = [line for line in logs if line["event"] == "offsets missing"]
    hole = (1, 2) if lost == "wal" else (2, 3)
    assert (missing["log_level"], missing["from_offset"], missing["to_offset"]) == ("error", *hole)


def test_dead_stream_cleaner_and_takeover_run_concurrently():
    """Segments are rolled and the WAL is cleaned between the listings and the reads."""

    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        before = await owner(store, metadata)
        for value in (b"a", b"b", b"c"):
            await append(before, value)
        await fence(store, BROKER_ID)

        async def interfere() -> None:
            await roll(before)
            cleaner = DeadStreamCleaner(store, NAMESPACE, clock_ms)
            await cleaner.clean(metadata.rolled_ends, sessions(live=OTHER_ID))

        interfering = InterferingStore(store, "get", key_of(0, 1), interfere)
        after = await open_engine(
            interfering, broker_id=OTHER_ID, partitions=[metadata_less(metadata)]
        )
        assert key_of(0, 1) not in await keys(store)
        assert await read_offsets(after) == [0, 1, 2]

    def metadata_less(metadata):
        """The state for the new owner, while the former one may still save."""
        return to_open(leader_epoch=metadata.leader_epochs[0] + 1)

    simulate(scenario)


def test_store_failure_leaves_no_log_half_open():
    async def scenario():
        inner = memory_store()
        before = await open_engine(inner, partitions=topic(3))
        for number in range(3):
            await append(before, b"x", partition=number)
            await roll(before, number)
            await append(before, b"y", partition=number)
        await fence(inner, BROKER_ID)
        store = FaultyObjectStore(inner, random=Random(0))
        after = await start_engine(store, broker_id=OTHER_ID)
        for operation, pattern in (("list", "*"), ("get_suffix", "*"), ("get", "*.kfw")):
            refused = Rule(
                fault=Fault.REFUSED, operations=frozenset({operation}), keys=pattern, times_max=1
            )
            store.rules = [Rule(fault=Fault.SLOW, seconds=(0.01, 0.1)), refused]
            tasks = asyncio.all_tasks()
            with pytest.raises(StoreUnavailableError):
                await after.open(topic(3))
            assert asyncio.all_tasks() == tasks
            assert after.memory.used_bytes == 0
            assert list(after.logs) == []
        await after.open(topic(3))
        assert [await read_offsets(after, 0, number) for number in range(3)] == [[0, 1]] * 3

    simulate(scenario)


@pytest.mark.parametrize("count", [WHOLE_TOPIC_MIN - 1, 200])
def test_number_of_requests_is_partitions_plus_objects(count):
    async def scenario():
        store = CountingStore()
        before = await open_engine(store, partitions=topic(count))
        for _ in range(2):
            await asyncio.gather(*(append(before, b"x", partition=one) for one in range(count)))
        for one in range(count):
            await roll(before, one)
        for one in range(count):
            await append(before, b"y", partition=one)
        objects = len(await keys(store, ".kfw"))
        assert objects > count
        after = await start_engine(store, broker_id=OTHER_ID)
        await fence(store, BROKER_ID)
        store.requests.clear()
        await after.open(topic(count, end_offset=2))
        listings = count if count < WHOLE_TOPIC_MIN else 2
        assert store.requests["list"] <= listings + 2
        assert store.requests["get"] <= objects + 1 + count, "each object, the fence, the indexes"
        assert store.requests["get_suffix"] == count
        assert [log.end_offset for log in after.logs] == [3] * count

    simulate(scenario)


def test_objects_known_to_be_irrelevant_are_not_read_again():
    async def scenario():
        store = CountingStore()
        dead = await open_engine(store, broker_id=THIRD_ID, partitions=topic(2))
        for partition in (0, 1):
            for _ in range(10):
                await append(dead, b"value", partition=partition)
        await fence(store, THIRD_ID)
        engine = await start_engine(store)
        await engine.open([to_open(0, leader_epoch=1, fully_rolled=False)])
        assert store.requests["get"] >= 20
        store.requests.clear()
        await engine.open([to_open(1, leader_epoch=1, fully_rolled=False)])
        assert engine.logs.get(TOPIC, 1).end_offset == 10
        assert store.requests["get"] < 10 + 4, "those of the other log are known, and left out"

    simulate(scenario)


def test_recovered_records_are_rolled_soon():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        first = await owner(store, metadata, THIRD_ID)
        await append(first, b"a")
        second = await taken_over(store, metadata, BROKER_ID, from_id=THIRD_ID)
        working = asyncio.create_task(second.run())
        await asyncio.sleep(1)
        assert metadata.ends[0] == 1
        cleaner = DeadStreamCleaner(store, NAMESPACE, clock_ms)
        await cleaner.clean(metadata.rolled_ends, sessions(live=BROKER_ID))
        left = [key for key in await keys(store, ".kfw") if f"/{THIRD_ID}/" in key]
        assert len(left) == 1, "the fence"
        working.cancel()

    simulate(scenario)


def test_segments_of_other_partitions_are_ignored():
    async def scenario():
        store = memory_store()
        before = await open_engine(store, partitions=topic(WHOLE_TOPIC_MIN + 2))
        for one in range(WHOLE_TOPIC_MIN + 2):
            await append(before, b"x", partition=one)
            await roll(before, one)
        await fence(store, BROKER_ID)
        after = await start_engine(store, broker_id=OTHER_ID)
        await after.open([to_open(one, fully_rolled=True) for one in range(1, WHOLE_TOPIC_MIN + 1)])
        assert [len(log.segments) for log in after.logs] == [1] * WHOLE_TOPIC_MIN
        key = object_keys.segment_key(NAMESPACE, TOPIC, 0, 0)
        assert segment.read(key, await store.get(key)).footer.last_offset == 0

    simulate(scenario)


class ListingStore:
    """A store that runs a function just before a given listing."""

    def __init__(self, inner, prefix: str, interfere) -> None:
        self._inner = inner
        self._prefix = prefix
        self._interfere = interfere

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    async def list(self, prefix: str):
        if prefix == self._prefix:
            await self._interfere()
        async for chunk in self._inner.list(prefix):
            yield chunk


@pytest.mark.parametrize(
    "prefix",
    [object_keys.wal_root(NAMESPACE), object_keys.partition_prefix(NAMESPACE, TOPIC, 0)],
    ids=["streams", "segments"],
)
def test_records_rolled_and_trimmed_between_the_listings_are_not_missed(prefix):
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        before = await owner(store, metadata)
        for value in (b"a", b"b"):
            await append(before, value)
        await roll(before)
        await append(before, b"c")  # It says that the others are trimmed.
        await fence(store, BROKER_ID)

        async def interfere() -> None:
            await roll(before)
            await before.trimmer.trim()

        after = await start_engine(ListingStore(store, prefix, interfere), broker_id=OTHER_ID)
        await after.open([metadata.to_open()])
        assert await read_offsets(after) == [0, 1, 2]

    simulate(scenario)


def test_segments_unknown_to_the_metadata_store_are_saved():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        before = await owner(store, metadata)
        await append(before, b"a")
        metadata.is_down = True
        rolling = asyncio.ensure_future(roll(before))
        await asyncio.sleep(1)
        rolling.cancel()
        before.close()
        assert len(await keys(store, ".kfs")) == 1
        assert metadata.ends == {}
        metadata.is_down = False
        after = await taken_over(store, metadata, OTHER_ID, from_id=BROKER_ID)
        await append(after, b"b")
        running = asyncio.ensure_future(after.run())
        await asyncio.sleep(2)
        assert metadata.ends == {0: 1}
        assert len(await keys(store, ".kfs")) == 1, "no segment is made for it"
        running.cancel()

    simulate(scenario)


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("end_offset", [0, 7])
def test_log_may_start_within_an_unrolled_batch(rolled, end_offset):
    """The saved end of a log may equal its start, above all segments."""

    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        before = await owner(store, metadata)
        for _ in range(2):
            await append(before, b"a", b"b")
        if rolled:
            await roll(before)
        await append(before, b"c", b"d")
        await append(before, b"e", b"f", b"g")
        await fence(store, BROKER_ID)
        after = await start_engine(store, broker_id=OTHER_ID)
        (log,) = await after.open([to_open(start_offset=7, end_offset=end_offset)])
        assert (log.start_offset, log.end_offset) == (7, 9)
        assert await read_offsets(after) == [6]
        assert await append(after, b"h") == 9
        await roll(after)
        assert await read_offsets(after) == [6, 9]

    simulate(scenario)


@pytest.mark.parametrize("saved", ["state is older, too", "state is current"])
def test_released_log_with_missing_segments_is_recovered_from_the_wal(saved):
    """The former owner said that everything is in segments, but the last one is not there."""

    async def scenario():
        store, epochs, metadata = memory_store(), Epochs(), FakeMetadataStore()
        engine = await open_engine(
            store, epochs, partitions=[metadata.to_open()], save_state=metadata.save
        )
        for value in (b"a", b"b"):
            await append(engine, value)
        engine.close()
        if saved == "state is current":
            metadata.ends[0] = 2
        with capture_logs() as logged:
            successor = await start_engine(store, epochs)
            await successor.open([metadata.to_open(fully_rolled=True, released_end=2)])
        assert [each["event"] for each in logged if each["log_level"] == "error"] == [
            "released log has another end"
        ]
        assert await read_offsets(successor) == [0, 1]

    simulate(scenario)


def test_takeover_waits_for_the_stream_of_the_lost_owner():
    """The listing of the store lags: it does not show the fence yet."""

    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        before = await owner(store, metadata)
        await append(before, b"a")
        after = await start_engine(store, broker_id=OTHER_ID)
        lost = {"lost_owner": (BROKER_ID, 0), "assigned_ms": clock_ms()}
        with pytest.raises(StoreUnavailableError, match="not listed"):
            await after.open([metadata.to_open(**lost)])
        await after.open([metadata.to_open(1, **lost, fully_rolled=True)])
        await fence(store, BROKER_ID)
        await after.open([metadata.to_open(**lost)])
        assert await read_offsets(after) == [0]

    simulate(scenario)


def test_stream_of_an_owner_lost_long_ago_may_be_deleted():
    async def scenario():
        engine = await start_engine(memory_store())
        assigned_ms = clock_ms()
        await asyncio.sleep(LOST_OWNER_MS / 1000)
        await engine.open([to_open(lost_owner=(OTHER_ID, 0), assigned_ms=assigned_ms)])

    simulate(scenario, time_max_s=24 * 3600)
