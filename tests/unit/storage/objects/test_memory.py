"""The store in memory: what the laws in `tests/integration/objects` do not say about it."""

import asyncio

from kafscale.storage.objects import MemoryObjectStore
from kafscale.storage.objects.store import PAGE_KEYS


def run_without_a_loop(coroutine):
    """Run to the end what must never wait for anything."""
    try:
        coroutine.send(None)
    except StopIteration as stopped:
        return stopped.value
    raise AssertionError("it waited")


def test_nothing_ever_waits():
    store = MemoryObjectStore()
    run_without_a_loop(store.put("a/b", [b"12", b"34"]))
    assert run_without_a_loop(store.get_range("a/b", 1, 3)) == b"23"
    run_without_a_loop(store.delete(["a/b"]))


def test_with_yields_others_run_before_the_effect():
    store = MemoryObjectStore(yields=True)

    async def scenario():
        put = asyncio.ensure_future(store.put("a/b", [b"x"]))
        await asyncio.sleep(0)
        assert not put.done()
        await put

    asyncio.run(scenario())


def test_readers_share_what_is_stored():
    store = MemoryObjectStore()
    run_without_a_loop(store.put("a/b", [b"12", b"34"]))
    whole = run_without_a_loop(store.get("a/b"))
    assert whole.readonly
    assert run_without_a_loop(store.get_suffix("a/b", 2)).obj is whole.obj


def test_the_writer_may_use_its_buffer_again():
    store = MemoryObjectStore()
    buffer = bytearray(b"12")
    run_without_a_loop(store.put("a/b", [buffer]))
    buffer[:] = b"99"
    assert run_without_a_loop(store.get("a/b")) == b"12"


def test_an_object_has_the_date_of_its_clock():
    store = MemoryObjectStore(lambda: 1234)
    run_without_a_loop(store.put("a/b", [b"x"]))
    assert run_without_a_loop(store.head("a/b")).modified_ms == 1234


def test_a_listing_shows_what_is_there_when_a_chunk_is_asked_for():
    store = MemoryObjectStore()
    keys = [f"a/{number:05d}" for number in range(PAGE_KEYS + 1)]

    async def scenario():
        for key in keys:
            await store.put(key, [b"x"])
        chunks = store.list("a/")
        assert [info.key for info in await anext(chunks)] == keys[:-1]
        await store.delete(keys[: PAGE_KEYS + 1])
        await store.put("a/99999", [b"x"])
        assert [info.key for info in await anext(chunks)] == ["a/99999"]

    asyncio.run(scenario())
