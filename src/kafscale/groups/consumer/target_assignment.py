"""The target assignment: what each member should own, computed by the group's assignor."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from kafscale.groups.assignors import range_assignment, uniform_assignment
from kafscale.groups.assignors.base import Assignment
from kafscale.groups.consumer.member import Member
from kafscale.groups.consumer.partition_sets import frozen
from kafscale.groups.consumer.subscriptions import TopicSubscriptions
from kafscale.groups.model import Partitions


class AssignorInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of an assignor."""

    subscriptions: Mapping[str, frozenset[bytes]]
    partition_counts: Mapping[bytes, int]
    owned: Mapping[str, Partitions]
    instances: Mapping[str, str]


ASSIGNORS: Final[Mapping[str, Callable[[AssignorInput], Assignment[bytes]]]] = {
    "uniform": lambda data: uniform_assignment(
        data.subscriptions, data.partition_counts, data.owned
    ),
    "range": lambda data: range_assignment(
        data.subscriptions, data.partition_counts, data.instances
    ),
}
"""The server-side assignors."""


def select_assignor(members: Collection[Member], offered: tuple[str, ...]) -> str:
    """The offered assignor with the most votes; the first one if there are none."""
    votes = Counter(member.metadata.server_assignor for member in members)
    return max(offered, key=lambda name: votes[name])


def compute_targets(
    members: Collection[Member], subscriptions: TopicSubscriptions, assignor: str
) -> dict[str, Partitions]:
    """New targets for all members, which keep their former targets if possible."""
    data = AssignorInput(
        subscriptions={
            member.member_id: subscriptions.resolve(member.metadata.subscription)
            for member in members
        },
        partition_counts=subscriptions.partition_counts(
            member.metadata.subscription for member in members
        ),
        owned={member.member_id: member.target for member in members},
        instances={
            member.member_id: member.metadata.instance_id
            for member in members
            if member.metadata.instance_id is not None
        },
    )
    assignment = ASSIGNORS[assignor](data)
    return {member_id: frozen(partitions) for member_id, partitions in assignment.items()}
