"""Plain Parquet directories, for readers without a table format.

    ROOT/kafscale-….parquet                       the rows, or
    ROOT/kafscale_day=2023-11-14/kafscale-….parquet
    ROOT/_kafscale/commits/{number:020d}.json     commits: see `Commit`
    ROOT/_kafscale/staged/kafscale-….parquet      files that are not committed yet

Readers skip names that begin with an underscore. Invariants beyond those of `base`:

* A commit is an object that is created, create-only, under the next number; only one of several
  writers succeeds. After that its files are moved to their final names. If the writer dies before
  they are all moved, the next `load` moves the rest; no commit is made before that.
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
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.stored_files import StoredFiles
from kafscale.spark.tables.time_partitions import TimeGranularity, partition_directory
from kafscale.storage.objects.blocking import BlockingObjectStore

COMMITS: Final = "_kafscale/commits/"
STAGED: Final = "_kafscale/staged"


class Commit(msgspec.Struct, frozen=True):
    """All that is to be known of a table, and the files that are new; an object in JSON."""

    commit_id: str
    """What its writer knows it by."""
    schema: str
    """Of the rows, as Arrow serializes it, in base64."""
    granularity: TimeGranularity | None = msgspec.field(name="unit")
    progress: dict[str, Progress]
    """By topic."""
    files: tuple[str, ...] = ()
    """By their final names, below the root."""


class ParquetTable:
    """A directory, filled from one topic."""

    def __init__(
        self,
        filesystem: TableFilesystem,
        topic: str,
        checkpoint: Callable[[str], None] = lambda _step: None,
    ) -> None:
        """`checkpoint` is called between all steps, with their names: tests stop there."""
        self._filesystem = filesystem
        self._topic = topic
        self._checkpoint = checkpoint
        self._known = -1
        self._finished = -1

    @property
    def name(self) -> str:
        return self._filesystem.root

    # --- looking ------------------------------------------------------------------------------

    def load(self) -> Version | None:
        found = self._newest()
        if found is None:
            return None
        number, commit = found
        self._finish(number, commit)
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(commit.schema)))
        progress = commit.progress.get(self._topic, Progress())
        return Version(progress, schema, commit.granularity, (number, commit))

    def files(self, version: Version) -> "ParquetFiles":
        return ParquetFiles(version.schema, version.granularity, self._filesystem)

    def data_files(self, version: Version) -> list[DataFile]:  # noqa: ARG002 - there is no way.
        raise InvalidRequestError(
            f"{self.name}: the files of plain Parquet cannot be replaced; use Iceberg or Delta"
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

    # --- changing -----------------------------------------------------------------------------

    def create(self, schema: pa.Schema, granularity: TimeGranularity | None) -> Version:
        with suppress(CommitConflictError):  # Somebody else was faster.
            self._put(0, Commit(uuid.uuid4().hex, _encoded(schema), granularity, {}))
        version = self.load()
        assert version is not None
        return version

    def evolve(self, version: Version, schema: pa.Schema) -> Version:
        number, commit = version.token
        changed = msgspec.structs.replace(
            commit, commit_id=uuid.uuid4().hex, schema=_encoded(schema), files=()
        )
        self._put(number + 1, changed)
        now = self.load()
        assert now is not None
        return now

    def commit(self, version: Version, change: Change) -> None:
        assert not change.removed, "rows are only ever added"
        number, commit = version.token
        files = tuple(file.details for file in change.added)
        progress = dict(commit.progress)
        if change.progress is not None:
            progress[self._topic] = change.progress
        made = Commit(uuid.uuid4().hex, commit.schema, commit.granularity, progress, files)
        self._put(number + 1, made)
        self._checkpoint("commit written")
        self._finish(number + 1, made)

    def expire(self, version: Version, older_than_ms: int) -> int:  # noqa: ARG002
        """Forget nothing: what counts are the names, and each is needed."""
        return 0

    def orphans(self, version: Version, older_than_ms: int) -> list[DataFile]:  # noqa: ARG002
        """What was staged long ago: the files of all commits have been moved."""
        filesystem = self._filesystem
        return [
            DataFile(item.key, 0, item.size_bytes)
            for item in filesystem.list(filesystem.join(STAGED))
            if item.modified_ms < older_than_ms
        ]

    def _put(self, number: int, commit: Commit) -> None:
        store, prefix = self._filesystem.objects()
        with closing(store):
            key = prefix + _key(number)
            try:
                store.put(key, [msgspec.json.encode(commit)])
            except ObjectExistsError as error:
                # A PUT whose answer was lost may meet itself when it is tried again.
                if not _is_there(store, key, commit):
                    raise CommitConflictError(
                        f"{self.name}: commit {number} is another's"
                    ) from error
            except StoreUnavailableError:
                # It may still happen later, so the files of the commit have to stay.
                if not _is_there(store, key, commit):
                    raise

    def _finish(self, number: int, commit: Commit) -> None:
        """Move the files of a commit to where readers look for them, unless that is done."""
        if number == self._finished:
            return
        for name in commit.files:
            staged = self._filesystem.join(STAGED, name.rpartition("/")[2])
            final = self._filesystem.join(name)
            if self._filesystem.exists(staged):
                try:
                    self._filesystem.move(staged, final)
                except OSError:
                    # Whoever looks at the same time may have been faster.
                    if self._filesystem.exists(staged):
                        raise
            if not self._filesystem.exists(final):
                raise DamagedObjectError(final, "it was committed and is not there")
            self._checkpoint("file moved")
        self._finished = number


class ParquetFiles(StoredFiles):
    """How files are written; nothing is ever read back but to be looked at."""

    def write(
        self, name: str, data: pa.Buffer, metadata: pq.FileMetaData, time_partition: int | None
    ) -> DataFile:
        directory = partition_directory(time_partition, self.granularity)
        final = f"{directory}/{name}" if directory else name
        path = self.filesystem.join(STAGED, name)
        self.filesystem.write(path, data)
        return DataFile(path, metadata.num_rows, data.size, time_partition, final)


def _key(number: int) -> str:
    return f"{COMMITS}{number:020d}.json"


def _number(key: str) -> int:
    name = key.rpartition("/")[2].removesuffix(".json")
    return int(name) if name.isdigit() else -1


def _encoded(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()


def _decode(key: str, data: bytes) -> Commit:
    try:
        return msgspec.json.decode(data, type=Commit)
    except msgspec.DecodeError as error:
        raise DamagedObjectError(key, str(error)) from None


def _is_there(store: BlockingObjectStore, key: str, commit: Commit) -> bool:
    try:
        return _decode(key, bytes(store.get(key))).commit_id == commit.commit_id
    except ObjectNotFoundError:
        return False
