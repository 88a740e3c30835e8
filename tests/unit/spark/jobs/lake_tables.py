"""Tables of every format in a directory, for the lake job and for readers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable as LoadedDelta
from pyarrow.dataset import dataset
from pyiceberg.catalog.sql import SqlCatalog

from kafscale.spark.tables.base import Change, Table, Version
from kafscale.spark.tables.delta import DeltaTable
from kafscale.spark.tables.filesystem import TableFilesystem
from kafscale.spark.tables.iceberg import IcebergTable
from kafscale.spark.tables.parquet import ParquetTable

FORMATS = ("iceberg", "delta", "parquet")


class Tables:
    """The tables in one directory."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.checkpoint: Callable[[str], None] = lambda _step: None
        self._catalogs: list[SqlCatalog] = []

    def __call__(self, topic: str, *, time_column: str, is_dead: bool = False) -> Table:
        name = f"{topic}_dead_letters" if is_dead else topic
        if self.kind == "delta":
            return DeltaTable(TableFilesystem.of(str(self.directory / name)), topic)
        if self.kind == "parquet":
            return ParquetTable(
                TableFilesystem.of(str(self.directory / name)), topic, self.checkpoint
            )
        return IcebergTable(self.catalog(), ("lake", name), topic, time_column)

    def rows(self, name: str) -> pa.Table:
        """Read the table with the library of its format, without Kafscale."""
        if self.kind == "delta":
            return LoadedDelta(str(self.directory / name)).to_pyarrow_table()
        if self.kind == "parquet":
            return dataset(self.directory / name, partitioning="hive").to_table()
        return self.catalog().load_table(("lake", name)).scan().to_arrow()

    def foreign_change(self, version: Version) -> Change:
        """Return a change that does not concern any topic."""
        return Change(version.progress)

    def data_files(self) -> list[Path]:
        paths = self.directory.rglob("*.parquet")
        return sorted(path for path in paths if path.parent.name != "_delta_log")

    def catalog(self) -> SqlCatalog:
        if not self._catalogs:
            self._catalogs.append(sql_catalog(self.directory))
        return self._catalogs[0]

    def close(self) -> None:
        for catalog in self._catalogs:
            catalog.close()


def sql_catalog(directory: Path, kind: type[SqlCatalog] = SqlCatalog, **extra: Any) -> SqlCatalog:
    return kind(
        "lake", uri=f"sqlite:///{directory}/catalog.db", warehouse=f"file://{directory}", **extra
    )
