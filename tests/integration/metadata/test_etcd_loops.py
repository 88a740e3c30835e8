"""The etcd store works on several event loops and leaves no gRPC state behind."""

import asyncio
import gc
import logging

import uvloop

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import Entry, Put
from kafscale.metadata.store.etcd import EtcdStore


def test_etcd_store_works_on_consecutive_event_loops(etcd, caplog):
    """Requests are in flight when the store is closed, and the next loop starts at once."""
    caplog.set_level(logging.WARNING)

    async def follow(store, revision):
        async for _ in store.watch("/", revision):
            pass

    async def run_store():
        store = EtcdStore(etcd.settings())
        await store.check()
        revision = (await store.range("/")).revision
        following = [asyncio.ensure_future(follow(store, revision)) for _ in range(10)]
        await asyncio.gather(*(store.commit([], [Put("/a", b"")]) for _ in range(10)))
        asking = [asyncio.ensure_future(store.get("/a")) for _ in range(4)]
        await asyncio.sleep(0)
        following[0].cancel()
        asking[0].cancel()
        await store.close()
        ends = await asyncio.gather(*following, *asking, return_exceptions=True)
        # Some calls may have finished before that.
        kinds = {type(end) for end in ends} - {Entry}
        assert kinds == {asyncio.CancelledError, StoreUnavailableError}

    for number in range(20):
        (uvloop.run if number % 2 else asyncio.run)(run_store())
    gc.collect()
    assert caplog.records == []
