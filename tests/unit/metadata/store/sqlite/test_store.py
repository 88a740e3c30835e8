"""`SqliteStore`: durability, locking and errors of its file."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import aclosing
from itertools import count

import pytest

from doubles import virtual_time
from kafscale.errors import OperatingError, StoreUnavailableError
from kafscale.metadata.store.base import DeletePrefix, Entry, EventKind, Put
from kafscale.metadata.store.sqlite.file import SqliteFile
from kafscale.metadata.store.sqlite.store import SqliteStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metadata.db"


def run(path, body, **options):
    """Run a test's body on the real loop, with a thread for the file, as a broker does."""

    async def scenario():
        store = await SqliteStore.open(path, lambda: 0, **options)
        try:
            return await body(store)
        finally:
            await store.close()

    return asyncio.run(scenario())


async def write(store):
    await store.commit([], [Put("/a", b"1"), Put("/b", b"\x00\xff")])
    await store.commit([], [Put("/a", b"2")])


async def read(store):
    return await store.range("/")


@pytest.mark.parametrize("fsync", [True, False])
def test_committed_entries_survive_a_reopen(path, fsync):
    run(path, write, fsync=fsync)
    snapshot = run(path, read, fsync=fsync)
    assert snapshot.revision == 2
    assert snapshot.entries == (Entry("/a", b"2", 1, 2), Entry("/b", b"\x00\xff", 1, 1))


def test_revisions_continue_and_history_is_compacted_after_a_reopen(path):
    run(path, write)

    async def body(store):
        async with aclosing(store.watch("/", 1)) as stream:
            assert [event.kind for event in await anext(stream)] == [EventKind.COMPACTED]
        async with aclosing(store.watch("/", 2)) as stream:
            assert (await store.commit([], [DeletePrefix("/")])).revision == 3
            assert [event.key for event in await anext(stream)] == ["/a", "/b"]

    run(path, body)


def test_leases_end_with_the_process_that_granted_them(path):
    async def body(store):
        lease = await store.grant(60_000)
        await store.commit([], [Put("/mine", b"", lease), Put("/stays", b"")])

    run(path, body)
    snapshot = run(path, read)
    assert [entry.key for entry in snapshot.entries] == ["/stays"]
    assert snapshot.revision == 2


def test_file_is_locked_by_one_store(path):
    async def body(_store):
        with pytest.raises(StoreUnavailableError, match="in use by another process"):
            await SqliteStore.open(path, lambda: 0)

    run(path, body)
    run(path, read)


def test_file_is_not_accessed_by_the_event_loop_thread(path):
    async def body(store):
        threads = await asyncio.gather(
            *(store._call(lambda _file: threading.current_thread()) for _ in range(3))
        )
        assert len(set(threads)) == 1
        assert threads[0] is not threading.current_thread()

    run(path, body)


def test_waiting_calls_share_a_transaction(path):
    async def body(store):
        batches = []
        work = store._file.run
        store._file.run = lambda jobs: batches.append(len(jobs)) or work(jobs)
        commits = [store.commit([], [Put(f"/{i}", b"")]) for i in range(100)]
        revisions = [done.revision for done in await asyncio.gather(*commits)]
        assert revisions == list(range(1, 101))
        assert batches == [100]

    run(path, body)


def test_cancelled_call_does_not_affect_others(path):
    async def body(store):
        gone = asyncio.ensure_future(store.commit([], [Put("/gone", b"")]))
        stays = asyncio.ensure_future(store.commit([], [Put("/stays", b"")]))
        await asyncio.sleep(0)
        gone.cancel()
        assert (await stays).succeeded
        # Its commit was under way, and like any that is not answered may have been made or not.
        assert [entry.key for entry in (await read(store)).entries] in (
            ["/stays"],
            ["/gone", "/stays"],
        )

    run(path, body)


def test_full_disk_fails_commits_only(path):
    """The store reports it, discards the failed commits, and recovers when there is space."""

    def limit(pages):
        return lambda file: file._execute(f"PRAGMA max_page_count = {pages}").fetchone()

    async def body(store):
        await write(store)
        await store._call(limit(10))
        small = store.commit([], [Put("/small", b"")])
        large = store.commit([], [Put("/too", b""), Put("/large", bytes(1_000_000))])
        for outcome in await asyncio.gather(small, large, return_exceptions=True):
            assert isinstance(outcome, StoreUnavailableError)
            assert "full" in str(outcome)
        assert await read(store) == before
        await store._call(limit(100_000))
        assert (await store.commit([], [Put("/large", bytes(1_000_000))])).revision == 3
        async with aclosing(store.watch("/", 2)) as stream:
            assert [event.key for event in await anext(stream)] == ["/large"]

    run(path, write)
    before = run(path, read)
    path.unlink()
    run(path, body)


def test_keys_of_an_ended_lease_are_deleted_after_a_disk_failure(path):
    async def scenario(_random):
        store = await SqliteStore.open(path, virtual_time.clock_ms)
        lease = await store.grant(1000)
        await store.commit([], [Put("/a", b"", lease)])
        drop, failures = store._file.drop_lease, iter([True, True])

        def fail_twice(lease):
            if next(failures, False):
                raise StoreUnavailableError("the disk is on fire")
            drop(lease)

        store._file.drop_lease = fail_twice
        async with aclosing(store.watch("/", 1)) as stream:
            assert [event.kind for event in await anext(stream)] == [EventKind.DELETE]
        assert asyncio.get_running_loop().time() == pytest.approx(1 + 2, abs=0.1)
        await store.close()

    virtual_time.run(scenario, seed=0)


# --- files that are not what they should be ---------------------------------------------------


def refused(path, match):
    """The file is rejected when it is opened, not when the damaged page is first read."""

    async def nothing(_store):
        pytest.fail("it was opened")

    with pytest.raises(OperatingError, match=match):
        run(path, nothing)


def test_file_that_is_no_database_is_rejected(path):
    path.write_bytes(b"once upon a time there was a metadata store" * 100)
    refused(path, "metadata.db is damaged: file is not a database")


def test_database_of_another_application_is_rejected_unchanged(path):
    with sqlite3.connect(path) as theirs:
        theirs.execute("CREATE TABLE photographs (name)")
    theirs.close()
    refused(path, "another application")
    with sqlite3.connect(path) as theirs:
        assert theirs.execute("SELECT name FROM sqlite_schema").fetchall() == [("photographs",)]
    theirs.close()


def test_file_of_a_newer_version_is_rejected(path):
    run(path, write)
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version = 2")
    newer.close()
    refused(path, "schema version 2 of a newer Kafscale")


def test_damaged_file_is_rejected(path):
    async def fill(store):
        for i in range(100):
            await store.commit([], [Put(f"/{i:03}", bytes([i]) * 1000)])

    run(path, fill)
    whole = path.read_bytes()
    for page in range(1, len(whole) // 4096, 5):
        start = page * 4096
        path.write_bytes(whole[:start] + b"\xa5" * 4096 + whole[start + 4096 :])
        refused(path, "damaged")
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "damaged")
    path.write_bytes(whole)
    assert len(run(path, read).entries) == 100


def test_invalid_path_is_rejected(tmp_path):
    with pytest.raises(StoreUnavailableError, match="unable to open"):
        run(tmp_path / "none" / "metadata.db", read)


# --- death ------------------------------------------------------------------------------------

COMMITTER = """
import asyncio, pathlib, sys
from kafscale.metadata.store.sqlite.store import SqliteStore
from kafscale.metadata.store.base import Put

async def main():
    store = await SqliteStore.open(pathlib.Path(sys.argv[1]), lambda: 0, fsync=False)
    start = (await store.range("/")).revision

    async def commit(writer):
        for i in range(start, start + 1_000_000):
            value = b"%d" % i
            await store.commit([], [Put(f"/{writer}/left", value), Put(f"/{writer}/right", value)])
            print(writer, i, flush=True)

    await asyncio.gather(*map(commit, range(3)))

asyncio.run(main())
"""


def test_acknowledged_commits_survive_a_killed_process(path):
    """Killed in the middle of commits, again and again: all that was answered is there, whole."""
    for life in range(3):
        process = subprocess.Popen(  # noqa: S603 - our own program.
            [sys.executable, "-c", COMMITTER, str(path)], stdout=subprocess.PIPE, text=True
        )
        answered = {}
        with process:
            for line_count, line in zip(count(1), process.stdout, strict=False):
                if line_count == 50 * (life + 1):
                    process.send_signal(signal.SIGKILL)
                # What is left in the pipe was answered, too; but a last line may be torn.
                if line.endswith("\n"):
                    writer, value = line.split()
                    answered[writer] = int(value)
        assert process.returncode == -signal.SIGKILL
        assert len(answered) == 3
        kept = {entry.key: int(entry.value) for entry in run(path, read).entries}
        for writer, value in answered.items():
            assert kept[f"/{writer}/left"] == kept[f"/{writer}/right"] >= value


def test_file_can_be_used_without_an_event_loop(path):
    """The file is plain synchronous code: a tool may open it, too."""
    file = SqliteFile(path, fsync=True)
    results, commits = file.run([lambda f: f.commit([], [Put("/a", b"1")]), lambda f: f.get("/a")])
    assert results[1] == Entry("/a", b"1", 1, 1)
    assert [[event.key for event in events] for events in commits] == [["/a"]]
    file.close()
