"""WAL streams: creation, fencing, and races between a fence and the owner."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from doubles.virtual_time import clock_ms
from kafscale.errors import FencedError, NotOwnerError, StoreUnavailableError
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from kafscale.storage.wal.streams import Streams
from unit.storage.engines import (
    BROKER_ID,
    NAMESPACE,
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
)
from unit.storage.sessions import OTHER_ID, InterferingStore, crash_session, is_fence, key_of


def streams_in(store) -> Streams:
    return Streams(store, NAMESPACE, clock_ms)


def test_stream_is_fenced_at_its_first_free_sequence():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crash_session(store, epochs, b"a", b"b")
        await open_engine(store, epochs)
        assert await is_fence(store, key_of(0, 3))
        assert await keys(store, ".kfw") == [*(key_of(0, n) for n in range(4)), key_of(1, 0)]

    simulate(scenario)


def test_session_without_records_is_fenced():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        idle = await open_engine(store, epochs)
        await open_engine(store, epochs)
        with pytest.raises(FencedError):
            await append(idle, b"late")
        assert idle.wal.fenced.done()

    simulate(scenario)


def test_of_two_concurrent_sessions_only_the_newer_can_write():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        engines = await asyncio.gather(
            *(open_engine(store, epochs) for _ in range(2)), return_exceptions=True
        )
        working = []
        for engine in engines:
            if isinstance(engine, FencedError):
                continue
            try:
                await append(engine, b"mine")
            except NotOwnerError:
                continue
            working.append(engine)
        assert len(working) == 1

    simulate(scenario)


def test_first_listed_object_is_always_acknowledged():
    async def scenario():
        inner, epochs = memory_store(), Epochs()
        store = FaultyObjectStore(inner, random=Random(0))
        engine = await open_engine(store, epochs)
        await append(engine, b"a")
        await roll(engine)
        await engine.trim()
        assert await keys(inner, ".kfw") == [key_of(0, 2)], "the trim marker"
        store.rules = [Rule(fault=Fault.TIMED_OUT, keys=key_of(0, 3), seconds=(50, 50))]
        log = engine.logs.get("orders", 0)
        waiting = [asyncio.ensure_future(append(engine, b"b"))]
        await asyncio.sleep(0.1)
        waiting.append(asyncio.ensure_future(append(engine, b"c")))
        await asyncio.sleep(0.1)
        assert key_of(0, 4) in await keys(inner)
        assert log.high_watermark == 1
        successor = await open_engine(inner, epochs)
        assert successor.logs.get("orders", 0).high_watermark == 1
        store.rules = []
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [FencedError, FencedError]

    simulate(scenario)


def test_epochs_exceed_all_streams_even_if_the_counter_was_lost():
    async def scenario():
        store = memory_store()
        await crash_session(store, Epochs(), b"a")
        await crash_session(store, Epochs(), b"b")
        engine = await open_engine(store, Epochs())
        assert await read_offsets(engine) == [0, 1]
        assert key_of(2, 0) in await keys(store)

    simulate(scenario)


def test_epoch_can_be_used_once():
    async def scenario():
        store = memory_store()
        await store.put(key_of(4, 0), [b"another process"])
        with pytest.raises(FencedError):
            await streams_in(store).create(BROKER_ID, 4)

    simulate(scenario)


def test_unknown_objects_in_the_wal_prefix_are_ignored():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crash_session(store, epochs, b"a")
        garbage = f"{object_keys.wal_prefix(NAMESPACE, BROKER_ID)}readme.txt"
        await store.put(garbage, [b"hello"])
        engine = await open_engine(store, epochs)
        assert await read_offsets(engine) == [0]
        assert garbage in await keys(store)

    simulate(scenario)


def test_fence_that_the_owner_has_passed_is_removed():
    """The owner appends, rolls and trims between the listing and the fence."""

    async def scenario():
        store, epochs = memory_store(), Epochs()
        before = await open_engine(store, epochs)
        await append(before, b"a")

        async def interfere() -> None:
            for value in (b"b", b"c", b"d"):
                await append(before, value)
            await roll(before)
            await before.trim()

        engine = await open_engine(InterferingStore(store, "put", key_of(0, 2), interfere), epochs)
        assert await read_offsets(engine) == [0, 1, 2, 3]
        assert await is_fence(store, key_of(0, 6)), "after the trim marker"
        assert key_of(0, 2) not in await keys(store)
        with pytest.raises(FencedError):
            await append(before, b"e")

    simulate(scenario)


@pytest.mark.parametrize("values", [[], [b"a"], [b"a", b"b"]])
def test_fence_is_idempotent_for_any_broker(values):
    async def scenario():
        store = memory_store()
        owner = await open_engine(store)
        for value in values:
            await append(owner, value)
        for _ in range(2):
            await streams_in(store).fence(BROKER_ID, 0)
        await asyncio.gather(*(streams_in(store).fence(BROKER_ID, 0) for _ in range(3)))
        fence = key_of(0, len(values) + 1)
        assert await is_fence(store, fence)
        assert (await keys(store, ".kfw"))[-1] == fence
        with pytest.raises(FencedError):
            await append(owner, b"late")
        (stream,) = await streams_in(store).fenced()
        assert [item.key for item in stream.acknowledged] == (await keys(store, ".kfw"))[:-1]

    simulate(scenario)


def test_stream_that_does_not_exist_can_be_fenced():
    async def scenario():
        store = memory_store()
        await streams_in(store).fence(BROKER_ID, 3)
        await streams_in(store).fence(BROKER_ID, 3)
        assert await keys(store, ".kfw") == [key_of(3, 0)]
        with pytest.raises(FencedError):
            await streams_in(store).create(BROKER_ID, 3)
        (stream,) = await streams_in(store).fenced()
        assert stream.acknowledged == []

    simulate(scenario)


def test_fence_of_a_stream_created_meanwhile_is_moved():
    """The stream was not listed, and its first object is trimmed before the fence is written."""

    async def scenario():
        store = memory_store()

        async def interfere() -> None:
            owner = await open_engine(store)
            await append(owner, b"a")
            await roll(owner)
            await owner.trim()

        await streams_in(InterferingStore(store, "put", key_of(0, 0), interfere)).fence(
            BROKER_ID, 0
        )
        assert await keys(store, ".kfw") == [key_of(0, 2), key_of(0, 3)]
        assert await is_fence(store, key_of(0, 3))

    simulate(scenario)


def test_fence_that_could_not_be_removed_is_ineffective():
    async def scenario():
        inner = memory_store()
        owner = await open_engine(inner)
        await append(owner, b"a")

        async def interfere() -> None:
            for value in (b"b", b"c"):
                await append(owner, value)
            await roll(owner)
            await owner.trim()

        rules = [Rule(fault=Fault.REFUSED, operations=frozenset({"delete"}))]
        store = FaultyObjectStore(inner, rules, random=Random(0))
        await streams_in(InterferingStore(store, "put", key_of(0, 2), interfere)).fence(
            BROKER_ID, 0
        )
        assert await is_fence(inner, key_of(0, 2))
        (stream,) = await streams_in(inner).fenced()
        assert [item.key for item in stream.acknowledged] == [key_of(0, 4)]
        assert stream.fence.key == key_of(0, 5)
        with pytest.raises(FencedError):
            await append(owner, b"d")

    simulate(scenario)


def test_fencing_gives_up_if_the_owner_always_wins():
    async def scenario():
        store = memory_store()
        owner = await open_engine(store)

        class FastOwner:
            """Before each fence arrives, the owner has passed and trimmed that sequence."""

            def __getattr__(self, name: str):
                return getattr(store, name)

            async def put(self, key, parts, *, create=True):
                for value in (b"a", b"b"):
                    await append(owner, value)
                await roll(owner)
                await owner.trim()
                await store.put(key, parts, create=create)

        with pytest.raises(StoreUnavailableError, match="appends faster"):
            await streams_in(FastOwner()).fence(BROKER_ID, 0)
        assert await streams_in(store).fenced() == []
        assert await append(owner, b"c") > 0

    simulate(scenario)


def test_session_does_not_fence_streams_of_other_brokers():
    async def scenario():
        store = memory_store()
        other = await start_engine(store, broker_id=OTHER_ID)
        await crash_session(store, Epochs(), b"a")
        await start_engine(store)
        assert [
            (stream.broker_id, stream.epoch) for stream in await streams_in(store).fenced()
        ] == [(BROKER_ID, 0)]
        assert not other.wal.is_closed
        assert await streams_in(store).newest_epoch(OTHER_ID) == 0
        assert await streams_in(store).newest_epoch(9) == -1

    simulate(scenario)


def test_fence_all_fences_all_streams_without_a_fence():
    async def scenario():
        store = memory_store()
        await crash_session(store, Epochs(), b"a")
        other = await start_engine(store, broker_id=OTHER_ID)
        streams = streams_in(store)
        assert await streams.fence_all(await streams.all()) == 2
        over = await streams.fenced()
        assert [stream.broker_id for stream in over] == [BROKER_ID, OTHER_ID]
        assert await streams.fence_all(over) == 0
        assert await streams.fenced() == over
        assert await streams.fence_all([]) == 0
        assert not other.wal.is_closed, "it has not noticed yet"

    simulate(scenario)


def test_epochs_are_per_broker():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        first = await open_engine(store, epochs)
        await start_engine(store, epochs, OTHER_ID)
        assert await append(first, b"a") == 0
        assert [await first.newest_epoch(), epochs.last] == [0, 1]

    simulate(scenario)


@pytest.mark.parametrize("sequence", [0, 1])
@pytest.mark.parametrize("late_seconds", [5, 120, 3 * 3600])
def test_object_that_comes_back_late_hides_nothing(sequence, late_seconds):
    """A PUT was given up and repeated; its first attempt takes effect after the object is trimmed.

    Otherwise a fence would go next to that object without any effect, and a takeover would skip
    all records after it.
    """

    async def scenario():
        objects, epochs = memory_store(), Epochs()
        faulty = FaultyObjectStore(objects, random=Random(0))
        store = RetryingObjectStore(faulty, attempts_max=4, random=Random(0))
        faulty.rules.append(
            Rule(
                fault=Fault.APPLIED_LATER,
                operations=frozenset({"put"}),
                keys=key_of(0, sequence),
                times_max=1,
                seconds=(late_seconds, late_seconds),
            )
        )
        owner = await open_engine(store, epochs)
        for value in (b"0", b"1", b"2"):
            await append(owner, value)
        await roll(owner)
        await append(owner, b"3")
        await owner.trim()
        assert key_of(0, sequence) not in await keys(objects)
        await asyncio.sleep(late_seconds)
        assert key_of(0, sequence) in await keys(objects)
        await append(owner, b"4")
        await streams_in(objects).fence(BROKER_ID, 0)
        with pytest.raises(FencedError):
            await append(owner, b"after the fence")
        successor = await open_engine(objects, epochs, OTHER_ID)
        assert await read_offsets(successor) == [0, 1, 2, 3, 4]

    simulate(scenario, time_max_s=2 * late_seconds + 3600)


def test_fence_next_to_an_object_that_came_back_is_not_effective():
    """The owner is past the fence, although the object before the fence exists."""

    async def scenario():
        store = memory_store()
        owner = await open_engine(store)
        await append(owner, b"a")
        first = await store.get(key_of(0, 1))
        await append(owner, b"b")
        await roll(owner)
        await append(owner, b"c")
        await owner.trim()
        await store.put(key_of(0, 1), [first])
        fence = wal_object.Header(BROKER_ID, 0, 2, 0, is_fence=True)
        await store.put(key_of(0, 2), wal_object.encode_empty(fence))
        (stream,) = await streams_in(store).all()
        assert stream.fence is None
        assert [item.key for item in stream.with_records] == [key_of(0, 3)]
        assert [item.key for item in stream.trimmed] == [key_of(0, 1)]
        assert stream.first_free_sequence == 4

    simulate(scenario)


def test_fences_of_many_crashed_sessions_are_read_once():
    async def scenario():
        store, epochs = CountingStore(), Epochs()
        for _ in range(50):
            engine = await start_engine(store, epochs)
            engine.close()
            await asyncio.sleep(15)
        streams = Streams(store, NAMESPACE, clock_ms)
        store.requests.clear()
        assert len(await streams.fenced()) == 49
        assert store.requests["get"] == 50, "the fences, and the object of the newest session"
        assert len(await streams.fenced()) == 49
        assert store.requests["get"] == 50
        await store.delete(await keys(store, ".kfw"))
        assert await streams.all() == []
        assert streams._known_fences == {}

    simulate(scenario)
