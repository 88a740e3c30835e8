"""Hypothesis strategies for every message in every version, derived from the declarations.

Values are limited to what all reference implementations support: kio has an enum of error codes and
datetimes. Some lengths exceed 127, where a compact length grows to two bytes.
"""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from kafscale.protocol.codec.schema import Array, Field, MessageType, WireType, fields
from kafscale.protocol.codec.wire import Message, PrimitiveType
from kafscale.protocol.error_codes import ErrorCode

TIME_MS_MAX = 253_402_300_799_000  # The last second of the year 9999.

short_text = st.text(st.characters(codec="utf-8"), max_size=6)
texts = st.one_of(short_text, short_text, st.just("ä" * 70), st.just("x" * 300))
short_bytes = st.binary(max_size=6)
batches = st.one_of(short_bytes, st.just(bytes(200)), st.just(bytes(20_000)))
blobs = st.one_of(short_bytes, short_bytes, st.just(bytes(range(200))))

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": texts,
    "bytes": blobs,
    "records": batches.map(memoryview),
    "record_slices": batches.map(lambda blob: [memoryview(blob)]),
}


@cache
def messages(message: MessageType, version: int) -> st.SearchStrategy[Message]:
    """Messages that set the fields which the version has, and no others."""
    return st.builds(message, **{f.name: _values(f, version) for f in fields(message, version)})


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    values = _of_type(field.type, field.name, version)
    if field.tag is not None and isinstance(field.type, type):
        # A struct equal to its default is legal, but the references never send it: use None.
        nothing = field.type()
        return st.none() | values.map(lambda value: None if value == nothing else value)
    return st.none() | values if field.nullable else values


def _of_type(wire_type: WireType, name: str, version: int) -> st.SearchStrategy[Any]:
    match wire_type:
        case Array(element):
            values = _of_type(element, name, version)
            if isinstance(element, PrimitiveType) and element.format:
                return st.lists(values, max_size=3) | st.lists(values, min_size=130, max_size=130)
            return st.lists(values, max_size=2)
        case PrimitiveType(name="int16") if name.endswith("error_code"):
            return st.sampled_from(ErrorCode).map(int)
        case PrimitiveType(name="int32") if name.endswith("_ms"):
            return st.integers(-1, 2**31 - 1)
        case PrimitiveType(name="int64") if name.endswith("_ms"):
            return st.integers(0, TIME_MS_MAX // 1000).map(lambda seconds: seconds * 1000)
        case PrimitiveType(name=kind):
            return KINDS[kind]
        case inner:
            return messages(inner, version)
