"""Which row of several with the same key is the last, and which rows others take the place of.

Rows are told apart by the columns of an identity: decoded ones, or the record's key. A record
without a value is a tombstone, and removes what was written under its record key. In a partition,
later offsets come later; between partitions there is no order in Kafka, and here the higher number
counts as later, so that a key has to stay in its partition, as all producers see to.

Pure, and never row by row: joins and groups of Arrow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

DELETED: Final = "_kafscale_deleted"
"""The column of rows on their way that says which of them are tombstones."""

_ORDER: Final = "_kafscale_order"
_LAST: Final = f"{_ORDER}_max"


@dataclass(frozen=True)
class Identity:
    """The columns that rows are known by, and where they come from."""

    columns: tuple[str, ...]
    record_key: str
    place: tuple[str, str]
    """Partition and offset."""
    time: str

    @property
    def all(self) -> list[str]:
        return list(dict.fromkeys((*self.columns, self.record_key)))


def incomplete(rows: pa.RecordBatch, identity: Sequence[str], record_key: str) -> pa.Array:
    """Which rows have no key to be known by; rows carry the column `DELETED`."""
    lacking = pa.array(np.zeros(rows.num_rows, bool))
    for column in identity:
        lacking = pc.or_(lacking, rows.column(column).is_null())
    return pc.if_else(rows.column(DELETED), rows.column(record_key).is_null(), lacking)


class Changes:
    """The keys of all rows of a round, in the order of the log."""

    def __init__(
        self, rows: pa.Table, identity: Sequence[str], record_key: str, place: Sequence[str]
    ) -> None:
        """Take the rows as they lie in files; `place` are the columns with partition and offset."""
        self._identity = list(identity)
        self._record_key = record_key
        in_order = pc.sort_indices(rows, [(column, "ascending") for column in place])
        order = np.empty(rows.num_rows, np.int64)
        order[in_order.to_numpy()] = np.arange(rows.num_rows)
        rows = rows.append_column(_ORDER, pa.array(order))
        self._written = rows.filter(pc.invert(rows.column(DELETED)))
        self._deleted = rows.filter(rows.column(DELETED))
        self._order = order

    @property
    def identities(self) -> pa.Table:
        """Every identity that is written, once."""
        return self._written.group_by(self._identity).aggregate([])

    @property
    def tombstones(self) -> pa.Table:
        """Every record key that is deleted, once."""
        return self._deleted.group_by([self._record_key]).aggregate([])

    def surviving(self) -> NDArray[np.bool_]:
        """For each row, as they came, whether it is in the table afterwards."""
        last = self._written.group_by(self._identity).aggregate([(_ORDER, "max")])
        kept = self._written.filter(
            pc.is_in(self._written.column(_ORDER), value_set=last.column(_LAST))
        ).select([_ORDER, self._record_key])
        deleted = self._deleted.group_by([self._record_key]).aggregate([(_ORDER, "max")])
        kept = kept.join(deleted, self._record_key, join_type="left outer")
        is_later = pc.greater(kept.column(_ORDER), kept.column(_LAST))
        kept = kept.filter(pc.fill_null(is_later, fill_value=True))
        return np.isin(self._order, kept.column(_ORDER).to_numpy())


def replaced(rows: pa.RecordBatch, keys: pa.Table) -> NDArray[np.bool_]:
    """Which rows have one of these keys, in all of their columns."""
    hit = np.zeros(rows.num_rows, bool)
    if not keys.num_rows or not rows.num_rows:
        return hit
    names = keys.column_names
    numbered = pa.Table.from_batches([rows.select(names)]).append_column(
        _ORDER, pa.array(np.arange(rows.num_rows))
    )
    found = numbered.join(keys, names, join_type="left semi")
    hit[found.column(_ORDER).to_numpy()] = True
    return hit
