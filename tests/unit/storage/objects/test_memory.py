"""The memory store, beyond the contract tests in `tests/integration/objects`."""

import asyncio

from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.store import PAGE_KEYS


def run_without_a_loop(coroutine):
    """Run a coroutine that must never wait."""
    try:
        coroutine.send(None)
    except StopIteration as stopped:
        return stopped.value
    raise AssertionError("it waited")


def test_calls_never_wait():
    store = MemoryObjectStore()
    run_without_a_loop(store.put("a/b", [b"12", b"34"]))
    assert run_without_a_loop(store.get_range("a/b", 1, 3)) == b"23"
    run_without_a_loop(store.delete(["a/b"]))


def test_with_yields_other_tasks_run_before_the_effect():
    store = MemoryObjectStore(yields=True)

    async def scenario():
        put = asyncio.ensure_future(store.put("a/b", [b"x"]))
        await asyncio.sleep(0)
        assert not put.done()
        await put

    asyncio.run(scenario())


def test_readers_share_stored_bytes():
    store = MemoryObjectStore()
    run_without_a_loop(store.put("a/b", [b"12", b"34"]))
    whole = run_without_a_loop(store.get("a/b"))
    assert whole.readonly
    assert run_without_a_loop(store.get_suffix("a/b", 2)).obj is whole.obj


def test_writer_may_reuse_its_buffer():
    store = MemoryObjectStore()
    buffer = bytearray(b"12")
    run_without_a_loop(store.put("a/b", [buffer]))
    buffer[:] = b"99"
    assert run_without_a_loop(store.get("a/b")) == b"12"


def test_modification_time_is_that_of_the_clock():
    store = MemoryObjectStore(lambda: 1234)
    run_without_a_loop(store.put("a/b", [b"x"]))
    assert run_without_a_loop(store.head("a/b")).modified_ms == 1234


def test_listing_page_shows_the_store_when_it_is_requested():
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
