"""What earlier lives left in the WAL is found again, and nobody adds to it any more."""

import asyncio
from random import Random

import pytest

from kafscale.errors import FencedError, NotOwnerError, StoreUnavailableError
from kafscale.storage import layout, wal
from kafscale.storage.objects.faulty import Fault, FaultyObjectStore, Rule
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.recovery import FENCE_KEPT_MS, READS_MAX
from kafscale.testing import virtual_time
from unit.storage.engines import (
    BROKER_ID,
    NAMESPACE,
    Epochs,
    append,
    keys,
    memory_store,
    opened,
    read_offsets,
    roll,
    simulate,
)


def key_of(epoch: int, sequence: int) -> str:
    return layout.wal_key(NAMESPACE, BROKER_ID, epoch, sequence)


async def is_fence(store, key: str) -> bool:
    return wal.decode(key, await store.get(key)).header.is_fence


async def crashed(store, epochs, *values: bytes) -> None:
    """A life that appended each value in an object of its own, and ended without a word."""
    engine = await opened(store, epochs)
    for value in values:
        await append(engine, value)
    engine.close()


def test_what_was_durable_is_back_and_offsets_go_on():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crashed(store, epochs, b"a", b"b")
        engine = await opened(store, epochs)
        assert await read_offsets(engine) == [0, 1]
        assert await append(engine, b"c") == 2

    simulate(scenario)


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


def test_objects_behind_a_gap_never_counted():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crashed(store, epochs, b"a", b"b", b"c")
        await store.delete([key_of(0, 2)])
        engine = await opened(store, epochs)
        assert await read_offsets(engine) == [0]
        assert await is_fence(store, key_of(0, 2))
        assert key_of(0, 3) not in await keys(store)

    simulate(scenario)


def test_the_first_object_listed_is_never_one_that_overtook_another():
    async def scenario():
        inner, epochs = memory_store(), Epochs()
        store = FaultyObjectStore(inner, random=Random(0))
        engine = await opened(store, epochs)
        await append(engine, b"a")
        await roll(engine)
        await engine.trimmer.trim()
        store.rules = [
            Rule(fault=Fault.TIMED_OUT, keys=key_of(0, 2), seconds=(50, 50)),
        ]
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


def test_an_object_that_comes_back_below_a_fence_hides_nothing():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crashed(store, epochs, b"a", b"b", b"c")
        revenant = bytes(await store.get(key_of(0, 1)))
        await opened(store, epochs)
        await store.delete([key_of(0, n) for n in range(3)])
        await store.put(key_of(0, 1), [revenant])
        engine = await opened(store, epochs)
        assert await read_offsets(engine) == [0, 2]

    simulate(scenario)


@pytest.mark.parametrize(("damaged", "left"), [(1, [1, 2]), (2, [0, 2]), (3, [0, 1])])
def test_a_damaged_object_costs_its_own_records_only(damaged, left):
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crashed(store, epochs, b"a", b"b", b"c")
        data = bytearray(await store.get(key_of(0, damaged)))
        data[50] ^= 1
        await store.put(key_of(0, damaged), [data], create=False)
        engine = await opened(store, epochs)
        assert await read_offsets(engine) == left
        assert await append(engine, b"d") == left[-1] + 1

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
        async def same(at_least: int) -> int:
            return max(at_least, 4)

        store = memory_store()
        await store.put(key_of(4, 0), [b"somebody else's"])
        counter = Epochs()
        counter.take = same
        with pytest.raises(FencedError):
            # The listing of this life is older than the object.
            await opened(BlindOnce(store), counter)

    simulate(scenario)


class BlindOnce:
    """A store whose first listing shows nothing."""

    def __init__(self, inner) -> None:
        self._inner = inner
        self._is_blind = True

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    async def list(self, prefix: str):
        if self._is_blind:
            self._is_blind = False
            return
        async for chunk in self._inner.list(prefix):
            yield chunk


def test_garbage_beside_the_wal_is_left_alone():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crashed(store, epochs, b"a")
        garbage = f"{layout.wal_prefix(NAMESPACE, BROKER_ID)}readme.txt"
        await store.put(garbage, [b"hello"])
        engine = await opened(store, epochs)
        assert await read_offsets(engine) == [0]
        assert garbage in await keys(store)

    simulate(scenario)


def test_a_fence_goes_when_nobody_can_run_into_it_any_more():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crashed(store, epochs, b"a")
        engine = await opened(store, epochs)
        await append(engine, b"b")
        await roll(engine)
        await engine.trimmer.trim()
        engine.close()
        fence = key_of(0, 2)
        assert fence in await keys(store)
        await asyncio.sleep(FENCE_KEPT_MS / 1000 - 10)
        (await opened(store, epochs)).close()
        assert fence in await keys(store)
        await asyncio.sleep(20)
        (await opened(store, epochs)).close()
        assert fence not in await keys(store)

    simulate(scenario, time_max_s=FENCE_KEPT_MS)


class Meddled:
    """A store in which a former owner does something just before a certain request."""

    def __init__(self, inner, verb: str, key: str, meddle) -> None:
        self._inner = inner
        self._verb = verb
        self._key = key
        self._meddle = meddle

    def __getattr__(self, name: str):
        request = getattr(self._inner, name)
        if name != self._verb:
            return request

        async def meddled(key: str, *rest, **options):
            if key == self._key and self._meddle is not None:
                meddle, self._meddle = self._meddle, None
                await meddle()
            return await request(key, *rest, **options)

        return meddled


def test_what_a_former_owner_rolls_and_trims_meanwhile_is_not_missed():
    """It makes a segment after segments were listed, and deletes the WAL before it is read."""

    async def scenario():
        store, epochs = memory_store(), Epochs()
        before = await opened(store, epochs)
        for value in (b"a", b"b", b"c"):
            await append(before, value)

        async def meddle() -> None:
            await roll(before)
            await before.trimmer.trim()

        engine = await opened(Meddled(store, "get", key_of(0, 1), meddle), epochs)
        assert await read_offsets(engine) == [0, 1, 2]

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


class DistantStore(MemoryObjectStore):
    """A store whose reads take their time, the longer the older the object is."""

    __slots__ = ("reads", "reads_max")

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms)
        self.reads = 0
        self.reads_max = 0

    async def get(self, key: str) -> memoryview:
        self.reads += 1
        self.reads_max = max(self.reads_max, self.reads)
        place = layout.parse_wal(NAMESPACE, key)
        assert place is not None
        await asyncio.sleep(1 / (1 + place.sequence))
        self.reads -= 1
        return await super().get(key)


def test_objects_are_read_together_and_count_in_order():
    async def scenario():
        store, epochs = DistantStore(), Epochs()
        count = 3 * READS_MAX
        await crashed(store, epochs, *(b"%d" % number for number in range(count)))
        engine = await opened(store, epochs)
        assert await read_offsets(engine) == list(range(count))
        assert store.reads_max == READS_MAX
        assert store.reads == 0

    simulate(scenario)


def test_reads_ahead_end_with_the_one_that_failed():
    async def scenario():
        inner, epochs = memory_store(), Epochs()
        await crashed(inner, epochs, *(b"%d" % number for number in range(2 * READS_MAX)))
        store = FaultyObjectStore(inner, random=Random(0))
        store.rules = [Rule(fault=Fault.REFUSED, operations=frozenset({"get"}), keys=key_of(0, 3))]
        before = asyncio.all_tasks()
        with pytest.raises(StoreUnavailableError):
            await opened(store, epochs)
        assert asyncio.all_tasks() == before

    simulate(scenario)
