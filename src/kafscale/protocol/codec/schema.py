"""Reads `Message` classes: the fields of a version and their wire types.

The decoder, the encoder, `kafscale protocol show`, the documentation and the comparison with
Kafka's own definitions all use `fields`.
"""

from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from kafscale.protocol.codec.wire import Message, Nullable, PrimitiveType, Tag, Versions

MessageType = type[Message]


@dataclass(frozen=True, slots=True)
class Array:
    """An array of elements of one type."""

    element: PrimitiveType | MessageType


WireType = PrimitiveType | Array | MessageType


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message in one version."""

    name: str
    type: WireType
    nullable: bool
    tag: int | None
    default: Any

    @property
    def type_name(self) -> str:
        return _type_name(self.type)


@dataclass(frozen=True, slots=True)
class _Declaration:
    """One field of a message with its annotations, before a version is chosen."""

    name: str
    type: WireType
    optional: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    default: Any


@cache
def fields(message: MessageType, version: int) -> tuple[Field, ...]:
    """The fields of `message` in `version`, in wire order."""
    present = [d for d in _declarations(message) if version in d.versions]
    return tuple(
        Field(d.name, d.type, d.optional and version in d.nullable, d.tag, d.default)
        for d in present
    )


def absent_default(message: MessageType, name: str) -> Any:
    """The value of a field in versions that do not have it."""
    return next(d.default for d in _declarations(message) if d.name == name)


def inner_message(wire_type: WireType) -> MessageType | None:
    """The struct type of a field or of its array elements, or None."""
    if isinstance(wire_type, Array):
        wire_type = wire_type.element
    return wire_type if isinstance(wire_type, type) else None


def structs(message: MessageType) -> list[MessageType]:
    """The message and all nested structs, outermost first."""
    collected = [message]
    for declaration in _declarations(message):
        if inner := inner_message(declaration.type):
            collected += [s for s in structs(inner) if s not in collected]
    return collected


@cache
def _declarations(message: MessageType) -> tuple[_Declaration, ...]:
    hints = get_type_hints(message, include_extras=True)
    return tuple(
        _declaration(message, info, hints[info.name]) for info in msgspec.structs.fields(message)
    )


def _declaration(message: MessageType, info: msgspec.structs.FieldInfo, hint: Any) -> _Declaration:
    where = f"{message.__name__}.{info.name}"
    marks: tuple[Any, ...] = ()
    # Annotated[Annotated[int, PrimitiveType], since(2)] is flattened; only a PrimitiveType may
    # remain inside.
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        kinds = [e for e in extras if isinstance(e, PrimitiveType)]
        marks = tuple(e for e in extras if not isinstance(e, PrimitiveType))
        if kinds:
            hint = Annotated[hint, kinds[0]]
    optional = get_origin(hint) in (Union, UnionType)
    if optional:
        hint = next(a for a in get_args(hint) if a is not NoneType)
    wire_type = _wire_type(hint, where)
    tagged = next((m for m in marks if isinstance(m, Tag)), None)
    versions = next((m for m in marks if isinstance(m, Versions)), Versions())
    nullable = next((m.versions for m in marks if isinstance(m, Nullable)), Versions())
    if tagged is not None:
        versions = tagged.versions
        # None means that a tagged struct is not sent; on the wire it is never null.
        if isinstance(wire_type, type):
            optional = False
    default = info.default
    if default is msgspec.NODEFAULT:
        assert info.default_factory is not msgspec.NODEFAULT, f"{where} has no default"
        default = info.default_factory()
    return _Declaration(
        info.name,
        wire_type,
        optional,
        versions,
        nullable,
        None if tagged is None else tagged.number,
        default,
    )


def _wire_type(hint: Any, where: str) -> WireType:
    if get_origin(hint) is Annotated:
        kind = get_args(hint)[1]
        assert isinstance(kind, PrimitiveType), f"{where} has no wire type"
        return kind
    if get_origin(hint) is list:
        element = _wire_type(get_args(hint)[0], where)
        assert not isinstance(element, Array), f"{where}: Kafka has no arrays of arrays"
        return Array(element)
    assert isinstance(hint, type), f"{where} has no wire type"
    assert issubclass(hint, Message), f"{where} has no wire type"
    return hint


def _type_name(wire_type: WireType) -> str:
    if isinstance(wire_type, Array):
        return f"[]{_type_name(wire_type.element)}"
    if isinstance(wire_type, PrimitiveType):
        return "records" if wire_type.name == "record_slices" else wire_type.name
    return wire_type.__name__
