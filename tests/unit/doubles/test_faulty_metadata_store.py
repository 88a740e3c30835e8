"""The faulty connection to a metadata store: what fails, what takes effect, and when."""

import asyncio
from contextlib import aclosing
from contextvars import ContextVar, copy_context

import pytest

from doubles import virtual_time
from doubles.faulty_metadata_store import FaultyMetadataStore, MetadataFault, MetadataFaults
from doubles.memory_store import MemoryStore
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import EventKind, Put, absent

KEY = "/a/key"
LAG_SECONDS = 3.0


class Scene:
    """A store, and a connection to it."""

    def __init__(self, random, **faults):
        self.store = MemoryStore(virtual_time.clock_ms)
        self.connection = FaultyMetadataStore(self.store, MetadataFaults(**faults), random=random)

    async def put(self, value=b"value"):
        return await self.connection.commit([absent(KEY)], [Put(KEY, value)])

    async def value(self):
        entry = await self.store.get(KEY)
        return entry.value if entry else None


def simulate(body, **faults):
    async def scenario(random):
        await body(Scene(random, **faults))

    virtual_time.run(scenario, seed=1)


@pytest.mark.parametrize(
    ("share", "value"), [("refused", None), ("response_lost", b"value"), ("applied_later", None)]
)
def test_failed_request_has_the_effect_of_its_fault(share, value):
    async def body(scene):
        with pytest.raises(StoreUnavailableError, match=share):
            await scene.put()
        assert await scene.value() == value
        assert scene.connection.injected == {MetadataFault[share.upper()]: 1}

    simulate(body, **{share: 1.0}, later=((60, 60),))


def test_late_commit_compares_what_is_there_when_it_takes_effect():
    async def body(scene):
        with pytest.raises(StoreUnavailableError):
            await scene.put(b"late")
        await scene.connection.wait_for_late_requests()
        assert await scene.value() == b"late"
        await scene.store.commit([], [Put(KEY, b"newer")])
        with pytest.raises(StoreUnavailableError):
            await scene.put(b"too late")
        await scene.connection.wait_for_late_requests()
        assert await scene.value() == b"newer"

    simulate(body, applied_later=1.0, later=((60, 3600),))


def test_reads_are_never_late():
    async def body(scene):
        assert await scene.connection.get(KEY) is None

    simulate(body, applied_later=1.0)


def test_request_takes_effect_although_its_caller_is_cancelled():
    async def body(scene):
        caller = asyncio.create_task(scene.put())
        await asyncio.sleep(0.1)
        caller.cancel()
        await asyncio.sleep(1)
        assert caller.cancelled()
        assert await scene.value() == b"value"

    simulate(body, delay=(1.0, 1.0), response_lost=1.0)


def test_requests_run_in_the_context_of_the_store():
    async def scenario(random):
        owner = ContextVar("owner", default="store")
        seen = []

        class Recording(MemoryStore):
            async def get(self, key):
                seen.append(owner.get())
                return await super().get(key)

        inner = Recording(virtual_time.clock_ms)
        connection = FaultyMetadataStore(inner, random=random, context=copy_context())
        owner.set("caller")
        await connection.get(KEY)
        assert seen == ["store"]

    virtual_time.run(scenario, seed=1)


def test_cut_connection_fails_until_it_heals():
    async def body(scene):
        scene.connection.cut()
        for request in (scene.put(), anext(scene.connection.watch("/a/", 0))):
            with pytest.raises(StoreUnavailableError, match="cut"):
                await request
        assert await scene.value() is None
        scene.connection.heal()
        assert (await scene.put()).succeeded

    simulate(body)


def test_lease_ends_by_the_clock_of_the_store_while_the_connection_is_cut():
    async def body(scene):
        lease = await scene.connection.grant(10_000)
        await scene.store.commit([], [Put(KEY, b"", lease)])
        scene.connection.cut()
        await asyncio.sleep(11)
        assert await scene.value() is None
        scene.connection.heal()
        assert not await scene.connection.keep_alive(lease)

    simulate(body)


def test_watches_lag_independently():
    async def body(scene):
        seen = {}

        async def follow(prefix):
            async with aclosing(scene.connection.watch(prefix, 0)) as watch:
                seen[prefix] = await anext(watch), asyncio.get_running_loop().time()

        watches = [asyncio.create_task(follow(prefix)) for prefix in ("/a/", "/b/")]
        await scene.store.commit([], [Put("/a/1", b""), Put("/b/1", b"")])
        await asyncio.gather(*watches)
        assert {prefix: events[0].key for prefix, (events, _) in seen.items()} == {
            "/a/": "/a/1",
            "/b/": "/b/1",
        }
        assert len({at for _, at in seen.values()}) == 2
        assert all(0 <= at <= LAG_SECONDS for _, at in seen.values())

    simulate(body, watch_lag=(0.0, LAG_SECONDS))


def test_watch_breaks():
    async def body(scene):
        await scene.store.commit([], [Put(KEY, b"")])
        with pytest.raises(StoreUnavailableError, match="broken"):
            await anext(scene.connection.watch("/a/", 0))

    simulate(body, watch_broken=1.0)


def test_watch_finds_its_revision_compacted():
    async def body(scene):
        reported = [events async for events in scene.connection.watch("/a/", 0)]
        assert [events[0].kind for events in reported] == [EventKind.COMPACTED]

    simulate(body, compacted=1.0)
