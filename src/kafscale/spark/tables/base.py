"""The interface of lake tables, the same for every format.

Invariants of every format, checked by one shared test module:

* The progress of a table (the next offset of each partition of its topic) is stored in the table
  and changes in the same commit as the rows. It survives the expiry of old versions.
* A commit is based on the version that was loaded. If another writer has committed since, the
  commit fails with `CommitConflictError` and changes nothing; to retry, load the table again.
* Readers do not see a file that no commit references. Files are never modified.

The jobs decide which rows are written and from which offsets they continue.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kafscale.errors import OperatingError
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.time_partitions import TimeGranularity

COMMIT_ATTEMPTS_MAX: Final = 20
"""How often in a row others may be faster, before a commit is given up."""

PREFIX: Final = "kafscale-"
"""What the names of all files begin with that are written here: no other is ever cleaned up."""


class CommitConflictError(OperatingError):
    """Somebody else has changed the table meanwhile."""


class Execute(Protocol):
    """Calls a function for every item, somewhere; results are in the order of items."""

    def __call__(
        self, items: Sequence[Any], function: Callable[[Any], Any], *, description: str
    ) -> list[Any]: ...


class Progress(msgspec.Struct, frozen=True):
    """How far a table has come with its topic."""

    offsets: Mapping[int, int] = {}
    """The next offset by partition."""
    topic_mark: int | None = None
    """What tells the topic from another that had the same name; None if nobody knows."""


class DataFile(msgspec.Struct, frozen=True):
    """A file with rows; it is pickled, and has to be small."""

    path: str
    record_count: int
    size_bytes: int
    time_partition: int | None = None
    """The partition that all rows are in, by the table's granularity."""
    details: Any = None
    """Whatever the format has to know besides, such as bounds of columns."""


class Version(msgspec.Struct, frozen=True):
    """A table as it was seen."""

    progress: Progress
    schema: pa.Schema
    """Of the rows, as they are handed to files."""
    granularity: TimeGranularity | None
    token: Any
    """What the format knows it by."""


class Change(msgspec.Struct, frozen=True):
    """What one commit does."""

    progress: Progress | None = None
    """How far the table has come then; None leaves that as it is."""
    added: Sequence[DataFile] = ()
    removed: Sequence[DataFile] = ()
    """These have to be of the version that is committed upon."""
    is_new_data: bool = True
    """Whether rows come, go or change; else they are only put into other files."""


class Files(Protocol):
    """How the files of a table are written and read; it travels to the tasks."""

    @property
    def schema(self) -> pa.Schema:
        """Of what is in a file, exactly."""

    @property
    def granularity(self) -> TimeGranularity | None: ...

    @property
    def filesystem(self) -> TableFilesystem:
        """Of the table's data."""

    def write(
        self, name: str, data: pa.Buffer, metadata: pq.FileMetaData, time_partition: int | None
    ) -> DataFile:
        """Store a whole file, whose name nobody else uses."""

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file, as the table sees them now; with some columns, or with all."""

    def bounds(self, file: DataFile, column: str) -> tuple[Any, Any] | None:
        """Between which values a column lies, both included; None if that is not known."""

    def discard(self, files: Sequence[DataFile]) -> None:
        """Remove files that no commit names; those that are not there are gone already."""


class Table(Protocol):
    """A table of the lake; the driver has it."""

    @property
    def name(self) -> str: ...

    def load(self) -> Version | None:
        """The table as it is now; None if there is none."""

    def create(self, schema: pa.Schema, granularity: TimeGranularity | None) -> Version:
        """Make it, unless somebody else has made it meanwhile; then that is the one."""

    def evolve(self, version: Version, schema: pa.Schema) -> Version:
        """Give it the columns of a schema that `evolution.merge` has made of its own."""

    def files(self, version: Version) -> Files: ...

    def data_files(self, version: Version) -> list[DataFile]:
        """The files that a version consists of."""

    def commit(self, version: Version, change: Change) -> None:
        """Do all of the change or nothing, on exactly this version."""

    def expire(self, version: Version, older_than_ms: int) -> int:
        """Forget versions from before a time; how many there were."""

    def orphans(self, version: Version, older_than_ms: int) -> list[DataFile]:
        """Files of ours that are older than this and that no version names."""
