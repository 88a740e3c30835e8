"""Targets: what every member is to own in the end, as the group's assignor would have it."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from kafscale.groups.assignors import range_assignment, uniform_assignment
from kafscale.groups.assignors.base import Assignment
from kafscale.groups.consumer.member import Member
from kafscale.groups.consumer.partition_sets import frozen
from kafscale.groups.consumer.subscriptions import Catalogue
from kafscale.groups.model import Partitions


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What an assignor may go by."""

    subscriptions: Mapping[str, frozenset[bytes]]
    partition_counts: Mapping[bytes, int]
    owned: Mapping[str, Partitions]
    instances: Mapping[str, str]


ASSIGNORS: Final[Mapping[str, Callable[[Task], Assignment[bytes]]]] = {
    "uniform": lambda task: uniform_assignment(
        task.subscriptions, task.partition_counts, task.owned
    ),
    "range": lambda task: range_assignment(
        task.subscriptions, task.partition_counts, task.instances
    ),
}
"""Those that a broker can offer."""


def chosen_assignor(members: Collection[Member], offered: tuple[str, ...]) -> str:
    """The one that most members ask for, of those that are offered; the first where none does."""
    votes = Counter(member.profile.server_assignor for member in members)
    return max(offered, key=lambda name: votes[name])


def targets(
    members: Collection[Member], catalogue: Catalogue, assignor: str
) -> dict[str, Partitions]:
    """New targets for everybody; what they were to own so far, they are to keep if possible."""
    task = Task(
        subscriptions={
            member.member_id: catalogue.wanted(member.profile.wish) for member in members
        },
        partition_counts=catalogue.partition_counts(member.profile.wish for member in members),
        owned={member.member_id: member.target for member in members},
        instances={
            member.member_id: member.profile.instance_id
            for member in members
            if member.profile.instance_id is not None
        },
    )
    assignment = ASSIGNORS[assignor](task)
    return {member_id: frozen(partitions) for member_id, partitions in assignment.items()}
