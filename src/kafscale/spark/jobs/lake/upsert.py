"""Upsert: rows take the place of those with the same key, in the commit that moves the offsets.

Neither format can do this by itself together with everything else that belongs to the commit, so it
is done by copying: of files that hold a key that has come again, new ones are written without those
rows, and the commit exchanges them. The rows of a round were staged by its tasks; here, the driver
reads their keys, and only these, to see which rows are the last; other tasks then write the files.

What it costs: in every round, the keys of all files whose range of keys matches are read, and
files with hits are written anew. So rounds should be few and large, or tables small.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kafscale.spark.jobs.lake import keys as lake_keys
from kafscale.spark.jobs.lake.keys import Identity
from kafscale.spark.tables.base import DataFile, Execute, Files
from kafscale.spark.tables.staging import StagedFiles
from kafscale.spark.tables.writer import Encoding, FileWriter, unique_name
from kafscale.spark.values import conform


class Merged(msgspec.Struct):
    """What the commit of a round exchanges."""

    added: list[DataFile] = []
    removed: list[DataFile] = []
    staged: list[DataFile] = []
    """What is of no use any more when it is done."""


def staged_schema(table: pa.Schema) -> pa.Schema:
    return table.append(pa.field(lake_keys.DELETED, pa.bool_()))


@dataclass(frozen=True)
class _Place:
    """What tasks need to know: the table, and the keys that have come."""

    files: Files
    staged: StagedFiles
    encoding: Encoding
    identity: Identity
    key_files: tuple[DataFile, ...]
    """The identities that were written, and the record keys that were deleted."""


@dataclass(frozen=True)
class _Keep:
    """Rows of a staged file to be written to the table."""

    place: _Place
    file: DataFile
    mask: bytes
    """A bit for each row."""

    def do(self) -> Merged:
        mask = np.unpackbits(np.frombuffer(self.mask, np.uint8), count=self.file.record_count)
        writer = FileWriter(self.place.files, self.place.encoding)
        position = 0
        for batch in self.place.staged.read(self.file):
            chosen = mask[position : position + batch.num_rows].astype(bool)
            position += batch.num_rows
            _add(writer, self.place, batch.filter(pa.array(chosen)))
        return Merged(added=list(writer.finish()))


@dataclass(frozen=True)
class _Strike:
    """A file of the table, to be written anew without the rows that others take the place of."""

    place: _Place
    file: DataFile

    def do(self) -> Merged:
        keys = [
            pq.read_table(self.place.staged.filesystem.open(one.path))
            for one in self.place.key_files
        ]
        if not self._may_hit(keys) or not self._hits(keys):
            return Merged()
        writer = FileWriter(self.place.files, self.place.encoding)
        for batch in self.place.files.read(self.file):
            kept = ~_replaced(batch, keys)
            _add(writer, self.place, batch.filter(pa.array(kept)))
        return Merged(added=list(writer.finish()), removed=[self.file])

    def _may_hit(self, keys: Sequence[pa.Table]) -> bool:
        for table in keys:
            if not table.num_rows:
                continue
            column = table.column_names[0]
            found = self.place.files.bounds(self.file, column)
            least, greatest = pc.min_max(table.column(column)).as_py().values()
            if found is None or (least <= found[1] and found[0] <= greatest):
                return True
        return False

    def _hits(self, keys: Sequence[pa.Table]) -> bool:
        columns = self.place.identity.all
        return any(
            _replaced(batch, keys).any() for batch in self.place.files.read(self.file, columns)
        )


def merge(
    files: Files,
    current: Sequence[DataFile],
    staged: Sequence[DataFile],
    schema: pa.Schema,
    *,
    identity: Identity,
    encoding: Encoding,
    execute: Execute,
) -> Merged:
    """Write the files that a commit needs, which puts staged rows into a table."""
    staging = StagedFiles(staged_schema(schema), files.filesystem)
    columns = [*dict.fromkeys((*identity.all, *identity.place)), lake_keys.DELETED]
    wanted = pa.schema([staging.schema.field(name) for name in columns])
    rows = pa.Table.from_batches(
        (batch.select(columns) for file in staged for batch in staging.read(file, columns)), wanted
    )
    changes = lake_keys.Changes(rows, identity.columns, identity.record_key, identity.place)
    key_files = tuple(_store(staging, one) for one in (changes.identities, changes.tombstones))
    place = _Place(files, staging, encoding, identity, key_files)
    survives = changes.surviving()
    items: list[_Keep | _Strike] = [_Strike(place, file) for file in current]
    position = 0
    for file in staged:
        mask = survives[position : position + file.record_count]
        position += file.record_count
        if mask.any():
            items.append(_Keep(place, file, np.packbits(mask).tobytes()))
    done: list[Merged] = execute(items, _do, description="merging") if items else []
    return Merged(
        [file for one in done for file in one.added],
        [file for one in done for file in one.removed],
        [*staged, *key_files],
    )


def _do(item: _Keep | _Strike) -> Merged:
    return item.do()


def _replaced(batch: pa.RecordBatch, keys: Sequence[pa.Table]) -> NDArray[np.bool_]:
    hit = np.zeros(batch.num_rows, bool)
    for table in keys:
        hit |= lake_keys.replaced(batch, table)
    return hit


def _add(writer: FileWriter, place: _Place, rows: pa.RecordBatch) -> None:
    writer.add(conform(rows, place.files.schema), rows.column(place.identity.time))


def _store(staging: StagedFiles, table: pa.Table) -> DataFile:
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream)
    data = stream.getvalue()
    return staging.write(unique_name(), data, pq.read_metadata(pa.BufferReader(data)), None)
