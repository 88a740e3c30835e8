"""Plain Parquet directories, for readers without a table format.

    ROOT/kafscale-….parquet                       the rows, or
    ROOT/kafscale_day=2023-11-14/kafscale-….parquet
    ROOT/_kafscale/commits/{number:020d}.json     commits: see `Commit`
    ROOT/_kafscale/staged/kafscale-….parquet      files that are not committed yet

Readers skip names that begin with an underscore. Invariants beyond those of `base`:

* A commit is an object that is created, create-only, under the next number; only one of several
  writers succeeds. After that its files are moved to their final names. If the writer is killed
  before they are all moved, the next `load` moves the rest; no commit is made before that.
* A reader may see only some of the files of a commit for a short time, but never uncommitted rows
  and no row twice. Rows are only added.
"""

import base64
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kafscale.errors import (
    DamagedObjectError,
    InvalidRequestError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreUnavailableError,
)
from kafscale.spark.tables.base import Change, CommitConflictError, DataFile, Progress, Version
from kafscale.spark.tables.data_files import NamedColumnFiles, old_files
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.time_partitions import TimeGranularity, partition_directory
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.text.json import DECODE_ERRORS

COMMITS: Final = "_kafscale/commits/"
STAGING_DIRECTORY: Final = "_kafscale/staged"


class Commit(msgspec.Struct, frozen=True):
    """The state of the table after a commit, and its new files; stored as a JSON object."""

    commit_id: str
    """By which its writer recognizes it."""
    schema: str
    """The Arrow schema of the rows, serialized, in base64."""
    granularity: TimeGranularity | None = msgspec.field(name="unit")
    progress: dict[str, Progress]
    """By topic."""
    files: tuple[str, ...] = ()
    """The final paths below the root."""


class ParquetTable:
    """A directory, filled from one topic."""

    def __init__(
        self,
        filesystem: TableFilesystem,
        topic: str,
        checkpoint: Callable[[str], None] = lambda _step: None,
    ) -> None:
        """`checkpoint` is called with a name after each step; tests stop there."""
        self._filesystem = filesystem
        self._topic = topic
        self._checkpoint = checkpoint
        self._known = -1
        self._finished = -1

    @property
    def name(self) -> str:
        return self._filesystem.root

    # --- reading ------------------------------------------------------------------------------

    def load(self) -> Version | None:
        newest = self._newest()
        if newest is None:
            return None
        number, commit = newest
        self._finish(number, commit)
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(commit.schema)))
        progress = commit.progress.get(self._topic, Progress())
        return Version(progress, schema, commit.granularity, (number, commit))

    def files(self, version: Version) -> "ParquetFiles":
        return ParquetFiles(version.schema, version.granularity, self._filesystem)

    def data_files(self, version: Version) -> list[DataFile]:  # noqa: ARG002
        raise InvalidRequestError(
            f"{self.name}: files of plain Parquet tables cannot be replaced; use Iceberg or Delta"
        )

    def _newest(self) -> tuple[int, Commit] | None:
        store, prefix = self._filesystem.objects()
        with closing(store):
            if self._known < 0:
                for item in store.list(prefix + COMMITS):
                    self._known = max(self._known, _number(item.key))
            commit = None
            if self._known >= 0:
                key = prefix + _key(self._known)
                commit = _decode(key, bytes(store.get(key)))
            while True:
                key = prefix + _key(self._known + 1)
                try:
                    commit = _decode(key, bytes(store.get(key)))
                except ObjectNotFoundError:
                    return None if commit is None else (self._known, commit)
                self._known += 1

    # --- writing ------------------------------------------------------------------------------

    def create(self, schema: pa.Schema, granularity: TimeGranularity | None) -> Version:
        with suppress(CommitConflictError):  # Another writer was first.
            self._put(0, Commit(uuid.uuid4().hex, _encode(schema), granularity, {}))
        version = self.load()
        assert version is not None
        return version

    def evolve(self, version: Version, schema: pa.Schema) -> Version:
        number, commit = version.token
        changed = msgspec.structs.replace(
            commit, commit_id=uuid.uuid4().hex, schema=_encode(schema), files=()
        )
        self._put(number + 1, changed)
        now = self.load()
        assert now is not None
        return now

    def commit(self, version: Version, change: Change) -> None:
        assert not change.removed, "rows can only be added"
        number, commit = version.token
        files = tuple(file.details for file in change.added)
        progress = dict(commit.progress)
        if change.progress is not None:
            progress[self._topic] = change.progress
        new = Commit(uuid.uuid4().hex, commit.schema, commit.granularity, progress, files)
        self._put(number + 1, new)
        self._checkpoint("commit written")
        self._finish(number + 1, new)

    def expire(self, version: Version, older_than_ms: int) -> int:  # noqa: ARG002
        """Expire nothing: every committed file is part of the table."""
        return 0

    def orphans(self, version: Version, older_than_ms: int) -> list[DataFile]:  # noqa: ARG002
        """Return old staged files; those of commits have been moved."""
        return old_files(self._filesystem, STAGING_DIRECTORY, older_than_ms)

    def _put(self, number: int, commit: Commit) -> None:
        store, prefix = self._filesystem.objects()
        with closing(store):
            key = prefix + _key(number)
            try:
                store.put(key, [msgspec.json.encode(commit)])
            except ObjectExistsError as error:
                # The retry of a PUT whose response was lost may find its own object.
                if not _is_committed(store, key, commit):
                    raise CommitConflictError(
                        f"{self.name}: commit {number} is by another writer"
                    ) from error
            except StoreUnavailableError:
                # The PUT may still succeed later, so the files of the commit must stay.
                if not _is_committed(store, key, commit):
                    raise

    def _finish(self, number: int, commit: Commit) -> None:
        """Move the files of a commit to their final paths, unless that is done."""
        if number == self._finished:
            return
        for name in commit.files:
            staged = self._filesystem.join(STAGING_DIRECTORY, name.rpartition("/")[2])
            final = self._filesystem.join(name)
            if self._filesystem.exists(staged):
                try:
                    self._filesystem.move(staged, final)
                except OSError:
                    # A concurrent `load` may have moved it.
                    if self._filesystem.exists(staged):
                        raise
            if not self._filesystem.exists(final):
                raise DamagedObjectError(final, "the committed file is missing")
            self._checkpoint("file moved")
        self._finished = number


class ParquetFiles(NamedColumnFiles):
    """Writes staged files, which a commit moves to their final paths."""

    def write(
        self, name: str, data: pa.Buffer, metadata: pq.FileMetaData, time_partition: int | None
    ) -> DataFile:
        directory = partition_directory(time_partition, self.granularity)
        final = f"{directory}/{name}" if directory else name
        path = self.filesystem.join(STAGING_DIRECTORY, name)
        self.filesystem.write(path, data)
        return DataFile(path, metadata.num_rows, data.size, time_partition, final)


def _key(number: int) -> str:
    return f"{COMMITS}{number:020d}.json"


def _number(key: str) -> int:
    name = key.rpartition("/")[2].removesuffix(".json")
    return int(name) if name.isdigit() else -1


def _encode(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()


def _decode(key: str, data: bytes) -> Commit:
    try:
        return msgspec.json.decode(data, type=Commit)
    except DECODE_ERRORS as error:
        raise DamagedObjectError(key, str(error)) from None


def _is_committed(store: BlockingObjectStore, key: str, commit: Commit) -> bool:
    try:
        return _decode(key, bytes(store.get(key))).commit_id == commit.commit_id
    except ObjectNotFoundError:
        return False
