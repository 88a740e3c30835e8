"""Time as something that tables are partitioned by: hours, days and months.

A moment of a unit is a number: how many of them have passed since 1970 began, in UTC, as Iceberg's
transforms count. Delta and plain directories name partitions by text instead. Pure.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import numpy as np
import pyarrow as pa


class Unit(StrEnum):
    """How long a partition is."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"

    @property
    def column(self) -> str:
        """The column that holds it, where a format has no partitioning without one.

        It is the name of directories, too, and readers skip those that begin with an underscore.
        """
        return f"kafscale_{self}"

    @property
    def column_type(self) -> pa.DataType:
        return pa.date32() if self is Unit.DAY else pa.string()


_CODES: Final = {Unit.HOUR: "h", Unit.DAY: "D", Unit.MONTH: "M"}


def split(
    batch: pa.RecordBatch, times: pa.Array, unit: Unit
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows by the moment that their time lies in; they keep their order."""
    instants = times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy()
    moments = (
        instants.astype("datetime64[us]").astype(f"datetime64[{_CODES[unit]}]").astype(np.int64)
    )
    if len(moments) and moments.min() == moments.max():  # As it mostly is: logs go with time.
        yield int(moments[0]), batch
        return
    for moment in np.unique(moments):
        yield int(moment), batch.filter(pa.array(moments == moment))


def text(moment: int, unit: Unit) -> str:
    """The name of a moment.

    >>> text(19675, Unit.DAY), text(472205, Unit.HOUR), text(646, Unit.MONTH)
    ('2023-11-14', '2023-11-14-05', '2023-11')
    """
    return str(np.array(moment, f"datetime64[{_CODES[unit]}]")).replace("T", "-")


def moment(name: str, unit: Unit) -> int:
    """The moment of a name.

    >>> moment("2023-11-14", Unit.DAY), moment("2023-11-14-05", Unit.HOUR)
    (19675, 472205)
    """
    spelled = f"{name[:10]}T{name[11:]}" if unit is Unit.HOUR else name
    return int(np.array(spelled, f"datetime64[{_CODES[unit]}]").astype(np.int64))
