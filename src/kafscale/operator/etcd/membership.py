"""The actions on a managed etcd, and when to remove, add or promote a member. Pure.

Invariants: a member is removed or added only while all others are healthy, so that no single step
can cost the quorum. A member that has lost its data is replaced: it is removed from the list, its
volume deleted, then it is added as a learner and promoted when it has caught up.

A member has lost its data if its volume is gone, if etcd reports that it has none (the bootstrap
config allows no member to start empty), if other members report it as corrupt, or if its pod keeps
crashing while another one of the same template does not. The last is a judgement: a broken node
looks the same, and the copy given up may have been good; all other copies are, though.

Left to people: a pod that waits for a node or a volume (delete its volume claim and the pod to
replace it), a single member that has lost everything (`restoreFrom`), a lost quorum, and members in
the list that the operator did not add.
"""

from typing import Final

import msgspec

from kafscale.metadata.store.etcd.maintenance import CORRUPT, Alarm
from kafscale.operator.etcd.view import EtcdView, MemberView, all_healthy

LOST_AFTER_MS: Final = 60_000
"""How long a crashing member must be unresponsive before its data counts as lost."""


class RemoveMember(msgspec.Struct, frozen=True):
    """Remove a member from the list permanently."""

    index: int
    member_id: int
    reason: str


class AddMember(msgspec.Struct, frozen=True):
    """Add a missing member to the list as a learner, with an empty volume."""

    index: int


class PromoteMember(msgspec.Struct, frozen=True):
    """Promote a learner that has caught up to a voting member."""

    index: int
    member_id: int


class RestartPod(msgspec.Struct, frozen=True):
    """Delete a pod, so that it is created again from the current template."""

    index: int
    pod_uid: str


class FreeSpace(msgspec.Struct, frozen=True):
    """Compact the history, defragment the members that are full, and disarm their alarms."""

    alarms: tuple[Alarm, ...]
    indices: tuple[int, ...]


class DisarmAlarm(msgspec.Struct, frozen=True):
    """Disarm an alarm of a member that is gone."""

    alarm: Alarm


class Defragment(msgspec.Struct, frozen=True):
    """Release the free space in the database of a member."""

    index: int


Action = (
    RemoveMember | AddMember | PromoteMember | RestartPod | FreeSpace | DisarmAlarm | Defragment
)
"""They run one at a time, and each may be interrupted safely."""


def membership(view: EtcdView, lost_after_ms: int = LOST_AFTER_MS) -> Action | None:
    """The next safe change of membership, if there is one."""
    if not view.has_member_list or view.unknown_members:
        return None
    return (
        _removal(view, lost_after_ms)
        or _stale_alarm(view)
        or _promotion(view)
        or _addition(view)
        or _surplus_removal(view)
    )


def data_loss_reason(view: EtcdView, member: MemberView, lost_after_ms: int = LOST_AFTER_MS) -> str:
    """Why a member counts as having lost its data; empty if it has not."""
    pod = member.pod
    if member.entry is None or (pod and pod.is_terminating):
        return ""
    if view.is_corrupt(member):
        return "its database differs from those of the other members"
    if member.status is not None:
        return ""
    if not member.has_volume or (pod and pod.is_missing_data and member.is_started):
        return "its volume is empty" if member.has_volume else "its volume is gone"
    others = [each.pod for each in view.healthy if each.pod]
    # Without another healthy pod of the same template, the template itself may be broken.
    is_only_one = pod is None or all(each.checksum != pod.checksum for each in others)
    if pod and pod.is_crashing and member.unresponsive_ms >= lost_after_ms and not is_only_one:
        return f"it does not start: {pod.reason}" if pod.reason else "it does not start"
    return ""


def _removal(view: EtcdView, lost_after_ms: int) -> RemoveMember | None:
    for member in view.listed_members:
        others = [each for each in view.listed_members if each is not member]
        reason = data_loss_reason(view, member, lost_after_ms)
        if reason and member.entry and all_healthy(others):
            return RemoveMember(member.index, member.entry.id, reason)
    return None


def _stale_alarm(view: EtcdView) -> DisarmAlarm | None:
    entries = {each.entry.id for each in view.listed_members if each.entry}
    for alarm in view.alarms:
        if (
            alarm.kind == CORRUPT
            and alarm.member_id not in entries
            and all_healthy(view.listed_members)
        ):
            return DisarmAlarm(alarm)
    return None


def _promotion(view: EtcdView) -> PromoteMember | None:
    for member in view.listed_members:
        if member.entry and member.entry.is_learner and member.status is not None:
            return PromoteMember(member.index, member.entry.id)
    return None


def _addition(view: EtcdView) -> AddMember | None:
    missing = [each for each in view.members[: view.desired] if not each.entry]
    return AddMember(missing[0].index) if missing and all_healthy(view.listed_members) else None


def _surplus_removal(view: EtcdView) -> RemoveMember | None:
    """Remove a member beyond the desired number, the last one first."""
    extra = [each for each in view.listed_members if each.index >= view.desired]
    if extra and extra[-1].entry and all_healthy(view.listed_members):
        return RemoveMember(extra[-1].index, extra[-1].entry.id, "fewer members are desired")
    return None
