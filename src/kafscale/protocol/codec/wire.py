"""The vocabulary in which Kafka messages are declared: wire types, version marks, `Message`.

A struct is declared once, for all versions, as a typed class. A field's annotation says what it is
on the wire, and marks say in which versions:

    >>> class Answer(Message):
    ...     error_code: Int16 = 0
    ...     base_offset: Annotated[Int64, since(2)] = -1
    ...     reason: Annotated[String | None, since(8)] = None
    ...     topic: Annotated[String, until(12)] = ""
    ...     leader: Annotated[Int32, tag(0, since=10)] = -1

Handlers see one `Answer` whatever the version; a field that a version lacks has its default there:

    >>> Answer(error_code=3)
    Answer(error_code=3, base_offset=-1, reason=None, topic='', leader=-1)

The rules:

* `X | None` may be null on the wire, in every version that has the field unless
  `nullable(since=...)` says from which on.
* `list[X]` is an array, of a wire type or of another `Message`.
* `tag(number, since=...)` makes an optional field of the flexible versions, written only when it
  differs from its default. A tagged struct is declared `X | None = None`, where None means that it
  is not sent.
* Every field has a default. Names are ours and consistent; Kafka's are found by their place.

This module holds words only. `schema` reads them, `decoder` and `encoder` turn them into functions.
"""

import struct
from dataclasses import dataclass
from typing import Annotated

import msgspec

VERSION_MAX = 0x7FFF


class Message(msgspec.Struct, gc=False):
    """A struct of the protocol. Messages are trees of data: no methods, no cycles."""


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A wire type. Those of fixed size have a `struct` format, the others bring a length."""

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
"""Sixteen bytes as they are: cheaper to read and to hash than `uuid.UUID`."""

String = Annotated[str, PrimitiveType("string")]

Bytes = Annotated[bytes, PrimitiveType("bytes")]
"""Opaque bytes, copied out of the frame because they outlive it (group metadata, SASL tokens)."""

Records = Annotated[memoryview, PrimitiveType("records")]
"""Record batches of a request: a slice of the frame, never a copy."""

RecordSlices = Annotated[list[memoryview], PrimitiveType("record_slices")]
"""Record batches of an answer: any number of slices, to follow each other on the wire."""

UUID_ZERO = bytes(16)


@dataclass(frozen=True, slots=True)
class Versions:
    """A mark: the versions in which a field is there."""

    first: int = 0
    last: int = VERSION_MAX

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


@dataclass(frozen=True, slots=True)
class Nullable:
    """A mark: the versions in which a field may be null, where they are not all it has."""

    versions: Versions


@dataclass(frozen=True, slots=True)
class Tag:
    """A mark: the field travels in the tag section, under this number."""

    number: int
    versions: Versions


def since(first: int, *, until: int = VERSION_MAX) -> Versions:
    """The field was added in version `first` (and, with `until`, was there last in that one)."""
    return Versions(first, until)


def until(last: int) -> Versions:
    """The field was there from the beginning and was dropped after version `last`."""
    return Versions(0, last)


def nullable(*, since: int) -> Nullable:
    """The field may be null from this version on."""
    return Nullable(Versions(since))


def tag(number: int, *, since: int) -> Tag:
    """The field travels in the tag section from this version on."""
    return Tag(number, Versions(since))
