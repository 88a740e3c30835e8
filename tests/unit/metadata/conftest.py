"""Metadata stores for tests: every in-process implementation, in virtual time."""

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.metadata.store.sqlite.store import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
def run_with_store(request, tmp_path):
    """Runs the body of a test, an async function of a new store, in simulated time."""

    def run(body, **options):
        async def scenario(_random):
            if request.param == "memory":
                store = MemoryStore(virtual_time.clock_ms, **options)
            else:
                path = tmp_path / "metadata.db"
                store = await SqliteStore.open(path, virtual_time.clock_ms, **options)
            try:
                return await body(store)
            finally:
                await store.close()

        return virtual_time.run(scenario, seed=0)

    return run
