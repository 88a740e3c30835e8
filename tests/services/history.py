"""Checks what readers found against what producers were acknowledged.

Invariants, for every partition:

* Offsets are contiguous, and a record that was read once is read again.
* An acknowledged record is in the log, at the acknowledged offset.
* Every record in the log was sent.
* Records of an idempotent producer are there once, and in the order in which it sent them. Others
  may repeat records, and change their order: librdkafka sends later batches while one that was
  refused waits for its backoff, even with a single request in flight.

The functions are pure: records in, violations out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Sent(NamedTuple):
    """A record, identified by its producer and number."""

    producer: str
    number: int


class Position(NamedTuple):
    partition: int
    offset: int


@dataclass
class History:
    """The records that were sent and acknowledged so far."""

    sent: dict[Sent, int] = field(default_factory=dict)
    """The partition that each record was sent to; each producer counts from 0."""
    acknowledged: dict[Sent, Position] = field(default_factory=dict)
    idempotent: set[str] = field(default_factory=set)


Log = Sequence[tuple[int, Sent]]
"""A partition as it was read: offsets and records."""


def problems(history: History, logs: Mapping[int, Log]) -> list[str]:
    """All violations of the invariants."""
    return [
        *_gaps(logs),
        *_losses(history, logs),
        *_never_sent(history, logs),
        *_duplicates(history, logs),
        *_reordered(history, logs),
    ]


def changes(before: Mapping[int, Log], after: Mapping[int, Log]) -> list[str]:
    """Records that were read before and are no longer in the log."""
    return [
        f"partition {partition} had {record} at {offset}"
        for partition, log in before.items()
        for (offset, record), now in zip(log, [*after[partition], *[None] * len(log)], strict=False)
        if now != (offset, record)
    ]


def _gaps(logs: Mapping[int, Log]) -> Iterable[str]:
    for partition, log in logs.items():
        for expected, (offset, _) in enumerate(log):
            if offset != expected:
                yield f"partition {partition} has offset {offset} instead of {expected}"
                break


def _losses(history: History, logs: Mapping[int, Log]) -> Iterable[str]:
    by_position = {
        Position(partition, offset): record
        for partition, log in logs.items()
        for offset, record in log
    }
    records = set(by_position.values())
    for record, position in history.acknowledged.items():
        if record not in records:
            yield f"{record} was acknowledged at {position} and is lost"
        elif by_position.get(position) != record:
            yield f"{record} was acknowledged at {position}, where {by_position.get(position)} is"


def _never_sent(history: History, logs: Mapping[int, Log]) -> Iterable[str]:
    for partition, log in logs.items():
        for offset, record in log:
            if history.sent.get(record) != partition:
                yield f"{record} at {Position(partition, offset)} was never sent there"


def _duplicates(history: History, logs: Mapping[int, Log]) -> Iterable[str]:
    for partition, log in logs.items():
        seen: set[Sent] = set()
        for offset, record in log:
            if record in seen and record.producer in history.idempotent:
                yield f"{record} is duplicated at {Position(partition, offset)}"
            seen.add(record)


def _reordered(history: History, logs: Mapping[int, Log]) -> Iterable[str]:
    for partition, log in logs.items():
        last: dict[str, int] = {}
        seen: set[Sent] = set()
        for offset, record in log:
            if record in seen or record.producer not in history.idempotent:
                continue
            seen.add(record)
            if record.number < last.get(record.producer, -1):
                yield f"{record} at {Position(partition, offset)} comes after a later one"
            last[record.producer] = record.number
