"""Did anybody get an answer that was out of date when the question was asked?

What was acknowledged before a question was asked has to show in the answer. So a broker that is no
longer the owner of a partition or a group, and does not know it yet, must not answer at all.
"""

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from chaos.anomalies import Anomaly, Name
from chaos.history import CommitRead, EndRead, Send
from chaos.story import Partition, Story

_time_ns = attrgetter("time_ns")
_began_ns = attrgetter("began_ns")


class Known(NamedTuple):
    """From this time on, a level is at least so high."""

    time_ns: int
    level: int


class Answer(NamedTuple):
    """To a question that was asked at this time, a level was the answer."""

    began_ns: int
    level: int
    event: Send | EndRead | CommitRead


def time_anomalies(story: Story) -> Iterator[Anomaly]:
    for partition in story.partitions.values():
        done = sorted((done for done in partition.done.values() if done.kind == "ok"), key=_time_ns)
        ends = sorted(partition.end_reads, key=_began_ns)
        yield from _named(Name.STALE_SEND, partition.name, _ends(done), _sends(partition, done))
        yield from _named(Name.STALE_END, partition.name, _ends(done), _asked(ends))
    for (_, name), group in story.groups.items():
        commits = sorted(group.commits, key=_time_ns)
        known = (Known(commit.time_ns, commit.offset) for commit in commits)
        reads = sorted(group.reads, key=_began_ns)
        yield from _named(Name.STALE_COMMIT, name, known, _asked(reads))


def outdated(known: Iterable[Known], answers: Iterable[Answer]) -> Iterator[tuple[Answer, int]]:
    """The answers below what was known when they were asked for, with what was known.

    Both have to come in the order of their times.
    """
    level = -1
    coming = iter(known)
    new = next(coming, None)
    for answer in answers:
        while new is not None and new.time_ns < answer.began_ns:
            level = max(level, new.level)
            new = next(coming, None)
        if answer.level < level:
            yield answer, level


def _named(
    name: Name, partition: str, known: Iterable[Known], answers: Iterable[Answer]
) -> Iterator[Anomaly]:
    for answer, level in outdated(known, answers):
        evidence = f"{_told(answer.event)}, though {level} was known before"
        yield Anomaly(name, partition, evidence)


def _ends(done: list[Send]) -> Iterator[Known]:
    """Where a log ends at least, from each acknowledgement on."""
    return (Known(send.time_ns, send.offset + 1) for send in done)


def _sends(partition: Partition, done: list[Send]) -> Iterator[Answer]:
    began_ns = {value: send.time_ns for value, send in partition.invoked.items()}
    for send in sorted(done, key=lambda send: began_ns[send.value]):
        yield Answer(began_ns[send.value], send.offset, send)


def _asked(reads: Iterable[EndRead | CommitRead]) -> Iterator[Answer]:
    return (Answer(read.began_ns, read.offset, read) for read in reads)


def _told(event: Send | EndRead | CommitRead) -> str:
    match event:
        case Send():
            return f"{event.value} of {event.process} was put at {event.offset}"
        case EndRead():
            return f"{event.process} was told that the log ends at {event.offset}"
        case CommitRead():
            return f"{event.process} was told that {event.group} is at {event.offset}"
