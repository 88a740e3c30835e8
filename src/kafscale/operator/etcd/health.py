"""The state of an etcd, and the conditions that report it. Pure."""

from collections.abc import Sequence
from typing import Final

import msgspec

from kafscale.config.sections.etcd import Etcd
from kafscale.metadata.store.etcd.maintenance import NO_SPACE
from kafscale.operator.etcd.membership import data_loss_reason
from kafscale.operator.etcd.view import EtcdView
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapMode
from kafscale.operator.manifests.names import EtcdAccess
from kafscale.operator.spec.status import Condition, EtcdStatus, bad, ok

READY: Final = "EtcdReady"
"""Whether brokers can use it."""
MEMBERS: Final = "EtcdMembersHealthy"
"""Whether it tolerates the loss of a member."""
SPACE: Final = "EtcdSpace"
"""Whether its database is below the quota."""


class EtcdState(msgspec.Struct, kw_only=True):
    """The observed state of a cluster's etcd."""

    access: EtcdAccess
    is_ready: bool
    """Whether brokers can use it."""
    conditions: list[Condition]
    settings: Etcd | None = None
    """How to connect to it; always set if it is ready."""
    members: int | None = None
    members_ready: int | None = None
    database_bytes: int | None = None
    """The size of the largest database."""
    is_busy: bool = False
    """Whether a change is in progress, so that it should be checked again soon."""

    def status(self) -> EtcdStatus:
        """The `status.etcd` of the resource."""
        return EtcdStatus(
            managed=self.access.is_managed,
            endpoints=list(self.access.endpoints),
            members=self.members,
            members_ready=self.members_ready,
            database_bytes=self.database_bytes,
        )


def conditions(view: EtcdView) -> list[Condition]:
    """The conditions of a managed etcd."""
    return [_ready(view), _members(view), _space(view)]


def external_conditions(reachable: int, endpoints: Sequence[str], reason: str) -> list[Condition]:
    """The conditions of an external etcd; `reachable` members know a leader."""
    summary = f"{reachable} of {len(endpoints)} endpoints respond"
    if reachable:
        return [ok(READY, "Reachable", summary)]
    return [bad(READY, "Unreachable", f"{summary}: {reason}")]


def _ready(view: EtcdView) -> Condition:
    summary = (
        f"{len(view.healthy)} of {max(view.desired, len(view.listed_members))} members are healthy"
    )
    if view.has_quorum:
        return ok(READY, "HasQuorum", summary)
    exit_reasons = "".join(
        f"; {each.name} failed: {each.pod.reason}"
        for each in view.members
        if each.pod and each.pod.reason and each.status is None
    )
    if view.bootstrap.mode is BootstrapMode.FORMING:
        return bad(READY, "Forming", f"the cluster is forming: {summary}{exit_reasons}")
    return bad(
        READY,
        "NoQuorum",
        f"{summary}, which is no majority{exit_reasons}. If their volumes are lost, delete this"
        " resource and the volume claims of etcd, and create it again with"
        " etcd.restoreFrom: latest",
    )


def _members(view: EtcdView) -> Condition:
    if view.unknown_members:
        unknown = ", ".join(sorted(each.name or str(each.id) for each in view.unknown_members))
        return bad(
            MEMBERS,
            "UnknownMembers",
            f"no repairs while the cluster has members that the operator did not add: {unknown}",
        )
    problems = []
    for member in view.members:
        if member.is_healthy:
            continue
        reason = data_loss_reason(view, member)
        if member.entry and member.entry.is_learner:
            reason = "a learner that is catching up"
        elif not member.entry and view.has_member_list:
            reason = "not a member yet"
        problems.append(f"{member.name}: {reason or 'not responding'}")
    if problems:
        return bad(MEMBERS, "Unhealthy", "; ".join(problems))
    return ok(MEMBERS, "AllHealthy")


def _space(view: EtcdView) -> Condition:
    if any(alarm.kind == NO_SPACE for alarm in view.alarms):
        return bad(
            SPACE,
            "QuotaReached",
            "the database has reached its quota and accepts no writes; if this persists, raise"
            " etcd.managed.quota",
        )
    return ok(SPACE, "BelowQuota")
