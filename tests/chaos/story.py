"""A history sorted by partitions, readers and groups: what the checks look at.

Pure, and made for millions of events: each is looked at once, by the record where it must be.
Nothing is judged here; a reader's jump is written down as such.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from chaos.history import (
    AnyEvent,
    Commit,
    CommitRead,
    Consumer,
    EndRead,
    Failure,
    Move,
    Poll,
    Producer,
    Send,
)

ANYWHERE = -1


class Jump(NamedTuple):
    """A reader was given another offset than the one that follows its last."""

    process: str
    time_ns: int
    expected: int
    offset: int
    is_inside: bool
    """Within one poll, and not from one to the next."""


class Clash(NamedTuple):
    """A reader found something else where another one had read."""

    process: str
    offset: int
    value: str
    other: str


class Partition:
    """All that is known about one partition."""

    __slots__ = (
        "clashes",
        "done",
        "end_reads",
        "invoked",
        "jumps",
        "name",
        "places",
        "read",
        "repeats",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.invoked: dict[str, Send] = {}
        """Sends by value, those of one process in their order."""
        self.done: dict[str, Send] = {}
        self.read: dict[int, str] = {}
        """What was read first at each offset."""
        self.places: dict[str, int] = {}
        """Where each value was read first."""
        self.repeats: list[tuple[str, int]] = []
        """Values that were read at further offsets."""
        self.clashes: list[Clash] = []
        self.jumps: list[Jump] = []
        self.end_reads: list[EndRead] = []

    def take(self, process: str, offset: int, value: str) -> None:
        """Somebody read this for the first time at this offset, or something else than before."""
        known = self.read.setdefault(offset, value)
        if known != value:
            self.clashes.append(Clash(process, offset, value, known))
        if self.places.setdefault(value, offset) != offset:
            self.repeats.append((value, offset))


class Group:
    """All that is known about one group in one partition."""

    __slots__ = ("commits", "read", "reads")

    def __init__(self) -> None:
        self.read: set[int] = set()
        self.commits: list[Commit] = []
        """Those that were acknowledged."""
        self.reads: list[CommitRead] = []


class Story:
    """What happened, sorted."""

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self.partitions: dict[str, Partition] = {}
        self.groups: defaultdict[tuple[str, str], Group] = defaultdict(Group)
        """By group and partition."""
        self.producers: dict[str, Producer] = {}
        self.consumers: dict[str, Consumer] = {}
        self.failures: list[Failure] = []
        self.cursors: dict[tuple[str, str], int] = {}
        """The offset that follows what a reader was given last, by reader and partition."""
        self._take_all(events)

    def partition(self, name: str) -> Partition:
        found = self.partitions.get(name)
        if found is None:
            found = self.partitions[name] = Partition(name)
        return found

    @property
    def final(self) -> str | None:
        """The reader that came last."""
        return next((name for name, reader in self.consumers.items() if reader.is_final), None)

    def _take_all(self, events: Iterable[AnyEvent]) -> None:
        take = {
            Send: self._send,
            Poll: self._poll,
            Move: self._move,
            Commit: self._commit,
            CommitRead: self._commit_read,
            EndRead: self._end_read,
            Producer: self._producer,
            Consumer: self._consumer,
            Failure: self.failures.append,
        }
        for event in events:
            take[type(event)](event)

    def _send(self, event: Send) -> None:
        partition = self.partition(event.partition)
        (partition.invoked if event.kind == "invoke" else partition.done)[event.value] = event

    def _poll(self, event: Poll) -> None:
        process = event.process
        reader = self.consumers[process]
        start = 0 if reader.is_final else ANYWHERE
        for name, records in event.records.items():
            partition = self.partition(name)
            read = partition.read
            expected = self.cursors.get((process, name), start)
            is_inside = False
            for offset, value in records:
                if offset != expected and expected >= 0:
                    jump = Jump(process, event.time_ns, expected, offset, is_inside)
                    partition.jumps.append(jump)
                if read.get(offset) != value:
                    partition.take(process, offset, value)
                expected = offset + 1
                is_inside = True
            self.cursors[process, name] = expected
            if reader.group:
                self.groups[reader.group, name].read.update(offset for offset, _ in records)

    def _move(self, event: Move) -> None:
        for name in event.partitions:
            self.cursors[event.process, name] = ANYWHERE

    def _commit(self, event: Commit) -> None:
        if event.kind == "ok":
            self.groups[event.group, event.partition].commits.append(event)

    def _commit_read(self, event: CommitRead) -> None:
        self.groups[event.group, event.partition].reads.append(event)

    def _end_read(self, event: EndRead) -> None:
        self.partition(event.partition).end_reads.append(event)

    def _producer(self, event: Producer) -> None:
        self.producers[event.process] = event

    def _consumer(self, event: Consumer) -> None:
        self.consumers[event.process] = event
