"""Checks the histories of a group's members against the guarantees of consumer groups.

Invariants, for every partition:

* No two members own it at the same time, and only its owner reads it.
* Every record is read, and is read and committed by one member only.
* Records that a member read but did not commit may be read again by one other member: the last
  batch of a killed member, and batches whose commit was rejected. All other members leave nothing
  uncommitted.

The functions are pure: events in, violations out.
"""

import functools
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from services.member_events import (
    AnyEvent,
    Assigned,
    CommitRejected,
    Committed,
    Ended,
    Lost,
    Read,
    Revoked,
)


@dataclass(frozen=True)
class MemberHistory:
    """The events of one member, from its start to its end."""

    name: str
    events: Sequence[AnyEvent]
    killed_ms: int | None = None

    @property
    def open_batches_max(self) -> int:
        """How many batches it may leave uncommitted: one for a kill and each rejected commit."""
        rejections = sum(isinstance(event, CommitRejected) for event in self.events)
        return rejections + (self.killed_ms is not None)


class RecordPosition(NamedTuple):
    partition: int
    offset: int


def problems(
    histories: Sequence[MemberHistory],
    ends: Mapping[int, int],
    *,
    batch_records_max: int,
    finishes_before_revoke: bool = True,
    may_rewind: bool = False,
) -> list[str]:
    """All violations of the invariants, when all partitions were read up to their ends.

    A client that does not finish before a revoke still processes what it fetched earlier: it may
    read records that others read too, and commit them late or never. One that may rewind reads its
    own records again, as librdkafka sometimes does when a connection breaks during a rebalance.
    """
    violations = [*_overlaps(histories), *_lost_records(histories, ends)]
    if finishes_before_revoke:
        violations += [
            *_reads_without_ownership(histories),
            *_repeated_reads(histories, may_rewind=may_rewind),
            *_uncommitted(histories, batch_records_max),
        ]
    return violations


def owned(events: Iterable[AnyEvent]) -> set[int]:
    """The partitions that a member owns after these events."""
    return functools.reduce(_owned_after, events, set())


def _owned_after(owned_partitions: set[int], event: AnyEvent) -> set[int]:
    if isinstance(event, Assigned):
        return owned_partitions | set(event.partitions)
    if isinstance(event, Revoked | Lost):
        return owned_partitions - set(event.partitions)
    return set() if isinstance(event, Ended) else owned_partitions


def committed(histories: Iterable[MemberHistory]) -> dict[int, int]:
    """The highest acknowledged committed offset of each partition, over all members."""
    highest: dict[int, int] = {}
    for history in histories:
        for event in history.events:
            if isinstance(event, Committed):
                highest[event.partition] = max(event.offset, highest.get(event.partition, 0))
    return highest


def is_caught_up(histories: Sequence[MemberHistory], ends: Mapping[int, int]) -> bool:
    """Whether everything is committed that can be before more records arrive.

    A member whose last commit was rejected commits again only with its next batch.
    """
    highest = committed(histories)
    rejected = [history for history in histories if _was_rejected(history)]
    return all(
        highest.get(partition, 0) >= end
        or any(_has_read(history, partition, end) for history in rejected)
        for partition, end in ends.items()
    )


def _was_rejected(history: MemberHistory) -> bool:
    commits = [event for event in history.events if isinstance(event, Committed | CommitRejected)]
    return bool(commits) and isinstance(commits[-1], CommitRejected)


def _has_read(history: MemberHistory, partition: int, end: int) -> bool:
    return any(
        isinstance(event, Read) and event.partition == partition and event.end >= end
        for event in history.events
    )


# --- ownership ------------------------------------------------------------------------------------


def _overlaps(histories: Sequence[MemberHistory]) -> Iterable[str]:
    owners: dict[int, set[str]] = defaultdict(set)
    for _, is_assigned, name, partitions in sorted(_ownership_changes(histories)):
        for partition in partitions:
            if not is_assigned:
                owners[partition].discard(name)
                continue
            for other in owners[partition] - {name}:
                yield f"{name} was assigned partition {partition} while {other} owned it"
            owners[partition].add(name)


def _ownership_changes(
    histories: Sequence[MemberHistory],
) -> Iterable[tuple[int, bool, str, tuple[int, ...]]]:
    """Assignments and revocations with their times; a revocation sorts before an assignment."""
    for history in histories:
        all_assigned = {
            partition
            for event in history.events
            if isinstance(event, Assigned)
            for partition in event.partitions
        }
        for event in history.events:
            if isinstance(event, Assigned):
                yield event.at_ms, True, history.name, event.partitions
            elif isinstance(event, Revoked | Lost):
                yield event.at_ms, False, history.name, event.partitions
            elif isinstance(event, Ended):
                yield event.at_ms, False, history.name, tuple(all_assigned)
        if history.killed_ms is not None:
            yield history.killed_ms, False, history.name, tuple(all_assigned)


def _reads_without_ownership(histories: Sequence[MemberHistory]) -> Iterable[str]:
    for history in histories:
        owned_partitions: set[int] = set()
        for event in history.events:
            owned_partitions = _owned_after(owned_partitions, event)
            if isinstance(event, Read) and event.partition not in owned_partitions:
                yield f"{history.name} read partition {event.partition}, which it did not own"


# --- reading --------------------------------------------------------------------------------------


def _lost_records(histories: Sequence[MemberHistory], ends: Mapping[int, int]) -> Iterable[str]:
    read = {position for history in histories for position in _positions(history.events)}
    for partition, end in ends.items():
        lost = [offset for offset in range(end) if RecordPosition(partition, offset) not in read]
        if lost:
            yield f"partition {partition}: {len(lost)} records from {lost[0]} were never read"


def _repeated_reads(histories: Sequence[MemberHistory], *, may_rewind: bool) -> Iterable[str]:
    readers: dict[RecordPosition, list[str]] = defaultdict(list)
    for history in histories:
        done = _split_by_commit(history)[0]
        for position in set(done) if may_rewind else done:
            readers[position].append(history.name)
    for position, names in readers.items():
        if len(names) > 1:
            yield f"{position} was read and committed by {', '.join(names)}"


def _uncommitted(histories: Sequence[MemberHistory], batch_records_max: int) -> Iterable[str]:
    for history in histories:
        uncommitted = _split_by_commit(history)[1]
        if len(uncommitted) > history.open_batches_max * batch_records_max:
            yield (
                f"{history.name} left {len(uncommitted)} records uncommitted,"
                f" the first at {uncommitted[0]}"
            )


def _split_by_commit(history: MemberHistory) -> tuple[list[RecordPosition], list[RecordPosition]]:
    """The positions that a member read and committed, and those it read and did not commit."""
    done: list[RecordPosition] = []
    uncommitted: list[RecordPosition] = []
    pending: dict[int, list[RecordPosition]] = defaultdict(list)
    for event in history.events:
        if isinstance(event, Read):
            pending[event.partition] += _positions([event])
        elif isinstance(event, Committed):
            waiting = pending[event.partition]
            done += [position for position in waiting if position.offset < event.offset]
            waiting[:] = [position for position in waiting if position.offset >= event.offset]
        elif isinstance(event, Revoked | Lost):
            for partition in event.partitions:
                uncommitted += pending.pop(partition, [])
    return done, [*uncommitted, *itertools.chain(*pending.values())]


def _positions(events: Iterable[AnyEvent]) -> Iterable[RecordPosition]:
    for event in events:
        if isinstance(event, Read):
            for offset in range(event.first, event.end):
                yield RecordPosition(event.partition, offset)
