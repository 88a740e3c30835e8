"""The trimmer: deletes WAL objects in order, once segments hold their records."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from doubles.virtual_time import clock_ms
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.wal.trimmer import DurableObject, WalTrimmer
from unit.storage.engines import memory_store, new_log, run_of, simulate

DELETE = frozenset({"delete"})


async def trimmer_of(store, *objects: DurableObject, count_max: int = 1) -> WalTrimmer:
    trimmer = WalTrimmer(store, clock_ms, Random(0), count_max)
    for durable in objects:
        await store.put(durable.key, [b"x" * durable.size_bytes])
        trimmer.add(durable)
    return trimmer


async def listed(store) -> list[str]:
    return [item.key async for chunk in store.list("w/") for item in chunk]


def log_rolled_to(offset: int, *, of: int):
    log = new_log()
    log.advance_high_watermark(run_of(0, *[1] * of), 0)
    if offset:
        log.on_rolled(0, offset, 100, 0, 0)
    return log


def test_rolled_objects_are_deleted_except_the_newest():
    async def scenario():
        log = log_rolled_to(3, of=3)
        store = memory_store()
        trimmer = await trimmer_of(
            store, *(DurableObject(f"w/{n}", 10, {log: n}) for n in range(3))
        )
        assert trimmer.size_bytes == 30
        await trimmer.trim()
        assert await listed(store) == ["w/2"]
        assert (len(trimmer), trimmer.size_bytes) == (1, 10)

    simulate(scenario)


def test_objects_are_deleted_in_order():
    async def scenario():
        rolled, waiting = log_rolled_to(9, of=9), log_rolled_to(0, of=1)
        store = memory_store()
        trimmer = await trimmer_of(
            store,
            DurableObject("w/0", 10, {waiting: 0}),
            DurableObject("w/1", 10, {rolled: 3}),
            DurableObject("w/2", 10, {rolled: 8}),
        )
        await trimmer.trim()
        assert await listed(store) == ["w/0", "w/1", "w/2"]
        assert trimmer.logs_pinning_oldest() == [waiting]
        waiting.close()
        await trimmer.trim()
        assert len(await listed(store)) == 3, "a takeover has to find it"
        waiting.close(deleted=True)
        await trimmer.trim()
        assert await listed(store) == ["w/2"]

    simulate(scenario)


def test_object_with_a_put_in_flight_is_kept_for_a_while():
    async def scenario():
        store = memory_store()
        trimmer = await trimmer_of(
            store,
            DurableObject("w/0", 10, {}, clock_ms() + 5000),
            DurableObject("w/1", 10, {}),
            DurableObject("w/2", 10, {}),
        )
        await trimmer.trim()
        assert len(await listed(store)) == 3
        await asyncio.sleep(5)
        await trimmer.trim()
        assert await listed(store) == ["w/2"]

    simulate(scenario)


def test_concurrent_trims_delete_each_object_once():
    async def scenario():
        store = memory_store()
        trimmer = await trimmer_of(store, *(DurableObject(f"w/{n}", 10, {}) for n in range(6)))
        await asyncio.gather(trimmer.trim(), trimmer.trim())
        assert await listed(store) == ["w/5"]
        assert (len(trimmer), trimmer.size_bytes) == (1, 10)

    simulate(scenario)


class Deletions(MemoryObjectStore):
    """Records which keys were deleted together."""

    def __init__(self):
        super().__init__(clock_ms)
        self.calls = []

    async def delete(self, keys):
        self.calls.append(list(keys))
        await super().delete(keys)


@pytest.mark.parametrize(
    ("count_max", "calls"),
    [
        (1, [["w/0"], ["w/1"], ["w/2"]]),
        (2, [["w/0", "w/1"], ["w/2"]]),
        (9, [["w/0", "w/1", "w/2"]]),
    ],
)
def test_several_objects_are_deleted_per_request_if_the_store_keeps_order(count_max, calls):
    async def scenario():
        rolled, waiting = log_rolled_to(9, of=9), log_rolled_to(0, of=1)
        store = Deletions()
        trimmer = await trimmer_of(
            store,
            *(DurableObject(f"w/{n}", 10, {rolled: n}) for n in range(3)),
            DurableObject("w/3", 10, {waiting: 0}),
            *(DurableObject(f"w/{n}", 10, {rolled: n}) for n in range(4, 6)),
            count_max=count_max,
        )
        await trimmer.trim()
        assert store.calls == calls
        assert (len(trimmer), trimmer.size_bytes) == (3, 30)

    simulate(scenario)


def test_failed_deletion_is_retried():
    async def scenario():
        store = FaultyObjectStore(
            memory_store(),
            [Rule(fault=Fault.REFUSED, operations=DELETE, times_max=3)],
            random=Random(0),
        )
        trimmer = await trimmer_of(store, *(DurableObject(f"w/{n}", 10, {}) for n in range(3)))
        running = asyncio.ensure_future(trimmer.run())
        trimmer.notify_rolled()
        await asyncio.sleep(10)
        assert await listed(store) == ["w/2"]
        running.cancel()

    simulate(scenario)
