"""Browsing and producing records."""

from typing import Literal

import msgspec

from kafscale.admin.messages import browse, produce, query
from kafscale.admin.messages.produce import PayloadInput
from kafscale.admin.messages.renderer import RenderedPayload
from kafscale.console.schema.base import RequestModel

Format = query.Format
Isolation = query.Isolation
SchemaKind = query.SchemaKind
Schema = query.SchemaText
Reading = query.DisplayFormat
Filter = query.FilterSpec
Payload = RenderedPayload
Header = browse.RenderedHeader
Message = browse.RenderedRecord
Browsed = browse.Page
NewPayload = PayloadInput
Produced = produce.ProducedRecord


class Start(RequestModel):
    """Where to begin: `newest` reads backwards from the end; all others read forwards."""

    kind: Literal["newest", "earliest", "offset", "time"] = "newest"
    offset: int = 0
    time_ms: int = 0


class Browse(RequestModel):
    partitions: list[int] = []
    """Empty: all."""
    start: Start = msgspec.field(default_factory=Start)
    limit: int = 50
    """How many records to return, at most 500."""
    cursor: dict[str, int] = {}
    """By partition, where to continue: the `next` of the previous response."""
    isolation: Isolation = "read_uncommitted"
    """By default, records of open and of aborted transactions are shown, too."""
    filter: Filter = msgspec.field(default_factory=Filter)
    key: Reading = msgspec.field(default_factory=Reading)
    value: Reading = msgspec.field(default_factory=Reading)


class NewHeader(RequestModel):
    key: str
    value: str | None = None


class Produce(RequestModel):
    """A record to write; without a value it is a tombstone."""

    partition: int | None = None
    key: NewPayload | None = None
    value: NewPayload | None = None
    headers: list[NewHeader] = []
    timestamp_ms: int | None = None
