"""The memory store and etcd return the same results for random operations."""

import asyncio
from contextlib import aclosing

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doubles.memory_store import MemoryStore
from kafscale.metadata.store.base import Compare, Delete, DeletePrefix, Put
from kafscale.metadata.store.etcd import EtcdStore

KEYS = st.sampled_from(["/a", "/a/", "/a/b", "/a/c", "/a0", "/b", "/b/é", "/b/\U0001f600"])
VALUES = st.sampled_from([b"", b"1", b"2"])
REVISIONS = st.integers(0, 9)
COMPARES = st.one_of(
    st.builds(Compare, key=KEYS, mod_revision=REVISIONS),
    st.builds(Compare, key=KEYS, create_revision=REVISIONS),
    st.builds(Compare, key=KEYS, value=VALUES),
)
OPERATIONS = st.one_of(st.builds(Put, KEYS, VALUES), st.builds(Delete, KEYS))
COMMITS = st.tuples(
    st.lists(COMPARES, max_size=1),
    st.one_of(
        st.lists(OPERATIONS, max_size=3, unique_by=lambda operation: operation.key),
        st.builds(lambda prefix: [DeletePrefix(prefix)], st.sampled_from(["/a", "/a/", "/b/"])),
    ),
)
REVISION_FIELDS = ("revision", "mod_revision", "create_revision")


def shifted(thing, by):
    """Shift revisions by the initial revision of a store; 0 means no revision, and stays."""
    changes = {
        name: getattr(thing, name) + by
        for name in REVISION_FIELDS
        if getattr(thing, name, None) and getattr(thing, name) + by > 0
    }
    return msgspec.structs.replace(thing, **changes)


async def run_commits(store, commits, at):
    """The results and events of these commits, relative to the initial revision."""
    results = []
    for compares, operations in commits:
        done = await store.commit([shifted(compare, at) for compare in compares], operations)
        results.append((done.succeeded, done.revision - at))
    for prefix in ("/", "/a", "/a/", "/b/"):
        snapshot = await store.range(prefix)
        results += [snapshot.revision - at, *(shifted(entry, -at) for entry in snapshot.entries)]
    # A last commit ends the watch, whatever the number of events.
    last = (await store.commit([], [Put("/end", b"")])).revision
    async with aclosing(store.watch("/", at)) as stream:
        while True:
            events = await anext(stream)
            results += [shifted(event, -at) for event in events]
            if events[-1].mod_revision == last:
                return results


@pytest.mark.timeout(60)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commits=st.lists(COMMITS, max_size=12))
def test_memory_store_behaves_like_etcd(etcd, commits):
    async def both():
        real, memory = EtcdStore(etcd.settings()), MemoryStore(lambda: 0)
        await real.commit([], [DeletePrefix("/")])
        at = (await real.range("/")).revision
        results = await run_commits(real, commits, at), await run_commits(memory, commits, 0)
        await real.close()
        await memory.close()
        return results

    real, memory = asyncio.run(both())
    assert real == memory
