"""The columns of a topic as Spark sees it: their names, their order, their Arrow types.

They are those of Spark's own Kafka source, so that a query moves over unchanged. Spark compares the
schema of every first batch with the one that it planned for, exactly; hence the time zone, and the
name of the lists' elements. Spark's interface for sources does not tell a reader which columns
a query needs, so they can be named in an option, which is read here. Filling them is the
decoder's.
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
"""All there are, in the order of Spark's Kafka source."""


class Columns(msgspec.Struct, frozen=True):
    """Which columns are wanted: at least one, none twice, in the order of `NAMES`."""

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
"""What Spark's Kafka source gives where headers are not asked for."""


def parse(text: str) -> Columns:
    """The columns that an option like "offset, value" names, in any order and case.

    >>> parse("offset, VALUE").names
    ('value', 'offset')
    """
    spelled = {name.lower(): name for name in NAMES}
    asked = [name.strip() for name in text.split(",")]
    unknown = [name for name in asked if name.lower() not in spelled]
    if unknown:
        raise InvalidRequestError(
            f"no such columns: {', '.join(map(repr, unknown))}; there are {', '.join(NAMES)}"
        )
    found = [spelled[name.lower()] for name in asked]
    repeated = sorted({name for name in found if found.count(name) > 1})
    if repeated:
        raise InvalidRequestError(f"columns named more than once: {', '.join(repeated)}")
    return Columns(tuple(name for name in NAMES if name in found))
