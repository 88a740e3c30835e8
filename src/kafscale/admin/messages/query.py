"""What may be asked of the records of a topic, and what is refused before anybody is asked."""

from typing import Final, Literal

import msgspec

from kafscale.errors import InvalidRequestError

Format = Literal["auto", "text", "json", "hex", "base64", "avro", "protobuf"]
StartKind = Literal["newest", "earliest", "offset", "time"]

LIMIT_MAX: Final = 500
SCHEMA_CHARACTERS_MAX: Final = 256 * 1024
_INT64_MAX: Final = 2**63 - 1


class SchemaText(msgspec.Struct, frozen=True, kw_only=True):
    """How bytes are read; without a text, a registry knows."""

    kind: Literal["avro", "protobuf"]
    text: str = ""
    message: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How keys, or values, are shown."""

    format: Format = "auto"
    schema: SchemaText | None = None

    @property
    def wanted(self) -> SchemaText | None:
        """The schema that the format needs; None for those that need none."""
        return schema_for(self.format, self.schema)


def schema_for(form: str, schema: SchemaText | None) -> SchemaText | None:
    if form not in {"avro", "protobuf"}:
        return None
    if schema is None:
        return SchemaText(kind="avro" if form == "avro" else "protobuf")
    if schema.kind != form:
        raise InvalidRequestError(f"a schema of {schema.kind} cannot be used for {form}")
    if len(schema.text) > SCHEMA_CHARACTERS_MAX:
        raise InvalidRequestError(f"a schema may have {SCHEMA_CHARACTERS_MAX} characters")
    return schema


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted of what is read; what is empty wants nothing, the others have to hold all."""

    key: str = ""
    text: str = ""
    json_path: str = ""
    json_equals: str = ""
    header: str = ""

    @property
    def is_empty(self) -> bool:
        return self == Filter()


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Which records of a topic: `newest` goes back from the end, all others go on from a start."""

    partitions: tuple[int, ...] = ()
    """None: all."""

    start: StartKind = "newest"
    offset: int = 0
    time_ms: int = 0
    limit: int = 50
    cursor: dict[int, int] = {}
    """By partition, where to go on: back from here, or on from here."""

    filter: Filter = Filter()
    key: Reading = Reading()
    value: Reading = Reading()

    @property
    def goes_back(self) -> bool:
        return self.start == "newest"

    def check(self) -> None:
        """Raise if it makes no sense."""
        if not 1 <= self.limit <= LIMIT_MAX:
            raise InvalidRequestError(f"a page has 1 to {LIMIT_MAX} records, not {self.limit}")
        for number in (self.offset, self.time_ms, *self.cursor.values(), *self.cursor):
            if not 0 <= number <= _INT64_MAX:
                raise InvalidRequestError(f"{number} is no offset, time or partition")
        if self.filter.json_equals and not self.filter.json_path:
            raise InvalidRequestError("say which field of the value is to be equal: a JSON path")
