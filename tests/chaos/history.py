"""The events that clients record: one JSON object a line.

Every client writes its own file and names itself in each event, in the order in which things
happened. Times are of the machine's monotonic clock, so that events of several clients can be
compared. A send is invoked and later ends in one of three ways:

    ok      it is in the log, at this offset
    fail    it is definitely not in the log, and never will be
    info    unknown

A send without an end counts as `info`. Values are unique: no client sends one twice, though its
library may retry.
"""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Literal, Self

import msgspec

Kind = Literal["invoke", "ok", "fail", "info"]
Verdict = Literal["begin", "commit", "abort"]


class Event(msgspec.Struct, frozen=True, gc=False, tag_field="event", omit_defaults=True):
    """The fields of all events."""

    process: str
    time_ns: int


class Producer(Event, tag="producer"):
    """A producer starts, with the guarantees of its library."""

    is_idempotent: bool = False
    """No value is in the log twice, and all are in the order of their sends."""
    keeps_order: bool = False
    """Acknowledged offsets are in the order of the sends."""


class Consumer(Event, tag="consumer"):
    """A consumer starts."""

    group: str = ""
    """The group it is a member of, if any."""
    is_final: bool = False
    """It reads everything from the start, after the last fault."""


class Send(Event, tag="send"):
    kind: Kind
    partition: str
    value: str
    offset: int = -1
    error: str = ""


class Transaction(Event, tag="transaction"):
    """A transaction begins, or its outcome was requested (`invoke`) or is decided (`ok`).

    The values that its producer sent before the outcome begin with its name, and a colon.
    """

    name: str
    verdict: Verdict
    kind: Kind


class Poll(Event, tag="poll"):
    """Offsets and values by partition, in the order in which the client got them."""

    records: dict[str, list[tuple[int, str]]]


class Move(Event, tag="move"):
    """A seek or an assignment: the next poll may start at any offset."""

    partitions: tuple[str, ...]


class Commit(Event, tag="commit"):
    """A group commits that it has read everything below `offset`."""

    kind: Kind
    group: str
    partition: str
    offset: int


class CommitRead(Event, tag="commit-read"):
    """A committed offset was fetched by a request sent at `began_ns`; -1 if there is none."""

    began_ns: int
    group: str
    partition: str
    offset: int


class EndRead(Event, tag="end-read"):
    """The end offset of a partition was fetched by a request sent at `began_ns`."""

    began_ns: int
    partition: str
    offset: int


class Scan(Event, tag="scan"):
    """A reader has read a compacted partition from its start, from `began_ns` on, to its end.

    It was fast enough to see every tombstone that was there.
    """

    began_ns: int
    partition: str


class TopicDeletion(Event, tag="topic-deletion"):
    """The deletion of a topic with these partitions was requested.

    Partitions are named after the topic's generation: a topic that is created again is another one.
    """

    partitions: tuple[str, ...]


class Merge(Event, tag="merge"):
    """Segments were replaced by one, or not, because of a problem."""

    segments: int
    problem: str = ""


class Failure(Event, tag="failure"):
    """A client failed, though it must tolerate all injected faults."""

    error: str


AnyEvent = (
    Producer
    | Consumer
    | Send
    | Transaction
    | Poll
    | Move
    | Commit
    | CommitRead
    | EndRead
    | Scan
    | TopicDeletion
    | Merge
    | Failure
)

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyEvent)


class Journal:
    """The file to which one client writes its events."""

    def __init__(self, file: IO[bytes], process: str) -> None:
        self._file = file
        self.process = process

    @classmethod
    def open(cls, directory: Path, process: str) -> Self:
        directory.mkdir(parents=True, exist_ok=True)
        return cls((directory / f"{process}.jsonl").open("ab"), process)

    def write(self, event: AnyEvent) -> None:
        """Write an event; it survives a kill of this process once this returns."""
        self._file.write(_encoder.encode(event) + b"\n")
        self._file.flush()

    @property
    def is_closed(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        self._file.close()


def now_ns() -> int:
    return time.monotonic_ns()


def read(directory: Path) -> Iterator[AnyEvent]:
    """All events of all clients in a directory, one client after the other."""
    for path in sorted(directory.glob("*.jsonl")):
        with path.open("rb") as lines:
            yield from decode_events(lines)


def decode_events(lines: Iterable[bytes]) -> Iterator[AnyEvent]:
    return map(_decoder.decode, lines)
