"""Failover of requests, watches and leases when etcd members fail."""

import asyncio
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import Put
from kafscale.metadata.store.etcd import EtcdStore
from services.etcd_server import EtcdMember
from services.link import Link
from services.link_fault import HEALTHY, Fault
from services.process import free_port

pytestmark = pytest.mark.timeout(60)
"""Elections, timeouts and restarts take real time, on a machine that may be busy."""


@asynccontextmanager
async def opened(cluster, **settings):
    store = EtcdStore(cluster.settings(**settings))
    try:
        await store.check()
        yield store
    finally:
        await store.close()


class Timer:
    """Measures elapsed time."""

    def __enter__(self):
        self._began = time.monotonic()
        return self

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self._began


async def retry_until_success(call, seconds_max=10):
    """Call until it succeeds."""
    deadline = time.monotonic() + seconds_max
    while True:
        try:
            return await call()
        except StoreUnavailableError:
            assert time.monotonic() < deadline


async def restart_member(cluster, endpoint):
    """Kill a member, and start it when the others have continued without it for a while."""
    cluster.member(endpoint).kill()
    await asyncio.sleep(1)
    await asyncio.to_thread(cluster.member(endpoint).start)


def test_requests_continue_after_a_member_fails(cluster):
    async def body():
        async with opened(cluster) as store:
            await store.commit([], [Put("/a", b"before")])
            first = store.endpoint
            cluster.member(first).kill()
            assert (await store.get("/a")).value == b"before"
            # No write was in flight when the member was killed, so none is in doubt.
            assert (await store.commit([], [Put("/a", b"after")])).succeeded
            assert (await store.get("/a")).value == b"after"
            assert store.endpoint != first
            assert [entry.value for entry in (await store.range("/")).entries] == [b"after"]

    asyncio.run(body())


class Writers:
    """Four tasks that write commits of two keys each, as fast as etcd responds."""

    names = frozenset({b"0", b"1", b"2", b"3"})

    def __init__(self, store):
        self._store = store
        self._stopped = False
        self._progress = asyncio.Event()
        self.acked = {}
        """Revisions by written value."""
        self.in_doubt = set()

    async def run(self):
        async with asyncio.TaskGroup() as group:
            for name in self.names:
                group.create_task(self._write(name))

    async def wait_for_progress(self):
        """Wait until each task has written something from now on."""
        known = set(self.acked)
        while {value.split()[0] for value in self.acked.keys() - known} != self.names:
            self._progress.clear()
            await self._progress.wait()

    def stop(self):
        self._stopped = True

    async def _write(self, name):
        number = 0
        while not self._stopped:
            number += 1
            value = b"%s %d" % (name, number)
            key = f"/w/{name.decode()}"
            try:
                done = await self._store.commit([], [Put(key, value), Put(f"{key}-too", value)])
            except StoreUnavailableError:
                self.in_doubt.add(value)
            else:
                self.acked[value] = done.revision
                self._progress.set()
            await asyncio.sleep(0.005)


async def follow(store):
    """Watch until a final commit; return the values by revision."""
    reported = {}
    async with aclosing(store.watch("/w/", 0)) as commits:
        while (events := await anext(commits))[0].key != "/w/end":
            assert [event.mod_revision for event in events] == [events[0].mod_revision] * 2
            assert events[0].mod_revision > max(reported, default=0)
            reported[events[0].mod_revision] = events[0].value
    return reported


@pytest.mark.long
def test_watch_reports_every_change_once_while_members_fail(cluster):
    """Four tasks write and one watches while the members that they use are killed in turn."""

    async def body():
        async with opened(cluster) as store, asyncio.TaskGroup() as group:
            writers = Writers(store)
            following = group.create_task(follow(store))
            writing = group.create_task(writers.run())
            for _ in range(3):
                await writers.wait_for_progress()
                await restart_member(cluster, store.endpoint)
            await writers.wait_for_progress()
            writers.stop()
            await writing
            await retry_until_success(lambda: store.commit([], [Put("/w/end", b"")]))
            return writers, await following

    writers, reported = asyncio.run(body())
    values = list(reported.values())
    assert len(values) == len(set(values))
    assert {
        revision: value for value, revision in writers.acked.items()
    }.items() <= reported.items()
    assert set(values) - set(writers.acked) <= writers.in_doubt


@pytest.mark.parametrize("fault", [EtcdMember.kill, EtcdMember.pause])
def test_lease_is_renewed_while_a_member_fails(cluster, fault):
    async def body():
        async with opened(cluster) as store:
            lease = await store.grant(4000)
            await store.commit([], [Put("/leased", b"", lease)])
            fault(cluster.member(store.endpoint))
            for _ in range(6):
                with Timer() as timer:
                    assert await store.keep_alive(lease)
                assert timer.seconds < 3.5
                await asyncio.sleep(0.5)
            assert (await store.get("/leased")).lease == lease

    asyncio.run(body())


def test_unresponsive_member_delays_one_request_only(cluster):
    async def body():
        async with opened(cluster, request_timeout_ms=6000) as store:
            await store.commit([], [Put("/a", b"1")])
            silent = store.endpoint
            cluster.member(silent).pause()
            with Timer() as first:
                await store.get("/a")
            assert 1.4 < first.seconds < 5.9
            with Timer() as others:
                for _ in range(20):
                    await store.get("/a")
                await store.commit([], [Put("/a", b"2")])
            assert others.seconds < 1.4
            assert store.endpoint != silent

    asyncio.run(body())


@pytest.mark.long
def test_watch_leaves_an_unresponsive_member_after_a_failed_request(cluster):
    async def body():
        async with opened(cluster) as store, opened(cluster) as other:
            last = (await store.commit([], [Put("/a", b"1")])).revision
            async with aclosing(store.watch("/a", last)) as commits:
                next_commit = asyncio.ensure_future(anext(commits))
                await asyncio.sleep(0.2)
                cluster.member(store.endpoint).pause()
                await retry_until_success(lambda: other.commit([], [Put("/a", b"2")]))
                assert not next_commit.done()
                await store.get("/a")
                [event] = await asyncio.wait_for(next_commit, 3)
                assert event.value == b"2"

    asyncio.run(body())


def test_write_with_lost_response_is_not_retried(cluster):
    async def body(links, places):
        async with (
            opened(cluster, endpoints=places, request_timeout_ms=1500) as store,
            opened(cluster) as other,
        ):
            for link in links:
                await link.set(Fault(holds="responses"))
            with pytest.raises(StoreUnavailableError, match="timed out"):
                await store.commit([], [Put("/once", b"")])
            entry = await other.get("/once")
            assert entry.create_revision == entry.mod_revision
            for link in links:
                await link.set(HEALTHY)
            assert await retry_until_success(lambda: store.get("/once")) == entry

    async def scenario():
        ports = [int(member.endpoint.partition(":")[2]) for member in cluster.members]
        links = [Link(port, random.Random(0)) for port in ports]
        for link in links:
            await link.listen()
        await body(links, tuple(f"127.0.0.1:{link.port}" for link in links))
        for link in links:
            await link.close()

    asyncio.run(scenario())


@pytest.mark.long
def test_requests_fail_without_members_and_recover(cluster):
    async def body():
        async with opened(cluster, request_timeout_ms=1000) as store:
            lease = await store.grant(60_000)
            last = (await store.commit([], [Put("/a", b"1", lease)])).revision
            commits = store.watch("/a", last)
            next_commit = asyncio.ensure_future(anext(commits))
            await asyncio.sleep(0.2)
            for member in cluster.members:
                member.kill()
            with pytest.raises(StoreUnavailableError):
                await next_commit
            for call in [
                lambda: store.get("/a"),
                lambda: store.commit([], [Put("/a", b"lost")]),
                lambda: store.keep_alive(lease),
                lambda: store.grant(1000),
            ]:
                with Timer() as timer, pytest.raises(StoreUnavailableError, match=store.endpoint):
                    await call()
                assert timer.seconds < 3
            with ThreadPoolExecutor() as pool:
                list(pool.map(EtcdMember.start, cluster.members))
            assert (await retry_until_success(lambda: store.get("/a"))).value == b"1"
            assert await retry_until_success(lambda: store.keep_alive(lease))
            assert (await store.commit([], [Put("/a", b"2", lease)])).succeeded
            async with aclosing(store.watch("/a", last)) as again:
                assert [event.value for event in await anext(again)] == [b"2"]

    asyncio.run(body())


def test_member_without_leader_is_skipped(cluster):
    """The others are paused, so that this member has no quorum."""

    async def body():
        async with opened(cluster) as store:
            last = (await store.commit([], [Put("/a", b"1")])).revision
            commits = store.watch("/a", last)
            next_commit = asyncio.ensure_future(anext(commits))
            others = [member for member in cluster.members if member.endpoint != store.endpoint]
            for member in others:
                member.pause()
            with pytest.raises(StoreUnavailableError):
                await store.get("/a")
            with pytest.raises(StoreUnavailableError):
                await next_commit
            for member in others:
                member.resume()
            assert (await retry_until_success(lambda: store.get("/a"))).value == b"1"

    asyncio.run(body())


@pytest.mark.long
def test_missing_members_cause_no_delay(cluster):
    """One refuses connections, one accepts them and never responds."""

    async def body():
        with Timer() as timer:
            async with opened(cluster, endpoints=places, dial_timeout_ms=5000) as store:
                await store.commit([], [Put("/a", b"1")])
                await store.get("/a")
                assert store.endpoint == places[-1]
        assert timer.seconds < 2

    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        places = (f"127.0.0.1:{free_port()}", f"127.0.0.1:{port}", cluster.members[0].endpoint)
        asyncio.run(body())
