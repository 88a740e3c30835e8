"""The observer: operations, statuses and failures."""

import asyncio
from itertools import count
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.errors import KafscaleError
from kafscale.storage.objects.layers.observed import (
    BEGUN,
    FAILURES,
    ObservedObjectStore,
    replica_observer,
)
from kafscale.storage.objects.memory import MemoryObjectStore


class Scene:
    """An observed store that may fail, in a world where looking at the clock takes a second."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.reported: list[tuple[str, str, float, int]] = []
        self.faulty = FaultyObjectStore(MemoryObjectStore(), random=Random(1))
        ticks = count()
        self.store = ObservedObjectStore(
            self.faulty, self.on_operation, clock=lambda: float(next(ticks))
        )

    def on_operation(self, operation: str, status: str, seconds: float, size_bytes: int) -> None:
        if status == BEGUN:
            assert (seconds, size_bytes) == (0, 0)
            assert len(self.begun) == len(self.reported)
            self.begun.append(operation)
        else:
            self.reported.append((operation, status, seconds, size_bytes))


def test_every_operation_is_reported_at_its_start_and_end():
    scene = Scene()

    async def scenario():
        await scene.store.put("ns/a", [b"1234"])
        assert await scene.store.get("ns/a") == b"1234"
        assert await scene.store.get_range("ns/a", 1, 2) == b"2"
        assert await scene.store.get_suffix("ns/a", 1) == b"4"
        assert (await scene.store.head("ns/a")).size_bytes == 4
        assert [len(chunk) async for chunk in scene.store.list("ns/")] == [1]
        await scene.store.delete(["ns/a"])

    asyncio.run(scenario())
    # A listing makes one more request, which returns the end.
    operations = ["put", "get", "get_range", "get_suffix", "head", "list", "list", "delete"]
    sizes_bytes = [4, 4, 1, 1, 0, 0, 0, 0]
    assert scene.reported == [
        (operation, "success", 1.0, size_bytes)
        for operation, size_bytes in zip(operations, sizes_bytes, strict=True)
    ]
    assert scene.begun == operations


@pytest.mark.parametrize(
    ("fault", "status", "is_failure"),
    [(Fault.REFUSED, "unavailable", True), (Fault.DENIED, "error", True)],
)
def test_faults_of_the_store_are_failures(fault, status, is_failure):
    scene = Scene()
    scene.faulty.rules.append(Rule(fault=fault))
    with pytest.raises(KafscaleError):
        asyncio.run(scene.store.get("ns/a"))
    assert [reported[1] for reported in scene.reported] == [status]
    assert (status in FAILURES) is is_failure


def test_missing_and_existing_keys_are_no_failures():
    scene = Scene()

    async def scenario():
        await scene.store.put("ns/a", [b"x"])
        for call in (scene.store.get("ns/b"), scene.store.put("ns/a", [b"x"])):
            with pytest.raises(KafscaleError):
                await call

    asyncio.run(scenario())
    assert [reported[1] for reported in scene.reported] == ["success", "not_found", "exists"]
    assert not FAILURES & {reported[1] for reported in scene.reported}


def test_cancelled_call_is_reported_but_no_failure():
    scene = Scene()
    scene.faulty.rules.append(Rule(fault=Fault.SLOW, seconds=(60, 60)))

    async def scenario():
        get = asyncio.ensure_future(scene.store.get("ns/a"))
        await asyncio.sleep(0)
        get.cancel()
        await asyncio.wait([get])

    asyncio.run(scenario())
    assert scene.begun == ["get"]
    assert [reported[1] for reported in scene.reported] == ["cancelled"]
    assert "cancelled" not in FAILURES


def test_replica_operations_have_their_own_names():
    reported: list[tuple[str, str]] = []
    observer = replica_observer(lambda operation, status, *_: reported.append((operation, status)))
    store = ObservedObjectStore(MemoryObjectStore(), observer)
    with pytest.raises(KafscaleError):
        asyncio.run(store.get("ns/a"))
    assert reported == [("replica_get", "begun"), ("replica_get", "not_found")]
