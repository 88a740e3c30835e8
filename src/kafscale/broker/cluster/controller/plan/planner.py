"""The planner: what the controller has to change, so that a live broker serves every partition.

A plan depends only on its arguments: the same state gives the same plan, and a plan that was
executed is followed by no other than the next moves. Invariants:

1. A live broker keeps what it owns; only the owner transfers it, to where `reassigning_to` says.
2. What a lost owner had is assigned to others once its WAL stream is fenced. Shards have no stream:
   they are fenced by the ownership guard in each of the coordinator's transactions.
3. The leader epoch grows by one with every change of owner.
4. A partition that was requested for certain brokers is moved to the first of them that can own it.
5. Other partitions are spread evenly, and so are shards, by as few moves as possible. At most
   `moves_max` moves of both kinds are under way in the cluster, but one is always possible that was
   requested. Draining brokers are not bound by that: each may have
   `DRAINS_PER_MOVE` times as many transfers under way.

`placement` chooses the targets; `assigner` executes a plan.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from kafscale.broker.cluster.controller.plan.placement import (
    cancel_moves,
    place_units,
    rebalance,
    start_requested_moves,
)
from kafscale.broker.cluster.controller.plan.units import AssignmentUnit
from kafscale.metadata.schema.model import NO_BROKER, SHARDS_TOPIC, Assignment, BrokerInfo
from kafscale.text.topic_partition import TopicPartition

DRAINS_PER_MOVE: Final = 4

_NO_REPLICAS: Final[Mapping[int, Sequence[int]]] = MappingProxyType({})

Owner = tuple[int, int]
"""One broker session: the broker's id and epoch."""


class Change(msgspec.Struct, frozen=True):
    """An assignment to be written."""

    before: Assignment | None
    after: Assignment


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the controller has to do."""

    to_fence: set[Owner]
    """Lost owners whose partitions wait for the fence."""
    changes: list[Change]
    removals: list[Assignment]
    """Assignments of partitions that do not exist."""


def plan(
    *,
    partitions: Mapping[str, int],
    brokers: Mapping[int, BrokerInfo],
    assignments: Mapping[TopicPartition, Assignment],
    fenced: Collection[Owner],
    now_ms: int,
    moves_max: int,
    topic_ids: Mapping[str, bytes] = MappingProxyType({}),
    replicas: Mapping[str, Mapping[int, Sequence[int]]] = MappingProxyType({}),
) -> Plan:
    """Make a plan, from the partition count of each topic, the live brokers and the assignments.

    `topic_ids` has the ids of all topics but the shards'; `replicas` has the brokers that were
    requested for partitions, by topic.
    """
    units = [
        AssignmentUnit(
            topic,
            number,
            assignments.get((topic, number)),
            brokers,
            topic_ids.get(topic, b""),
            replicas=replicas.get(topic, _NO_REPLICAS).get(number, ()),
        )
        for topic in sorted(partitions)
        for number in range(partitions[topic])
    ]
    to_fence = {_last_owner(unit) for unit in units if _needs_fence(unit)}.difference(fenced)
    changes: list[Change] = []
    if brokers:
        _choose_targets(units, brokers, moves_max)
        movable = [
            unit for unit in units if not (_needs_fence(unit) and _last_owner(unit) in to_fence)
        ]
        changes = _build_changes(movable, brokers, now_ms, DRAINS_PER_MOVE * max(1, moves_max))
    removals = [
        assignment
        for (topic, number), assignment in sorted(assignments.items())
        if number >= partitions.get(topic, 0)
    ]
    return Plan(to_fence=to_fence, changes=changes, removals=removals)


def _choose_targets(
    units: list[AssignmentUnit], brokers: Mapping[int, BrokerInfo], moves_max: int
) -> None:
    """Set the target of each unit; shards and partitions are spread separately."""
    shards = [unit for unit in units if unit.topic == SHARDS_TOPIC]
    others = [unit for unit in units if unit.topic != SHARDS_TOPIC]
    loads = [(kind, place_units(kind, brokers)) for kind in (shards, others)]
    under_way = sum(cancel_moves(kind, load) for kind, load in loads)
    if all(broker.is_draining for broker in brokers.values()):
        return
    under_way += start_requested_moves(others, max(1, moves_max) - under_way)
    for kind, load in loads:
        under_way += rebalance(kind, load, moves_max - under_way)


def _build_changes(
    units: Iterable[AssignmentUnit], brokers: Mapping[int, BrokerInfo], now_ms: int, drains_max: int
) -> list[Change]:
    units = list(units)
    drains = Counter(
        unit.owner
        for unit in units
        if unit.owner_draining and unit.before and unit.before.reassigning_to is not None
    )
    changes: list[Change] = []
    for unit in units:
        if unit.owner == NO_BROKER:
            changes.append(_assign_unowned(unit, brokers[unit.target], now_ms))
            continue
        assert unit.before is not None
        reassigning_to = unit.target if unit.target != unit.owner else None
        if unit.is_waiting or reassigning_to == unit.before.reassigning_to:
            continue
        if unit.owner_draining and unit.before.reassigning_to is None:
            if drains[unit.owner] >= drains_max:
                continue
            drains[unit.owner] += 1
        changes.append(Change(unit.before, replace(unit.before, reassigning_to=reassigning_to)))
    return changes


def _assign_unowned(unit: AssignmentUnit, broker: BrokerInfo, now_ms: int) -> Change:
    """Assign a unit without an owner to a broker."""
    before = unit.before
    after = Assignment(
        topic=unit.topic,
        topic_id=unit.topic_id,
        partition=unit.partition,
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        leader_epoch=before.leader_epoch + 1 if before else 0,
        fully_rolled=before is None,
        lost_owner=_last_owner(unit) if _needs_fence(unit) else None,
        assigned_ms=now_ms,
    )
    return Change(before, after)


def _needs_fence(unit: AssignmentUnit) -> bool:
    return unit.owner_lost and unit.topic != SHARDS_TOPIC


def _last_owner(unit: AssignmentUnit) -> Owner:
    assert unit.before is not None
    return unit.before.broker_id, unit.before.broker_epoch
