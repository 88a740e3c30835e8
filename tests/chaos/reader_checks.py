"""Checks that every reader and every group read all records, in order."""

from collections.abc import Iterator

from chaos.anomalies import Anomaly, Name
from chaos.history_index import HistoryIndex, Jump, Partition


def reader_anomalies(index: HistoryIndex) -> Iterator[Anomaly]:
    for partition in index.partitions.values():
        if partition.jumps:
            yield from _jumps(partition)
    for (group, partition), group_index in index.groups.items():
        yield from _gaps_of_group(group, partition, group_index.read)
    yield from failure_anomalies(index)


def failure_anomalies(index: HistoryIndex) -> Iterator[Anomaly]:
    for failure in index.failures:
        yield Anomaly(Name.FAILURE, failure.process, failure.error)


def backward_anomalies(partition: Partition) -> Iterator[Anomaly]:
    for jump in partition.jumps:
        if jump.offset < jump.expected:
            name = Name.BACKWARDS_INSIDE if jump.is_within_poll else Name.BACKWARDS
            yield Anomaly(name, partition.name, _describe(jump))


def _jumps(partition: Partition) -> Iterator[Anomaly]:
    yield from backward_anomalies(partition)
    known = partition.read.keys() | {
        done.offset for done in partition.done.values() if done.kind == "ok"
    }
    for jump in partition.jumps:
        passed = range(jump.expected, jump.offset)
        skipped = [offset for offset in passed if offset in known]
        if skipped:
            name = Name.SKIP_INSIDE if jump.is_within_poll else Name.SKIP
            yield Anomaly(name, partition.name, f"{_describe(jump)}, past {_ranges(skipped)}")
        if len(skipped) < len(passed):
            empty = [offset for offset in passed if offset not in known]
            evidence = f"{_describe(jump)}, and there is no record at {_ranges(empty)}"
            yield Anomaly(Name.HOLE, partition.name, evidence)


def _gaps_of_group(group: str, partition: str, read: set[int]) -> Iterator[Anomaly]:
    """A group starts at offset 0, so it has read everything up to its position."""
    end = max(read, default=-1) + 1
    if len(read) < end:
        missing = [offset for offset in range(end) if offset not in read]
        evidence = f"{group} has read up to {end - 1}, but not {_ranges(missing)}"
        yield Anomaly(Name.GROUP_SKIP, partition, evidence)


def _describe(jump: Jump) -> str:
    where = "in one poll" if jump.is_within_poll else "from one poll to the next"
    return f"{jump.process} went from {jump.expected - 1} to {jump.offset} {where}"


def _ranges(offsets: list[int]) -> str:
    """Format offsets as ranges, such as 3-5, 9."""
    result: list[list[int]] = []
    for offset in offsets:
        if result and offset == result[-1][1] + 1:
            result[-1][1] = offset
        else:
            result.append([offset, offset])
    return ", ".join(f"{low}-{high}" if high > low else str(low) for low, high in result)
