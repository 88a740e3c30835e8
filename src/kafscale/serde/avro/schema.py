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


class AvroSchema(NamedTuple):
    """A parsed schema, and its named types."""

    parsed: Any
    named: dict[str, Any]


def parse(text: str, references: Iterable[str] = ()) -> AvroSchema:
    """Parse the text of a schema; `references` are those it refers to, deepest first."""
    named: dict[str, Any] = {}
    try:
        for reference in references:
            parse_schema(_to_json(reference), named_schemas=named)
        return AvroSchema(parse_schema(_to_json(text), named_schemas=named), named)
    except _SCHEMA_ERRORS as error:
        raise ConfigError(f"invalid Avro schema: {error!r}") from error


def _to_json(text: str) -> Any:
    """Return the schema as an object; also a bare type name, with or without quotes."""
    stripped = text.strip()
    return msgspec.json.decode(stripped) if stripped[:1] in {"{", "[", '"'} else stripped
