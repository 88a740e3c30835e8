"""The declaration language of Kafka messages: wire types, version annotations, `Message`.

A struct is declared once for all versions, as a typed class. The annotation of a field says its
wire type and its versions:

    >>> class Example(Message):
    ...     error_code: Int16 = 0
    ...     base_offset: Annotated[Int64, since(2)] = -1
    ...     reason: Annotated[String | None, since(8)] = None
    ...     topic: Annotated[String, until(12)] = ""
    ...     leader: Annotated[Int32, tag(0, since=10)] = -1

Handlers use one class for all versions; a field that is not in a version has its default:

    >>> Example(error_code=3)
    Example(error_code=3, base_offset=-1, reason=None, topic='', leader=-1)

Rules:

* `X | None` may be null on the wire, in every version that has the field unless
  `nullable(since=...)` restricts it.
* `list[X]` is an array of a wire type or of another `Message`.
* `tag(number, since=...)` declares a tagged field of flexible versions, which is written only if it
  differs from its default. A tagged struct is declared `X | None = None`, where None means that it
  is not sent.
* Every field has a default. Field names are Kafscale's own; they correspond to Kafka's by position.

`schema` reads declarations, `decoder` and `encoder` generate functions from them.
"""

import struct
from dataclasses import dataclass
from typing import Annotated

import msgspec

VERSION_MAX = 0x7FFF


class Message(msgspec.Struct, gc=False):
    """A struct of the protocol: data without methods or cycles."""


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A wire type. Fixed-size types have a `struct` format, others a length prefix."""

    name: str
    format: str = ""

    @property
    def size_bytes(self) -> int:
        return struct.calcsize(">" + self.format)


Int8 = Annotated[int, PrimitiveType("int8", "b")]
Int16 = Annotated[int, PrimitiveType("int16", "h")]
UInt16 = Annotated[int, PrimitiveType("uint16", "H")]
Int32 = Annotated[int, PrimitiveType("int32", "i")]
UInt32 = Annotated[int, PrimitiveType("uint32", "I")]
Int64 = Annotated[int, PrimitiveType("int64", "q")]
Float64 = Annotated[float, PrimitiveType("float64", "d")]
Boolean = Annotated[bool, PrimitiveType("bool", "?")]

Uuid = Annotated[bytes, PrimitiveType("uuid", "16s")]
"""Sixteen bytes: faster to read and to hash than `uuid.UUID`."""

String = Annotated[str, PrimitiveType("string")]

Bytes = Annotated[bytes, PrimitiveType("bytes")]
"""Opaque bytes, copied from the frame because they outlive it (group metadata, SASL tokens)."""

Records = Annotated[memoryview, PrimitiveType("records")]
"""Record batches of a request: a slice of the frame, not a copy."""

RecordSlices = Annotated[list[memoryview], PrimitiveType("record_slices")]
"""Record batches of a response: slices that are sent one after the other."""

UUID_ZERO = bytes(16)


@dataclass(frozen=True, slots=True)
class Versions:
    """An annotation: the versions that have a field."""

    first: int = 0
    last: int = VERSION_MAX

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


@dataclass(frozen=True, slots=True)
class Nullable:
    """An annotation: the versions in which a field may be null."""

    versions: Versions


@dataclass(frozen=True, slots=True)
class Tag:
    """An annotation: the field is a tagged field with this number."""

    number: int
    versions: Versions


def since(first: int, *, until: int = VERSION_MAX) -> Versions:
    """The field was added in version `first` (and, with `until`, removed after that version)."""
    return Versions(first, until)


def until(last: int) -> Versions:
    """The field existed from version 0 and was removed after version `last`."""
    return Versions(0, last)


def nullable(*, since: int) -> Nullable:
    """The field may be null from this version on."""
    return Nullable(Versions(since))


def tag(number: int, *, since: int) -> Tag:
    """The field is a tagged field from this version on."""
    return Tag(number, Versions(since))
