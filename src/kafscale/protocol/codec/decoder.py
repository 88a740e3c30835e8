"""Generates the decoder of a message version: straight-line Python over one memoryview.

Consecutive fields of fixed size, and the length prefix that follows them, become one `unpack_from`.
Structs and arrays are inlined as loops; fields that are not in the version are constants.

Invariants of the generated code, which make it safe for malicious input:

* The position only grows: negative lengths are rejected before they are added.
* A count is compared with the remaining bytes before anything is allocated. A message of an
  untrusted peer has at most `elements_max` structs and strings in its arrays: each costs more time
  and memory than its bytes suggest.
* Reading past the end raises, at the latest in a final comparison; slices are bounded by the view.
* The only exception is `ProtocolError`.
"""

import struct
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from kafscale.errors import ProtocolError
from kafscale.protocol.codec import varint
from kafscale.protocol.codec.schema import (
    Array,
    Field,
    MessageType,
    WireType,
    absent_default,
    fields,
)
from kafscale.protocol.codec.source import Source
from kafscale.protocol.codec.wire import Message, PrimitiveType

LENGTH_FORMATS = {"string": "h", "bytes": "i", "records": "i", "record_slices": "i"}
"""Length prefixes of non-flexible versions; arrays use int32, too."""

BODIES = {
    "string": "view[position:stop].tobytes().decode()",
    "bytes": "view[position:stop].tobytes()",
    "records": "view[position:stop]",
    "record_slices": "[view[position:stop]]",
}


def write_decoder(
    message: MessageType, version: int, *, flexible: bool, elements_max: int | None = None
) -> Source:
    """Generate the source of `decode(view, position) -> (message, position)`."""
    return _Decoder(version, flexible=flexible, elements_max=elements_max).write(message)


def malformed(what: str, why: object) -> ProtocolError:
    return ProtocolError(f"malformed {what}: {why}")


def raise_bad_length(field: str, length: int) -> None:
    raise ProtocolError(f"{field} has an invalid length of {length}")


def raise_bad_count(field: str, count: int) -> None:
    raise ProtocolError(f"{field} has {count} elements, more than the remaining bytes")


def raise_too_many(field: str, count: int) -> None:
    raise ProtocolError(f"{count} elements up to {field} exceed the limit of a request")


def raise_bad_tag(field: str) -> None:
    raise ProtocolError(f"{field} does not have the size of its tag")


RUNTIME: dict[str, Any] = {
    "decode_uvarint": varint.decode,
    "continue_uvarint": varint.continued,
    "long_uvarint": varint.continued_from_two,
    "skip_tags": varint.skip_tags,
    "malformed": malformed,
    "raise_bad_length": raise_bad_length,
    "raise_bad_count": raise_bad_count,
    "raise_too_many": raise_too_many,
    "raise_bad_tag": raise_bad_tag,
    "unpack_from": struct.unpack_from,
    "TRUNCATED": (IndexError, struct.error),
    "REFUSED": (UnicodeDecodeError, ProtocolError),
}


class _Decoder:
    def __init__(self, version: int, *, flexible: bool, elements_max: int | None) -> None:
        self._version = version
        self._flexible = flexible
        self._elements_max = elements_max
        self._source = Source(RUNTIME)
        self._run: list[tuple[str, str]] = []

    def write(self, message: MessageType) -> Source:
        source = self._source
        what = f"{message.__name__} v{self._version}"
        with source.block("def decode(view, position):"):
            source.line("end = len(view)")
            if self._elements_max is not None:
                source.line("elements = 0")
            with source.block("try:"):
                source.line(f"message = {self._struct(message)}")
            with source.block("except TRUNCATED:"):
                source.line(f'raise malformed("{what}", "truncated") from None')
            with source.block("except REFUSED as error:"):
                source.line(f'raise malformed("{what}", error) from None')
            with source.block("if position > end:"):
                source.line(f'raise malformed("{what}", "truncated")')
            source.line("return message, position")
        return source

    # --- structs ------------------------------------------------------------------------------

    def _struct(self, message: MessageType) -> str:
        """Emit code that reads a struct; return the expression that constructs it."""
        present = fields(message, self._version)
        values = {field.name: self._value(field) for field in present if field.tag is None}
        if self._flexible:
            values |= self._tags([field for field in present if field.tag is not None])
        self._flush()
        names = message.__struct_fields__
        while names and names[-1] not in values:
            names = names[:-1]  # Trailing defaults are left to the constructor.
        arguments = [
            values.get(name) or self._default(absent_default(message, name)) for name in names
        ]
        constructor = self._source.constant(message.__name__, message)
        return f"{constructor}({', '.join(arguments)})"

    def _default(self, default: Any) -> str:
        if isinstance(default, Message):
            return self._source.constant(type(default).__name__, type(default)) + "()"
        return repr(default)

    def _tags(self, tagged: list[Field]) -> dict[str, str]:
        """Emit code that reads tagged fields; return the variables of the known ones."""
        source = self._source
        values = {field.name: source.name(field.name) for field in tagged}
        count = source.name("tags")
        self._read(count, "B")
        self._flush()
        for field in tagged:
            source.line(f"{values[field.name]} = {self._default(field.default)}")
        with source.block(f"if {count}:"):
            if not tagged:
                source.line(f"position = skip_tags(view, position, {count})")
                return values
            source.line(f"{count}, position = continue_uvarint(view, position, {count})")
            with source.block(f"for _ in range({count}):"):
                self._tag(tagged, values)
        return values

    def _tag(self, tagged: list[Field], values: dict[str, str]) -> None:
        source = self._source
        number, stop = source.name("tag"), source.name("tag_stop")
        source.line(f"{number}, position = decode_uvarint(view, position)")
        source.line(f"{stop}, position = decode_uvarint(view, position)")
        source.line(f"{stop} += position")
        word = "if"
        for field in tagged:
            with source.block(f"{word} {number} == {field.tag}:"):
                value = self._value(field)
                self._flush()
                source.line(f"{values[field.name]} = {value}")
                with source.block(f"if position != {stop}:"):
                    source.line(f'raise_bad_tag("{field.name}")')
            word = "elif"
        source.line(f"position = {stop}")

    # --- fields -------------------------------------------------------------------------------

    def _value(self, field: Field) -> str:
        """Emit code that reads a field; return its variable, which is set by the next flush."""
        variable = self._source.name(field.name)
        match field.type:
            case PrimitiveType(format="") as kind:
                self._sized(field, kind, variable)
            case PrimitiveType() as kind:
                self._read(variable, kind.format)
            case Array() as array:
                self._array(field, array, variable)
            case inner:
                self._nested(field, inner, variable)
        return variable

    def _nested(self, field: Field, inner: MessageType, variable: str) -> None:
        source = self._source
        if not field.nullable:
            source.line(f"{variable} = {self._struct(inner)}")
            return
        # A nullable struct starts with a byte: -1 for null, 1 for a struct (KIP-893).
        present = source.name(f"{field.name}_present")
        self._read(present, "b")
        self._flush()
        source.line(f"{variable} = None")
        with source.block(f"if {present} >= 0:"):
            source.line(f"{variable} = {self._struct(inner)}")

    def _sized(self, field: Field, kind: PrimitiveType, variable: str) -> None:
        source = self._source
        length = self._length(field, LENGTH_FORMATS[kind.name])
        less_one = " - 1" if self._flexible else ""
        with self._unless_null(field, variable, length):
            source.line(f"stop = position + {length}{less_one}")
            source.line(f"{variable} = {BODIES[kind.name]}")
            source.line("position = stop")

    def _array(self, field: Field, array: Array, variable: str) -> None:
        source = self._source
        count = self._length(field, "i")
        with self._unless_null(field, variable, count):
            if self._flexible:
                source.line(f"{count} -= 1")
            size_bytes_min = self._size_bytes_min(array.element)
            with source.block(f"if {count} * {size_bytes_min} > end - position:"):
                source.line(f'raise_bad_count("{field.name}", {count})')
            match array.element:
                case PrimitiveType(format="16s"):
                    source.line(f"stop = position + 16 * {count}")
                    each = "view[at : at + 16].tobytes() for at in range(position, stop, 16)"
                    source.line(f"{variable} = [{each}]")
                    source.line("position = stop")
                case PrimitiveType(format=character) if character:
                    values = f'unpack_from(f">{{{count}}}{character}", view, position)'
                    source.line(f"{variable} = list({values})")
                    source.line(f"position += {size_bytes_min} * {count}")
                case element:
                    self._elements(field, element, variable, count)

    def _elements(self, field: Field, element: WireType, variable: str, count: str) -> None:
        source = self._source
        if self._elements_max is not None:
            source.line(f"elements += {count}")
            with source.block(f"if elements > {self._elements_max}:"):
                source.line(f'raise_too_many("{field.name}", elements)')
        source.line(f"{variable} = []")
        with source.block(f"for _ in range({count}):"):
            if isinstance(element, PrimitiveType):
                item = self._value(Field(_singular(field.name), element, False, None, None))
            else:
                assert isinstance(element, type)
                item = self._struct(element)
            self._flush()
            source.line(f"{variable}.append({item})")

    # --- lengths ------------------------------------------------------------------------------

    def _length(self, field: Field, character: str) -> str:
        """Emit code that reads a length or count; return its variable.

        In flexible versions it is encoded plus one, so that 0 is null and most values take one
        byte. The second byte is read inline too, because records always need it and a call is
        slower.
        """
        variable = self._source.name(f"{field.name}_length")
        if not self._flexible:
            self._read(variable, character)
            self._flush()
            return variable
        self._read(variable, "B")
        self._flush()
        source = self._source
        with source.block(f"if {variable} > 127:"):
            source.line(f"{variable} += view[position] - 1 << 7")
            source.line("position += 1")
            with source.block(f"if {variable} > 16383:"):
                source.line(f"{variable}, position = long_uvarint(view, position, {variable})")
        return variable

    def _unless_null(
        self, field: Field, variable: str, length: str
    ) -> AbstractContextManager[None]:
        """The block that reads a value that is not null."""
        source = self._source
        null = 0 if self._flexible else -1
        lowest = null if field.nullable else null + 1
        if lowest != 0 or not self._flexible:  # A compact length is never below 0.
            with source.block(f"if {length} < {lowest}:"):
                source.line(f'raise_bad_length("{field.name}", {length})')
        if not field.nullable:
            return nullcontext()
        source.line(f"{variable} = None")
        return source.block(f"if {length} != {null}:")

    def _size_bytes_min(self, wire_type: WireType) -> int:
        """The minimum size of a value of this type."""
        match wire_type:
            case PrimitiveType(format="", name=name):
                return 1 if self._flexible else struct.calcsize(LENGTH_FORMATS[name])
            case PrimitiveType() as kind:
                return kind.size_bytes
            case Array():
                return 1 if self._flexible else 4
            case message:
                present = [f for f in fields(message, self._version) if f.tag is None]
                # A nullable struct has at least its presence byte.
                perhaps = [f for f in present if f.nullable and isinstance(f.type, type)]
                certain = [f for f in present if f not in perhaps]
                sizes = (self._size_bytes_min(f.type) for f in certain)
                return sum(sizes) + len(perhaps) + self._flexible

    # --- runs of fixed size -------------------------------------------------------------------

    def _read(self, variable: str, character: str) -> None:
        self._run.append((character, variable))

    def _flush(self) -> None:
        """Emit code that reads all pending fixed-size fields at once."""
        if not self._run:
            return
        source = self._source
        formats = "".join(character for character, _ in self._run)
        variables = ", ".join(variable for _, variable in self._run)
        self._run.clear()
        if formats == "B":
            source.line(f"{variables} = view[position]")
        else:
            comma = "," if ", " not in variables else ""
            source.line(f"{variables}{comma} = {source.unpacker(formats)}(view, position)")
        source.line(f"position += {struct.calcsize('>' + formats)}")


def _singular(name: str) -> str:
    return name.removesuffix("s") or name
