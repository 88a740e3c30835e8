"""The mark of a restored store: told by a key or by a leap, and settled once."""

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
    """A store whose revision was made to leap, once for each time that it was restored."""

    def __init__(self, store, count=1):
        self._store = store
        self.count = count

    async def range(self, prefix):
        found = await self._store.range(prefix)
        return Snapshot(found.entries, found.revision + self.count * REVISION_BUMP)

    async def commit(self, compares, operations):
        return await self._store.commit(compares, operations)


def test_a_store_that_was_never_restored_says_nothing(play):
    async def body(store):
        await store.commit([], [Put("/kafscale/topics/a/config", b"")])
        return await find_pending_restore(store)

    assert play(body) is None


def test_a_mark_tells_which_snapshot_and_when(play):
    async def body(store):
        await mark(store)
        return await find_pending_restore(store)

    assert play(body).info == RestoreInfo(
        "a/b.db", "2023-11-14T22:13:20.000Z", "2023-11-14T22:14:20.000Z"
    )


def test_what_is_settled_is_settled_once(play):
    async def body(store):
        await mark(store)
        found = await find_pending_restore(store)
        results = [await complete_restore(store, found), await complete_restore(store, found)]
        return results, await find_pending_restore(store), await store.get(MARKER_KEY)

    assert play(body) == ([True, False], None, None)


def test_a_mark_that_was_made_again_is_not_settled_by_whoever_saw_the_one_before(play):
    async def body(store):
        await mark(store, "first.db")
        found = await find_pending_restore(store)
        await mark(store, "second.db")
        assert not await complete_restore(store, found)
        return await find_pending_restore(store)

    assert play(body).info.snapshot == "second.db"


def test_a_leap_tells_by_itself_until_it_is_settled_and_the_next_one_again(play):
    async def body(store):
        leapt = Leapt(store)
        first = await find_pending_restore(leapt)
        assert first.info == RestoreInfo()
        assert await complete_restore(leapt, first)
        assert await find_pending_restore(leapt) is None
        leapt.count = 2
        second = await find_pending_restore(leapt)
        assert await complete_restore(leapt, second)
        assert not await complete_restore(leapt, second)
        return first.restore_count, second.restore_count, await find_pending_restore(leapt)

    assert play(body) == (1, 2, None)


def test_a_store_that_is_marked_after_it_was_settled_is_to_be_settled_again(play):
    async def body(store):
        leapt = Leapt(store)
        await complete_restore(leapt, await find_pending_restore(leapt))
        await mark(store)
        found = await find_pending_restore(leapt)
        return await complete_restore(leapt, found), await find_pending_restore(leapt)

    assert play(body) == (True, None)


@pytest.mark.parametrize(("key", "value"), [(MARKER_KEY, b"{"), (COMPLETED_KEY, b"many")])
def test_what_is_no_mark_is_told_by_its_key(play, key, value):
    async def body(store):
        await store.commit([], [Put(key, value)])
        await find_pending_restore(store)

    with pytest.raises(DamagedObjectError, match=key):
        play(body)
