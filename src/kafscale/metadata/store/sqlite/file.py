"""`SqliteFile`: the database file of the embedded metadata store.

Invariants:

1. One process at a time. The file is locked while it is open, so that a second broker on the same
   data directory fails to start; the lock ends with the process.
2. When `run` returns, its changes survive a crash of the process. With `fsync` they survive a power
   failure too; without it, a power failure may lose the last commits, but never part of one.
3. All calls come from one thread, which SQLite checks, and never from the event loop's.

Leases end with the process that granted them. Since the lock proves that the process has ended,
opening the file deletes their keys. `SqliteStore` adds leases, watches and concurrency.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kafscale.errors import OperatingError, StoreUnavailableError
from kafscale.metadata.store.base import (
    Committed,
    Compare,
    Delete,
    DeletePrefix,
    Entry,
    Event,
    EventKind,
    Operation,
    Put,
    Snapshot,
    prefix_end,
)

APPLICATION_ID: Final = int.from_bytes(b"KAFS", "big")
"""Distinguishes Kafscale's files from other SQLite files."""

SCHEMA_VERSION: Final = 1

_SCHEMA: Final = (
    """
    CREATE TABLE entries (
        key TEXT PRIMARY KEY,
        value BLOB NOT NULL,
        create_revision INTEGER NOT NULL,
        mod_revision INTEGER NOT NULL,
        lease INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX leased ON entries (lease) WHERE lease != 0",
    "CREATE TABLE store (revision INTEGER NOT NULL) STRICT",
    "INSERT INTO store VALUES (0)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_ENTRY: Final = "SELECT key, value, create_revision, mod_revision, lease FROM entries"

Job = Callable[["SqliteFile"], Any]


class SqliteFile:
    """An open and locked file."""

    def __init__(
        self, path: Path, *, fsync: bool, make_space: Callable[[], bool] = lambda: False
    ) -> None:
        """`make_space` is called if the disk is full; it returns whether to try again."""
        self._path = path
        self._make_space = make_space
        self._revision = 0
        self._commits: list[list[Event]] = []
        with self._converted_errors():
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            with self._converted_errors():
                self._prepare(fsync)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        with self._converted_errors():
            self._connection.close()

    @property
    def revision(self) -> int:
        return self._revision

    def run(self, jobs: Sequence[Job]) -> tuple[list[Any], list[list[Event]]]:
        """Run jobs in one transaction; return the result of each, and the events of each commit.

        Jobs share a transaction because a disk commit takes about as long for one job as for a
        hundred. If one fails, all fail; results are returned after the commit.
        """
        try:
            return self._run(jobs)
        except StoreUnavailableError as error:
            if not (_is_full(error) and self._make_space()):
                raise
        return self._run(jobs)

    def _run(self, jobs: Sequence[Job]) -> tuple[list[Any], list[list[Event]]]:
        revision = self._revision
        self._commits = []
        with self._converted_errors():
            self._execute("BEGIN")
            try:
                results = [job(self) for job in jobs]
                if self._revision != revision:
                    self._execute("UPDATE store SET revision = ?", self._revision)
                self._execute("COMMIT")
            except BaseException:
                self._revision = revision
                # SQLite has already rolled back after some failures, such as a full disk.
                if self._connection.in_transaction:
                    self._execute("ROLLBACK")
                raise
        return results, self._commits

    # --- jobs ---------------------------------------------------------------------------------

    def get(self, key: str) -> Entry | None:
        row = self._execute(f"{_ENTRY} WHERE key = ?", key).fetchone()
        return Entry(*row) if row else None

    def range(self, prefix: str) -> Snapshot:
        rows = self._execute(
            f"{_ENTRY} WHERE key >= ? AND key < ? ORDER BY key", prefix, prefix_end(prefix)
        )
        return Snapshot(tuple(Entry(*row) for row in rows), self._revision)

    def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> Committed:
        succeeded = all(compare.holds(self.get(compare.key)) for compare in compares)
        if succeeded:
            revision = self._revision + 1
            self._record([e for operation in operations for e in self._apply(operation, revision)])
        return Committed(succeeded, self._revision)

    def drop_lease(self, lease: int) -> None:
        """Delete the keys of a lease in one commit."""
        self._record(self._delete("lease = ?", lease))

    # --- inside a job -------------------------------------------------------------------------

    def _record(self, events: list[Event]) -> None:
        if events:
            self._revision += 1
            self._commits.append(events)

    def _apply(self, operation: Operation, revision: int) -> list[Event]:
        match operation:
            case Put(key, value, lease):
                (created,) = self._execute(
                    "INSERT INTO entries VALUES (?1, ?2, ?3, ?3, ?4) ON CONFLICT (key) DO UPDATE"
                    " SET value = ?2, mod_revision = ?3, lease = ?4 RETURNING create_revision",
                    key,
                    value,
                    revision,
                    lease,
                ).fetchone()
                return [Event(EventKind.PUT, key, value, revision, created, lease)]
            case Delete(key):
                return self._delete("key = ?", key)
            case DeletePrefix(prefix):
                return self._delete("key >= ? AND key < ?", prefix, prefix_end(prefix))

    def _delete(self, condition: str, *values: str | int) -> list[Event]:
        rows = self._execute(
            f"DELETE FROM entries WHERE {condition} RETURNING key",  # noqa: S608 - conditions are literals.
            *values,
        ).fetchall()
        revision = self._revision + 1
        return [Event(EventKind.DELETE, key, b"", revision) for (key,) in sorted(rows)]

    # --- opening ------------------------------------------------------------------------------

    def _prepare(self, fsync: bool) -> None:
        # Lock first: SQLite then keeps the WAL index in process memory.
        self._execute("PRAGMA locking_mode = EXCLUSIVE")
        self._execute("PRAGMA journal_mode = WAL")
        self._execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")
        # Only macOS distinguishes fsync from a flush of the drive cache.
        self._execute(f"PRAGMA fullfsync = {int(fsync)}")
        self._execute("BEGIN EXCLUSIVE")
        if self._is_new():
            for statement in _SCHEMA:
                self._execute(statement)
        self._check()
        self._execute("COMMIT")
        (self._revision,) = self._execute("SELECT revision FROM store").fetchone()
        self.run([lambda file: file._record(file._delete("lease != 0"))])  # noqa: SLF001 - this class.

    def _is_new(self) -> bool:
        (tables,) = self._execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return not tables and not self._pragma("application_id")

    def _check(self) -> None:
        """Reject a file that is foreign, damaged or of a newer version."""
        if self._pragma("application_id") != APPLICATION_ID:
            raise OperatingError(f"{self._path} is an SQLite file of another application")
        version = self._pragma("user_version")
        if version > SCHEMA_VERSION:
            raise OperatingError(
                f"{self._path} has schema version {version} of a newer Kafscale;"
                f" this version supports up to {SCHEMA_VERSION}"
            )
        result = self._pragma("quick_check(1)")
        if result != "ok":
            raise OperatingError(f"{self._path} is damaged: {result}")

    def _pragma(self, name: str) -> Any:
        return self._execute(f"PRAGMA {name}").fetchone()[0]

    def _execute(self, statement: str, *values: str | bytes | int) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)

    @contextmanager
    def _converted_errors(self) -> Iterator[None]:
        """Convert SQLite's errors by whether a retry may succeed."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise StoreUnavailableError(f"{self._path} is in use by another process") from error
            raise StoreUnavailableError(f"{self._path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise OperatingError(f"{self._path} is damaged: {error}") from error


def _is_full(error: StoreUnavailableError) -> bool:
    cause = error.__cause__
    return isinstance(cause, sqlite3.Error) and cause.sqlite_errorcode in {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,  # How SQLite reports an exceeded disk quota.
    }
