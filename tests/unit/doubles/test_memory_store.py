"""The memory store and the SQLite store return the same results for random operations."""

from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.metadata.store.base import Compare, Delete, DeletePrefix, Put
from kafscale.metadata.store.sqlite.store import SqliteStore

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


@settings(max_examples=50)
@given(st.lists(COMMITS, max_size=20))
def test_memory_store_behaves_like_sqlite(commits):
    async def run_commits(store):
        results = [await store.commit(compares, operations) for compares, operations in commits]
        results += [await store.range(prefix) for prefix in ("/", "/a", "/a/", "/b/")]
        # Something to end the watch with, so that it need not be known how much there was.
        last = (await store.commit([], [Put("/end", b"")])).revision
        async with aclosing(store.watch("/", 0)) as stream:
            while True:
                events = await anext(stream)
                results += events
                if events[-1].mod_revision == last:
                    break
        await store.close()
        return results

    async def both(_random):
        with TemporaryDirectory() as directory:
            path = Path(directory) / "metadata.db"
            on_disk = await SqliteStore.open(path, virtual_time.clock_ms, fsync=False)
            in_memory = MemoryStore(virtual_time.clock_ms)
            return await run_commits(in_memory), await run_commits(on_disk)

    in_memory, on_disk = virtual_time.run(both, seed=0)
    assert in_memory == on_disk
