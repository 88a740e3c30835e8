"""Browsing and producing records."""

from typing import Literal

import msgspec

from kafscale.console.schema.base import RequestModel, ResponseModel

Format = Literal["auto", "text", "json", "hex", "base64", "avro", "protobuf"]
SchemaKind = Literal["avro", "protobuf"]


class Schema(RequestModel):
    """The schema of payloads: inline, or from the schema registry."""

    kind: SchemaKind
    text: str = ""
    """An Avro schema in JSON, or a .proto file; empty: use the schema registry of the settings."""
    message: str = ""
    """The message of a .proto file."""


class Reading(RequestModel):
    """How keys or values are shown."""

    format: Format = "auto"
    schema: Schema | None = None


class Start(RequestModel):
    """Where to begin: `newest` reads backwards from the end; all others read forwards."""

    kind: Literal["newest", "earliest", "offset", "time"] = "newest"
    offset: int = 0
    time_ms: int = 0


class Filter(RequestModel):
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


class Browse(RequestModel):
    partitions: list[int] = []
    """Empty: all."""
    start: Start = msgspec.field(default_factory=Start)
    limit: int = 50
    """How many records to return, at most 500."""
    cursor: dict[str, int] = {}
    """By partition, where to continue: the `next` of the previous response."""
    filter: Filter = msgspec.field(default_factory=Filter)
    key: Reading = msgspec.field(default_factory=Reading)
    value: Reading = msgspec.field(default_factory=Reading)


class Payload(ResponseModel):
    """A payload as text."""

    format: Literal["text", "json", "hex", "base64", "avro", "protobuf"]
    text: str
    size_bytes: int
    is_truncated: bool
    schema_id: int | None = None
    problem: str | None = None
    """Why it could not be decoded as requested."""


class Header(ResponseModel):
    key: str
    value: Payload | None


class Message(ResponseModel):
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: Literal["create", "append", "none"]
    key: Payload | None
    value: Payload | None
    headers: list[Header]
    size_bytes: int


class Browsed(ResponseModel):
    messages: list[Message]
    scanned_records: int
    scanned_bytes: int
    is_complete: bool
    """True if all requested records were scanned."""
    next: dict[str, int]
    """The cursor of the next page."""
    problems: list[str]


class NewHeader(RequestModel):
    key: str
    value: str | None = None


class NewPayload(RequestModel):
    text: str
    format: Literal["text", "json", "hex", "base64", "avro", "protobuf"] = "text"
    schema: Schema | None = None


class Produce(RequestModel):
    """A record to write; without a value it is a tombstone."""

    partition: int | None = None
    key: NewPayload | None = None
    value: NewPayload | None = None
    headers: list[NewHeader] = []
    timestamp_ms: int | None = None


class Produced(ResponseModel):
    partition: int
    offset: int
    timestamp_ms: int
