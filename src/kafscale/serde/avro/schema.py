"""Schemas of Avro, parsed, with what the names in them mean. Pure."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec
from fastavro import parse_schema
from fastavro.schema import SchemaParseException

from kafscale.errors import ConfigError

NAMED: Final = frozenset({"record", "error", "enum", "fixed"})
"""The types that have names, under which they can be used again."""

_NOT_A_SCHEMA: Final = (
    msgspec.MsgspecError,
    SchemaParseException,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""How fastavro meets what is no schema: it says it in many ways."""


class AvroSchema(NamedTuple):
    parsed: Any
    named: dict[str, Any]


def parse(text: str, references: Iterable[str] = ()) -> AvroSchema:
    """Take the text of a schema, and the texts of those it refers to, deepest first."""
    named: dict[str, Any] = {}
    try:
        for reference in references:
            parse_schema(_json_of(reference), named_schemas=named)
        return AvroSchema(parse_schema(_json_of(text), named_schemas=named), named)
    except _NOT_A_SCHEMA as error:
        raise ConfigError(f"the schema is not one of Avro: {error!r}") from error


def _json_of(text: str) -> Any:
    """The schema as an object; a lone name of a type is one too, with or without quotes."""
    stripped = text.strip()
    return msgspec.json.decode(stripped) if stripped[:1] in {"{", "[", '"'} else stripped
