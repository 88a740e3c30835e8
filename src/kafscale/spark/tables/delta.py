"""Tables of Delta, without jars: tasks write Parquet, the driver commits to the log.

How far a table has come is in Delta's own means for it, application transactions, which are part of
a commit and outlive the log's clean-up: `kafscale/TOPIC/PARTITION` has the next offset for its
version, `kafscale/TOPIC/partitions` says how many there are, and `kafscale/TOPIC/mark` which topic
it is. The laws beyond those of `base`:

* There is one attempt, for exactly the next version of the log. Where it fails, or its answer is
  lost, the history tells whether the commit is there: each carries a name of its own.
* New columns are a commit ahead of the rows that have them. A column keeps its type: Delta cannot
  widen one.
"""

import time
import uuid
from contextlib import suppress
from typing import Final, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable as LoadedTable
from deltalake import Schema as DeltaSchema
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.spark.tables import time_partitions
from kafscale.spark.tables.base import Change, CommitConflictError, DataFile, Progress, Version
from kafscale.spark.tables.delta_files import DeltaFiles
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.staging import STAGED
from kafscale.spark.tables.time_partitions import TimeGranularity

COMMIT: Final = "kafscale.commit"
HISTORY_MAX: Final = 100
"""How many commits others may have made while the answer to ours was on its way."""

_OPTIONS: Final = {
    "s3.endpoint": "AWS_ENDPOINT_URL",
    "s3.region": "AWS_REGION",
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
}


class DeltaTable:
    """A table in a directory or a bucket, filled from one topic."""

    def __init__(self, filesystem: TableFilesystem, topic: str) -> None:
        self._filesystem = filesystem
        self._topic = topic

    @property
    def name(self) -> str:
        return self._filesystem.root

    # --- looking ------------------------------------------------------------------------------

    def load(self) -> Version | None:
        try:
            return self._version(self._open())
        except TableNotFoundError:
            return None

    def files(self, version: Version) -> DeltaFiles:
        return DeltaFiles(version.schema, version.granularity, self._filesystem)

    def data_files(self, version: Version) -> list[DataFile]:
        found = []
        for row in pa.table(version.token.loaded.get_add_actions()).to_pylist():
            time_partition = None
            if version.granularity is not None:
                time_partition = time_partitions.parse_partition(
                    str(row["partition"][version.granularity.column]), version.granularity
                )
            path = self._filesystem.join(row["path"])
            found.append(DataFile(path, row["num_records"], row["size_bytes"], time_partition))
        return found

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
            [one for one in columns if granularity is None or one.name != granularity.column]
        )
        count = loaded.transaction_version(self._application("partitions")) or 0
        offsets = {}
        for partition in range(count):
            offset = loaded.transaction_version(self._application(partition))
            if offset is not None:
                offsets[partition] = offset
        mark = loaded.transaction_version(self._application("mark"))
        return Version(
            Progress(offsets, mark), schema, granularity, _Seen(loaded, loaded.version())
        )

    def _granularity(self, columns: list[str]) -> TimeGranularity | None:
        if not columns:
            return None
        for granularity in TimeGranularity:
            if columns == [granularity.column]:
                return granularity
        raise InvalidRequestError(
            f"{self.name} is partitioned by {', '.join(columns)}: only hours, days or months can be"
            " written, in columns of ours"
        )

    # --- changing -----------------------------------------------------------------------------

    def create(self, schema: pa.Schema, granularity: TimeGranularity | None) -> Version:
        columns = list(schema)
        if granularity is not None:
            columns.append(pa.field(granularity.column, granularity.column_type))
        with suppress(CommitFailedError):  # Somebody else was faster.
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
            # Writing nothing is how fields are added that lie within others.
            write_deltalake(
                version.token.loaded, schema.empty_table(), mode="append", schema_mode="merge"
            )
        except CommitFailedError as error:
            raise CommitConflictError(f"{self.name}: {error}") from error
        except DeltaError as error:
            raise InvalidRequestError(f"{self.name}: {error}") from error
        evolved = self._version(self._open())
        for column in schema:
            is_type = evolved.schema.field(column.name).type
            if is_type != column.type:
                raise InvalidRequestError(
                    f"{self.name}: column {column.name} is {is_type}; Delta cannot make it"
                    f" {column.type}"
                )
        return evolved

    def commit(self, version: Version, change: Change) -> None:
        loaded, seen = version.token
        if loaded.version() != seen:
            raise CommitConflictError(f"{self.name}: version {seen} has been committed upon")
        commit_id = uuid.uuid4().hex
        partition_by = list(loaded.metadata().partition_columns)
        properties = CommitProperties(
            custom_metadata={COMMIT: commit_id},
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
            if self._has(commit_id):
                return
            if isinstance(error, CommitFailedError):
                raise CommitConflictError(f"{self.name}: {error}") from error
            raise OperatingError(f"{self.name}: the commit failed: {error}") from error

    def _has(self, commit_id: str) -> bool:
        history = self._open().history(HISTORY_MAX)
        return any(commit.get(COMMIT) == commit_id for commit in history)

    def _transactions(self, progress: Progress) -> list[Transaction]:
        versions: dict[str | int, int] = {}
        versions.update(progress.offsets.items())
        if progress.offsets:
            versions["partitions"] = max(progress.offsets) + 1
        if progress.topic_mark is not None:
            versions["mark"] = progress.topic_mark
        return [Transaction(self._application(of), number) for of, number in versions.items()]

    def _application(self, of: str | int) -> str:
        return f"kafscale/{self._topic}/{of}"

    def _add(
        self, file: DataFile, granularity: TimeGranularity | None, change: Change
    ) -> AddAction:
        return AddAction(
            path=self._inside(file),
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
            path=self._inside(file),
            data_change=change.is_new_data,
            deletion_timestamp=time.time_ns() // 1_000_000,
            size=file.size_bytes,
            partition_values=_partition(file, granularity),
        )

    def _inside(self, file: DataFile) -> str:
        return file.path.removeprefix(f"{self._filesystem.root}/")

    # --- upkeep -------------------------------------------------------------------------------

    def expire(self, version: Version, older_than_ms: int) -> int:
        """Remove what only older versions name, and so how far back one can look."""
        age_hours = max(time.time_ns() // 1_000_000 - older_than_ms, 0) // 3_600_000
        loaded = version.token.loaded
        loaded.create_checkpoint()
        return len(
            loaded.vacuum(age_hours, dry_run=False, enforce_retention_duration=False, full=True)
        )

    def orphans(self, version: Version, older_than_ms: int) -> list[DataFile]:  # noqa: ARG002
        """Only what was staged: of all else, Delta keeps account itself, for `expire`."""
        filesystem = self._filesystem
        return [
            DataFile(item.key, 0, item.size_bytes)
            for item in filesystem.list(filesystem.join(STAGED))
            if item.modified_ms < older_than_ms
        ]


def _partition(file: DataFile, granularity: TimeGranularity | None) -> dict[str, str | None]:
    if granularity is None or file.time_partition is None:
        return {}
    return {granularity.column: time_partitions.format_partition(file.time_partition, granularity)}


class _Seen(NamedTuple):
    """A loaded table, and the version that it was in: committing moves it on."""

    loaded: LoadedTable
    version: int
