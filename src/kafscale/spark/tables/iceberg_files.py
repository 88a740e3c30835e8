"""The files of an Iceberg table: Parquet whose columns have the field IDs of the table.

The task that writes a file takes its statistics from the Parquet metadata, so that the driver opens
no file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table as LoadedTable
from pyiceberg.table import TableProperties

from kafscale.errors import InvalidRequestError
from kafscale.spark.tables.base import DataFile
from kafscale.spark.tables.data_files import read_batches, read_bounds
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.time_partitions import TimeGranularity, partition_directory
from kafscale.spark.values import conform

_FIELD_ID: Final = b"PARQUET:field_id"


@dataclass(frozen=True)
class IcebergFiles:
    """Writes and reads the files of one version of a table."""

    table_schema: Schema
    granularity: TimeGranularity | None
    filesystem: TableFilesystem
    """The filesystem of the data of the table."""
    properties: Mapping[str, str]
    """The properties of the table, which select its statistics."""

    @classmethod
    def of(cls, loaded: LoadedTable, granularity: TimeGranularity | None) -> "IcebergFiles":
        properties = loaded.properties
        root = properties.get(TableProperties.WRITE_DATA_PATH) or f"{loaded.location()}/data"
        filesystem = TableFilesystem.of(
            root, {key: str(text) for key, text in loaded.io.properties.items()}
        )
        return cls(loaded.schema(), granularity, filesystem, dict(properties))

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.table_schema, ids=True)

    def write(
        self, name: str, data: pa.Buffer, metadata: pq.FileMetaData, time_partition: int | None
    ) -> DataFile:
        directory = partition_directory(time_partition, self.granularity)
        path = self.filesystem.join(directory, name)
        self.filesystem.write(path, data)
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=metadata,
            stats_columns=compute_statistics_plan(self.table_schema, dict(self.properties)),
            parquet_column_mapping=parquet_path_to_id_mapping(self.table_schema),
        )
        details = statistics.to_serialized_dict()
        return DataFile(path, metadata.num_rows, data.size, time_partition, details)

    def read(
        self, file: DataFile, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read without pyiceberg, which reads null lists as empty ones."""
        if file.details.delete_files:
            raise InvalidRequestError(
                f"{file.path} has delete files of another engine; rewrite the data files of the"
                " table with that engine first"
            )
        schema = self.schema
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        for batch in read_batches(
            self.filesystem,
            file.path,
            lambda column: schema.get_field_index(self._name(column)) >= 0,
        ):
            names = [self._name(column) for column in batch.schema]
            yield conform(batch.rename_columns(names), schema)

    def _name(self, field: pa.Field) -> str:
        """Return the current name of a column of a file, by its field ID."""
        number = (field.metadata or {}).get(_FIELD_ID)
        if number is None:
            return str(field.name)
        for child in _children(field.type):
            if self._name(child) != child.name:
                raise InvalidRequestError(
                    f"{field.name}.{child.name} was renamed: rewriting its files is not supported"
                )
        try:
            return self.table_schema.find_field(int(number)).name
        except ValueError:
            return f"{field.name} that was dropped"  # No column has this name.

    def bounds(self, file: DataFile, column: str) -> tuple[Any, Any] | None:
        return read_bounds(self.filesystem, file.path, lambda field: self._name(field) == column)

    def discard(self, files: Sequence[DataFile]) -> None:
        self.filesystem.delete([file.path for file in files])


def _children(type_: pa.DataType) -> list[pa.Field]:
    return [type_.field(index) for index in range(type_.num_fields)]


def arrow_schema(schema: Schema, *, ids: bool) -> pa.Schema:
    """Return the Arrow schema of a table, with or without field IDs."""
    return pa.schema([_field(field) for field in schema_to_pyarrow(schema, include_field_ids=ids)])


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_without_large_types(field.type))


def _without_large_types(type_: pa.DataType) -> pa.DataType:
    """Replace pyiceberg's 64-bit offsets by 32-bit ones: same files, less memory."""
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_large_binary(type_):
        return pa.binary()
    if pa.types.is_struct(type_):
        return pa.struct([_field(field) for field in type_.fields])
    if pa.types.is_large_list(type_):
        return pa.list_(_field(type_.value_field))
    if pa.types.is_map(type_):
        return pa.map_(_field(type_.key_field), _field(type_.item_field))
    return type_
