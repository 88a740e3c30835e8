"""Parses Avro schemas. Pure."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec
from fastavro import parse_schema
from fastavro.schema import SchemaParseException

from kafscale.errors import ConfigError

NAMED: Final = frozenset({"record", "error", "enum", "fixed"})
"""The types with names, by which they can be referenced."""

_SCHEMA_ERRORS: Final = (
    msgspec.MsgspecError,
    SchemaParseException,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""The errors of fastavro for an invalid schema."""


_ATTRIBUTES: Final = {"size": int, "symbols": list, "fields": list, "logicalType": str}


class AvroSchema(NamedTuple):
    """A parsed schema, and its named types."""

    parsed: Any
    named: dict[str, Any]


def parse(text: str, references: Iterable[str] = ()) -> AvroSchema:
    """Parse the text of a schema; `references` are those it refers to, deepest first."""
    named: dict[str, Any] = {}
    try:
        for reference in references:
            _check(parse_schema(_to_json(reference), named_schemas=named))
        parsed = parse_schema(_to_json(text), named_schemas=named)
        _check(parsed)
    except _SCHEMA_ERRORS as error:
        raise ConfigError(f"invalid Avro schema: {error!r}") from error
    return AvroSchema(parsed, named)


def _to_json(text: str) -> Any:
    """Return the schema as an object; also a bare type name, with or without quotes."""
    stripped = text.strip()
    return msgspec.json.decode(stripped) if stripped[:1] in {"{", "[", '"'} else stripped


def _check(schema: Any) -> None:
    """Raise `TypeError` for attributes of a wrong type, of those that fastavro does not check."""
    if isinstance(schema, list):
        for branch in schema:
            _check(branch)
    if not isinstance(schema, dict):
        return
    for attribute, type_ in _ATTRIBUTES.items():
        value = schema.get(attribute)
        if value is not None and not isinstance(value, type_):
            raise TypeError(f"{attribute} is {value!r}")
    for field in schema.get("fields", ()):
        if not isinstance(field["name"], str):
            raise TypeError(f"the name of a field is {field['name']!r}")
        _check(field["type"])
    for part in ("type", "items", "values"):
        _check(schema.get(part))
