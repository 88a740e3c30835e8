"""Streams begin once, are ended by fences, and nobody adds to one that is over."""

import asyncio
from random import Random

import pytest

from kafscale.errors import FencedError, NotOwnerError, StoreUnavailableError
from kafscale.storage.formats import object_keys
from kafscale.storage.wal.streams import Streams
from kafscale.testing.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.testing.virtual_time import clock_ms
from unit.storage.engines import (
    BROKER_ID,
    NAMESPACE,
    Epochs,
    append,
    begun,
    keys,
    memory_store,
    opened,
    read_offsets,
    roll,
    simulate,
)
from unit.storage.lives import OTHER_ID, Meddled, crashed, is_fence, key_of


def streams_in(store) -> Streams:
    return Streams(store, NAMESPACE, clock_ms)


def test_a_stream_is_ended_by_a_fence_in_its_first_free_place():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crashed(store, epochs, b"a", b"b")
        await opened(store, epochs)
        assert await is_fence(store, key_of(0, 3))
        assert await keys(store, ".kfw") == [*(key_of(0, n) for n in range(4)), key_of(1, 0)]

    simulate(scenario)


def test_a_life_that_never_wrote_is_fenced_too():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        idle = await opened(store, epochs)
        await opened(store, epochs)
        with pytest.raises(FencedError):
            await append(idle, b"late")
        assert idle.wal.fenced.done()

    simulate(scenario)


def test_of_two_lives_that_begin_at_once_only_the_younger_can_write():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        engines = await asyncio.gather(
            *(opened(store, epochs) for _ in range(2)), return_exceptions=True
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


def test_the_first_object_listed_is_never_one_that_overtook_another():
    async def scenario():
        inner, epochs = memory_store(), Epochs()
        store = FaultyObjectStore(inner, random=Random(0))
        engine = await opened(store, epochs)
        await append(engine, b"a")
        await roll(engine)
        await engine.trimmer.trim()
        store.rules = [Rule(fault=Fault.TIMED_OUT, keys=key_of(0, 2), seconds=(50, 50))]
        log = engine.logs.find("orders", 0)
        waiting = [asyncio.ensure_future(append(engine, b"b"))]
        await asyncio.sleep(0.1)
        waiting.append(asyncio.ensure_future(append(engine, b"c")))
        await asyncio.sleep(0.1)
        assert key_of(0, 3) in await keys(inner)
        assert log.high_watermark == 1
        successor = await opened(inner, epochs)
        assert successor.logs.find("orders", 0).high_watermark == 1
        store.rules = []
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [FencedError, FencedError]

    simulate(scenario)


def test_epochs_are_newer_than_every_stream_even_if_the_counter_was_lost():
    async def scenario():
        store = memory_store()
        await crashed(store, Epochs(), b"a")
        await crashed(store, Epochs(), b"b")
        engine = await opened(store, Epochs())
        assert await read_offsets(engine) == [0, 1]
        assert key_of(2, 0) in await keys(store)

    simulate(scenario)


def test_an_epoch_is_taken_once():
    async def scenario():
        store = memory_store()
        await store.put(key_of(4, 0), [b"somebody else's"])
        with pytest.raises(FencedError):
            await streams_in(store).create(BROKER_ID, 4)

    simulate(scenario)


def test_garbage_beside_the_wal_is_left_alone():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crashed(store, epochs, b"a")
        garbage = f"{object_keys.wal_prefix(NAMESPACE, BROKER_ID)}readme.txt"
        await store.put(garbage, [b"hello"])
        engine = await opened(store, epochs)
        assert await read_offsets(engine) == [0]
        assert garbage in await keys(store)

    simulate(scenario)


def test_a_fence_that_a_former_owner_has_left_behind_is_taken_back():
    """It goes on, rolls and trims between the listing and the fence, whose place is free again."""

    async def scenario():
        store, epochs = memory_store(), Epochs()
        before = await opened(store, epochs)
        await append(before, b"a")

        async def meddle() -> None:
            for value in (b"b", b"c", b"d"):
                await append(before, value)
            await roll(before)
            await before.trimmer.trim()

        engine = await opened(Meddled(store, "put", key_of(0, 2), meddle), epochs)
        assert await read_offsets(engine) == [0, 1, 2, 3]
        assert await is_fence(store, key_of(0, 5))
        with pytest.raises(FencedError):
            await append(before, b"e")

    simulate(scenario)


@pytest.mark.parametrize("values", [[], [b"a"], [b"a", b"b"]])
def test_anybody_may_fence_a_stream_and_more_than_once(values):
    async def scenario():
        store = memory_store()
        owner = await opened(store)
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


def test_a_stream_that_never_began_can_be_ended():
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


def test_a_fence_for_a_stream_that_began_and_went_on_meanwhile_is_moved():
    """It never was in the listing, and has trimmed its first place before the fence gets there."""

    async def scenario():
        store = memory_store()

        async def meddle() -> None:
            owner = await opened(store)
            await append(owner, b"a")
            await roll(owner)
            await owner.trimmer.trim()

        await streams_in(Meddled(store, "put", key_of(0, 0), meddle)).fence(BROKER_ID, 0)
        assert await keys(store, ".kfw") == [key_of(0, 1), key_of(0, 2)]
        assert await is_fence(store, key_of(0, 2))

    simulate(scenario)


def test_a_fence_that_could_not_be_taken_back_counts_for_nothing():
    async def scenario():
        inner = memory_store()
        owner = await opened(inner)
        await append(owner, b"a")

        async def meddle() -> None:
            for value in (b"b", b"c"):
                await append(owner, value)
            await roll(owner)
            await owner.trimmer.trim()

        rules = [Rule(fault=Fault.REFUSED, operations=frozenset({"delete"}))]
        store = FaultyObjectStore(inner, rules, random=Random(0))
        await streams_in(Meddled(store, "put", key_of(0, 2), meddle)).fence(BROKER_ID, 0)
        assert await is_fence(inner, key_of(0, 2))
        (stream,) = await streams_in(inner).fenced()
        assert [item.key for item in stream.acknowledged] == [key_of(0, 3)]
        assert stream.fence.key == key_of(0, 4)
        with pytest.raises(FencedError):
            await append(owner, b"d")

    simulate(scenario)


def test_an_owner_that_always_wins_is_given_up_for_now():
    async def scenario():
        store = memory_store()
        await crashed(store, Epochs(), b"a")

        class Gone:
            """A store in which whatever lies before a fence is gone when it is looked at."""

            def __getattr__(self, name: str):
                return getattr(store, name)

            async def get_range(self, key: str, start: int, stop: int):
                return await store.get_range(key + ".gone", start, stop)

        with pytest.raises(StoreUnavailableError):
            await streams_in(Gone()).fence(BROKER_ID, 0)
        assert await streams_in(store).fenced() == []

    simulate(scenario)


def test_a_broker_leaves_the_streams_of_others_alone():
    async def scenario():
        store = memory_store()
        other = await begun(store, broker_id=OTHER_ID)
        await crashed(store, Epochs(), b"a")
        await begun(store)
        assert [
            (stream.broker_id, stream.epoch) for stream in await streams_in(store).fenced()
        ] == [(BROKER_ID, 0)]
        assert not other.wal.is_closed
        assert await streams_in(store).newest_epoch(OTHER_ID) == 0
        assert await streams_in(store).newest_epoch(9) == -1

    simulate(scenario)


def test_streams_are_ended_whoever_they_belong_to_and_those_that_are_over_stay_as_they_are():
    async def scenario():
        store = memory_store()
        await crashed(store, Epochs(), b"a")
        other = await begun(store, broker_id=OTHER_ID)
        streams = streams_in(store)
        assert await streams.fence_all(await streams.all()) == 2
        over = await streams.fenced()
        assert [stream.broker_id for stream in over] == [BROKER_ID, OTHER_ID]
        assert await streams.fence_all(over) == 0
        assert await streams.fenced() == over
        assert await streams.fence_all([]) == 0
        assert not other.wal.is_closed, "it has not noticed yet"

    simulate(scenario)


def test_epochs_of_brokers_are_their_own():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        first = await opened(store, epochs)
        await begun(store, epochs, OTHER_ID)
        assert await append(first, b"a") == 0
        assert [await first.newest_epoch(), epochs.last] == [0, 1]

    simulate(scenario)
