"""Checks that no response was out of date when its request was sent.

Whatever was acknowledged before a request was sent has to show in the response. So a broker that is
no longer the owner of a partition or a group, and does not know it yet, must not respond.
"""

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from chaos.anomalies import Anomaly, Name
from chaos.history import CommitRead, EndRead, Send
from chaos.history_index import HistoryIndex, Partition

_time_ns = attrgetter("time_ns")
_began_ns = attrgetter("began_ns")


class Known(NamedTuple):
    """From this time on, an offset is at least `level`."""

    time_ns: int
    level: int


class Response(NamedTuple):
    """The response `level` to a request that was sent at this time."""

    began_ns: int
    level: int
    event: Send | EndRead | CommitRead


def time_anomalies(index: HistoryIndex) -> Iterator[Anomaly]:
    for partition in index.partitions.values():
        done = sorted((done for done in partition.done.values() if done.kind == "ok"), key=_time_ns)
        ends = sorted(partition.end_reads, key=_began_ns)
        yield from _stale_anomalies(
            Name.STALE_SEND, partition.name, _ends(done), _sends(partition, done)
        )
        yield from _stale_anomalies(Name.STALE_END, partition.name, _ends(done), _reads(ends))
    for (_, name), group in index.groups.items():
        commits = sorted(group.commits, key=_time_ns)
        known = (Known(commit.time_ns, commit.offset) for commit in commits)
        reads = sorted(group.reads, key=_began_ns)
        yield from _stale_anomalies(Name.STALE_COMMIT, name, known, _reads(reads))


def outdated(
    known: Iterable[Known], responses: Iterable[Response]
) -> Iterator[tuple[Response, int]]:
    """Responses below what was known when their requests were sent, with what was known.

    Both arguments have to be in the order of their times.
    """
    level = -1
    coming = iter(known)
    new = next(coming, None)
    for response in responses:
        while new is not None and new.time_ns < response.began_ns:
            level = max(level, new.level)
            new = next(coming, None)
        if response.level < level:
            yield response, level


def _stale_anomalies(
    name: Name, partition: str, known: Iterable[Known], responses: Iterable[Response]
) -> Iterator[Anomaly]:
    for response, level in outdated(known, responses):
        evidence = f"{_describe(response.event)}, though {level} was known before"
        yield Anomaly(name, partition, evidence)


def _ends(done: list[Send]) -> Iterator[Known]:
    """Lower bounds of the end offset, from each acknowledgement on."""
    return (Known(send.time_ns, send.offset + 1) for send in done)


def _sends(partition: Partition, done: list[Send]) -> Iterator[Response]:
    began_ns = {value: send.time_ns for value, send in partition.invoked.items()}
    for send in sorted(done, key=lambda send: began_ns[send.value]):
        yield Response(began_ns[send.value], send.offset, send)


def _reads(reads: Iterable[EndRead | CommitRead]) -> Iterator[Response]:
    return (Response(read.began_ns, read.offset, read) for read in reads)


def _describe(event: Send | EndRead | CommitRead) -> str:
    match event:
        case Send():
            return f"{event.value} of {event.process} got the offset {event.offset}"
        case EndRead():
            return f"{event.process} got the end offset {event.offset}"
        case CommitRead():
            return f"{event.process} got the committed offset {event.offset} of {event.group}"
