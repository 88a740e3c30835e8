"""The columns of a topic in Spark: names, order and Arrow types.

They are those of Spark's own Kafka source, so that queries work unchanged. Spark compares the
schema of each first batch exactly with the planned one; hence the time zone and the name of list
elements. Spark's interface for Python data sources has no column pruning, so the option `columns`
names the columns that a query needs. The decoder fills the columns.
"""

from typing import Final

import msgspec
import pyarrow as pa

from kafscale.errors import InvalidRequestError

_TYPES: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(
        pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))
    ),
}
NAMES: Final = tuple(_TYPES)
"""All columns, in the order of Spark's Kafka source."""


class Columns(msgspec.Struct, frozen=True):
    """Selected columns: at least one, without duplicates, in the order of `NAMES`."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        assert self.names
        assert self.names == tuple(name for name in NAMES if name in self.names), self.names

    def __contains__(self, name: str) -> bool:
        return name in self.names

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, _TYPES[name]) for name in self.names])


ALL_WITH_HEADERS: Final = Columns(NAMES)
ALL: Final = Columns(NAMES[: NAMES.index("headers")])
"""The columns of Spark's Kafka source without `includeHeaders`."""


def parse(text: str) -> Columns:
    """Parse the option `columns`, such as "offset, value", in any order and case.

    >>> parse("offset, VALUE").names
    ('value', 'offset')
    """
    canonical = {name.lower(): name for name in NAMES}
    given = [name.strip() for name in text.split(",")]
    unknown = [name for name in given if name.lower() not in canonical]
    if unknown:
        raise InvalidRequestError(
            f"unknown columns {', '.join(map(repr, unknown))}; the columns are {', '.join(NAMES)}"
        )
    names = [canonical[name.lower()] for name in given]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidRequestError(f"columns are repeated: {', '.join(repeated)}")
    return Columns(tuple(name for name in NAMES if name in names))
