"""Checks what readers found against what producers were acknowledged.

Invariants, for every partition:

* Offsets are contiguous, and what was read once is read again.
* What was acknowledged is there, at the offset that was acknowledged.
* What is there was sent, and an idempotent producer's records are there once each.
* Records of one producer are in the order in which it sent them; one that is not idempotent may
  repeat some, after they were there for the first time.

The functions are pure: records in, violations out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Sent(NamedTuple):
    """A record as its producer knows it."""

    producer: str
    number: int


class Place(NamedTuple):
    partition: int
    offset: int


@dataclass
class History:
    """What happened up to now."""

    sent: dict[Sent, int] = field(default_factory=dict)
    """The partition that each record was sent to; each producer counts from 0."""
    acknowledged: dict[Sent, Place] = field(default_factory=dict)
    idempotent: set[str] = field(default_factory=set)


Log = Sequence[tuple[int, Sent]]
"""A partition as it was read: offsets and records."""


def problems(history: History, logs: Mapping[int, Log]) -> list[str]:
    """All violations of the invariants."""
    return [
        *_gaps(logs),
        *_losses(history, logs),
        *_intruders(history, logs),
        *_repetitions(history, logs),
        *_disorder(logs),
    ]


def changes(before: Mapping[int, Log], after: Mapping[int, Log]) -> list[str]:
    """What was read before and is not read any more."""
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
                yield f"partition {partition} has offset {offset} where {expected} belongs"
                break


def _losses(history: History, logs: Mapping[int, Log]) -> Iterable[str]:
    found = {
        Place(partition, offset): record
        for partition, log in logs.items()
        for offset, record in log
    }
    records = set(found.values())
    for record, place in history.acknowledged.items():
        if record not in records:
            yield f"{record} was acknowledged at {place} and is lost"
        elif found.get(place) != record:
            yield f"{record} was acknowledged at {place}, where {found.get(place)} is"


def _intruders(history: History, logs: Mapping[int, Log]) -> Iterable[str]:
    for partition, log in logs.items():
        for offset, record in log:
            if history.sent.get(record) != partition:
                yield f"{record} at {Place(partition, offset)} was never sent there"


def _repetitions(history: History, logs: Mapping[int, Log]) -> Iterable[str]:
    for partition, log in logs.items():
        seen: set[Sent] = set()
        for offset, record in log:
            if record in seen and record.producer in history.idempotent:
                yield f"{record} is there again at {Place(partition, offset)}"
            seen.add(record)


def _disorder(logs: Mapping[int, Log]) -> Iterable[str]:
    for partition, log in logs.items():
        last: dict[str, int] = {}
        seen: set[Sent] = set()
        for offset, record in log:
            if record in seen:
                continue
            seen.add(record)
            if record.number < last.get(record.producer, -1):
                yield f"{record} at {Place(partition, offset)} comes after a younger one"
            last[record.producer] = record.number
