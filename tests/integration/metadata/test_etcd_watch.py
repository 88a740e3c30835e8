"""Watches and ranges of etcd: reconnects, compaction, fragments and pages."""

import asyncio
import random
from contextlib import aclosing, asynccontextmanager

import pytest

from kafscale.metadata.cluster.watch_cache import WatchCache
from kafscale.metadata.store.base import Delete, DeletePrefix, EventKind, Put
from kafscale.metadata.store.etcd import EtcdStore
from services.etcd_server import PROGRESS_MS
from services.link import Link
from services.link_fault import HEALTHY, Fault

MIB = 1 << 20


@asynccontextmanager
async def opened(etcd, **settings):
    """A store on an empty etcd."""
    store = EtcdStore(etcd.settings(**settings))
    try:
        await store.commit([], [DeletePrefix("/")])
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def linked(etcd):
    """A store behind a link that can be cut."""
    link = Link(int(etcd.members[0].endpoint.partition(":")[2]), random.Random(0))
    await link.listen()
    endpoint = f"127.0.0.1:{link.port}"
    async with opened(etcd, endpoints=(endpoint,), request_timeout_ms=1000) as store:
        yield link, store
    await link.close()


async def put(store, key, value=b""):
    return (await store.commit([], [Put(key, value)])).revision


def test_watch_resumes_after_a_disconnect(etcd):
    async def body():
        async with linked(etcd) as (link, far), opened(etcd) as near:
            last = await put(near, "/t/0")
            async with aclosing(far.watch("/t/", last)) as commits:
                for i in range(1, 20):
                    revision = await put(near, f"/t/{i}")
                    [event] = await anext(commits)
                    assert (event.key, event.mod_revision) == (f"/t/{i}", revision)
                    if i % 5 == 0:
                        await link.set(Fault(refuses=True))
                        await link.set(HEALTHY)

    asyncio.run(body())


def test_watch_cache_reloads_after_a_compaction(etcd):
    async def body():
        async with linked(etcd) as (link, far), opened(etcd) as near:
            for key in ("/t/changed", "/t/gone", "/t/same"):
                await put(near, key, b"1")
            reported = []
            cache = WatchCache(
                far, "/t/", lambda key, entry: reported.append((key, entry and entry.value))
            )
            await cache.start()
            reported.clear()
            await link.set(Fault(refuses=True))
            await put(near, "/t/changed", b"2")
            await put(near, "/t/new", b"1")
            await put(near, "/t/passing")
            await near.commit([], [Delete("/t/gone"), Delete("/t/passing")])
            last = await put(near, "/t/last", b"1")
            etcd.compact(last)
            await link.set(HEALTHY)
            await cache.wait_for_revision(last)
            assert sorted(reported) == [
                ("/t/changed", b"2"),
                ("/t/gone", None),
                ("/t/last", b"1"),
                ("/t/new", b"1"),
            ]
            # The watch continues from there.
            await cache.wait_for_revision(await put(near, "/t/later", b"1"))
            assert reported[-1] == ("/t/later", b"1")
            assert (await near.range("/t/")).entries == tuple(
                entry for _, entry in sorted(cache.entries.items())
            )
            await cache.close()

    asyncio.run(body())


def test_open_watch_survives_a_compaction(etcd):
    async def body():
        async with opened(etcd) as store:
            last = await put(store, "/t/0")
            async with aclosing(store.watch("/t/", last)) as commits:
                await put(store, "/t/1")
                assert [event.key for event in await anext(commits)] == ["/t/1"]
                for i in range(10):
                    last = await put(store, f"/other/{i}")
                etcd.compact(last)
                await put(store, "/t/2")
                assert [event.key for event in await anext(commits)] == ["/t/2"]

    asyncio.run(body())


def test_idle_watch_advances_its_revision(etcd):
    """So a reconnect after a compaction does not lose its position."""

    async def body():
        async with linked(etcd) as (link, far), opened(etcd) as near:
            last = await put(near, "/t/0")
            async with aclosing(far.watch("/t/", last)) as commits:
                next_commit = asyncio.ensure_future(anext(commits))
                for i in range(10):
                    last = await put(near, f"/other/{i}")
                await asyncio.sleep(15 * PROGRESS_MS / 1000)
                etcd.compact(last)
                await link.set(Fault(refuses=True))
                await put(near, "/t/1")
                await link.set(HEALTHY)
                assert [event.key for event in await next_commit] == ["/t/1"]

    asyncio.run(body())


def test_watch_reports_each_commit_separately(etcd):
    async def body():
        async with opened(etcd) as store:
            at = (await store.range("/")).revision
            for i in range(50):
                await store.commit([], [Put(f"/t/{i}/a", b""), Put(f"/t/{i}/b", b"")])
            async with aclosing(store.watch("/t/", at)) as commits:
                for i in range(50):
                    events = await anext(commits)
                    assert [event.key for event in events] == [f"/t/{i}/a", f"/t/{i}/b"]
                    assert [event.mod_revision for event in events] == [at + i + 1] * 2

    asyncio.run(body())


def test_watch_reassembles_fragmented_commits(etcd):
    """etcd sends them in one response, here of 60 MB, which it splits into fragments."""

    async def body():
        async with opened(etcd) as store:
            at = (await store.range("/")).revision
            value = bytes(400_000)
            for i in range(50):
                await store.commit([], [Put(f"/t/{part}", b"%d" % i + value) for part in "abc"])
            async with aclosing(store.watch("/t/", at)) as commits:
                for i in range(50):
                    events = await anext(commits)
                    assert [event.key for event in events] == ["/t/a", "/t/b", "/t/c"]
                    assert {event.value for event in events} == {b"%d" % i + value}
            await store.commit([], [DeletePrefix("/")])

    asyncio.run(body())


@pytest.mark.parametrize(("count", "size"), [(5000, 10), (100, MIB)], ids=["many", "large"])
def test_paged_range_is_of_one_revision(etcd, count, size):
    """Concurrent writes are visible up to that revision only."""

    async def body():
        async with opened(etcd, request_timeout_ms=10_000) as store:
            per_commit = max(1, min(100, MIB // size))
            for first in range(0, count, per_commit):
                numbers = range(first, min(first + per_commit, count))
                await store.commit([], [Put(f"/t/{i:05d}", bytes(size)) for i in numbers])
            last = (await store.range("/none/")).revision

            async def disturb(writer):
                for i in range(count):
                    await put(store, f"/t/{i:05d}-{writer}-more")

            disturbing = [asyncio.ensure_future(disturb(writer)) for writer in range(8)]
            await asyncio.sleep(0.01)
            snapshot = await store.range("/t/")
            for task in disturbing:
                task.cancel()
            await asyncio.wait(disturbing)
            assert snapshot.revision >= last
            expected = [f"/t/{i:05d}" for i in range(count)]
            assert [e.key for e in snapshot.entries if not e.key.endswith("-more")] == expected
            assert all(len(e.value) == size for e in snapshot.entries if "more" not in e.key)
            assert all(entry.mod_revision <= snapshot.revision for entry in snapshot.entries)
            assert len(snapshot.entries) - count == snapshot.revision - last
            await store.commit([], [DeletePrefix("/")])

    asyncio.run(body())


def test_watch_from_a_compacted_revision_reports_it(etcd):
    async def body():
        async with opened(etcd) as store:
            at = await put(store, "/t/0")
            last = await put(store, "/other")
            etcd.compact(last)
            [[event]] = [events async for events in store.watch("/t/", at - 1)]
            assert (event.kind, event.mod_revision) == (EventKind.COMPACTED, last)

    asyncio.run(body())
