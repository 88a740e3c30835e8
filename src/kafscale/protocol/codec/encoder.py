"""Generates the encoder of a message version: straight-line Python that fills a list of parts.

Consecutive fields of fixed size, and the length prefix that follows them, become one `pack`. The
result has as few parts as possible without copying records, which are parts of their own.
"""

import struct
from typing import Any

from kafscale.errors import EncodeError
from kafscale.protocol.codec import varint
from kafscale.protocol.codec.decoder import LENGTH_FORMATS
from kafscale.protocol.codec.schema import Array, Field, MessageType, WireType, fields, structs
from kafscale.protocol.codec.source import Source
from kafscale.protocol.codec.wire import PrimitiveType

RECORD_KINDS = ("records", "record_slices")


def write_encoder(message: MessageType, version: int, *, flexible: bool) -> Source:
    """Generate the source of `encode(message) -> parts`."""
    return _Encoder(version, flexible=flexible).write(message)


def encode_error(what: str, why: object) -> EncodeError:
    return EncodeError(f"cannot encode {what}: {why}")


RUNTIME: dict[str, Any] = {
    "uvarint": varint.encode,
    "SMALL": varint.SMALL,
    "write_tags": varint.write_tags,
    "unwritable": encode_error,
    "join": b"".join,
    "pack": struct.pack,
    # The exceptions of values with the wrong type or range, or unexpected nulls.
    "UNWRITABLE": (AttributeError, TypeError, ValueError, OverflowError, struct.error),
}


class _Encoder:
    def __init__(self, version: int, *, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._source = Source(RUNTIME)
        self._run: list[tuple[str, str]] = []
        self._writer = "out.append"

    def write(self, message: MessageType) -> Source:
        source = self._source
        what = f"{message.__name__} v{self._version}"
        with source.block("def encode(message):"):
            source.line("out = []")
            source.line(f"write = {self._writer}")
            if carries_records := self._carries_records(message):
                source.line("parts = []")
            with source.block("try:"):
                self._struct(message, "message")
                self._flush()
            with source.block("except UNWRITABLE as error:"):
                source.line(f'raise unwritable("{what}", error) from error')
            if carries_records:
                source.line("parts.append(join(out))")
                source.line("return parts")
            else:
                source.line("return [join(out)]")
        return source

    def _carries_records(self, message: MessageType) -> bool:
        return any(
            isinstance(field.type, PrimitiveType) and field.type.name in RECORD_KINDS
            for struct_ in structs(message)
            for field in fields(struct_, self._version)
        )

    # --- structs ------------------------------------------------------------------------------

    def _struct(self, message: MessageType, owner: str) -> None:
        present = fields(message, self._version)
        for field in present:
            if field.tag is None:
                self._value(field, f"{owner}.{field.name}")
        if self._flexible:
            self._tags([field for field in present if field.tag is not None], owner)

    def _tags(self, tagged: list[Field], owner: str) -> None:
        if not tagged:
            self._run.append(("x", ""))  # A zero byte is the count of no tagged fields.
            return
        source = self._source
        self._flush()
        given = {field.name: self._differs(field, f"{owner}.{field.name}") for field in tagged}
        with source.block(f"if {' or '.join(given.values())}:"):
            tags, body = source.name("tags"), source.name("tag_body")
            outer, self._writer = self._writer, f"{body}.append"
            source.line(f"{tags} = []")
            for field in sorted(tagged, key=lambda field: field.tag or 0):
                with source.block(f"if {given[field.name]}:"):
                    source.line(f"{body} = []")
                    source.line(f"write = {self._writer}")
                    self._value(field, f"{owner}.{field.name}")
                    self._flush()
                    source.line(f"{tags}.append(({field.tag}, join({body})))")
            self._writer = outer
            source.line(f"write = {self._writer}")
            source.line(f"write_tags(write, {tags})")
        with source.block("else:"):
            source.line(r'write(b"\0")')

    def _differs(self, field: Field, value: str) -> str:
        """The condition under which a tagged field is written."""
        match field.default:
            case None:
                return f"{value} is not None"
            case []:
                return value
            case default:
                return f"{value} != {default!r}"

    # --- fields -------------------------------------------------------------------------------

    def _value(self, field: Field, value: str) -> None:
        match field.type:
            case PrimitiveType(name="string"):
                self._sized(field, value, ".encode()")
            case PrimitiveType(name="bytes"):
                self._sized(field, value, "")
            case PrimitiveType(name="records" | "record_slices", format="") as kind:
                self._records(field, value, kind)
            case PrimitiveType() as kind:
                self._run.append((kind.format, value))
            case Array() as array:
                self._array(field, value, array)
            case inner:
                self._nested(field, value, inner)

    def _nested(self, field: Field, value: str, inner: MessageType) -> None:
        source = self._source
        owner = source.name(field.name)
        source.line(f"{owner} = {value}")
        if not field.nullable:
            self._struct(inner, owner)
            return
        # A nullable struct starts with a byte: -1 for null, 1 for a struct (KIP-893).
        self._run.append(("b", f"-1 if {owner} is None else 1"))
        self._flush()
        with source.block(f"if {owner} is not None:"):
            self._struct(inner, owner)
            self._flush()

    def _sized(self, field: Field, value: str, convert: str) -> None:
        source = self._source
        variable = source.name(field.name)
        length = source.name(f"{field.name}_length")
        size = self._counted(f"len({variable})")
        if field.nullable:
            source.line(f"{variable} = {value}")
            with source.block(f"if {variable} is None:"):
                source.line(f"{length} = {self._null_length}")
            with source.block("else:"):
                if convert:
                    source.line(f"{variable} = {variable}{convert}")
                source.line(f"{length} = {size}")
        else:
            source.line(f"{variable} = {value}{convert}")
            source.line(f"{length} = {size}")
        assert isinstance(field.type, PrimitiveType)
        self._length(length, LENGTH_FORMATS[field.type.name])
        with source.block(f"if {variable}:"):
            source.line(f"write({variable})")

    def _records(self, field: Field, value: str, kind: PrimitiveType) -> None:
        source = self._source
        slices = kind.name == "record_slices"
        size = "sum(map(len, {}))" if slices else "len({})"
        variable, length = self._measured(field, value, size)
        self._length(length, "i", size_bytes_typical=3)
        with source.block(f"if {variable}:"):
            source.line("parts.append(join(out))")
            source.line("out.clear()")
            source.line(f"parts.{'extend' if slices else 'append'}({variable})")

    def _array(self, field: Field, value: str, array: Array) -> None:
        source = self._source
        variable, length = self._measured(field, value, "len({})")
        self._length(length, "i")
        match array.element:
            case PrimitiveType(format="16s"):
                with source.block(f"if {variable}:"):
                    source.line(f'write(pack(">" + "16s" * len({variable}), *{variable}))')
            case PrimitiveType(format=character) if character:
                with source.block(f"if {variable}:"):
                    source.line(f'write(pack(f">{{len({variable})}}{character}", *{variable}))')
            case element:
                self._elements(field, element, variable)

    def _elements(self, field: Field, element: WireType, variable: str) -> None:
        source = self._source
        item = source.name("item")
        every = f"{variable} or ()" if field.nullable else variable
        with source.block(f"for {item} in {every}:"):
            if isinstance(element, PrimitiveType):
                self._value(Field(field.name, element, False, None, None), item)
            else:
                assert isinstance(element, type)
                self._struct(element, item)
            self._flush()

    def _measured(self, field: Field, value: str, size: str) -> tuple[str, str]:
        """Emit code that measures a value; return the variables of the value and its length."""
        variable = self._source.name(field.name)
        length = self._source.name(f"{field.name}_length")
        counted = self._counted(size.format(variable))
        if field.nullable:
            counted = f"{self._null_length} if {variable} is None else {counted}"
        self._source.line(f"{variable} = {value}")
        self._source.line(f"{length} = {counted}")
        return variable, length

    # --- lengths and runs of fixed size -------------------------------------------------------

    @property
    def _null_length(self) -> int:
        return 0 if self._flexible else -1

    def _counted(self, size: str) -> str:
        return f"{size} + 1" if self._flexible else size

    def _length(self, length: str, character: str, *, size_bytes_typical: int = 1) -> None:
        """Emit code that writes pending fields together with the following length or count.

        In flexible versions a length takes one to five bytes. The typical size of the field is
        packed in one call; longer lengths are appended.
        """
        if not self._flexible:
            self._run.append((character, length))
            self._flush()
            return
        if not self._run:
            long = f"uvarint({length})"
            self._source.line(f"write(SMALL[{length}] if {length} < 128 else {long})")
            return
        choices = []
        for size_bytes in range(1, size_bytes_typical + 1):
            shifts = [
                f"{length} >> {7 * index}" if index else length for index in range(size_bytes)
            ]
            septets = [f"{shift} & 0x7F | 0x80" for shift in shifts[:-1]] + shifts[-1:]
            packed = self._packed([*self._run, *(("B", septet) for septet in septets)])
            choices.append(f"{packed} if {length} < {1 << 7 * size_bytes} else ")
        longest = f"{self._packed(self._run)} + uvarint({length})"
        self._run.clear()
        self._source.line(f"write({''.join(choices)}{longest})")

    def _flush(self) -> None:
        """Emit code that writes all pending fixed-size fields at once."""
        if self._run:
            self._source.line(f"write({self._packed(self._run)})")
            self._run.clear()

    def _packed(self, run: list[tuple[str, str]]) -> str:
        formats = "".join(character for character, _ in run)
        values = [value for _, value in run if value]
        if not values:
            return repr(bytes(len(formats)))
        return f"{self._source.packer(formats)}({', '.join(values)})"
