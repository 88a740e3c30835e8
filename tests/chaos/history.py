"""What clients did and what they were told, as they write it down: one event a line.

Every client has a file of its own and names itself in each event; its events are in the order in
which they happened. The clock is the machine's steady one, so that events of several clients can
be compared. A send is invoked and later ends in one of three ways:

    ok      it is in the log, at this offset
    fail    it is surely not in the log, and never will be
    info    nobody knows

One whose end is missing counts as the last. Values are unique: no client sends one twice, though
its library may try several times.
"""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Literal, Self

import msgspec

Kind = Literal["invoke", "ok", "fail", "info"]


class Event(msgspec.Struct, frozen=True, gc=False, tag_field="event", omit_defaults=True):
    """The least that all have in common."""

    process: str
    time_ns: int


class Producer(Event, tag="producer"):
    """A client that will send, and what its library promises."""

    is_idempotent: bool = False
    """No value is in the log twice, and all are in the order in which they were sent."""
    keeps_order: bool = False
    """Acknowledged offsets are in the order in which their values were sent."""


class Consumer(Event, tag="consumer"):
    """A client that will read."""

    group: str = ""
    """It shares partitions with others, and commits."""
    is_final: bool = False
    """It reads everything from the start, once all is over."""


class Send(Event, tag="send"):
    kind: Kind
    partition: str
    value: str
    offset: int = -1
    error: str = ""


class Poll(Event, tag="poll"):
    """Offsets and values by partition, in the order in which they were handed out."""

    records: dict[str, list[tuple[int, str]]]


class Move(Event, tag="move"):
    """From here on it may read anywhere: partitions were assigned to it, or it sought."""

    partitions: tuple[str, ...]


class Commit(Event, tag="commit"):
    """A group has read all below `offset`."""

    kind: Kind
    group: str
    partition: str
    offset: int


class CommitRead(Event, tag="commit-read"):
    """Somebody asked, from `began_ns` on, how far a group is; -1 stands for nowhere."""

    began_ns: int
    group: str
    partition: str
    offset: int


class EndRead(Event, tag="end-read"):
    """Somebody asked, from `began_ns` on, where a partition ends."""

    began_ns: int
    partition: str
    offset: int


class Failure(Event, tag="failure"):
    """A client cannot go on, though all that it met were faults that it has to bear."""

    error: str


AnyEvent = Producer | Consumer | Send | Poll | Move | Commit | CommitRead | EndRead | Failure

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyEvent)


class Journal:
    """Where one client writes down what happens to it."""

    def __init__(self, file: IO[bytes], process: str) -> None:
        self._file = file
        self.process = process

    @classmethod
    def open(cls, directory: Path, process: str) -> Self:
        directory.mkdir(parents=True, exist_ok=True)
        return cls((directory / f"{process}.jsonl").open("ab"), process)

    def write(self, event: AnyEvent) -> None:
        """Keep an event; it is out of this process's hands when this returns."""
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
    """Everything that all clients wrote down there, one client after the other."""
    for path in sorted(directory.glob("*.jsonl")):
        with path.open("rb") as lines:
            yield from parsed(lines)


def parsed(lines: Iterable[bytes]) -> Iterator[AnyEvent]:
    return map(_decoder.decode, lines)
