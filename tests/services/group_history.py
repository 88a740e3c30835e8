"""What the members of a group told, and whether a group that keeps its promises can have such ones.

The laws, for every partition:

* No two members own it at the same time, and only its owner reads it.
* Every record is read, and is read and committed by one member only.
* What a member read and did not commit, one other may read again: the last batch of a member that
  was killed, and what a member was not allowed to commit. Nobody else leaves anything behind.

Pure: it is told everything, and says what is wrong.
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
    Committed,
    Ended,
    Lost,
    Read,
    Refused,
    Revoked,
)


@dataclass(frozen=True)
class Life:
    """One member, from its start to its end."""

    name: str
    events: Sequence[AnyEvent]
    killed_ms: int | None = None

    @property
    def open_batches_max(self) -> int:
        """How often it was kept from committing: when it was killed, and when it was refused."""
        refusals = sum(isinstance(event, Refused) for event in self.events)
        return refusals + (self.killed_ms is not None)


class Place(NamedTuple):
    partition: int
    offset: int


def problems(
    lives: Sequence[Life],
    ends: Mapping[int, int],
    *,
    batch_records_max: int,
    is_orderly: bool = True,
    may_rewind: bool = False,
) -> list[str]:
    """Everything that contradicts the laws, when all partitions were read up to their ends.

    A client that is not orderly still works on what it fetched when it owns that no more: it may
    read what others read too, and commit it late or never. One that may rewind reads something of
    its own once more, as librdkafka sometimes does where a connection breaks during a rebalance.
    """
    found = [*_overlaps(lives), *_losses(lives, ends)]
    if is_orderly:
        found += [
            *_intrusions(lives),
            *_repetitions(lives, may_rewind=may_rewind),
            *_leftovers(lives, batch_records_max),
        ]
    return found


def owned(events: Iterable[AnyEvent]) -> set[int]:
    """The partitions that a member has after these events."""
    return functools.reduce(_after, events, set())


def _after(held: set[int], event: AnyEvent) -> set[int]:
    if isinstance(event, Assigned):
        return held | set(event.partitions)
    if isinstance(event, Revoked | Lost):
        return held - set(event.partitions)
    return set() if isinstance(event, Ended) else held


def committed(lives: Iterable[Life]) -> dict[int, int]:
    """The highest offset of each partition whose commit was acknowledged to anybody."""
    highest: dict[int, int] = {}
    for life in lives:
        for event in life.events:
            if isinstance(event, Committed):
                highest[event.partition] = max(event.offset, highest.get(event.partition, 0))
    return highest


def is_caught_up(lives: Sequence[Life], ends: Mapping[int, int]) -> bool:
    """Whether all is committed that ever will be before more records come.

    A member whose last commit was refused tries again with its next batch, and not before.
    """
    highest = committed(lives)
    refused = [life for life in lives if _was_refused(life)]
    return all(
        highest.get(partition, 0) >= end or any(_has_read(life, partition, end) for life in refused)
        for partition, end in ends.items()
    )


def _was_refused(life: Life) -> bool:
    commits = [event for event in life.events if isinstance(event, Committed | Refused)]
    return bool(commits) and isinstance(commits[-1], Refused)


def _has_read(life: Life, partition: int, end: int) -> bool:
    return any(
        isinstance(event, Read) and event.partition == partition and event.end >= end
        for event in life.events
    )


# --- owning -----------------------------------------------------------------------------------


def _overlaps(lives: Sequence[Life]) -> Iterable[str]:
    holders: dict[int, set[str]] = defaultdict(set)
    for _, takes, name, partitions in sorted(_turns(lives)):
        for partition in partitions:
            if not takes:
                holders[partition].discard(name)
                continue
            for other in holders[partition] - {name}:
                yield f"{name} was given partition {partition} while {other} had it"
            holders[partition].add(name)


def _turns(lives: Sequence[Life]) -> Iterable[tuple[int, bool, str, tuple[int, ...]]]:
    """When which member takes or, before others take in the same moment, releases partitions."""
    for life in lives:
        everything = {
            partition
            for event in life.events
            if isinstance(event, Assigned)
            for partition in event.partitions
        }
        for event in life.events:
            if isinstance(event, Assigned):
                yield event.at_ms, True, life.name, event.partitions
            elif isinstance(event, Revoked | Lost):
                yield event.at_ms, False, life.name, event.partitions
            elif isinstance(event, Ended):
                yield event.at_ms, False, life.name, tuple(everything)
        if life.killed_ms is not None:
            yield life.killed_ms, False, life.name, tuple(everything)


def _intrusions(lives: Sequence[Life]) -> Iterable[str]:
    for life in lives:
        held: set[int] = set()
        for event in life.events:
            held = _after(held, event)
            if isinstance(event, Read) and event.partition not in held:
                yield f"{life.name} read partition {event.partition}, which it did not have"


# --- reading ----------------------------------------------------------------------------------


def _losses(lives: Sequence[Life], ends: Mapping[int, int]) -> Iterable[str]:
    read = {place for life in lives for place in _places(life.events)}
    for partition, end in ends.items():
        lost = [offset for offset in range(end) if Place(partition, offset) not in read]
        if lost:
            yield f"partition {partition}: {len(lost)} records from {lost[0]} were never read"


def _repetitions(lives: Sequence[Life], *, may_rewind: bool) -> Iterable[str]:
    readers: dict[Place, list[str]] = defaultdict(list)
    for life in lives:
        done = _settled(life)[0]
        for place in set(done) if may_rewind else done:
            readers[place].append(life.name)
    for place, names in readers.items():
        if len(names) > 1:
            yield f"{place} was read and committed by {', '.join(names)}"


def _leftovers(lives: Sequence[Life], batch_records_max: int) -> Iterable[str]:
    for life in lives:
        left = _settled(life)[1]
        if len(left) > life.open_batches_max * batch_records_max:
            yield f"{life.name} left {len(left)} records uncommitted, as {left[0]}"


def _settled(life: Life) -> tuple[list[Place], list[Place]]:
    """What a member read: that which it committed afterwards, and that which it did not."""
    done: list[Place] = []
    left: list[Place] = []
    pending: dict[int, list[Place]] = defaultdict(list)
    for event in life.events:
        if isinstance(event, Read):
            pending[event.partition] += _places([event])
        elif isinstance(event, Committed):
            waiting = pending[event.partition]
            done += [place for place in waiting if place.offset < event.offset]
            waiting[:] = [place for place in waiting if place.offset >= event.offset]
        elif isinstance(event, Revoked | Lost):
            for partition in event.partitions:
                left += pending.pop(partition, [])
    return done, [*left, *itertools.chain(*pending.values())]


def _places(events: Iterable[AnyEvent]) -> Iterable[Place]:
    for event in events:
        if isinstance(event, Read):
            for offset in range(event.first, event.end):
                yield Place(event.partition, offset)
