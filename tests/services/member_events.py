"""What happens to a member of a consumer group, as the member itself tells it.

Members are programs of their own, so that they can be killed: each prints one of these a line, and
whoever started it reads them. The clock is the machine's, so that events of several members can be
put in order.
"""

import time

import msgspec


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="what"):
    at_ms: int = msgspec.field(default_factory=now_ms)


class Assigned(Event, tag="assigned"):
    """It owns these as well from now on."""

    partitions: tuple[int, ...]


class Revoked(Event, tag="revoked"):
    """It has finished with these and gives them up."""

    partitions: tuple[int, ...]


class Lost(Event, tag="lost"):
    """These were taken from it without being asked back."""

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


class Refused(Event, tag="refused"):
    """A commit was not accepted, so that somebody may read the same again."""

    error: str


class Failed(Event, tag="failed"):
    """Something else went wrong; the member goes on if it can."""

    error: str


class Ended(Event, tag="ended"):
    """It has left in order."""


AnyEvent = Assigned | Revoked | Lost | Read | Committed | Refused | Failed | Ended


def line_of(event: AnyEvent) -> str:
    return msgspec.json.encode(event).decode()


_decoder = msgspec.json.Decoder(AnyEvent)


def event_of(line: str) -> AnyEvent:
    return _decoder.decode(line)
