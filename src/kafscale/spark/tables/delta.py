"""Delta tables, without jars: tasks write Parquet, the driver commits to the log.

Progress is stored in Delta's application transactions, which are part of a commit and survive the
clean-up of the log: the version of `kafscale/TOPIC/PARTITION` is the next offset, that of
`kafscale/TOPIC/partitions` the number of partitions, and that of `kafscale/TOPIC/mark` identifies
the topic. Invariants beyond those of `base`:

* A commit is attempted once, for exactly the next version of the log. If it fails, or its response
  is lost, the history shows whether it exists: each commit has a unique ID.
* New columns are committed before the rows that have them. A column keeps its type: Delta cannot
  widen it.
"""

import uuid
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable as LoadedTable
from deltalake import Schema as DeltaSchema
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from kafscale.aio.clock import clock
from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.spark.tables import time_partitions
from kafscale.spark.tables.base import Change, CommitConflictError, DataFile, Progress, Version
from kafscale.spark.tables.data_files import STAGING_DIRECTORY, NamedColumnFiles, old_files
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.time_partitions import TimeGranularity, partition_directory

COMMIT_ID: Final = "kafscale.commit"
HISTORY_MAX: Final = 100
"""The number of commits that are searched for ours when its response is lost."""

_OPTIONS: Final = {
    "s3.endpoint": "AWS_ENDPOINT_URL",
    "s3.region": "AWS_REGION",
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
}

TEXT_LENGTH_MAX: Final = 32
"""Longer texts have no bounds: truncated ones would have to be rounded."""

_MILLISECOND: Final = timedelta(milliseconds=1)


class DeltaFiles(NamedColumnFiles):
    """The files of one version of a table: Parquet without the partition column."""

    def write(
        self, name: str, data: pa.Buffer, metadata: pq.FileMetaData, time_partition: int | None
    ) -> DataFile:
        directory = partition_directory(time_partition, self.granularity)
        path = self.filesystem.join(directory, name)
        self.filesystem.write(path, data)
        details = {"statistics": statistics(metadata), "modified_ms": clock()}
        return DataFile(path, metadata.num_rows, data.size, time_partition, details)


class DeltaTable:
    """A Delta table, filled from one topic."""

    def __init__(self, filesystem: TableFilesystem, topic: str) -> None:
        self._filesystem = filesystem
        self._topic = topic

    @property
    def name(self) -> str:
        return self._filesystem.root

    # --- reading ------------------------------------------------------------------------------

    def load(self) -> Version | None:
        try:
            return self._version(self._open())
        except TableNotFoundError:
            return None

    def files(self, version: Version) -> DeltaFiles:
        return DeltaFiles(version.schema, version.granularity, self._filesystem)

    def data_files(self, version: Version) -> list[DataFile]:
        files = []
        for row in pa.table(version.token.loaded.get_add_actions()).to_pylist():
            time_partition = None
            if version.granularity is not None:
                time_partition = time_partitions.parse_partition(
                    str(row["partition"][version.granularity.column]), version.granularity
                )
            path = self._filesystem.join(row["path"])
            files.append(DataFile(path, row["num_records"], row["size_bytes"], time_partition))
        return files

    def _open(self) -> LoadedTable:
        return LoadedTable(self._filesystem.root, storage_options=self._storage_options())

    def _storage_options(self) -> dict[str, str]:
        properties = self._filesystem.properties
        options = {name: properties[key] for key, name in _OPTIONS.items() if key in properties}
        if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
            options["AWS_ALLOW_HTTP"] = "true"
        return options

    def _version(self, loaded: LoadedTable) -> Version:
        columns = pa.schema(loaded.schema().to_arrow())
        granularity = self._granularity(loaded.metadata().partition_columns)
        schema = pa.schema(
            [each for each in columns if granularity is None or each.name != granularity.column]
        )
        count = loaded.transaction_version(self._application_id("partitions")) or 0
        offsets = {}
        for partition in range(count):
            offset = loaded.transaction_version(self._application_id(partition))
            if offset is not None:
                offsets[partition] = offset
        mark = loaded.transaction_version(self._application_id("mark"))
        return Version(
            Progress(offsets, mark), schema, granularity, _Loaded(loaded, loaded.version())
        )

    def _granularity(self, columns: list[str]) -> TimeGranularity | None:
        if not columns:
            return None
        for granularity in TimeGranularity:
            if columns == [granularity.column]:
                return granularity
        raise InvalidRequestError(
            f"{self.name} is partitioned by {', '.join(columns)}: only the columns kafscale_hour,"
            " kafscale_day and kafscale_month are supported"
        )

    # --- writing ------------------------------------------------------------------------------

    def create(self, schema: pa.Schema, granularity: TimeGranularity | None) -> Version:
        columns = list(schema)
        if granularity is not None:
            columns.append(pa.field(granularity.column, granularity.column_type))
        with suppress(CommitFailedError):  # Another writer was first.
            LoadedTable.create(
                self._filesystem.root,
                schema=DeltaSchema.from_arrow(pa.schema(columns)),
                mode="ignore",
                partition_by=[granularity.column] if granularity else None,
                storage_options=self._storage_options(),
            )
        return self._version(self._open())

    def evolve(self, version: Version, schema: pa.Schema) -> Version:
        try:
            # Writing an empty table also adds nested fields.
            write_deltalake(
                version.token.loaded, schema.empty_table(), mode="append", schema_mode="merge"
            )
        except CommitFailedError as error:
            raise CommitConflictError(f"{self.name}: {error}") from error
        except DeltaError as error:
            raise InvalidRequestError(f"{self.name}: {error}") from error
        evolved = self._version(self._open())
        for column in schema:
            type_ = evolved.schema.field(column.name).type
            if type_ != column.type:
                raise InvalidRequestError(
                    f"{self.name}: column {column.name} is {type_}; Delta cannot change it to"
                    f" {column.type}"
                )
        return evolved

    def commit(self, version: Version, change: Change) -> None:
        loaded, seen = version.token
        if loaded.version() != seen:
            raise CommitConflictError(f"{self.name}: version {seen} is no longer the newest")
        commit_id = uuid.uuid4().hex
        partition_by = list(loaded.metadata().partition_columns)
        properties = CommitProperties(
            custom_metadata={COMMIT_ID: commit_id},
            max_commit_retries=0,
            app_transactions=self._transactions(change.progress or Progress()),
        )
        actions = [
            *(self._add(file, version.granularity, change) for file in change.added),
            *(self._remove(file, version.granularity, change) for file in change.removed),
        ]
        try:
            loaded.create_write_transaction(
                actions, "append", loaded.schema(), partition_by, commit_properties=properties
            )
        except (DeltaError, OSError) as error:
            if self._has_commit(commit_id):
                return
            if isinstance(error, CommitFailedError):
                raise CommitConflictError(f"{self.name}: {error}") from error
            raise OperatingError(f"{self.name}: the commit failed: {error}") from error

    def _has_commit(self, commit_id: str) -> bool:
        history = self._open().history(HISTORY_MAX)
        return any(commit.get(COMMIT_ID) == commit_id for commit in history)

    def _transactions(self, progress: Progress) -> list[Transaction]:
        versions: dict[str | int, int] = {}
        versions.update(progress.offsets.items())
        if progress.offsets:
            versions["partitions"] = max(progress.offsets) + 1
        if progress.topic_mark is not None:
            versions["mark"] = progress.topic_mark
        return [Transaction(self._application_id(of), number) for of, number in versions.items()]

    def _application_id(self, of: str | int) -> str:
        return f"kafscale/{self._topic}/{of}"

    def _add(
        self, file: DataFile, granularity: TimeGranularity | None, change: Change
    ) -> AddAction:
        return AddAction(
            path=self._relative_path(file),
            size=file.size_bytes,
            partition_values=_partition(file, granularity),
            modification_time=file.details["modified_ms"],
            data_change=change.is_new_data,
            stats=file.details["statistics"],
        )

    def _remove(
        self, file: DataFile, granularity: TimeGranularity | None, change: Change
    ) -> RemoveAction:
        return RemoveAction(
            path=self._relative_path(file),
            data_change=change.is_new_data,
            deletion_timestamp=clock(),
            size=file.size_bytes,
            partition_values=_partition(file, granularity),
        )

    def _relative_path(self, file: DataFile) -> str:
        return file.path.removeprefix(f"{self._filesystem.root}/")

    # --- maintenance --------------------------------------------------------------------------

    def expire(self, version: Version, older_than_ms: int) -> int:
        """Delete files that only older versions reference, which limits time travel."""
        age_hours = max(clock() - older_than_ms, 0) // 3_600_000
        loaded = version.token.loaded
        loaded.create_checkpoint()
        return len(
            loaded.vacuum(age_hours, dry_run=False, enforce_retention_duration=False, full=True)
        )

    def orphans(self, version: Version, older_than_ms: int) -> list[DataFile]:  # noqa: ARG002
        """Return old staged files; `expire` handles all other files."""
        return old_files(self._filesystem, STAGING_DIRECTORY, older_than_ms)


def _partition(file: DataFile, granularity: TimeGranularity | None) -> dict[str, str | None]:
    if granularity is None or file.time_partition is None:
        return {}
    return {granularity.column: time_partitions.format_partition(file.time_partition, granularity)}


class _Loaded(NamedTuple):
    """A loaded table, and its version at that time: a commit changes it."""

    loaded: LoadedTable
    version: int


def statistics(metadata: pq.FileMetaData) -> str:
    """Return Delta's column statistics as JSON: null counts, minimum and maximum."""
    nulls: dict[str, int] = {}
    minimum: dict[str, Any] = {}
    maximum: dict[str, Any] = {}
    for column in range(metadata.num_columns):
        if "." in metadata.schema.column(column).path:
            continue
        name = metadata.schema.column(column).path
        groups = [
            metadata.row_group(group).column(column).statistics
            for group in range(metadata.num_row_groups)
        ]
        if not groups or any(each is None or not each.has_null_count for each in groups):
            continue
        nulls[name] = sum(each.null_count for each in groups)
        bounded = [each for each in groups if each.has_min_max]
        # A row group of nulls has no bounds, and needs none.
        if not bounded or any(not each.has_min_max and each.num_values for each in groups):
            continue
        low = _bound(min(each.min for each in bounded), is_upper=False)
        high = _bound(max(each.max for each in bounded), is_upper=True)
        if low is not None and high is not None:
            minimum[name], maximum[name] = low, high
    document = {
        "numRecords": metadata.num_rows,
        "minValues": minimum,
        "maxValues": maximum,
        "nullCount": nulls,
    }
    return msgspec.json.encode(document).decode()


def _bound(value: Any, *, is_upper: bool) -> Any:
    """Return a bound in Delta's JSON; None if the type has no bounds."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return value if len(value) <= TEXT_LENGTH_MAX else None
    if isinstance(value, datetime):
        if is_upper and value.microsecond % 1000:  # Delta stores milliseconds.
            value += _MILLISECOND
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    return value.isoformat() if isinstance(value, date) else None
