"""The SQLite file of the embedded metadata store: tables, transactions, and what can go wrong.

The laws:

1. One process at a time. The file stays locked while it is open, so a second broker on the same
   data directory is refused instead of obeyed; when its process dies the lock is gone.
2. What `run` has returned is in the file, and survives the end of the process in any manner. With
   `fsync` it survives the end of the machine's power, too; without, a power cut may lose the last
   commits, but never leaves half of one.
3. Used from one thread only, which SQLite checks; never from the event loop's, for disks are slow.

Leases end with the process that granted them: as the lock proves that it is gone, opening the file
removes their keys. Time, watches and callers are left to `sqlite`.
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
"""What tells our file from any other SQLite file."""

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
    """The file, open and locked."""

    def __init__(self, path: Path, *, fsync: bool) -> None:
        self._path = path
        self._revision = 0
        self._commits: list[list[Event]] = []
        with self._failures():
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            with self._failures():
                self._prepare(fsync)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        with self._failures():
            self._connection.close()

    @property
    def revision(self) -> int:
        return self._revision

    def run(self, jobs: Sequence[Job]) -> tuple[list[Any], list[list[Event]]]:
        """Do all jobs in one transaction: what each returns, and the events of each commit.

        One for all, because a commit to disk takes about as long for one job as for a hundred. So
        all fail if one does; none of them sees an answer before everything is in the file.
        """
        revision = self._revision
        self._commits = []
        with self._failures():
            self._execute("BEGIN")
            try:
                results = [job(self) for job in jobs]
                if self._revision != revision:
                    self._execute("UPDATE store SET revision = ?", self._revision)
                self._execute("COMMIT")
            except BaseException:
                self._revision = revision
                # SQLite has rolled back by itself after some failures, such as a full disk.
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
        """Delete the keys of a lease, in one commit."""
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
            f"DELETE FROM entries WHERE {condition} RETURNING key",  # noqa: S608 - literals of ours.
            *values,
        ).fetchall()
        revision = self._revision + 1
        return [Event(EventKind.DELETE, key, b"", revision) for (key,) in sorted(rows)]

    # --- opening ------------------------------------------------------------------------------

    def _prepare(self, fsync: bool) -> None:
        # The lock comes first, and with it SQLite keeps the index of its log in memory.
        self._execute("PRAGMA locking_mode = EXCLUSIVE")
        self._execute("PRAGMA journal_mode = WAL")
        self._execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")
        # Only macOS has a difference between a sync and one that reaches the disk.
        self._execute(f"PRAGMA fullfsync = {int(fsync)}")
        self._execute("BEGIN EXCLUSIVE")
        if self._is_new():
            for statement in _SCHEMA:
                self._execute(statement)
        self._check()
        self._execute("COMMIT")
        (self._revision,) = self._execute("SELECT revision FROM store").fetchone()
        self.run([lambda file: file._record(file._delete("lease != 0"))])  # noqa: SLF001 - its own.

    def _is_new(self) -> bool:
        (tables,) = self._execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return not tables and not self._pragma("application_id")

    def _check(self) -> None:
        """Refuse a file that is not ours, not whole, or newer than this program."""
        if self._pragma("application_id") != APPLICATION_ID:
            raise OperatingError(f"{self._path} is an SQLite file, but not one of Kafscale's")
        version = self._pragma("user_version")
        if version > SCHEMA_VERSION:
            raise OperatingError(
                f"{self._path} has version {version}, written by a newer Kafscale;"
                f" this one knows versions up to {SCHEMA_VERSION}"
            )
        found = self._pragma("quick_check(1)")
        if found != "ok":
            raise OperatingError(f"{self._path} is damaged: {found}")

    def _pragma(self, name: str) -> Any:
        return self._execute(f"PRAGMA {name}").fetchone()[0]

    def _execute(self, statement: str, *values: str | bytes | int) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn SQLite's errors into ours, by whether trying again may help."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise StoreUnavailableError(f"{self._path} is in use by another process") from error
            raise StoreUnavailableError(f"{self._path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise OperatingError(f"{self._path} is damaged: {error}") from error
