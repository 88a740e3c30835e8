"""The marker of a restored store: set by a key or a revision bump, and completed once."""

import pytest

from kafscale.errors import DamagedObjectError
from kafscale.metadata.cluster.restore_marker import (
    COMPLETED_KEY,
    MARKER_KEY,
    REVISION_BUMP,
    RestoreInfo,
    complete_restore,
    find_pending_restore,
    mark_restored,
)
from kafscale.metadata.store.base import Put, Snapshot

TAKEN_MS = 1_700_000_000_000
RESTORED_MS = 1_700_000_060_000


async def mark(store, snapshot="a/b.db"):
    await mark_restored(store, snapshot=snapshot, taken_at_ms=TAKEN_MS, restored_at_ms=RESTORED_MS)


class Leapt:
    """A store whose revision was bumped once per restore."""

    def __init__(self, store, count=1):
        self._store = store
        self.count = count

    async def range(self, prefix):
        result = await self._store.range(prefix)
        return Snapshot(result.entries, result.revision + self.count * REVISION_BUMP)

    async def commit(self, compares, operations):
        return await self._store.commit(compares, operations)


def test_store_without_restore_has_no_marker(run_with_store):
    async def body(store):
        await store.commit([], [Put("/kafscale/topics/a/config", b"")])
        return await find_pending_restore(store)

    assert run_with_store(body) is None


def test_marker_has_snapshot_and_times(run_with_store):
    async def body(store):
        await mark(store)
        return await find_pending_restore(store)

    assert run_with_store(body).info == RestoreInfo(
        "a/b.db", "2023-11-14T22:13:20.000Z", "2023-11-14T22:14:20.000Z"
    )


def test_restore_is_completed_once(run_with_store):
    async def body(store):
        await mark(store)
        result = await find_pending_restore(store)
        results = [await complete_restore(store, result), await complete_restore(store, result)]
        return results, await find_pending_restore(store), await store.get(MARKER_KEY)

    assert run_with_store(body) == ([True, False], None, None)


def test_outdated_pending_restore_does_not_complete_a_new_marker(run_with_store):
    async def body(store):
        await mark(store, "first.db")
        result = await find_pending_restore(store)
        await mark(store, "second.db")
        assert not await complete_restore(store, result)
        return await find_pending_restore(store)

    assert run_with_store(body).info.snapshot == "second.db"


def test_revision_bump_is_pending_until_completed(run_with_store):
    async def body(store):
        bumped = Leapt(store)
        first = await find_pending_restore(bumped)
        assert first.info == RestoreInfo()
        assert await complete_restore(bumped, first)
        assert await find_pending_restore(bumped) is None
        bumped.count = 2
        second = await find_pending_restore(bumped)
        assert await complete_restore(bumped, second)
        assert not await complete_restore(bumped, second)
        return first.restore_count, second.restore_count, await find_pending_restore(bumped)

    assert run_with_store(body) == (1, 2, None)


def test_marker_after_completion_is_pending_again(run_with_store):
    async def body(store):
        bumped = Leapt(store)
        await complete_restore(bumped, await find_pending_restore(bumped))
        await mark(store)
        result = await find_pending_restore(bumped)
        return await complete_restore(bumped, result), await find_pending_restore(bumped)

    assert run_with_store(body) == (True, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [(MARKER_KEY, b"{"), (MARKER_KEY, b'{"snapshot":"\xff"}'), (COMPLETED_KEY, b"many")],
)
def test_invalid_marker_is_damaged(run_with_store, key, value):
    async def body(store):
        await store.commit([], [Put(key, value)])
        await find_pending_restore(store)

    with pytest.raises(DamagedObjectError, match=key):
        run_with_store(body)
