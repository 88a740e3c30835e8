"""The request limit: slots, priorities and cancellation."""

import asyncio
from collections.abc import Sequence

import pytest

from kafscale.records.checksum import Buffer
from kafscale.storage.objects.layers.limited import LimitedObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore

URGENT = "ns/urgent"
ORDINARY = "ns/ordinary"


class Gate(MemoryObjectStore):
    """A store whose responses are released by the test, in request order."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[str, asyncio.Event]] = []

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.waiting]

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        await self._wait(key)
        await super().put(key, parts, create=create)

    async def get(self, key: str) -> memoryview:
        await self._wait(key)
        return memoryview(key.encode())

    async def let_through(self, index: int = 0) -> None:
        self.waiting[index][1].set()
        await settle()

    async def _wait(self, key: str) -> None:
        entry = key, asyncio.Event()
        self.waiting.append(entry)
        try:
            await entry[1].wait()
        finally:
            self.waiting.remove(entry)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def limited(gate: MemoryObjectStore, requests_max: int, reserved_count: int) -> LimitedObjectStore:
    return LimitedObjectStore(
        gate,
        requests_max=requests_max,
        reserved_count=reserved_count,
        is_urgent=lambda operation, key: key == URGENT and operation in {"put", "get"},
    )


def begin(store: LimitedObjectStore, *keys: str) -> list[asyncio.Future[memoryview]]:
    return [asyncio.ensure_future(store.get(key)) for key in keys]


async def end(gate: Gate, reads: Sequence[asyncio.Future[memoryview]]) -> None:
    while gate.waiting:
        await gate.let_through()
    assert all(read.done() for read in reads)


def test_ordinary_requests_leave_reserved_slots_free_and_keep_their_order():
    async def scenario():
        gate = Gate()
        store = limited(gate, 4, 1)
        reads = begin(store, *(f"ns/{number}" for number in range(6)))
        await settle()
        assert gate.keys == ["ns/0", "ns/1", "ns/2"]
        await gate.let_through(1)
        assert gate.keys == ["ns/0", "ns/2", "ns/3"]
        await end(gate, reads)
        assert [bytes(read.result()) for read in reads] == [b"ns/%d" % n for n in range(6)]

    asyncio.run(scenario())


def test_urgent_requests_use_all_slots_and_go_first():
    async def scenario():
        gate = Gate()
        store = limited(gate, 3, 1)
        reads = begin(store, ORDINARY, ORDINARY, ORDINARY, URGENT, URGENT, URGENT)
        await settle()
        assert gate.keys == [ORDINARY, ORDINARY, URGENT]
        await gate.let_through(0)
        assert gate.keys == [ORDINARY, URGENT, URGENT]
        await gate.let_through(0)
        assert gate.keys == [URGENT] * 3
        await gate.let_through(0)
        assert gate.keys == [URGENT] * 2, "the last one stays free"
        await gate.let_through(0)
        assert gate.keys == [URGENT, ORDINARY]
        await end(gate, reads)

    asyncio.run(scenario())


def test_is_urgent_decides_by_operation_and_key():
    async def scenario():
        gate = Gate()
        store = limited(gate, 2, 1)
        reads = begin(store, ORDINARY, ORDINARY)
        put = asyncio.ensure_future(store.put(URGENT, [b"x"]))
        await settle()
        assert gate.keys == [ORDINARY, URGENT]
        await end(gate, [*reads, put])

    asyncio.run(scenario())


@pytest.mark.parametrize("urgent", [True, False])
def test_cancelled_request_takes_no_slot(urgent):
    async def scenario():
        gate = Gate()
        store = limited(gate, 2, 1)
        first = begin(store, URGENT, URGENT)
        waiting = begin(store, URGENT if urgent else ORDINARY)
        await settle()
        waiting[0].cancel()
        await settle()
        await end(gate, first)
        assert waiting[0].cancelled()
        reads = begin(store, URGENT, URGENT)
        await settle()
        assert len(gate.waiting) == 2
        await end(gate, reads)

    asyncio.run(scenario())


def test_slot_granted_to_a_request_cancelled_at_the_same_time_is_not_lost():
    async def scenario():
        gate = Gate()
        store = limited(gate, 2, 1)
        [holder] = begin(store, ORDINARY)
        [waiting] = begin(store, ORDINARY)
        await settle()
        gate.waiting[0][1].set()
        # After the holder has handed its place on, and before the other has noticed.
        asyncio.get_running_loop().call_soon(waiting.cancel)
        await settle()
        assert holder.done()
        assert waiting.cancelled()
        reads = begin(store, ORDINARY)
        await settle()
        assert gate.keys == [ORDINARY]
        await end(gate, reads)

    asyncio.run(scenario())


def test_failed_request_releases_its_slot():
    async def scenario():
        store = limited(MemoryObjectStore(), 2, 1)
        for _ in range(10):
            with pytest.raises(Exception, match="missing"):
                await store.get("ns/missing")
        await store.put("ns/a", [b"x"])
        assert await store.get_range("ns/a", 0, 1) == b"x"
        assert await store.get_suffix("ns/a", 1) == b"x"
        assert (await store.head("ns/a")).size_bytes == 1
        await store.delete(["ns/a"])

    asyncio.run(scenario())


def test_listing_holds_no_slot_between_pages():
    async def scenario():
        memory = MemoryObjectStore()
        for number in range(2500):
            await memory.put(f"ns/{number:04d}", [b"x"])
        store = limited(memory, 2, 1)
        seen = 0
        async for page in store.list("ns/"):
            seen += len(page)
            assert await store.get("ns/0000") == b"x"
        assert seen == 2500

    asyncio.run(asyncio.wait_for(scenario(), 5))
