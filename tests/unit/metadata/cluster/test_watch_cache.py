import asyncio

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster.watch_cache import RETRY_MS, WatchCache
from kafscale.metadata.store.base import Delete, Put
from unit.metadata.breakable import BreakableStore


async def started(store, wanted=lambda _key: True):
    """A mirror of /t/ and what it has told, each time checked against what it shows."""
    told = []

    def changed(key, entry):
        assert mirror.entries.get(key) == entry
        told.append((key, entry and entry.value))

    mirror = WatchCache(store, "/t/", changed, wanted)
    await mirror.start()
    return mirror, told


async def put(store, key, value=b""):
    return (await store.commit([], [Put(key, value)])).revision


async def shown(store, mirror):
    return (await store.range("/t/")).entries == tuple(
        entry for _, entry in sorted(mirror.entries.items())
    )


def test_a_mirror_shows_what_was_there_and_what_comes(play):
    async def body(store):
        await put(store, "/t/a", b"1")
        mirror, told = await started(store)
        assert told == [("/t/a", b"1")]
        await put(store, "/other")
        await put(store, "/t/b", b"2")
        await put(store, "/t/a", b"3")
        revision = (await store.commit([], [Delete("/t/b")])).revision
        await mirror.wait_for_revision(revision)
        assert told == [("/t/a", b"1"), ("/t/b", b"2"), ("/t/a", b"3"), ("/t/b", None)]
        assert await shown(store, mirror)
        assert mirror.connected
        await mirror.close()

    play(body)


def test_a_mirror_keeps_only_what_is_wanted(play):
    async def body(store):
        await put(store, "/t/a/config")
        await put(store, "/t/a/partitions/0")
        mirror, told = await started(store, lambda key: key.endswith("/config"))
        await put(store, "/t/b/partitions/0")
        await mirror.wait_for_revision(await put(store, "/t/b/config"))
        assert list(mirror.entries) == ["/t/a/config", "/t/b/config"]
        assert len(told) == 2
        await mirror.close()

    play(body)


def test_a_revision_counts_as_reached_though_none_of_its_keys_is_wanted(play):
    async def body(store):
        mirror, told = await started(store, lambda _key: False)
        await mirror.wait_for_revision(await put(store, "/t/a"))
        assert told == []
        await mirror.close()

    play(body)


@pytest.mark.parametrize("silent", [False, True])
def test_a_mirror_goes_on_where_a_broken_watch_stopped(play, silent):
    async def body(real):
        store = BreakableStore(real)
        store.silent = silent
        mirror, told = await started(store)
        await mirror.wait_for_revision(await put(store, "/t/a", b"1"))
        store.broken = True
        await put(store, "/t/b", b"2")
        await put(store, "/t/a", b"3")
        await asyncio.sleep(3 * RETRY_MS / 1000)
        assert not mirror.connected
        assert told == [("/t/a", b"1")]
        assert store.watches > 2
        store.broken = False
        await mirror.wait_for_revision(await put(store, "/t/c", b"4"))
        assert mirror.connected
        assert told[1:] == [("/t/b", b"2"), ("/t/a", b"3"), ("/t/c", b"4")]
        await mirror.close()

    play(body)


def test_a_mirror_tells_the_difference_when_the_store_has_forgotten_what_happened(play):
    async def body(real):
        store = BreakableStore(real)
        for key in ("/t/changed", "/t/gone", "/t/same"):
            await put(store, key, b"1")
        mirror, told = await started(store)
        told.clear()
        store.broken = True
        await put(store, "/t/new", b"1")
        await put(store, "/t/changed", b"2")
        await store.commit([], [Delete("/t/gone")])
        for i in range(20):
            await put(store, "/t/passing", b"%d" % i)
        last = (await store.commit([], [Delete("/t/passing")])).revision
        store.broken = False
        await mirror.wait_for_revision(last)
        assert sorted(told) == [("/t/changed", b"2"), ("/t/gone", None), ("/t/new", b"1")]
        assert await shown(store, mirror)
        # And the watch goes on from there.
        await mirror.wait_for_revision(await put(store, "/t/later", b"1"))
        assert told[-1] == ("/t/later", b"1")
        await mirror.close()

    play(body, commits_max=8)


def test_a_mirror_outlives_a_fault_in_what_it_tells(play):
    async def body(store):
        told = []

        def changed(key, _entry):
            told.append(key)
            if len(told) == 1:
                raise ZeroDivisionError

        mirror = WatchCache(store, "/t/", changed)
        await mirror.start()
        await put(store, "/t/a")
        await mirror.wait_for_revision(await put(store, "/t/b"))
        assert told == ["/t/a", "/t/b"]
        assert await shown(store, mirror)
        await mirror.close()

    play(body)


def test_a_mirror_that_cannot_be_read_at_first_says_so(play):
    async def body(store):
        await store.close()
        with pytest.raises(StoreUnavailableError):
            await started(store)

    play(body)


def test_a_closed_mirror_tells_nothing_more(play):
    async def body(store):
        mirror, told = await started(store)
        await mirror.close()
        await put(store, "/t/a")
        await asyncio.sleep(1)
        assert told == []

    play(body)
