"""Records, as people look for them and write them."""

from typing import Literal

import msgspec

from kafscale.console.schema.base import Asked, View

Format = Literal["auto", "text", "json", "hex", "base64", "avro", "protobuf"]
SchemaKind = Literal["avro", "protobuf"]


class Schema(Asked):
    """How bytes are read: a text, or the framing of a schema registry where there is one."""

    kind: SchemaKind
    text: str = ""
    """An Avro schema in JSON, or a .proto file; empty: ask the registry that the settings name."""
    message: str = ""
    """Which message of a .proto file."""


class Reading(Asked):
    """How keys, or values, are shown."""

    format: Format = "auto"
    schema: Schema | None = None


class Start(Asked):
    """Where to begin: `newest` ends at the end and goes back; all others go on from there."""

    kind: Literal["newest", "earliest", "offset", "time"] = "newest"
    offset: int = 0
    time_ms: int = 0


class Filter(Asked):
    """What is wanted of what is read; all that are given have to hold."""

    key: str = ""
    """Exactly this key, as text."""
    text: str = ""
    """Contained in the key, the value or a header, as shown; case does not matter."""
    json_path: str = ""
    """A field of a value that is JSON, such as `customer.address.city`."""
    json_equals: str = ""
    """What that field is to be; empty: that it is there."""
    header: str = ""
    """A header with this name."""


class Browse(Asked):
    partitions: list[int] = []
    """None named: all."""
    start: Start = msgspec.field(default_factory=Start)
    limit: int = 50
    """How many to show, at most 500."""
    cursor: dict[str, int] = {}
    """By partition, where to go on: the `next` of the answer before."""
    filter: Filter = msgspec.field(default_factory=Filter)
    key: Reading = msgspec.field(default_factory=Reading)
    value: Reading = msgspec.field(default_factory=Reading)


class Payload(View):
    """Bytes made readable."""

    format: Literal["text", "json", "hex", "base64", "avro", "protobuf"]
    text: str
    size_bytes: int
    is_truncated: bool
    schema_id: int | None = None
    problem: str | None = None
    """Why it could not be read as was asked."""


class Header(View):
    key: str
    value: Payload | None


class Message(View):
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: Literal["create", "append", "none"]
    key: Payload | None
    value: Payload | None
    headers: list[Header]
    size_bytes: int


class Browsed(View):
    messages: list[Message]
    scanned_records: int
    scanned_bytes: int
    is_complete: bool
    """Whether everything that was asked for has been looked at."""
    next: dict[str, int]
    """The cursor to go on with."""
    problems: list[str]


class NewHeader(Asked):
    key: str
    value: str | None = None


class NewPayload(Asked):
    text: str
    format: Literal["text", "json", "hex", "base64", "avro", "protobuf"] = "text"
    schema: Schema | None = None


class Produce(Asked):
    """A record to write; no value is a tombstone."""

    partition: int | None = None
    key: NewPayload | None = None
    value: NewPayload | None = None
    headers: list[NewHeader] = []
    timestamp_ms: int | None = None


class Produced(View):
    partition: int
    offset: int
    timestamp_ms: int
