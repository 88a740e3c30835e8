"""Plans the next action on a managed etcd: the most important one, or none. Pure.

The order: free space, then membership, then outdated pods, then defragmentation. While the cluster
forms, only outdated pods that do not respond are restarted.

Invariants of defragmentation: one member at a time, and only while all are healthy, because a
member does not respond meanwhile. Followers come first and the leader last, since an election costs
a second. Small or mostly used databases are not defragmented. A database that has reached its quota
accepts no writes at all: then the history is compacted early, and full members are defragmented
even if others are unhealthy.
"""

from typing import Final

from kafscale.metadata.store.etcd.maintenance import NO_SPACE
from kafscale.operator.etcd.membership import (
    LOST_AFTER_MS,
    Action,
    Defragment,
    FreeSpace,
    RestartPod,
    membership,
)
from kafscale.operator.etcd.view import EtcdView, MemberView, all_healthy
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig, BootstrapMode

SIZE_BYTES_MIN: Final = 64 << 20
USED_SHARE_MAX: Final = 0.5


def plan(view: EtcdView, lost_after_ms: int = LOST_AFTER_MS) -> Action | None:
    """The next action."""
    if view.bootstrap.mode is BootstrapMode.FORMING:
        return _restart_of_unresponsive(view)
    return (
        free_space(view)
        or membership(view, lost_after_ms)
        or _restart_of_unresponsive(view)
        or _restart(view)
        or defragmentation(view)
    )


def next_bootstrap(view: EtcdView, members: str) -> BootstrapConfig:
    """The bootstrap config to apply; `members` is the member list as `initial-cluster`."""
    mode, snapshot = view.bootstrap.mode, view.bootstrap.snapshot
    if mode is BootstrapMode.FORMING:
        # etcd lists all members from the start, even those that have not started yet.
        formed = all_healthy(view.listed_members) and all(
            each.is_started for each in view.listed_members
        )
        return BootstrapConfig(BootstrapMode.FORMED, "", snapshot) if formed else view.bootstrap
    if any(not each.is_started for each in view.listed_members):
        return BootstrapConfig(BootstrapMode.JOINING, members, snapshot)
    # Without a member list the mode stays: a member may be about to join.
    return (
        BootstrapConfig(BootstrapMode.FORMED, "", snapshot)
        if view.has_member_list
        else view.bootstrap
    )


def replicas(view: EtcdView, now: int) -> int:
    """The desired number of pods: a surplus member loses its pod only after it left the list.

    `now` is the current number, which is kept while there is no member list.
    """
    if not view.has_member_list:
        return max(view.desired, now)
    return max([view.desired, *(each.index + 1 for each in view.listed_members)])


def _restart(view: EtcdView) -> RestartPod | None:
    """Restart an outdated pod while all members are healthy; the leader's pod comes last."""
    pods = [each.pod for each in view.listed_members]
    if not all_healthy(view.listed_members) or any(not pod or not pod.is_ready for pod in pods):
        return None
    outdated = [each for each in view.listed_members if _is_outdated(view, each)]
    outdated.sort(key=lambda each: (each.is_leader, -each.index))
    if outdated and outdated[0].pod:
        return RestartPod(outdated[0].index, outdated[0].pod.uid)
    return None


def _restart_of_unresponsive(view: EtcdView) -> RestartPod | None:
    """Restart an outdated pod whose member does not respond: nothing can be lost."""
    for member in view.members:
        pod = member.pod
        if pod and not pod.is_ready and member.status is None and _is_outdated(view, member):
            return RestartPod(member.index, pod.uid)
    return None


def _is_outdated(view: EtcdView, member: MemberView) -> bool:
    pod = member.pod
    return pod is not None and not pod.is_terminating and pod.checksum != view.checksum


def defragmentation(view: EtcdView) -> Defragment | None:
    """The member to defragment, if any."""
    if not view.may_defragment or not all_healthy(view.listed_members):
        return None
    candidates = [each for each in view.listed_members if _is_mostly_free(each)]
    candidates.sort(key=lambda each: each.is_leader)
    return Defragment(candidates[0].index) if candidates else None


def free_space(view: EtcdView) -> FreeSpace | None:
    """Compact, defragment and disarm if a member has reached its quota."""
    alarms = tuple(each for each in view.alarms if each.kind == NO_SPACE)
    full = {alarm.member_id for alarm in alarms}
    healthy = sorted(view.healthy, key=lambda each: each.is_leader)
    indices = tuple(each.index for each in healthy if each.entry and each.entry.id in full)
    # An alarm outlives the member that raised it, and blocks writes of all others.
    return FreeSpace(alarms, indices) if alarms and view.has_quorum else None


def _is_mostly_free(member: MemberView) -> bool:
    status = member.status
    if status is None or status.database_bytes <= SIZE_BYTES_MIN:
        return False
    return status.database_used_bytes < status.database_bytes * USED_SHARE_MAX
