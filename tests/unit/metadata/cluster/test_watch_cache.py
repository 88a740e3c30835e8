import asyncio

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster.watch_cache import RETRY_MS, WatchCache
from kafscale.metadata.store.base import Delete, Put
from unit.metadata.interruptible_store import InterruptibleStore


async def started(store, key_filter=lambda _key: True):
    """A cache of /t/ and its reported changes, each compared with the cached entry."""
    changes = []

    def changed(key, entry):
        assert cache.entries.get(key) == entry
        changes.append((key, entry and entry.value))

    cache = WatchCache(store, "/t/", changed, key_filter)
    await cache.start()
    return cache, changes


async def put(store, key, value=b""):
    return (await store.commit([], [Put(key, value)])).revision


async def is_current(store, cache):
    return (await store.range("/t/")).entries == tuple(
        entry for _, entry in sorted(cache.entries.items())
    )


def test_cache_shows_existing_entries_and_changes(run_with_store):
    async def body(store):
        await put(store, "/t/a", b"1")
        cache, changes = await started(store)
        assert changes == [("/t/a", b"1")]
        await put(store, "/other")
        await put(store, "/t/b", b"2")
        await put(store, "/t/a", b"3")
        revision = (await store.commit([], [Delete("/t/b")])).revision
        await cache.wait_for_revision(revision)
        assert changes == [("/t/a", b"1"), ("/t/b", b"2"), ("/t/a", b"3"), ("/t/b", None)]
        assert await is_current(store, cache)
        assert cache.connected
        await cache.close()

    run_with_store(body)


def test_cache_applies_the_key_filter(run_with_store):
    async def body(store):
        await put(store, "/t/a/config")
        await put(store, "/t/a/partitions/0")
        cache, changes = await started(store, lambda key: key.endswith("/config"))
        await put(store, "/t/b/partitions/0")
        await cache.wait_for_revision(await put(store, "/t/b/config"))
        assert list(cache.entries) == ["/t/a/config", "/t/b/config"]
        assert len(changes) == 2
        await cache.close()

    run_with_store(body)


def test_filtered_changes_advance_the_revision(run_with_store):
    async def body(store):
        cache, changes = await started(store, lambda _key: False)
        await cache.wait_for_revision(await put(store, "/t/a"))
        assert changes == []
        await cache.close()

    run_with_store(body)


@pytest.mark.parametrize("silent", [False, True])
def test_cache_resumes_an_interrupted_watch(run_with_store, silent):
    async def body(real):
        store = InterruptibleStore(real)
        store.ends_silently = silent
        cache, changes = await started(store)
        await cache.wait_for_revision(await put(store, "/t/a", b"1"))
        store.interrupted = True
        await put(store, "/t/b", b"2")
        await put(store, "/t/a", b"3")
        await asyncio.sleep(3 * RETRY_MS / 1000)
        assert not cache.connected
        assert changes == [("/t/a", b"1")]
        assert store.watches > 2
        store.interrupted = False
        await cache.wait_for_revision(await put(store, "/t/c", b"4"))
        assert cache.connected
        assert changes[1:] == [("/t/b", b"2"), ("/t/a", b"3"), ("/t/c", b"4")]
        await cache.close()

    run_with_store(body)


def test_cache_reports_differences_after_a_compaction(run_with_store):
    async def body(real):
        store = InterruptibleStore(real)
        for key in ("/t/changed", "/t/gone", "/t/same"):
            await put(store, key, b"1")
        cache, changes = await started(store)
        changes.clear()
        store.interrupted = True
        await put(store, "/t/new", b"1")
        await put(store, "/t/changed", b"2")
        await store.commit([], [Delete("/t/gone")])
        for i in range(20):
            await put(store, "/t/passing", b"%d" % i)
        last = (await store.commit([], [Delete("/t/passing")])).revision
        store.interrupted = False
        await cache.wait_for_revision(last)
        assert sorted(changes) == [("/t/changed", b"2"), ("/t/gone", None), ("/t/new", b"1")]
        assert await is_current(store, cache)
        # The watch continues from there.
        await cache.wait_for_revision(await put(store, "/t/later", b"1"))
        assert changes[-1] == ("/t/later", b"1")
        await cache.close()

    run_with_store(body, commits_max=8)


def test_cache_survives_a_failing_callback(run_with_store):
    async def body(store):
        changes = []

        def changed(key, _entry):
            changes.append(key)
            if len(changes) == 1:
                raise ZeroDivisionError

        cache = WatchCache(store, "/t/", changed)
        await cache.start()
        await put(store, "/t/a")
        await cache.wait_for_revision(await put(store, "/t/b"))
        assert changes == ["/t/a", "/t/b"]
        assert await is_current(store, cache)
        await cache.close()

    run_with_store(body)


def test_start_fails_if_the_first_read_fails(run_with_store):
    async def body(store):
        await store.close()
        with pytest.raises(StoreUnavailableError):
            await started(store)

    run_with_store(body)


def test_closed_cache_reports_no_changes(run_with_store):
    async def body(store):
        cache, changes = await started(store)
        await cache.close()
        await put(store, "/t/a")
        await asyncio.sleep(1)
        assert changes == []

    run_with_store(body)
