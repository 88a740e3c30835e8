"""How an etcd is, in a sentence for people and a word for programs. Pure."""

from collections.abc import Sequence
from typing import Final

from kafscale.metadata.store.etcd.maintenance import NO_SPACE
from kafscale.operator.conditions import Condition, bad, ok
from kafscale.operator.etcd.membership import loss
from kafscale.operator.etcd.view import EtcdView
from kafscale.operator.manifests.etcd.bootstrap_config import Door

READY: Final = "EtcdReady"
"""Whether brokers can use it."""
MEMBERS: Final = "EtcdMembersHealthy"
"""Whether it could do without a member."""
SPACE: Final = "EtcdSpace"
"""Whether there is room to write."""


def conditions(view: EtcdView) -> list[Condition]:
    """What is true of a managed etcd."""
    return [_ready(view), _members(view), _space(view)]


def given_conditions(answers: int, endpoints: Sequence[str], reason: str) -> list[Condition]:
    """What is true of an etcd that was given; `answers` is how many members know a leader."""
    told = f"{answers} of {len(endpoints)} endpoints answer"
    if answers:
        return [ok(READY, "Reachable", told)]
    return [bad(READY, "Unreachable", f"{told}: {reason}")]


def _ready(view: EtcdView) -> Condition:
    told = f"{len(view.healthy)} of {max(view.wanted, len(view.seated))} members are healthy"
    if view.has_quorum:
        return ok(READY, "HasQuorum", told)
    ends = "".join(
        f"; {each.name} ended: {each.pod.reason}"
        for each in view.members
        if each.pod and each.pod.reason and each.status is None
    )
    if view.admission.door is Door.FORMING:
        return bad(READY, "Forming", f"the cluster forms: {told}{ends}")
    return bad(
        READY,
        "NoQuorum",
        f"{told}, which is not most of them{ends}. If their volumes are lost, delete this"
        " resource and the volume claims of etcd, and make it again with etcd.restoreFrom: latest",
    )


def _members(view: EtcdView) -> Condition:
    if view.strangers:
        strangers = ", ".join(sorted(each.name or str(each.id) for each in view.strangers))
        return bad(
            MEMBERS,
            "Strangers",
            f"there are members that are none of ours, and nothing is repaired: {strangers}",
        )
    troubles = []
    for member in view.members:
        if member.is_healthy:
            continue
        why = loss(view, member)
        if member.seat and member.seat.is_learner:
            why = "it has come back, and catches up"
        elif not member.seat and view.is_listed:
            why = "it is no member yet"
        troubles.append(f"{member.name}: {why or 'it does not answer'}")
    if troubles:
        return bad(MEMBERS, "Unhealthy", "; ".join(troubles))
    return ok(MEMBERS, "AllHealthy")


def _space(view: EtcdView) -> Condition:
    if any(alarm.kind == NO_SPACE for alarm in view.alarms):
        return bad(
            SPACE,
            "QuotaReached",
            "the database has reached its quota, and nothing is written; if this lasts,"
            " raise etcd.managed.quota",
        )
    return ok(SPACE, "BelowQuota")
