"""Planning: what the controller is to change, so that every partition is served by a living broker.

A plan follows from what is seen, and from nothing else: the same view gives the same plan, and a
plan that has been carried out gives none after it but the next moves. The laws:

1. Whoever lives keeps what it has; only the owner hands it over, where `reassigning_to` says.
2. What belongs to an owner that is over is given away once its WAL stream is fenced. Shards have no
   stream: the compare in each of the coordinator's commits is their fence.
3. The leader epoch grows by one with every owner.
4. Partitions are spread evenly, and shards are, by as few moves as possible; of those, at most
   `moves_max` are under way in the whole cluster. Brokers that are about to leave do not wait for
   that: each may have `DRAINS_PER_MOVE` times as many under way.

How pieces are spread is said in `placing` and `levelling`; a plan is carried out by `assigning`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from kafscale.broker.cluster.controller.plan.placement import place
from kafscale.broker.cluster.controller.plan.rebalance import call_off, level
from kafscale.broker.cluster.controller.plan.unit import NOWHERE, Piece
from kafscale.metadata.cluster.group_shards import SHARDS_TOPIC
from kafscale.metadata.schema.model import Assignment, BrokerInfo

DRAINS_PER_MOVE: Final = 4

Place = tuple[str, int]
"""A topic and the number of a partition, or `SHARDS_TOPIC` and that of a shard."""

Owner = tuple[int, int]
"""A broker's id and epoch."""


class Change(msgspec.Struct, frozen=True):
    """An assignment to be written."""

    before: Assignment | None
    after: Assignment


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done."""

    to_fence: set[Owner]
    """Owners that are over, and whose partitions wait for the fence."""
    changes: list[Change]
    removals: list[Assignment]
    """Assignments of what does not exist."""


def plan(
    *,
    partitions: Mapping[str, int],
    brokers: Mapping[int, BrokerInfo],
    assignments: Mapping[Place, Assignment],
    fenced: Collection[Owner],
    now_ms: int,
    moves_max: int,
) -> Plan:
    """What is to be done, given how many partitions each topic has, who lives, and who has what."""
    pieces = [
        Piece(topic, number, assignments.get((topic, number)), brokers)
        for topic in sorted(partitions)
        for number in range(partitions[topic])
    ]
    to_fence = {_owner(piece) for piece in pieces if _needs_fence(piece)}.difference(fenced)
    changes: list[Change] = []
    if brokers:
        _arrange(pieces, brokers, moves_max)
        movable = [
            piece for piece in pieces if not (_needs_fence(piece) and _owner(piece) in to_fence)
        ]
        changes = _changes(movable, brokers, now_ms, DRAINS_PER_MOVE * max(1, moves_max))
    removals = [
        assignment
        for (topic, number), assignment in sorted(assignments.items())
        if number >= partitions.get(topic, 0)
    ]
    return Plan(to_fence=to_fence, changes=changes, removals=removals)


def _arrange(pieces: list[Piece], brokers: Mapping[int, BrokerInfo], moves_max: int) -> None:
    """Say of each piece where it is to be; shards and partitions are spread separately."""
    shards = [piece for piece in pieces if piece.topic == SHARDS_TOPIC]
    others = [piece for piece in pieces if piece.topic != SHARDS_TOPIC]
    spreads = [(kind, place(kind, brokers)) for kind in (shards, others)]
    moves_left = moves_max - sum(call_off(kind, spread) for kind, spread in spreads)
    if all(broker.is_draining for broker in brokers.values()):
        return
    for kind, spread in spreads:
        moves_left -= level(kind, spread, moves_left)


def _changes(
    pieces: Iterable[Piece], brokers: Mapping[int, BrokerInfo], now_ms: int, drains_max: int
) -> list[Change]:
    pieces = list(pieces)
    drains = Counter(
        piece.home
        for piece in pieces
        if piece.is_leaving and piece.before and piece.before.reassigning_to is not None
    )
    changes: list[Change] = []
    for piece in pieces:
        if piece.home == NOWHERE:
            changes.append(_given(piece, brokers[piece.destination], now_ms))
            continue
        assert piece.before is not None
        reassigning_to = piece.destination if piece.destination != piece.home else None
        if reassigning_to == piece.before.reassigning_to:
            continue
        if piece.is_leaving and piece.before.reassigning_to is None:
            if drains[piece.home] >= drains_max:
                continue
            drains[piece.home] += 1
        changes.append(Change(piece.before, replace(piece.before, reassigning_to=reassigning_to)))
    return changes


def _given(piece: Piece, broker: BrokerInfo, now_ms: int) -> Change:
    """The change that gives a piece which nobody has, or not any more, to a broker."""
    before = piece.before
    after = Assignment(
        topic=piece.topic,
        partition=piece.partition,
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        leader_epoch=before.leader_epoch + 1 if before else 0,
        fully_rolled=before is None,
        assigned_ms=now_ms,
    )
    return Change(before, after)


def _needs_fence(piece: Piece) -> bool:
    return piece.is_orphan and piece.topic != SHARDS_TOPIC


def _owner(piece: Piece) -> Owner:
    assert piece.before is not None
    return piece.before.broker_id, piece.before.broker_epoch
