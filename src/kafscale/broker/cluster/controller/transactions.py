"""An assignment plan as etcd transactions, each with the comparisons that it depends on.

Invariants: an assignment is written only if it is unchanged since it was planned from (absent, for
a new one), while its topic exists, while the brokers that it is taken from and given to are
registered as the plan saw them, and while this broker is controller. An assignment is deleted only
if its partition does not exist, which is compared as well: the topic may be newer than the cache.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

import msgspec

from kafscale.broker.cluster.controller.plan.planner import Change, Plan
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.schema.model import NO_REVISION, SHARDS_TOPIC, Assignment, BrokerInfo, Topic
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
"""How many assignments go into one transaction: if one has changed, none of them is written."""


class AssignmentOp(msgspec.Struct, frozen=True):
    """The write of one assignment, and the comparisons that it needs."""

    assignment: Assignment
    operation: Put | Delete
    compares: list[Compare]


class AssignmentTxn(msgspec.Struct):
    """One transaction."""

    compares: dict[str, Compare]
    operations: list[Operation]
    last: AssignmentOp
    """The last operation: once the cache shows its effect, it shows the whole transaction."""


def build_transactions(
    plan: Plan,
    controller: Entry,
    topics: Mapping[str, Topic],
    brokers: Mapping[int, BrokerInfo],
    puts_max: int = PUTS_MAX,
) -> Iterator[AssignmentTxn]:
    """The transactions of a plan that was made from these topics and brokers."""
    txn: AssignmentTxn | None = None
    for op in chain(
        (_removal_op(assignment, topics) for assignment in plan.removals),
        (_change_op(change, topics, brokers) for change in plan.changes),
    ):
        if txn is not None and not _fits(txn, op, puts_max):
            yield txn
            txn = None
        if txn is None:
            txn = AssignmentTxn({controller.key: unchanged(controller)}, [], op)
        txn.compares.update({compare.key: compare for compare in op.compares})
        txn.operations.append(op.operation)
        txn.last = op
    if txn is not None:
        yield txn


def _fits(txn: AssignmentTxn, op: AssignmentOp, puts_max: int) -> bool:
    more = sum(compare.key not in txn.compares for compare in op.compares)
    return len(txn.operations) < puts_max and len(txn.compares) + more <= OPERATIONS_MAX


def _change_op(
    change: Change, topics: Mapping[str, Topic], brokers: Mapping[int, BrokerInfo]
) -> AssignmentOp:
    before, after = change.before, change.after
    key = keys.assignment(after.topic, after.partition)
    compares = [
        Compare(key=key, mod_revision=before.mod_revision if before else NO_REVISION),
        *(_registration_compare(broker_id, brokers) for broker_id in _brokers_of(change)),
    ]
    if after.topic != SHARDS_TOPIC:
        created = topics[after.topic].create_revision
        compares.append(Compare(key=keys.topic_config(after.topic), create_revision=created))
    return AssignmentOp(after, Put(key, encode_assignment(after)), compares)


def _removal_op(assignment: Assignment, topics: Mapping[str, Topic]) -> AssignmentOp:
    key = keys.assignment(assignment.topic, assignment.partition)
    compares = [Compare(key=key, mod_revision=assignment.mod_revision)]
    if assignment.topic != SHARDS_TOPIC:
        topic = topics.get(assignment.topic)
        revision = topic.mod_revision if topic else NO_REVISION
        compares.append(Compare(key=keys.topic_config(assignment.topic), mod_revision=revision))
    return AssignmentOp(assignment, Delete(key), compares)


def _brokers_of(change: Change) -> set[int]:
    """The brokers that a change depends on: the old owner, the new owner, the transfer target."""
    before, after = change.before, change.after
    named = {after.broker_id}
    if before is not None:
        named.add(before.broker_id)
    if after.reassigning_to is not None:
        named.add(after.reassigning_to)
    return named


def _registration_compare(broker_id: int, brokers: Mapping[int, BrokerInfo]) -> Compare:
    broker = brokers.get(broker_id)
    return Compare(
        key=keys.broker(broker_id), mod_revision=broker.mod_revision if broker else NO_REVISION
    )
