"""`History`: compaction of in-process stores."""

from contextlib import aclosing

import pytest

from kafscale.metadata.store.base import EventKind, Put


def test_slow_watch_gets_compacted(run_with_store):
    async def body(store):
        async with aclosing(store.watch("/", 0)) as stream:
            await store.commit([], [Put("/first", b"")])
            assert [event.key for event in await anext(stream)] == ["/first"]
            for i in range(20):
                await store.commit([], [Put(f"/{i}", b"")])
            assert [event.kind for event in await anext(stream)] == [EventKind.COMPACTED]
            with pytest.raises(StopAsyncIteration):
                await anext(stream)

    run_with_store(body, commits_max=8)
