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
"""The number of attempts of a commit that conflicts with other writers."""

FILE_PREFIX: Final = "kafscale-"
"""The prefix of all files that are written here; no other file is ever cleaned up."""


class CommitConflictError(OperatingError):
    """Another writer has changed the table since it was loaded."""


class Execute(Protocol):
    """Calls a function for every item, maybe in parallel; results are in the order of items."""

    def __call__(
        self, items: Sequence[Any], function: Callable[[Any], Any], *, description: str
    ) -> list[Any]: ...


class Progress(msgspec.Struct, frozen=True):
    """The progress of a table with its topic."""

    offsets: Mapping[int, int] = {}
    """The next offset by partition."""
    topic_mark: int | None = None
    """Identifies the topic among those that had its name; None if unknown."""


class DataFile(msgspec.Struct, frozen=True):
    """A file of a table; it is pickled and must be small."""

    path: str
    record_count: int
    size_bytes: int
    time_partition: int | None = None
    """The time partition of all rows, in the granularity of the table."""
    details: Any = None
    """What the format needs besides, such as column statistics."""


class Version(msgspec.Struct, frozen=True):
    """A loaded version of a table."""

    progress: Progress
    schema: pa.Schema
    """The schema of the rows."""
    granularity: TimeGranularity | None
    token: Any
    """The version in terms of the format."""


class Change(msgspec.Struct, frozen=True):
    """The content of one commit."""

    progress: Progress | None = None
    """The new progress; None leaves it unchanged."""
    added: Sequence[DataFile] = ()
    removed: Sequence[DataFile] = ()
    """Files of the version on which the commit is based."""
    is_new_data: bool = True
    """Whether rows change; if not, they are only moved to other files."""


class Files(Protocol):
    """Writes and reads the files of a table; it is sent to the tasks."""

    @property
    def schema(self) -> pa.Schema:
        """The exact schema of a file."""

    @property
    def granularity(self) -> TimeGranularity | None: ...

    @property
    def filesystem(self) -> TableFilesystem:
        """The filesystem of the data of the table."""

    def write(
        self, name: str, data: pa.Buffer, metadata: pq.FileMetaData, time_partition: int | None
    ) -> DataFile:
        """Store a file under a unique name."""

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows of a file in the schema of the table, with some or all columns."""

    def bounds(self, file: DataFile, column: str) -> tuple[Any, Any] | None:
        """Return the minimum and maximum of a column; None if unknown."""

    def discard(self, files: Sequence[DataFile]) -> None:
        """Delete files that no commit references; missing files are ignored."""


class Table(Protocol):
    """A lake table, on the driver."""

    @property
    def name(self) -> str: ...

    def load(self) -> Version | None:
        """Load the current version; None if the table does not exist."""

    def create(self, schema: pa.Schema, granularity: TimeGranularity | None) -> Version:
        """Create the table; if another writer was first, load theirs."""

    def evolve(self, version: Version, schema: pa.Schema) -> Version:
        """Change the columns to those of a schema that `evolution.extend` has returned."""

    def files(self, version: Version) -> Files: ...

    def data_files(self, version: Version) -> list[DataFile]:
        """Return the files of a version."""

    def commit(self, version: Version, change: Change) -> None:
        """Apply the change atomically, based on exactly this version."""

    def expire(self, version: Version, older_than_ms: int) -> int:
        """Expire versions older than a time; return their number."""

    def orphans(self, version: Version, older_than_ms: int) -> list[DataFile]:
        """Return our files that are older than a time and that no version references."""
