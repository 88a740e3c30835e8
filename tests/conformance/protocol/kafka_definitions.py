"""Kafka's own message definitions, from the kafka-python wheel, reduced to structures.

A structure is what the wire format of a message version determines, without names: for each field
its type, nullability, tag and default. Equal structures mean equal protocols.
"""

from dataclasses import dataclass
from typing import Any

from kafka.protocol.schemas import load_json

from kafscale.protocol.codec import schema, wire

VERSION_MAX = 0x7FFF


@dataclass(frozen=True)
class Shape:
    type: str
    nullable: bool
    tag: int | None
    default: Any
    fields: tuple["Shape", ...] = ()


def exists(message: str) -> bool:
    try:
        load_json(message)
    except FileNotFoundError:
        return False
    return True


def defines(message: str, version: int) -> bool:
    """Whether Kafka still accepts the version; older ones may have lost fields."""
    return exists(message) and _within(version, load_json(message)["validVersions"])


def newest_stable_version(message: str) -> int:
    definition = load_json(message)
    newest = _versions(definition["validVersions"])[1]
    return newest - 1 if definition.get("latestVersionUnstable") else newest


def flexible_since(message: str) -> int:
    return _versions(load_json(message)["flexibleVersions"])[0]


def kafka_shape(message: str, version: int) -> tuple[Shape, ...]:
    return tuple(_kafka_fields(load_json(message)["fields"], version))


def our_shape(message: schema.MessageType, version: int) -> tuple[Shape, ...]:
    return tuple(
        Shape(
            _our_type(field.type),
            field.nullable,
            field.tag,
            _our_default(field),
            _our_children(field.type, version),
        )
        for field in schema.fields(message, version)
    )


def _kafka_fields(definitions: list[dict[str, Any]], version: int) -> list[Shape]:
    shapes = []
    for field in definitions:
        if not _within(version, field.get("versions", "0+")):
            continue
        tagged = _within(version, field.get("taggedVersions", "none"))
        type_name = field["type"]
        element = type_name.removeprefix("[]")
        is_struct = element[0].isupper()
        if is_struct:
            type_name = type_name.replace(element, "struct")
        shapes.append(
            Shape(
                type_name,
                _within(version, field.get("nullableVersions", "none")),
                field["tag"] if tagged else None,
                _kafka_default(type_name, field.get("default"), tagged=tagged),
                tuple(_kafka_fields(field.get("fields", []), version)) if is_struct else (),
            )
        )
    return shapes


def _kafka_default(type_name: str, default: Any, *, tagged: bool) -> Any:
    if type_name == "struct":
        return None if tagged or default == "null" else "struct"
    if default == "null":
        return None
    if type_name.startswith("[]"):
        return []
    match type_name:
        case "string":
            return default or ""
        case "bytes":
            return b""
        case "records":
            return None
        case "uuid":
            return bytes(16)
        case "bool":
            return str(default).lower() == "true"
        case "float64":
            return float(default or 0)
        case _:
            return int(str(default or 0), 0)


def _our_default(field: schema.Field) -> Any:
    if isinstance(field.type, wire.PrimitiveType) and field.type.name in (
        "records",
        "record_slices",
    ):
        return None
    return "struct" if isinstance(field.default, wire.Message) else field.default


def _our_type(wire_type: schema.WireType) -> str:
    match wire_type:
        case schema.Array(element):
            return "[]" + _our_type(element)
        case wire.PrimitiveType(name="record_slices"):
            return "records"
        case wire.PrimitiveType(name=name):
            return name
        case _:
            return "struct"


def _our_children(wire_type: schema.WireType, version: int) -> tuple[Shape, ...]:
    inner = schema.inner_message(wire_type)
    return our_shape(inner, version) if inner else ()


def _within(version: int, versions: str) -> bool:
    first, last = _versions(versions)
    return first <= version <= last


def _versions(text: str) -> tuple[int, int]:
    if text == "none":
        return VERSION_MAX, -1
    first, _, last = text.partition("-")
    if first.endswith("+"):
        return int(first[:-1]), VERSION_MAX
    return int(first), int(last or first)
