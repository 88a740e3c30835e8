"""Batches: a plan as commits that the store takes, each with all that must hold for it.

The laws: an assignment is written only if it is still what was planned from (absent, for a new
one), while its topic exists, while the brokers that it is taken from and given to are registered as
they were seen, and while we are controller. Only an assignment of something that does not exist is
deleted: not one of a topic that we have not heard of yet.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

import msgspec

from kafscale.broker.cluster.controller.plan.planner import Change, Plan
from kafscale.metadata.cluster.group_shards import SHARDS_TOPIC
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.schema.model import NEVER_SAVED, Assignment, BrokerInfo, Topic
from kafscale.metadata.store.base import (
    OPERATIONS_MAX,
    Compare,
    Delete,
    Entry,
    Operation,
    Put,
    unchanged,
)

PUTS_MAX: Final = 64
"""How many assignments go into one commit: where one has changed, none of them is written."""


class Step(msgspec.Struct, frozen=True):
    """What is done to one assignment, and what must hold for it."""

    assignment: Assignment
    operation: Put | Delete
    compares: list[Compare]


class Batch(msgspec.Struct):
    """One commit."""

    compares: dict[str, Compare]
    operations: list[Operation]
    last: Step
    """The last of its steps: who sees what that has done sees the whole commit."""


def batches(
    plan: Plan,
    controller: Entry,
    topics: Mapping[str, Topic],
    brokers: Mapping[int, BrokerInfo],
    puts_max: int = PUTS_MAX,
) -> Iterator[Batch]:
    """The commits of a plan that was made from these topics and brokers."""
    batch: Batch | None = None
    for step in chain(
        (_removal(assignment, topics) for assignment in plan.removals),
        (_change(change, topics, brokers) for change in plan.changes),
    ):
        if batch is not None and not _fits(batch, step, puts_max):
            yield batch
            batch = None
        if batch is None:
            batch = Batch({controller.key: unchanged(controller)}, [], step)
        batch.compares.update({compare.key: compare for compare in step.compares})
        batch.operations.append(step.operation)
        batch.last = step
    if batch is not None:
        yield batch


def _fits(batch: Batch, step: Step, puts_max: int) -> bool:
    more = sum(compare.key not in batch.compares for compare in step.compares)
    return len(batch.operations) < puts_max and len(batch.compares) + more <= OPERATIONS_MAX


def _change(change: Change, topics: Mapping[str, Topic], brokers: Mapping[int, BrokerInfo]) -> Step:
    before, after = change.before, change.after
    key = keys.assignment(after.topic, after.partition)
    compares = [
        Compare(key=key, mod_revision=before.mod_revision if before else NEVER_SAVED),
        *(_registered(broker_id, brokers) for broker_id in _brokers_of(change)),
    ]
    if after.topic != SHARDS_TOPIC:
        created = topics[after.topic].create_revision
        compares.append(Compare(key=keys.topic_config(after.topic), create_revision=created))
    return Step(after, Put(key, encode_assignment(after)), compares)


def _removal(assignment: Assignment, topics: Mapping[str, Topic]) -> Step:
    key = keys.assignment(assignment.topic, assignment.partition)
    compares = [Compare(key=key, mod_revision=assignment.mod_revision)]
    if assignment.topic != SHARDS_TOPIC:
        topic = topics.get(assignment.topic)
        revision = topic.mod_revision if topic else NEVER_SAVED
        compares.append(Compare(key=keys.topic_config(assignment.topic), mod_revision=revision))
    return Step(assignment, Delete(key), compares)


def _brokers_of(change: Change) -> set[int]:
    """The brokers that it depends on: who loses something, and who gets it or is to get it."""
    before, after = change.before, change.after
    named = {after.broker_id}
    if before is not None:
        named.add(before.broker_id)
    if after.reassigning_to is not None:
        named.add(after.reassigning_to)
    return named


def _registered(broker_id: int, brokers: Mapping[int, BrokerInfo]) -> Compare:
    broker = brokers.get(broker_id)
    return Compare(
        key=keys.broker(str(broker_id)), mod_revision=broker.mod_revision if broker else NEVER_SAVED
    )
