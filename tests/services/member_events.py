"""Events of a consumer group member, as the member reports them.

Members are separate programs, so that they can be killed. Each prints one event a line, and the
test harness parses them. Times are wall clock times of one machine, so that the events of several
members can be ordered.
"""

import time

import msgspec


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    at_ms: int = msgspec.field(default_factory=now_ms)


class Assigned(Event, tag="assigned"):
    """It owns these partitions too from now on."""

    partitions: tuple[int, ...]


class Revoked(Event, tag="revoked"):
    """It has finished with these partitions and no longer owns them."""

    partitions: tuple[int, ...]


class Lost(Event, tag="lost"):
    """It lost these partitions without a revocation."""

    partitions: tuple[int, ...]


class Read(Event, tag="read"):
    """Offsets from `first` up to, and not including, `end`."""

    partition: int
    first: int
    end: int


class Committed(Event, tag="committed"):
    """The commit of everything below `offset` was acknowledged."""

    partition: int
    offset: int


class CommitRejected(Event, tag="commit_rejected"):
    """A commit was rejected, so that another member may read the same records."""

    error: str


class Failed(Event, tag="failed"):
    """Another error; the member continues if it can."""

    error: str


class Ended(Event, tag="ended"):
    """It has left the group."""


AnyEvent = Assigned | Revoked | Lost | Read | Committed | CommitRejected | Failed | Ended


def encode_event(event: AnyEvent) -> str:
    return msgspec.json.encode(event).decode()


_decoder = msgspec.json.Decoder(AnyEvent)


def decode_event(line: str) -> AnyEvent:
    return _decoder.decode(line)
