"""Checks that every partition is one log that holds each acknowledged record once, and no other."""

from collections.abc import Iterator

from chaos.anomalies import Anomaly, Name
from chaos.history import Send
from chaos.history_index import ANYWHERE, HistoryIndex, Partition

LISTED_MAX = 100
"""How many offsets beyond the final read are listed for each partition."""


def log_anomalies(index: HistoryIndex) -> Iterator[Anomaly]:
    for partition in index.partitions.values():
        is_deleted = partition.name in index.deleted
        yield from _acknowledged_elsewhere(partition, is_deleted=is_deleted)
        yield from content_anomalies(index, partition)
        if not is_deleted:
            yield from _beyond_the_final_read(index, partition)


def content_anomalies(index: HistoryIndex, partition: Partition) -> Iterator[Anomaly]:
    """Records that should not be there, or not at their offsets."""
    yield from _never_acknowledged(partition)
    yield from _duplicates(index, partition)
    yield from _conflicts(partition)
    yield from _out_of_order(index, partition)


def _acknowledged_elsewhere(partition: Partition, *, is_deleted: bool) -> Iterator[Anomaly]:
    """Acknowledged records that were not read at their offset.

    The last records of a deleted topic may have been deleted before they were read.
    """
    read = partition.read
    end = max(read, default=-1) + 1
    for value, done in partition.done.items():
        if done.kind != "ok" or read.get(done.offset) == value:
            continue
        described = f"{value} was acknowledged at {done.offset} to {done.process}"
        other, topic_partition = read.get(done.offset), partition.offsets_by_value.get(value)
        if other is not None:
            yield Anomaly(Name.INCONSISTENT, partition.name, f"{described}, where {other} was read")
        elif done.offset >= end:
            if not is_deleted:
                evidence = f"{described}, and no reader went beyond {end - 1}"
                yield Anomaly(Name.UNSEEN, partition.name, evidence)
        elif topic_partition is not None:
            yield Anomaly(
                Name.INCONSISTENT,
                partition.name,
                f"{described} and read at {topic_partition} instead",
            )
        if topic_partition is None and done.offset < end:
            evidence = f"{described} and never read, though others were up to {end - 1}"
            yield Anomaly(Name.LOST, partition.name, evidence)


def _never_acknowledged(partition: Partition) -> Iterator[Anomaly]:
    """Records that were read, but never sent or definitely rejected."""
    for value in sorted(partition.offsets_by_value.keys() - partition.invoked.keys()):
        offset = partition.offsets_by_value[value]
        evidence = f"{value} was read at {offset}, and no producer sent it there"
        yield Anomaly(Name.NEVER_SENT, partition.name, evidence)
    for value, done in partition.done.items():
        if done.kind == "fail" and value in partition.offsets_by_value:
            evidence = (
                f"{value} was read at {partition.offsets_by_value[value]},"
                f" though {done.process} got the error {done.error}"
            )
            yield Anomaly(Name.ABORTED, partition.name, evidence)


def _duplicates(index: HistoryIndex, partition: Partition) -> Iterator[Anomaly]:
    for value, offset in partition.repeats:
        send = partition.invoked.get(value)
        if send is None or not _is_idempotent(index, send):
            continue
        evidence = (
            f"{value} of {send.process} is at {partition.offsets_by_value[value]} and at {offset}"
        )
        yield Anomaly(Name.DUPLICATE, partition.name, evidence)


def _conflicts(partition: Partition) -> Iterator[Anomaly]:
    for conflict in partition.conflicts:
        evidence = (
            f"{conflict.process} read {conflict.value} at {conflict.offset},"
            f" others read {conflict.other}"
        )
        yield Anomaly(Name.INCONSISTENT, partition.name, evidence)


def _beyond_the_final_read(index: HistoryIndex, partition: Partition) -> Iterator[Anomaly]:
    """Records that were read once, but not by the final read."""
    if index.final is None:
        return
    end = max(index.cursors.get((index.final, partition.name), 0), ANYWHERE + 1)
    if max(partition.read, default=-1) < end:
        return
    beyond = sorted(offset for offset in partition.read if offset >= end)
    for offset in beyond[:LISTED_MAX]:
        evidence = (
            f"{partition.read[offset]} was read at {offset}, and {index.final} ended at {end}"
        )
        yield Anomaly(Name.UNSEEN, partition.name, evidence)


def _out_of_order(index: HistoryIndex, partition: Partition) -> Iterator[Anomaly]:
    """Values of one producer whose offsets do not grow in the order of the sends."""
    last: dict[str, tuple[int, str]] = {}
    for value, send in partition.invoked.items():
        producer = index.producers[send.process]
        offset = _offset(partition, value, is_sought=producer.is_idempotent)
        if offset is None or not (producer.keeps_order or producer.is_idempotent):
            continue
        before = last.get(send.process)
        if before is not None and offset <= before[0]:
            evidence = (
                f"{send.process} sent {value} after {before[1]},"
                f" and they are at {offset} and {before[0]}"
            )
            yield Anomaly(Name.DISORDER, partition.name, evidence)
        last[send.process] = (offset, value)


def _offset(partition: Partition, value: str, *, is_sought: bool) -> int | None:
    """Where a value is, by its acknowledgement, or by what was read if it `is_sought`."""
    done = partition.done.get(value)
    if done is not None and done.kind == "ok":
        return done.offset
    return partition.offsets_by_value.get(value) if is_sought else None


def _is_idempotent(index: HistoryIndex, send: Send) -> bool:
    return index.producers[send.process].is_idempotent
