"""A history indexed by partition, reader and group, for the checks.

Pure, and fast enough for millions of events: each event is processed once, and each record in
constant time. The index does not judge: it records the jumps of readers as they are.
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
    Merge,
    Move,
    Poll,
    Producer,
    Scan,
    Send,
    TopicDeletion,
)

ANYWHERE = -1


class Jump(NamedTuple):
    """A reader got another offset than the one after its last."""

    process: str
    time_ns: int
    expected: int
    offset: int
    is_within_poll: bool
    """Within one poll, not from one poll to the next."""


class Conflict(NamedTuple):
    """Two readers read different values at one offset."""

    process: str
    offset: int
    value: str
    other: str


class Partition:
    """The events of one partition."""

    __slots__ = (
        "conflicts",
        "done",
        "end_reads",
        "invoked",
        "jumps",
        "name",
        "offsets_by_value",
        "read",
        "repeats",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.invoked: dict[str, Send] = {}
        """Sends by value; those of one process are in order."""
        self.done: dict[str, Send] = {}
        self.read: dict[int, str] = {}
        """The value that was read first at each offset."""
        self.offsets_by_value: dict[str, int] = {}
        """The offset at which each value was read first."""
        self.repeats: list[tuple[str, int]] = []
        """Values that were read at other offsets too."""
        self.conflicts: list[Conflict] = []
        self.jumps: list[Jump] = []
        self.end_reads: list[EndRead] = []

    def add_record(self, process: str, offset: int, value: str) -> None:
        """Add a record that is new at its offset, or differs from the one read there before."""
        known = self.read.setdefault(offset, value)
        if known != value:
            self.conflicts.append(Conflict(process, offset, value, known))
        if self.offsets_by_value.setdefault(value, offset) != offset:
            self.repeats.append((value, offset))


class Group:
    """The events of one group in one partition."""

    __slots__ = ("commits", "read", "reads")

    def __init__(self) -> None:
        self.read: set[int] = set()
        self.commits: list[Commit] = []
        """Acknowledged commits."""
        self.reads: list[CommitRead] = []


class HistoryIndex:
    """All events, indexed."""

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self.partitions: dict[str, Partition] = {}
        self.groups: defaultdict[tuple[str, str], Group] = defaultdict(Group)
        """By group and partition."""
        self.producers: dict[str, Producer] = {}
        self.consumers: dict[str, Consumer] = {}
        self.failures: list[Failure] = []
        self.scans: list[Scan] = []
        """Of partitions of compacted topics."""
        self.deleted: set[str] = set()
        """Partitions of deleted topics, whose records need not be there any more."""
        self.cursors: dict[tuple[str, str], int] = {}
        """The next expected offset, by reader and partition."""
        self._add_all(events)

    def partition(self, name: str) -> Partition:
        value = self.partitions.get(name)
        if value is None:
            value = self.partitions[name] = Partition(name)
        return value

    @property
    def final(self) -> str | None:
        """The reader that reads everything at the end."""
        return next((name for name, reader in self.consumers.items() if reader.is_final), None)

    def _add_all(self, events: Iterable[AnyEvent]) -> None:
        add_record = {
            Send: self._send,
            Poll: self._poll,
            Move: self._move,
            Commit: self._commit,
            CommitRead: self._commit_read,
            EndRead: self._end_read,
            Producer: self._producer,
            Consumer: self._consumer,
            TopicDeletion: self._topic_deletion,
            Scan: self.scans.append,
            Merge: lambda _event: None,  # Merges must not show in what clients see.
            Failure: self.failures.append,
        }
        for event in events:
            add_record[type(event)](event)

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
            is_within_poll = False
            for offset, value in records:
                if offset != expected and expected >= 0:
                    jump = Jump(process, event.time_ns, expected, offset, is_within_poll)
                    partition.jumps.append(jump)
                if read.get(offset) != value:
                    partition.add_record(process, offset, value)
                expected = offset + 1
                is_within_poll = True
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

    def _topic_deletion(self, event: TopicDeletion) -> None:
        self.deleted.update(event.partitions)

    def _producer(self, event: Producer) -> None:
        self.producers[event.process] = event

    def _consumer(self, event: Consumer) -> None:
        self.consumers[event.process] = event
