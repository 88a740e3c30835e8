"""Upsert: rows replace those with the same key, in the commit that advances the offsets.

Rows are identified by key columns: decoded columns, or the record key. A record without a value is
a tombstone, and deletes the rows that were written under its record key. Within a partition, later
offsets are later. Kafka has no order between partitions; here the higher partition index counts as
later, so all records of a key must be in one partition, which Kafka's partitioners ensure.

No table format can combine such a merge with the rest of the commit, so it is done by copy on
write: files with replaced rows are rewritten without them, and the commit exchanges the files. The
tasks of a round stage its rows; the driver reads only their keys to find the latest row of each
key; then other tasks write the files. All of it works on Arrow columns, never row by row.

Cost: every round reads the keys of all files whose key range overlaps, and rewrites files with
matches. So rounds should be few and large, or tables small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kafscale.spark.tables.base import DataFile, Execute, Files
from kafscale.spark.tables.data_files import StagedFiles
from kafscale.spark.tables.writer import Encoding, FileWriter, unique_name
from kafscale.spark.values import conform

DELETED: Final = "_kafscale_deleted"
"""The column of staged rows that marks tombstones."""

_ORDER: Final = "_kafscale_order"
_LAST: Final = f"{_ORDER}_max"


@dataclass(frozen=True)
class RowIdentity:
    """The key columns of rows, and the columns with their origin."""

    columns: tuple[str, ...]
    record_key: str
    position: tuple[str, str]
    """The columns with partition and offset."""
    timestamp: str

    @property
    def key_columns(self) -> list[str]:
        return list(dict.fromkeys((*self.columns, self.record_key)))


def lacks_key(rows: pa.RecordBatch, identity: Sequence[str], record_key: str) -> pa.Array:
    """Return which rows have no complete key; rows have the column `DELETED`."""
    lacking = pa.array(np.zeros(rows.num_rows, bool))
    for column in identity:
        lacking = pc.or_(lacking, rows.column(column).is_null())
    return pc.if_else(rows.column(DELETED), rows.column(record_key).is_null(), lacking)


class RowChanges:
    """The keys of all rows of a round, in log order."""

    def __init__(
        self, rows: pa.Table, identity: Sequence[str], record_key: str, position: Sequence[str]
    ) -> None:
        """`rows` are in file order; `position` are the columns with partition and offset."""
        self._identity = list(identity)
        self._record_key = record_key
        sorted_indices = pc.sort_indices(rows, [(column, "ascending") for column in position])
        order = np.empty(rows.num_rows, np.int64)
        order[sorted_indices.to_numpy()] = np.arange(rows.num_rows)
        rows = rows.append_column(_ORDER, pa.array(order))
        self._written = rows.filter(pc.invert(rows.column(DELETED)))
        self._deleted = rows.filter(rows.column(DELETED))
        self._order = order

    @property
    def identities(self) -> pa.Table:
        """The distinct keys that are written."""
        return self._written.group_by(self._identity).aggregate([])

    @property
    def tombstones(self) -> pa.Table:
        """The distinct record keys that are deleted."""
        return self._deleted.group_by([self._record_key]).aggregate([])

    def surviving_rows(self) -> NDArray[np.bool_]:
        """Return for each row, in file order, whether it is in the table afterwards."""
        last = self._written.group_by(self._identity).aggregate([(_ORDER, "max")])
        kept = self._written.filter(
            pc.is_in(self._written.column(_ORDER), value_set=last.column(_LAST))
        ).select([_ORDER, self._record_key])
        deleted = self._deleted.group_by([self._record_key]).aggregate([(_ORDER, "max")])
        kept = kept.join(deleted, self._record_key, join_type="left outer")
        is_later = pc.greater(kept.column(_ORDER), kept.column(_LAST))
        kept = kept.filter(pc.fill_null(is_later, fill_value=True))
        return np.isin(self._order, kept.column(_ORDER).to_numpy())


def matches_keys(rows: pa.RecordBatch, keys: pa.Table) -> NDArray[np.bool_]:
    """Return which rows have one of these keys, in all key columns."""
    matches = np.zeros(rows.num_rows, bool)
    if not keys.num_rows or not rows.num_rows:
        return matches
    names = keys.column_names
    numbered = pa.Table.from_batches([rows.select(names)]).append_column(
        _ORDER, pa.array(np.arange(rows.num_rows))
    )
    joined = numbered.join(keys, names, join_type="left semi")
    matches[joined.column(_ORDER).to_numpy()] = True
    return matches


# --- files ----------------------------------------------------------------------------------------


class FileChanges(msgspec.Struct):
    """The files that the commit of a round adds and removes."""

    added: list[DataFile] = []
    removed: list[DataFile] = []
    staged: list[DataFile] = []
    """Staged files, which are deleted after the commit."""


def staged_schema(table: pa.Schema) -> pa.Schema:
    return table.append(pa.field(DELETED, pa.bool_()))


@dataclass(frozen=True)
class _Merge:
    """What all tasks share: the table, and the keys of the round."""

    files: Files
    staged: StagedFiles
    encoding: Encoding
    identity: RowIdentity
    key_files: tuple[DataFile, ...]
    """The keys that were written, and the record keys that were deleted."""


@dataclass(frozen=True)
class _WriteStaged:
    """Writes the surviving rows of a staged file to the table."""

    merge: _Merge
    file: DataFile
    mask: bytes
    """A bit for each row."""

    def run(self) -> FileChanges:
        mask = np.unpackbits(np.frombuffer(self.mask, np.uint8), count=self.file.record_count)
        writer = FileWriter(self.merge.files, self.merge.encoding)
        position = 0
        for batch in self.merge.staged.read(self.file):
            survives = mask[position : position + batch.num_rows].astype(bool)
            position += batch.num_rows
            _add(writer, self.merge, batch.filter(pa.array(survives)))
        return FileChanges(added=list(writer.finish()))


@dataclass(frozen=True)
class _RewriteFile:
    """Rewrites a file of the table without replaced rows."""

    merge: _Merge
    file: DataFile

    def run(self) -> FileChanges:
        keys = [
            pq.read_table(self.merge.staged.filesystem.open(one.path))
            for one in self.merge.key_files
        ]
        if not self._may_match(keys) or not self._matches(keys):
            return FileChanges()
        writer = FileWriter(self.merge.files, self.merge.encoding)
        for batch in self.merge.files.read(self.file):
            kept = ~_is_replaced(batch, keys)
            _add(writer, self.merge, batch.filter(pa.array(kept)))
        return FileChanges(added=list(writer.finish()), removed=[self.file])

    def _may_match(self, keys: Sequence[pa.Table]) -> bool:
        """Whether the key range of the file overlaps that of the keys."""
        for table in keys:
            if not table.num_rows:
                continue
            column = table.column_names[0]
            bounds = self.merge.files.bounds(self.file, column)
            least, greatest = pc.min_max(table.column(column)).as_py().values()
            if bounds is None or (least <= bounds[1] and bounds[0] <= greatest):
                return True
        return False

    def _matches(self, keys: Sequence[pa.Table]) -> bool:
        columns = self.merge.identity.key_columns
        return any(
            _is_replaced(batch, keys).any() for batch in self.merge.files.read(self.file, columns)
        )


def merge(
    files: Files,
    current: Sequence[DataFile],
    staged: Sequence[DataFile],
    schema: pa.Schema,
    *,
    identity: RowIdentity,
    encoding: Encoding,
    execute: Execute,
) -> FileChanges:
    """Write the files that a commit needs to merge staged rows into a table."""
    staging = StagedFiles(staged_schema(schema), files.filesystem)
    columns = [*dict.fromkeys((*identity.key_columns, *identity.position)), DELETED]
    key_schema = pa.schema([staging.schema.field(name) for name in columns])
    rows = pa.Table.from_batches(
        (batch.select(columns) for file in staged for batch in staging.read(file, columns)),
        key_schema,
    )
    changes = RowChanges(rows, identity.columns, identity.record_key, identity.position)
    key_files = tuple(_store(staging, one) for one in (changes.identities, changes.tombstones))
    shared = _Merge(files, staging, encoding, identity, key_files)
    survives = changes.surviving_rows()
    items: list[_WriteStaged | _RewriteFile] = [_RewriteFile(shared, file) for file in current]
    position = 0
    for file in staged:
        mask = survives[position : position + file.record_count]
        position += file.record_count
        if mask.any():
            items.append(_WriteStaged(shared, file, np.packbits(mask).tobytes()))
    results: list[FileChanges] = execute(items, _run, description="merging") if items else []
    return FileChanges(
        [file for one in results for file in one.added],
        [file for one in results for file in one.removed],
        [*staged, *key_files],
    )


def _run(item: _WriteStaged | _RewriteFile) -> FileChanges:
    return item.run()


def _is_replaced(batch: pa.RecordBatch, keys: Sequence[pa.Table]) -> NDArray[np.bool_]:
    replaced = np.zeros(batch.num_rows, bool)
    for table in keys:
        replaced |= matches_keys(batch, table)
    return replaced


def _add(writer: FileWriter, merge: _Merge, rows: pa.RecordBatch) -> None:
    writer.add(conform(rows, merge.files.schema), rows.column(merge.identity.timestamp))


def _store(staging: StagedFiles, table: pa.Table) -> DataFile:
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream)
    data = stream.getvalue()
    return staging.write(unique_name(), data, pq.read_metadata(pa.BufferReader(data)), None)
