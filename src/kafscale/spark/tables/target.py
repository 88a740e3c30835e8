"""The tables of topics: format, path and name.

    Iceberg     a table in a catalog of pyiceberg (REST, SQL, Glue, …), or in a SQLite catalog in a
                directory
    Delta       a directory, or a prefix in a bucket, for each table
    Parquet     the same

Invariant: the properties of a catalog may hold secrets and are not part of the `repr`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafscale.errors import ConfigError, InvalidRequestError
from kafscale.spark.tables.base import Table
from kafscale.spark.tables.filesystem import TableFilesystem

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

DEAD_LETTERS_SUFFIX: Final = "_dead_letters"
TOPIC_PLACEHOLDER: Final = "{topic}"
CATALOG_FILE: Final = "catalog.db"


class TableFormat(StrEnum):
    ICEBERG = "iceberg"
    DELTA = "delta"
    PARQUET = "parquet"


DEFAULT_NAMES: Final = {
    TableFormat.ICEBERG: "kafscale.{topic}",
    TableFormat.DELTA: TOPIC_PLACEHOLDER,
    TableFormat.PARQUET: TOPIC_PLACEHOLDER,
}


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where tables are created; call it with a topic to get its table."""

    table_format: TableFormat
    path: str = ""
    """The directory or bucket of the tables; for Iceberg, the warehouse."""
    catalog: str = ""
    """The name of a pyiceberg catalog, which pyiceberg's own configuration may define."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Properties of the catalog or filesystem, such as `s3.endpoint`."""
    table: str = ""
    """The name of the tables, with the placeholder `{topic}`."""

    def __post_init__(self) -> None:
        is_catalog = bool(self.catalog or self.properties.get("type") or self.properties.get("uri"))
        if self.table_format is TableFormat.ICEBERG:
            if not (is_catalog or self.path):
                raise InvalidRequestError("Iceberg needs a catalog, or a path for a local one")
        elif not self.path:
            raise InvalidRequestError(f"{self.table_format} needs a path for its tables")
        elif self.catalog:
            raise InvalidRequestError(f"{self.table_format} does not use catalogs")

    def __call__(self, topic: str, *, time_column: str, is_dead: bool = False) -> Table:
        """Return the table of a topic, or of its dead letters."""
        name = (self.table or DEFAULT_NAMES[self.table_format]).replace(
            TOPIC_PLACEHOLDER, self._table_name(topic)
        )
        name += DEAD_LETTERS_SUFFIX if is_dead else ""
        # Each format has its own library, which is slow to load.
        if self.table_format is TableFormat.ICEBERG:
            from kafscale.spark.tables.iceberg import IcebergTable  # noqa: PLC0415

            identifier = tuple(name.split("."))
            if len(identifier) < 2:
                raise InvalidRequestError(
                    f"an Iceberg table must be in a namespace: {name!r} is not"
                )
            return IcebergTable(self._catalog, identifier, topic, time_column)
        filesystem = TableFilesystem.of(f"{self.path.rstrip('/')}/{name}", self.properties)
        if self.table_format is TableFormat.DELTA:
            from kafscale.spark.tables.delta import DeltaTable  # noqa: PLC0415

            return DeltaTable(filesystem, topic)
        from kafscale.spark.tables.parquet import ParquetTable  # noqa: PLC0415

        return ParquetTable(filesystem, topic)

    def _table_name(self, topic: str) -> str:
        """Return the topic name for a table name; Iceberg allows no dots, SQL no dashes."""
        is_identifier = self.table_format is TableFormat.ICEBERG
        return re.sub(r"\W", "_", topic) if is_identifier else topic

    @cached_property
    def _catalog(self) -> "Catalog":
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - as above.

        properties = dict(self.properties)
        if self.path:
            properties.setdefault("warehouse", TableFilesystem.of(self.path).url)
        if not (self.catalog or "type" in properties or "uri" in properties):
            properties |= self._local_catalog()
        try:
            return load_catalog(self.catalog or "kafscale", **properties)
        except (ValueError, ImportError) as error:
            raise ConfigError(f"cannot load the catalog: {error}") from error

    def _local_catalog(self) -> dict[str, str]:
        filesystem = TableFilesystem.of(self.path)
        if not filesystem.is_local:
            raise InvalidRequestError(
                f"{self.path}: Iceberg tables in a bucket need a catalog, such as "
                "--catalog-property type=rest --catalog-property uri=…"
            )
        directory = Path(filesystem.url.removeprefix("file://"))
        directory.mkdir(parents=True, exist_ok=True)
        return {"type": "sql", "uri": f"sqlite:///{directory / CATALOG_FILE}"}
