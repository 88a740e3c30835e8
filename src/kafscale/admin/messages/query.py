"""A query for the records of a topic, and its validation."""

from typing import Final, Literal

import msgspec

from kafscale.errors import InvalidRequestError

Format = Literal["auto", "text", "json", "hex", "base64", "avro", "protobuf"]
SchemaKind = Literal["avro", "protobuf"]
Isolation = Literal["read_uncommitted", "read_committed"]
StartKind = Literal["newest", "earliest", "offset", "time"]

LIMIT_MAX: Final = 500
SCHEMA_CHARACTERS_MAX: Final = 256 * 1024
_INT64_MAX: Final = 2**63 - 1


class _Query(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a query."""


class SchemaText(_Query, frozen=True):
    """The schema of payloads: inline, or from the schema registry."""

    kind: SchemaKind
    text: str = ""
    """An Avro schema in JSON, or a .proto file; empty: use the schema registry of the settings."""
    message: str = ""
    """The message of a .proto file."""


class DisplayFormat(_Query, frozen=True):
    """How keys or values are shown."""

    format: Format = "auto"
    schema: SchemaText | None = None

    @property
    def required_schema(self) -> SchemaText | None:
        """The schema that the format needs; None if it needs none."""
        return schema_for(self.format, self.schema)


def schema_for(format_name: str, schema: SchemaText | None) -> SchemaText | None:
    if format_name not in {"avro", "protobuf"}:
        return None
    if schema is None:
        return SchemaText(kind="avro" if format_name == "avro" else "protobuf")
    if schema.kind != format_name:
        raise InvalidRequestError(f"a schema of {schema.kind} cannot be used for {format_name}")
    if len(schema.text) > SCHEMA_CHARACTERS_MAX:
        raise InvalidRequestError(f"a schema can have at most {SCHEMA_CHARACTERS_MAX} characters")
    return schema


class FilterSpec(_Query, frozen=True):
    """Conditions on records; all that are given must hold."""

    key: str = ""
    """Exactly this key, as text."""
    text: str = ""
    """Contained in the key, the value or a header, as shown; case is ignored."""
    json_path: str = ""
    """A field of a JSON value, such as `customer.address.city`."""
    json_equals: str = ""
    """The value of that field; empty: the field exists."""
    header: str = ""
    """A header with this name."""


class BrowseQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which records of a topic to show; `newest` reads backwards from the end."""

    partitions: tuple[int, ...] = ()
    """Empty: all."""

    start: StartKind = "newest"
    offset: int = 0
    time_ms: int = 0
    limit: int = 50
    cursor: dict[int, int] = {}
    """By partition, the offset to continue at, in the direction of the query."""

    isolation: Isolation = "read_uncommitted"
    """Whether records of open and of aborted transactions are shown, too."""

    filter: FilterSpec = FilterSpec()
    key: DisplayFormat = DisplayFormat()
    value: DisplayFormat = DisplayFormat()

    @property
    def is_backward(self) -> bool:
        return self.start == "newest"

    def check(self) -> None:
        """Raise `InvalidRequestError` if the query is invalid."""
        if not 1 <= self.limit <= LIMIT_MAX:
            raise InvalidRequestError(f"a page has 1 to {LIMIT_MAX} records, not {self.limit}")
        for number in (self.offset, self.time_ms, *self.cursor.values(), *self.cursor):
            if not 0 <= number <= _INT64_MAX:
                raise InvalidRequestError(f"{number} is not an offset, time or partition")
        if self.filter.json_equals and not self.filter.json_path:
            raise InvalidRequestError("json_equals needs a JSON path that names the field")
