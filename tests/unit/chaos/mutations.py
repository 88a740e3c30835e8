"""Mutates a correct history in one place, by the anomaly that a checker must report.

Each mutation takes the events and a random generator, and returns the mutated events, or None if
the history does not allow it.
"""

import random
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from chaos.anomalies import Name
from chaos.history import AnyEvent, Commit, CommitRead, EndRead, Failure, Move, Poll, Send

Events = list[AnyEvent]
Mutation = Callable[[Events, random.Random], Events | None]
Records = list[tuple[int, str]]


def _pick(rng: random.Random, candidates: Sequence) -> object:
    return rng.choice(candidates) if candidates else None


def _polls(events: Events, *, least: int = 1) -> list[tuple[int, Poll, str, Records]]:
    """Polls except the final read: index, event, partition, records."""
    return [
        (index, event, *next(iter(event.records.items())))
        for index, event in enumerate(events)
        if isinstance(event, Poll)
        and event.process != "final"
        and len(next(iter(event.records.values()))) >= least
    ]


def _acknowledged(events: Events) -> list[Send]:
    return [event for event in events if isinstance(event, Send) and event.kind == "ok"]


def _final(events: Events) -> dict[str, Records]:
    """The records of the final read, by partition."""
    result = {}
    for event in events:
        if isinstance(event, Poll) and event.process == "final":
            result |= event.records
    return result


def _reread(events: Events, partition: str, change: Callable[[Poll, Records], Records]) -> Events:
    """The same events, with changed records of a partition."""
    return [
        replace(event, records={partition: change(event, event.records[partition])})
        if isinstance(event, Poll) and partition in event.records
        else event
        for event in events
    ]


def _without(events: Events, partition: str, offset: int) -> Events:
    return _reread(
        events, partition, lambda _, records: [each for each in records if each[0] != offset]
    )


def _renamed(events: Events, partition: str, names: dict[str, str]) -> Events:
    def rename(_: Poll, records: Records) -> Records:
        return [(offset, names.get(value, value)) for offset, value in records]

    return _reread(events, partition, rename)


def lost(events: Events, rng: random.Random) -> Events | None:
    final = _final(events)
    once = [
        send
        for send in _acknowledged(events)
        if send.offset < final[send.partition][-1][0]
        and [value for _, value in final[send.partition]].count(send.value) == 1
    ]
    send = _pick(rng, once)
    return send and _without(events, send.partition, send.offset)


def unseen(events: Events, rng: random.Random) -> Events | None:
    final = _final(events)
    last = [send for send in _acknowledged(events) if final[send.partition][-1][0] == send.offset]
    send = _pick(rng, last)

    def cut(event: Poll, records: Records) -> Records:
        return records[:-1] if event.process == "final" else records

    return send and _reread(events, send.partition, cut)


def duplicate(events: Events, rng: random.Random) -> Events | None:
    of_idempotent = [
        (partition, value)
        for partition, records in _final(events).items()
        for _, value in records
        if value.startswith("idempotent")
    ]
    choice = _pick(rng, of_idempotent)
    if choice is None:
        return None
    partition, value = choice
    end = _final(events)[partition][-1][0] + 1

    def repeat(event: Poll, records: Records) -> Records:
        return [*records, (end, value)] if event.process == "final" else records

    return _reread(events, partition, repeat)


def inconsistent(events: Events, rng: random.Random) -> Events | None:
    choice = _pick(rng, _polls(events))
    if choice is None:
        return None
    index, event, partition, records = choice
    position = rng.randrange(len(records))
    changed = [*records]
    changed[position] = (records[position][0], "another")
    return [*events[:index], replace(event, records={partition: changed}), *events[index + 1 :]]


def aborted(events: Events, rng: random.Random) -> Events | None:
    send = _pick(rng, _acknowledged(events))
    return send and [
        replace(event, kind="fail", offset=-1) if event is send else event for event in events
    ]


def never_sent(events: Events, rng: random.Random) -> Events | None:
    choice = _pick(rng, [(name, value) for name, log in _final(events).items() for _, value in log])
    return choice and _renamed(events, choice[0], {choice[1]: "ghost"})


def skip_inside(events: Events, rng: random.Random) -> Events | None:
    return _shortened(events, _pick(rng, _polls(events, least=3)), 1)


def skip(events: Events, rng: random.Random) -> Events | None:
    return _shortened(events, _pick(rng, list(_continued(events))), -1)


def _continued(events: Events) -> Iterator[tuple[int, Poll, str, Records]]:
    """Polls of two records or more after which the same reader polls again."""
    polls = _polls(events)
    for at, (index, event, partition, records) in enumerate(polls):
        following = (poll for poll in polls[at + 1 :] if poll[1].process == event.process)
        successor = next((poll for poll in following if poll[2] == partition), None)
        if successor is None or len(records) < 2:
            continue
        between = events[index : successor[0]]
        if not any(isinstance(each, Move) and each.process == event.process for each in between):
            yield index, event, partition, records


def _shortened(events: Events, choice, position: int) -> Events | None:
    if choice is None:
        return None
    index, event, partition, records = choice
    fewer = [*records]
    del fewer[position]
    return [*events[:index], replace(event, records={partition: fewer}), *events[index + 1 :]]


def backwards(events: Events, rng: random.Random) -> Events | None:
    choice = _pick(rng, _polls(events))
    return choice and [*events[: choice[0]], choice[1], *events[choice[0] :]]


def backwards_inside(events: Events, rng: random.Random) -> Events | None:
    choice = _pick(rng, _polls(events, least=2))
    if choice is None:
        return None
    index, event, partition, records = choice
    swapped = [records[1], records[0], *records[2:]]
    return [*events[:index], replace(event, records={partition: swapped}), *events[index + 1 :]]


def hole(events: Events, rng: random.Random) -> Events | None:
    inner = [
        (name, offset, value) for name, log in _final(events).items() for offset, value in log[:-1]
    ]
    choice = _pick(rng, inner)
    if choice is None:
        return None
    partition, offset, value = choice
    forgotten = [
        replace(event, kind="info", offset=-1)
        if isinstance(event, Send) and event.value == value and event.kind == "ok"
        else event
        for event in events
    ]
    return _without(forgotten, partition, offset)


def group_skip(events: Events, rng: random.Random) -> Events | None:
    mine = [poll for poll in _polls(events) if poll[1].process in {"first", "second"}]
    ends = {partition: records[-1][0] for _, _, partition, records in mine}
    ends = {name: max(poll[3][-1][0] for poll in mine if poll[2] == name) for name in ends}
    read = [(name, offset) for _, _, name, log in mine for offset, _ in log if offset < ends[name]]
    choice = _pick(rng, read)
    if choice is None:
        return None
    partition, offset = choice

    def drop(event: Poll, records: Records) -> Records:
        is_member = event.process in {"first", "second"}
        return [each for each in records if not is_member or each[0] != offset]

    return _reread(events, partition, drop)


def _swapped(events: Events, one: Send, other: Send) -> Events:
    """The same events, with two acknowledged values swapped."""
    offsets_by_value = {one.value: other.offset, other.value: one.offset}
    described = [
        replace(event, offset=offsets_by_value[event.value])
        if isinstance(event, Send) and event.kind == "ok" and event.value in offsets_by_value
        else event
        for event in events
    ]
    return _renamed(described, one.partition, {one.value: other.value, other.value: one.value})


def disorder(events: Events, rng: random.Random) -> Events | None:
    sends = [send for send in _acknowledged(events) if send.process != "plain"]
    pairs = [
        (one, other)
        for one in sends
        for other in sends
        if (one.process, one.partition) == (other.process, other.partition)
        and one.offset < other.offset
    ]
    pair = _pick(rng, pairs)
    return pair and _swapped(events, *pair)


def stale_send(events: Events, rng: random.Random) -> Events | None:
    began = {
        event.value: event.time_ns
        for event in events
        if isinstance(event, Send) and event.kind == "invoke"
    }
    sends = [send for send in _acknowledged(events) if send.process != "plain"]
    pairs = [
        (one, other)
        for one in sends
        for other in sends
        if one.partition == other.partition and one.time_ns < began[other.value]
    ]
    pair = _pick(rng, pairs)
    return pair and _swapped(events, *pair)


def stale_end(events: Events, rng: random.Random) -> Events | None:
    described = [
        (index, event, max(known))
        for index, event in enumerate(events)
        if isinstance(event, EndRead)
        and (
            known := [
                send.offset
                for send in _acknowledged(events)
                if send.partition == event.partition and send.time_ns < event.began_ns
            ]
        )
    ]
    return _lowered(events, _pick(rng, described), rng)


def stale_commit(events: Events, rng: random.Random) -> Events | None:
    described = [
        (index, event, max(known) - 1)
        for index, event in enumerate(events)
        if isinstance(event, CommitRead)
        and (
            known := [
                commit.offset
                for commit in events
                if isinstance(commit, Commit)
                and commit.kind == "ok"
                and commit.partition == event.partition
                and commit.time_ns < event.began_ns
            ]
        )
    ]
    return _lowered(events, _pick(rng, described), rng)


def _lowered(events: Events, choice, rng: random.Random) -> Events | None:
    if choice is None:
        return None
    index, event, offset_max = choice
    lower = replace(event, offset=rng.randint(-1, offset_max))
    return [*events[:index], lower, *events[index + 1 :]]


def failure(events: Events, rng: random.Random) -> Events | None:
    index = rng.randint(0, len(events))
    return [*events[:index], Failure("idempotent-1", 0, "fatal"), *events[index:]]


MUTATIONS: dict[Name, Mutation] = {
    Name.LOST: lost,
    Name.UNSEEN: unseen,
    Name.DUPLICATE: duplicate,
    Name.INCONSISTENT: inconsistent,
    Name.ABORTED: aborted,
    Name.NEVER_SENT: never_sent,
    Name.HOLE: hole,
    Name.SKIP: skip,
    Name.SKIP_INSIDE: skip_inside,
    Name.BACKWARDS: backwards,
    Name.BACKWARDS_INSIDE: backwards_inside,
    Name.DISORDER: disorder,
    Name.STALE_SEND: stale_send,
    Name.STALE_END: stale_end,
    Name.STALE_COMMIT: stale_commit,
    Name.GROUP_SKIP: group_skip,
    Name.FAILURE: failure,
}
