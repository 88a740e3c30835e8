"""Checks that compaction removes only records that have a later one with the same key.

Invariants: a reader that reads a partition from its start to its end, fast enough to see all
tombstones, gets the latest acknowledged value of each key, or a later one; and no value of a key
whose latest acknowledged record is a tombstone, unless it gets that tombstone or a later record,
too. Offsets grow, and each record is the one that was sent at its offset.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chaos.anomalies import Anomaly, Name
from chaos.history import AnyEvent, Poll, Scan
from chaos.history_index import HistoryIndex, Partition
from chaos.keyed_value import KeyedValue
from chaos.log_checks import content_anomalies
from chaos.reader_checks import backward_anomalies, failure_anomalies


class Located(NamedTuple):
    """A record and its offset."""

    offset: int
    value: str


_Latest = dict[str, Located]
"""The record with the greatest offset, by key."""


def compaction_anomalies(index: HistoryIndex, events: Iterable[AnyEvent]) -> Iterator[Anomaly]:
    for partition in index.partitions.values():
        yield from _acknowledged_elsewhere(partition)
        yield from content_anomalies(index, partition)
        yield from backward_anomalies(partition)
        yield from _never_scanned(index, partition)
    latest = _latest_read(events)
    for scan in index.scans:
        read = latest[scan.process, scan.partition]
        yield from _missed(index.partition(scan.partition), scan, read)
    yield from failure_anomalies(index)


def _acknowledged_elsewhere(partition: Partition) -> Iterator[Anomaly]:
    for value, done in partition.done.items():
        if done.kind == "ok":
            at = partition.offsets_by_value.get(value, done.offset)
            other = partition.read.get(done.offset, value)
            if at != done.offset or other != value:
                evidence = f"{value} was acknowledged at {done.offset}, where {other} was read, "
                yield Anomaly(Name.INCONSISTENT, partition.name, f"{evidence}and read at {at}")


def _never_scanned(index: HistoryIndex, partition: Partition) -> Iterator[Anomaly]:
    is_scanned = any(
        scan.partition == partition.name and index.consumers[scan.process].is_final
        for scan in index.scans
    )
    if partition.invoked and not is_scanned:
        yield Anomaly(Name.UNSEEN, partition.name, "no reader has read all of it at the end")


def _missed(partition: Partition, scan: Scan, read: _Latest) -> Iterator[Anomaly]:
    """What a reader should have got, because it was acknowledged before the reader began."""
    for key, sent in _latest_acknowledged(partition, scan.began_ns).items():
        got = read.get(key)
        is_deleted = KeyedValue.parse(sent.value).is_tombstone
        if got is None:
            if is_deleted or _may_be_deleted_later(partition, scan, key, sent):
                continue
        elif got.offset >= sent.offset:
            continue
        evidence = (
            f"{scan.process} got {got.value if got else 'nothing'} of {key}"
            f"{f' at {got.offset}' if got else ''}, and {sent.value} was acknowledged at"
            f" {sent.offset} before it began"
        )
        yield Anomaly(Name.DELETED_KEY if is_deleted else Name.LOST_KEY, partition.name, evidence)


def _may_be_deleted_later(partition: Partition, scan: Scan, key: str, sent: Located) -> bool:
    """Whether a tombstone may follow a record, so that the key need not be there."""
    for value, send in partition.invoked.items():
        parsed = KeyedValue.parse(value)
        if parsed.key == key and parsed.is_tombstone and send.time_ns < scan.time_ns:
            done = partition.done.get(value)
            if done is None or done.kind == "info":
                return True
            if done.kind == "ok" and done.offset > sent.offset:
                return True
    return False


def _latest_acknowledged(partition: Partition, before_ns: int) -> _Latest:
    latest: _Latest = {}
    for value, done in partition.done.items():
        if done.kind == "ok" and done.time_ns < before_ns:
            key = KeyedValue.parse(value).key
            latest[key] = max(latest.get(key, Located(-1, "")), Located(done.offset, value))
    return latest


def _latest_read(events: Iterable[AnyEvent]) -> defaultdict[tuple[str, str], _Latest]:
    """By reader and partition."""
    latest: defaultdict[tuple[str, str], _Latest] = defaultdict(dict)
    for event in events:
        if isinstance(event, Poll):
            for partition, records in event.records.items():
                of_reader = latest[event.process, partition]
                for offset, value in records:
                    of_reader[KeyedValue.parse(value).key] = Located(offset, value)
    return latest
