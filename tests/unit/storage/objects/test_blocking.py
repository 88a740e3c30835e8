"""The blocking store: all operations, and no thread left behind."""

import asyncio
import threading

import pytest

from kafscale.errors import ObjectExistsError, ObjectNotFoundError, OperatingError
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore


@pytest.fixture
def store():
    with BlockingObjectStore(lambda: MemoryObjectStore(lambda: 0)) as opened:
        yield opened


def test_every_operation(store):
    store.put("n/a", [b"0123", b"456789"])
    assert bytes(store.get("n/a")) == b"0123456789"
    assert bytes(store.get_range("n/a", 2, 5)) == b"234"
    assert bytes(store.submit_get_range("n/a", 0, 1).result()) == b"0"
    assert bytes(store.get_suffix("n/a", 3)) == b"789"
    assert store.head("n/a").size_bytes == 10
    with pytest.raises(ObjectExistsError):
        store.put("n/a", [b"x"])
    store.put("n/a", [b"x"], create=False)
    assert bytes(store.get("n/a")) == b"x"
    store.delete(["n/a"])
    with pytest.raises(ObjectNotFoundError):
        store.get("n/a")


def test_listing_of_many_pages(store):
    keys = [f"n/{number:05d}" for number in range(2500)]
    for key in keys:
        store.put(key, [b"x"])
    assert [item.key for item in store.list("n/")] == keys


def test_run_passes_the_store_to_a_coroutine(store):
    async def both(objects):
        await objects.put("n/a", [b"1"])
        return bytes(await objects.get("n/a"))

    assert store.run(both) == b"1"


def test_close_cancels_pending_calls_and_ends_the_thread():
    before = threading.active_count()
    store = BlockingObjectStore(lambda: MemoryObjectStore(lambda: 0))

    async def for_ever(_objects):
        await asyncio.Event().wait()

    waiting = store.submit(for_ever)
    store.close()
    store.close()
    assert waiting.cancelled()
    assert threading.active_count() == before


def test_store_that_cannot_be_created_leaves_no_thread():
    before = threading.active_count()

    def make():
        raise OperatingError("no such disk")

    with pytest.raises(OperatingError, match="no such disk"):
        BlockingObjectStore(make)
    assert threading.active_count() == before
