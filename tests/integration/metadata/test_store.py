"""The invariants of `MetadataStore`, for every implementation."""

import asyncio
from contextlib import aclosing

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import (
    COMMIT_BYTES_MAX,
    OPERATIONS_MAX,
    Committed,
    Compare,
    Delete,
    DeletePrefix,
    Entry,
    EventKind,
    Put,
    absent,
    unchanged,
)


async def put(store, key, value=b"", lease=0):
    done = await store.commit([], [Put(key, value, lease)])
    assert done.succeeded
    return done.revision


async def keys_under(store, prefix="/"):
    return [entry.key for entry in (await store.range(prefix)).entries]


async def revision_of(store):
    return (await store.range("/")).revision


async def watched(store, prefix, after_revision, last_revision):
    """The events of a watch up to the given one.

    Events of one commit arrive together; a store may combine commits.
    """
    reported = []
    async with aclosing(store.watch(prefix, after_revision)) as stream:
        async for events in stream:
            assert not reported or reported[-1].mod_revision < events[0].mod_revision
            reported += events
            if reported[-1].mod_revision >= last_revision:
                break
    return reported


def test_key_has_create_and_mod_revision(run_with_store):
    async def body(store):
        assert await store.get("/a") is None
        at = await revision_of(store)
        assert await put(store, "/a", b"1") == at + 1
        assert await put(store, "/b", b"") == at + 2
        assert await put(store, "/a", b"2") == at + 3
        assert await store.get("/a") == Entry("/a", b"2", at + 1, at + 3)
        await store.commit([], [Delete("/a")])
        assert await store.get("/a") is None
        await put(store, "/a", b"3")
        assert await store.get("/a") == Entry("/a", b"3", at + 5, at + 5)

    run_with_store(body)


def test_range_is_sorted_and_limited_to_its_prefix(run_with_store):
    async def body(store):
        for key in ["/t/b/1", "/t/a", "/t", "/ta", "/t/é", "/t/b/0", "/s/z", "/u", "/t0"]:
            last = await put(store, key)
        snapshot = await store.range("/t/")
        assert [entry.key for entry in snapshot.entries] == ["/t/a", "/t/b/0", "/t/b/1", "/t/é"]
        assert snapshot.revision == last
        assert (await store.range("/none/")).entries == ()

    run_with_store(body)


COMPARES = {
    "the last change": (lambda _, last: Compare(key="/a", mod_revision=last), True),
    "an older change": (lambda first, _: Compare(key="/a", mod_revision=first), False),
    "the creation": (lambda first, _: Compare(key="/a", create_revision=first), True),
    "a later creation": (lambda _, last: Compare(key="/a", create_revision=last), False),
    "the value": (lambda *_: Compare(key="/a", value=b"two"), True),
    "another value": (lambda *_: Compare(key="/a", value=b"one"), False),
    "that it is absent": (lambda *_: absent("/a"), False),
    "that none is absent": (lambda *_: absent("/none"), True),
    "that none was created": (lambda *_: Compare(key="/none", create_revision=0), True),
    "that none is empty": (lambda *_: Compare(key="/none", value=b""), False),
}


@pytest.mark.parametrize("operations", [[Put("/b", b""), Delete("/a")], []], ids=["some", "none"])
@pytest.mark.parametrize(("compare", "holds"), COMPARES.values(), ids=COMPARES)
def test_commit_succeeds_only_if_compares_hold(run_with_store, compare, holds, operations):
    async def body(store):
        first = await put(store, "/a", b"one")
        last = await put(store, "/a", b"two")
        always = Compare(key="/a", value=b"two")
        done = await store.commit([always, compare(first, last)], operations)
        is_changed = holds and bool(operations)
        assert done == Committed(succeeded=holds, revision=last + is_changed)
        assert await keys_under(store) == (["/b"] if is_changed else ["/a"])

    run_with_store(body)


def test_commit_takes_one_revision(run_with_store):
    async def body(store):
        at = await revision_of(store)
        done = await store.commit([], [Put("/a", b"1"), Put("/b", b"2")])
        assert done.revision == at + 1
        done = await store.commit([], [Delete("/a"), Put("/c", b"3")])
        assert done.revision == at + 2
        assert (await store.range("/")).entries == (
            Entry("/b", b"2", at + 1, at + 1),
            Entry("/c", b"3", at + 2, at + 2),
        )

    run_with_store(body)


def test_commit_without_changes_takes_no_revision(run_with_store):
    async def body(store):
        last = await put(store, "/a")
        done = await store.commit([], [Delete("/none"), DeletePrefix("/none/")])
        assert done == Committed(succeeded=True, revision=last)
        assert await store.commit([absent("/b")], []) == Committed(succeeded=True, revision=last)
        assert await put(store, "/b") == last + 1

    run_with_store(body)


def test_delete_prefix_keeps_adjacent_keys(run_with_store):
    async def body(store):
        for key in ["/t/a/1", "/t/a/2", "/t/a", "/t/ab/1", "/t/b"]:
            await put(store, key)
        await store.commit([], [DeletePrefix("/t/a/"), Put("/u", b"")])
        assert await keys_under(store) == ["/t/a", "/t/ab/1", "/t/b", "/u"]

    run_with_store(body)


def test_one_of_many_concurrent_compares_succeeds(run_with_store):
    async def body(store):
        await put(store, "/a", b"start")
        entry = await store.get("/a")
        outcomes = await asyncio.gather(
            *(store.commit([unchanged(entry)], [Put("/a", b"%d" % i)]) for i in range(20))
        )
        assert [outcome.succeeded for outcome in outcomes].count(True) == 1
        winner = [outcome.succeeded for outcome in outcomes].index(True)
        assert (await store.get("/a")).value == b"%d" % winner

    run_with_store(body)


def test_limits_of_etcd_are_asserted(run_with_store):
    async def body(store):
        many = [Put(f"/{i}", b"") for i in range(OPERATIONS_MAX + 1)]
        await store.commit([], many[:-1])
        for compares, operations in [
            ([], many),
            ([absent(put.key) for put in many], []),
            ([], [Put("/a", bytes(COMMIT_BYTES_MAX))]),
            ([], [Put("/a", b"1"), Put("/a", b"2")]),
            ([], [Put("/a", b"1"), Delete("/a")]),
            ([], [DeletePrefix("/a"), Put("/a/b", b"2")]),
        ]:
            with pytest.raises(AssertionError):
                await store.commit(compares, operations)

    run_with_store(body)


def test_compare_has_one_condition():
    with pytest.raises(AssertionError):
        Compare(key="/a")
    with pytest.raises(AssertionError):
        Compare(key="/a", mod_revision=1, value=b"")


# --- watches ----------------------------------------------------------------------------------


def test_watch_reports_changes_after_a_revision_in_order(run_with_store):
    async def body(store):
        await put(store, "/t/a", b"1")
        revision = await put(store, "/t/b", b"2")
        changed = await put(store, "/t/a", b"3")
        await put(store, "/other", b"4")
        deleted = (await store.commit([], [DeletePrefix("/t/"), Put("/u", b"")])).revision
        events = await watched(store, "/t/", revision, deleted)
        assert [(event.kind, event.key, event.value, event.mod_revision) for event in events] == [
            (EventKind.PUT, "/t/a", b"3", changed),
            (EventKind.DELETE, "/t/a", b"", deleted),
            (EventKind.DELETE, "/t/b", b"", deleted),
        ]
        assert events[0].entry() == Entry("/t/a", b"3", revision - 1, changed)
        assert events[1].entry() is None

    run_with_store(body)


def test_watch_waits_and_reports_each_change_once(run_with_store):
    async def body(store):
        at = await revision_of(store)
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(watched(store, "/t/", at, at + 19)) for _ in range(3)]
            for i in range(10):
                await store.commit([], [Put(f"/t/{i}", b""), Put(f"/t/{i}-too", b"")])
                await put(store, f"/other/{i}")
                await asyncio.sleep(0.02)
        for watch in watches:
            assert [event.key for event in watch.result()] == [
                key for i in range(10) for key in (f"/t/{i}", f"/t/{i}-too")
            ]

    run_with_store(body)


def test_watch_misses_no_change_of_concurrent_writers(run_with_store):
    """Replaying the events of concurrent writers gives the content of the store."""

    async def body(store):
        at = await revision_of(store)

        async def write(writer):
            for i in range(30):
                operation = Delete(f"/t/{i % 5}") if (writer + i) % 3 == 0 else None
                await store.commit([], [operation or Put(f"/t/{i % 5}", b"%d %d" % (writer, i))])
                if i % 7 == writer:
                    await asyncio.sleep(0.01)
            await put(store, f"/t/end-{writer}")

        async def follow():
            seen, copy = [], {}
            ends = {f"/t/end-{writer}" for writer in range(4)}
            async with aclosing(store.watch("/t/", at)) as stream:
                while not ends <= copy.keys():
                    for event in await anext(stream):
                        seen.append(event.mod_revision)
                        copy[event.key] = event.entry()
            return seen, copy

        async with asyncio.TaskGroup() as group:
            follower = group.create_task(follow())
            for writer in range(4):
                group.create_task(write(writer))
        seen, copy = follower.result()
        assert seen == list(range(at + 1, at + len(seen) + 1))
        snapshot = await store.range("/t/")
        assert snapshot.entries == tuple(
            entry for _, entry in sorted(copy.items()) if entry is not None
        )

    run_with_store(body)


def test_watch_from_a_compacted_revision_ends(run_with_store):
    async def body(store):
        at = await revision_of(store)
        for i in range(20):
            last = await put(store, f"/{i}")
        run_with_store.forget(last - 8)
        lists = [events async for events in store.watch("/1", at + 2)]
        [[event]] = lists
        assert event.kind is EventKind.COMPACTED
        assert event.key == "/1"
        assert at + 2 < event.mod_revision < last
        # The history is complete from there on.
        events = await watched(store, "/", event.mod_revision, last)
        assert [event.mod_revision for event in events] == list(
            range(event.mod_revision + 1, last + 1)
        )

    run_with_store(body, commits_max=8)


# --- leases -----------------------------------------------------------------------------------


def test_expired_lease_deletes_its_keys(run_with_store):
    async def body(store):
        began = asyncio.get_running_loop().time()
        lease = await store.grant(1500)
        puts = [Put("/b/1", b"", lease), Put("/b/2", b"", lease), Put("/c", b"")]
        last = (await store.commit([], puts)).revision
        assert (await store.get("/b/1")).lease == lease
        await asyncio.sleep(0.9)
        assert await keys_under(store) == ["/b/1", "/b/2", "/c"]
        events = await watched(store, "/b/", last, last + 1)
        # The watch was woken by the end of the lease: no other call was made.
        assert 1.5 <= asyncio.get_running_loop().time() - began <= 1.5 + run_with_store.late_s
        assert sorted((event.kind.value, event.key) for event in events) == [
            ("delete", "/b/1"),
            ("delete", "/b/2"),
        ]
        assert {event.mod_revision for event in events} == {last + 1}
        assert await keys_under(store) == ["/c"]
        assert not await store.keep_alive(lease)

    run_with_store(body)


def test_lease_lasts_while_it_is_renewed(run_with_store):
    async def body(store):
        lease = await store.grant(2000)
        short = await store.grant(1000)
        puts = [Put("/a", b"", lease), Put("/b", b"", short)]
        last = (await store.commit([], puts)).revision
        for _ in range(4):
            await asyncio.sleep(1)
            assert await store.keep_alive(lease)
        events = await watched(store, "/", last, last + 1)
        assert [event.key for event in events] == ["/b"]
        assert await keys_under(store) == ["/a"]
        events = await watched(store, "/", last + 1, last + 2)
        assert [event.key for event in events] == ["/a"]
        assert await keys_under(store) == []

    run_with_store(body)


def test_revoked_lease_ends_once(run_with_store):
    async def body(store):
        lease, other = await store.grant(10_000), await store.grant(10_000)
        assert lease != other
        await store.commit([], [Put("/a", b"", lease), Put("/b", b"", other)])
        await store.revoke(lease)
        assert await keys_under(store) == ["/b"]
        await store.revoke(lease)
        assert not await store.keep_alive(lease)
        assert await store.keep_alive(other)

    run_with_store(body)


def test_put_under_an_ended_lease_fails(run_with_store):
    async def body(store):
        lease = await store.grant(1000)
        last = await put(store, "/end", b"", lease)
        await watched(store, "/end", last, last + 1)
        done = await store.commit([], [Put("/a", b"", lease), Put("/b", b"")])
        assert done == Committed(succeeded=False, revision=last + 1)
        assert await keys_under(store) == []

    run_with_store(body)


def test_key_belongs_to_the_lease_of_its_last_put(run_with_store):
    async def body(store):
        first, second = await store.grant(60_000), await store.grant(60_000)
        await put(store, "/a", b"1", first)
        await put(store, "/a", b"2", second)
        await put(store, "/b", b"1", first)
        await put(store, "/b", b"2")
        await store.revoke(first)
        assert await keys_under(store) == ["/a", "/b"]
        await store.revoke(second)
        assert await keys_under(store) == ["/b"]

    run_with_store(body)


# --- close -------------------------------------------------------------------------------------


def test_closed_store_fails_calls_and_watches(run_with_store):
    async def body(store):
        stream = store.watch("/", await revision_of(store))
        waiting = asyncio.ensure_future(anext(stream))
        await put(store, "/other")
        await waiting
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.1)
        await store.close()
        for call in [
            waiting,
            store.get("/a"),
            store.range("/"),
            store.commit([], []),
            store.grant(1000),
            store.keep_alive(1),
            store.revoke(1),
        ]:
            with pytest.raises(StoreUnavailableError):
                await call

    run_with_store(body)
