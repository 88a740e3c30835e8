"""Iceberg tables with pyiceberg: tasks write Parquet, the driver commits.

Progress is the table property `kafscale.offsets.TOPIC`, set in the transaction that adds the files:
properties survive the expiry of snapshots. Invariants beyond those of `base`:

* Every commit creates a snapshot, even without files, and requires that the newest snapshot is the
  loaded one. This excludes concurrent writers: a property alone could be set by both.
* A commit is attempted once. pyiceberg would retry it on top of other commits, with its old
  offsets, which would duplicate rows; so its retries are disabled.
* If the response to a commit is lost, the table shows whether the snapshot exists.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import Table as LoadedTable
from pyiceberg.transforms import DayTransform, HourTransform, MonthTransform, Transform
from pyiceberg.typedef import Record

from kafscale.errors import InvalidRequestError, OperatingError
from kafscale.spark.tables.base import (
    FILE_PREFIX,
    Change,
    CommitConflictError,
    DataFile,
    Progress,
    Version,
)
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.iceberg_files import IcebergFiles, arrow_schema
from kafscale.spark.tables.time_partitions import TimeGranularity

OFFSETS_PROPERTY: Final = "kafscale.offsets."
MARK_PROPERTY: Final = "kafscale.topic-mark."

DEFAULTS: Final = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    # Keep the metadata from growing with every commit.
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
}
"""The properties of a new table."""

_NO_RETRIES: Final = {"commit.retry.num-retries": "0"}
_TRANSFORMS: Final[dict[TimeGranularity, Transform[Any, int]]] = {
    TimeGranularity.HOUR: HourTransform(),
    TimeGranularity.DAY: DayTransform(),
    TimeGranularity.MONTH: MonthTransform(),
}


class IcebergTable:
    """A table in a catalog, filled from one topic."""

    def __init__(
        self, catalog: Catalog, identifier: Sequence[str], topic: str, time_column: str
    ) -> None:
        """Rows are partitioned by `time_column`, if at all."""
        self._catalog = catalog
        self._identifier = tuple(identifier)
        self._topic = topic
        self._time_column = time_column

    @property
    def name(self) -> str:
        return ".".join(self._identifier)

    # --- reading ------------------------------------------------------------------------------

    def load(self) -> Version | None:
        try:
            return self._version(self._catalog.load_table(self._identifier))
        except NoSuchTableError:
            return None

    def files(self, version: Version) -> IcebergFiles:
        return IcebergFiles.of(version.token, version.granularity)

    def data_files(self, version: Version) -> list[DataFile]:
        files = []
        for task in version.token.scan().plan_files():
            file = task.file
            files.append(
                DataFile(
                    file.file_path,
                    file.record_count,
                    file.file_size_in_bytes,
                    file.partition[0] if version.granularity else None,
                    task,
                )
            )
        return files

    def _version(self, loaded: LoadedTable) -> Version:
        properties = loaded.properties
        offsets = properties.get(OFFSETS_PROPERTY + self._topic)
        mark = properties.get(MARK_PROPERTY + self._topic)
        progress = Progress(
            msgspec.json.decode(offsets, type=dict[int, int]) if offsets else {},
            int(mark) if mark else None,
        )
        schema = arrow_schema(loaded.schema(), ids=False)
        return Version(progress, schema, self._granularity(loaded), loaded)

    def _granularity(self, loaded: LoadedTable) -> TimeGranularity | None:
        """Return the granularity; raise if another engine partitioned the table otherwise."""
        fields = loaded.spec().fields
        if not fields:
            return None
        granularities = {
            str(transform): granularity for granularity, transform in _TRANSFORMS.items()
        }
        source = loaded.schema().find_column_name(fields[0].source_id)
        if (
            len(fields) == 1
            and source == self._time_column
            and str(fields[0].transform) in granularities
        ):
            return granularities[str(fields[0].transform)]
        raise InvalidRequestError(
            f"{self.name} is partitioned by {loaded.spec()}: only hours, days or months of "
            f"{self._time_column} are supported"
        )

    # --- writing ------------------------------------------------------------------------------

    def create(self, schema: pa.Schema, granularity: TimeGranularity | None) -> Version:
        with suppress(NamespaceAlreadyExistsError):
            self._catalog.create_namespace(self._identifier[:-1])
        with suppress(TableAlreadyExistsError, CommitFailedException):
            creation = self._catalog.create_table_transaction(
                self._identifier, schema, properties=DEFAULTS
            )
            if granularity is not None:
                with creation.update_spec() as spec:
                    spec.add_field(self._time_column, _TRANSFORMS[granularity], granularity.column)
            creation.commit_transaction()
        return self._version(self._catalog.load_table(self._identifier))

    def evolve(self, version: Version, schema: pa.Schema) -> Version:
        try:
            with version.token.update_schema() as update:
                update.union_by_name(schema)
        except CommitFailedException as error:
            raise CommitConflictError(f"{self.name}: {error}") from error
        return self._version(self._catalog.load_table(self._identifier))

    def commit(self, version: Version, change: Change) -> None:
        loaded = _without_retries(version.token)
        transaction = loaded.transaction()
        properties = self._properties(change.progress)
        update = transaction.update_snapshot(snapshot_properties=properties)
        producer = update.overwrite() if change.removed else update.merge_append()
        for file in change.added:
            producer.append_data_file(_iceberg_file(loaded, file))
        for file in change.removed:
            producer.delete_data_file(file.details.file)
        try:
            producer.commit()
            if properties:
                transaction.set_properties(properties)
            transaction.commit_transaction()
        except ValidationException as error:
            raise CommitConflictError(f"{self.name}: {error}") from error
        except Exception as error:  # Errors of catalogs have no common base class.
            if self._has_snapshot(producer.snapshot_id):
                return
            if isinstance(error, CommitFailedException):
                raise CommitConflictError(f"{self.name}: {error}") from error
            raise OperatingError(f"{self.name}: the commit failed: {error}") from error

    def _has_snapshot(self, snapshot_id: int) -> bool:
        now = self._catalog.load_table(self._identifier)
        return now.snapshot_by_id(snapshot_id) is not None

    def _properties(self, progress: Progress | None) -> dict[str, str]:
        if progress is None:
            return {}
        properties = {OFFSETS_PROPERTY + self._topic: _offsets_json(progress)}
        if progress.topic_mark is not None:
            properties[MARK_PROPERTY + self._topic] = str(progress.topic_mark)
        return properties

    # --- maintenance --------------------------------------------------------------------------

    def expire(self, version: Version, older_than_ms: int) -> int:
        loaded = version.token
        count = len(loaded.snapshots())
        limit = datetime.fromtimestamp(older_than_ms / 1000, UTC)
        try:
            loaded.maintenance.expire_snapshots().older_than(limit).commit()
        except CommitFailedException as error:
            raise CommitConflictError(f"{self.name}: {error}") from error
        now = self._catalog.load_table(self._identifier)
        return count - len(now.snapshots())

    def orphans(self, version: Version, older_than_ms: int) -> list[DataFile]:
        """Return our unreferenced data files, and manifests of expired snapshots."""
        loaded = version.token
        referenced = set()
        for snapshot in loaded.snapshots():
            referenced.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(loaded.io):
                referenced.add(manifest.manifest_path)
                entries = manifest.fetch_manifest_entry(loaded.io)
                referenced.update(entry.data_file.file_path for entry in entries)
        data = self.files(version).filesystem
        manifests = TableFilesystem(f"{loaded.location()}/metadata", data.properties)
        return [
            DataFile(item.key, 0, item.size_bytes)
            for filesystem, prefix, suffix in (
                (data, FILE_PREFIX, ".parquet"),
                (manifests, "", ".avro"),
            )
            for item in filesystem.list(filesystem.root)
            if item.modified_ms < older_than_ms and item.key not in referenced
            if (name := item.key.rpartition("/")[2]).startswith(prefix) and name.endswith(suffix)
        ]


def _without_retries(loaded: LoadedTable) -> LoadedTable:
    """Return the table with the retries of pyiceberg disabled."""
    properties = {**loaded.metadata.properties, **_NO_RETRIES}
    metadata = loaded.metadata.model_copy(update={"properties": properties})
    return LoadedTable(
        loaded.name(), metadata, loaded.metadata_location, loaded.io, loaded.catalog, loaded.config
    )


def _iceberg_file(loaded: LoadedTable, file: DataFile) -> IcebergFile:
    return IcebergFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.path,
        file_format=FileFormat.PARQUET,
        partition=Record() if file.time_partition is None else Record(file.time_partition),
        file_size_in_bytes=file.size_bytes,
        sort_order_id=None,
        spec_id=loaded.spec().spec_id,
        equality_ids=None,
        key_metadata=None,
        **file.details,
    )


def _offsets_json(progress: Progress) -> str:
    offsets = {str(partition): offset for partition, offset in sorted(progress.offsets.items())}
    return msgspec.json.encode(offsets).decode()
