"""Which tables there are for which topics: a format, a place, a name.

    Iceberg     a table in a catalog of pyiceberg: REST, SQL, Glue, …; without one, a catalog of
                its own in a directory
    Delta       a directory, or a prefix in a bucket, for each table
    Parquet     the same

The law: the properties of a catalog may hold secrets, and are no part of a `repr`.
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

DEAD_LETTERS: Final = "_dead_letters"
TOPIC: Final = "{topic}"
CATALOG_FILE: Final = "catalog.db"


class TableFormat(StrEnum):
    """What a table is."""

    ICEBERG = "iceberg"
    DELTA = "delta"
    PARQUET = "parquet"


DEFAULT_NAMES: Final = {
    TableFormat.ICEBERG: "kafscale.{topic}",
    TableFormat.DELTA: TOPIC,
    TableFormat.PARQUET: TOPIC,
}


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where tables are made; called for one, it gives it."""

    table_format: TableFormat
    path: str = ""
    """The directory or bucket of tables; of Iceberg's warehouse, if there is no catalog."""
    catalog: str = ""
    """The name of a catalog of pyiceberg, which may be set up elsewhere."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of the catalog, or of the filesystem: `s3.endpoint` and so on."""
    table: str = ""
    """The name of tables, with `{topic}` in it."""

    def __post_init__(self) -> None:
        is_catalog = bool(self.catalog or self.properties.get("type") or self.properties.get("uri"))
        if self.table_format is TableFormat.ICEBERG:
            if not (is_catalog or self.path):
                raise InvalidRequestError("Iceberg needs a catalog, or a path for one of its own")
        elif not self.path:
            raise InvalidRequestError(f"{self.table_format} needs a path to put tables in")
        elif self.catalog:
            raise InvalidRequestError(f"{self.table_format} has no catalogs")

    def __call__(self, topic: str, *, time_column: str, is_dead: bool = False) -> Table:
        """The table of a topic, or that of its dead letters."""
        name = (self.table or DEFAULT_NAMES[self.table_format]).replace(TOPIC, self._name(topic))
        name += DEAD_LETTERS if is_dead else ""
        # Each format brings a library of its own, which takes a while to load.
        if self.table_format is TableFormat.ICEBERG:
            from kafscale.spark.tables.iceberg import IcebergTable  # noqa: PLC0415

            identifier = tuple(name.split("."))
            if len(identifier) < 2:
                raise InvalidRequestError(f"a table of Iceberg is in a namespace: {name!r} is not")
            return IcebergTable(self._catalog, identifier, topic, time_column)
        filesystem = TableFilesystem.of(f"{self.path.rstrip('/')}/{name}", self.properties)
        if self.table_format is TableFormat.DELTA:
            from kafscale.spark.tables.delta import DeltaTable  # noqa: PLC0415

            return DeltaTable(filesystem, topic)
        from kafscale.spark.tables.parquet import ParquetTable  # noqa: PLC0415

        return ParquetTable(filesystem, topic)

    def _name(self, topic: str) -> str:
        """A topic's name in that of a table: dots would part it, and dashes need quotes in SQL."""
        is_identifier = self.table_format is TableFormat.ICEBERG
        return re.sub(r"\W", "_", topic) if is_identifier else topic

    @cached_property
    def _catalog(self) -> "Catalog":
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - as above.

        properties = dict(self.properties)
        if self.path:
            properties.setdefault("warehouse", TableFilesystem.of(self.path).url)
        if not (self.catalog or "type" in properties or "uri" in properties):
            properties |= self._own_catalog()
        try:
            return load_catalog(self.catalog or "kafscale", **properties)
        except (ValueError, ImportError) as error:
            raise ConfigError(f"the catalog cannot be used: {error}") from error

    def _own_catalog(self) -> dict[str, str]:
        filesystem = TableFilesystem.of(self.path)
        if not filesystem.is_local:
            raise InvalidRequestError(
                f"{self.path}: Iceberg tables in a bucket need a catalog, such as "
                "--catalog-property type=rest --catalog-property uri=…"
            )
        directory = Path(filesystem.url.removeprefix("file://"))
        directory.mkdir(parents=True, exist_ok=True)
        return {"type": "sql", "uri": f"sqlite:///{directory / CATALOG_FILE}"}
