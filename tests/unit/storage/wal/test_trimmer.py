"""The trimmer: deletes WAL objects in order, once segments hold their records."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from doubles.virtual_time import clock_ms
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.wal.trimmer import DurableObject, WalTrimmer
from unit.storage.engines import TOPIC_ID, memory_store, new_log, run_of, simulate

DELETE = frozenset({"delete"})


class Stream:
    """A trimmer, and a store with the objects that were added to it."""

    def __init__(self, store=None, count_max=1):
        self.store = store or memory_store()
        self.trimmer = WalTrimmer(self.store, Random(0), count_max)
        self.sequence = 0

    async def add(self, pins, *, announce=False):
        """Acknowledge the next object, which announces what can be deleted if `announce` is set."""
        durable = DurableObject(
            f"w/{self.sequence}",
            self.sequence,
            10,
            pins,
            self.trimmer.deletable_to() if announce else 0,
        )
        self.sequence += 1
        await self.store.put(durable.key, [b"x" * durable.size_bytes])
        self.trimmer.add(durable)

    async def listed(self) -> list[str]:
        return [item.key async for chunk in self.store.list("w/") for item in chunk]


def log_rolled_to(offset: int, *, of: int):
    log = new_log()
    log.advance_high_watermark(run_of(0, *[1] * of), 0)
    if offset:
        log.on_rolled(0, offset, 100, 0, 0)
    return log


def test_rolled_objects_are_deleted_when_a_later_object_says_so():
    """A PUT of a deleted object that takes effect late is recognised by what that object says."""

    async def scenario():
        log, stream = log_rolled_to(3, of=3), Stream()
        for number in range(3):
            await stream.add({log: number})
        await stream.trimmer.trim()
        assert await stream.listed() == ["w/0", "w/1", "w/2"]
        assert stream.trimmer.needs_marker
        await stream.add({log: 3}, announce=True)
        assert stream.trimmer.size_bytes == 40
        await stream.trimmer.trim()
        assert await stream.listed() == ["w/3"]
        assert (len(stream.trimmer), stream.trimmer.size_bytes) == (1, 10)
        assert not stream.trimmer.needs_marker

    simulate(scenario)


def test_objects_without_records_need_no_marker():
    async def scenario():
        log, stream = log_rolled_to(1, of=1), Stream()
        await stream.add({})
        assert not stream.trimmer.needs_marker
        await stream.add({log: 0}, announce=True)
        assert stream.trimmer.needs_marker
        await stream.add({}, announce=True)
        assert not stream.trimmer.needs_marker, "otherwise each marker would need another one"
        await stream.trimmer.trim()
        assert await stream.listed() == ["w/2"]

    simulate(scenario)


def test_objects_are_deleted_in_order():
    async def scenario():
        rolled, waiting = log_rolled_to(9, of=9), log_rolled_to(0, of=1)
        stream = Stream()
        await stream.add({waiting: 0})
        await stream.add({rolled: 3})
        await stream.add({rolled: 8}, announce=True)
        await stream.trimmer.trim()
        assert await stream.listed() == ["w/0", "w/1", "w/2"]
        assert stream.trimmer.logs_pinning_oldest() == [waiting]
        waiting.close()
        await stream.add({rolled: 9}, announce=True)
        await stream.trimmer.trim()
        assert len(await stream.listed()) == 4, "a takeover has to find it"

    simulate(scenario)


def test_deleted_topic_pins_no_objects():
    """However its logs were closed, and also objects that become durable after the deletion."""

    async def scenario():
        waiting, stream = log_rolled_to(0, of=1), Stream()
        await stream.add({waiting: 0})
        waiting.close()
        stream.trimmer.drop_topic(TOPIC_ID, last_sequence=1)
        await stream.add({waiting: 1})
        await stream.add({}, announce=True)
        await stream.trimmer.trim()
        assert await stream.listed() == ["w/2"]

    simulate(scenario)


def test_concurrent_trims_delete_each_object_once():
    async def scenario():
        stream = Stream()
        for _ in range(5):
            await stream.add({})
        await stream.add({}, announce=True)
        await asyncio.gather(stream.trimmer.trim(), stream.trimmer.trim())
        assert await stream.listed() == ["w/5"]
        assert (len(stream.trimmer), stream.trimmer.size_bytes) == (1, 10)

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
        stream = Stream(Deletions(), count_max)
        for number in range(3):
            await stream.add({rolled: number})
        await stream.add({waiting: 0})
        await stream.add({rolled: 4})
        await stream.add({rolled: 5}, announce=True)
        await stream.trimmer.trim()
        assert stream.store.calls == calls
        assert (len(stream.trimmer), stream.trimmer.size_bytes) == (3, 30)

    simulate(scenario)


def test_failed_deletion_is_retried():
    async def scenario():
        rule = Rule(fault=Fault.REFUSED, operations=DELETE, times_max=3)
        stream = Stream(FaultyObjectStore(memory_store(), [rule], random=Random(0)))
        for _ in range(2):
            await stream.add({})
        running = asyncio.ensure_future(stream.trimmer.run())
        await stream.add({}, announce=True)
        await asyncio.sleep(10)
        assert await stream.listed() == ["w/2"]
        running.cancel()

    simulate(scenario)
