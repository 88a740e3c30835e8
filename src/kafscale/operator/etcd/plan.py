"""What is done next to a managed etcd: the one action that matters most, or none. Pure.

The order: room to write in, then who is a member, then pods that are out of date, then databases
that could be smaller. While the cluster forms, it is left alone.
"""

from kafscale.operator.etcd.actions import Action, Restart
from kafscale.operator.etcd.defragmentation import defragmentation, room
from kafscale.operator.etcd.membership import LOST_AFTER_MS, membership
from kafscale.operator.etcd.view import EtcdView, MemberView, all_healthy
from kafscale.operator.manifests.etcd.bootstrap_config import Admission, Door


def plan(view: EtcdView, lost_after_ms: int = LOST_AFTER_MS) -> Action | None:
    """The next action."""
    if view.admission.door is Door.FORMING:
        return _restart_of_silent(view)
    return (
        room(view)
        or membership(view, lost_after_ms)
        or _restart_of_silent(view)
        or _restart(view)
        or defragmentation(view)
    )


def admission(view: EtcdView, members: str) -> Admission:
    """Who may begin from now on; `members` is the list, as etcd wants to be told of it."""
    door, snapshot = view.admission.door, view.admission.snapshot
    if door is Door.FORMING:
        # The list has all members from the start, whether they have been seen or not.
        formed = all_healthy(view.seated) and all(each.is_started for each in view.seated)
        return Admission(Door.CLOSED, "", snapshot) if formed else view.admission
    if any(not each.is_started for each in view.seated):
        return Admission(Door.OPEN, members, snapshot)
    # Without a list nobody knows; what was open stays so for the one that it was opened for.
    return Admission(Door.CLOSED, "", snapshot) if view.is_listed else view.admission


def replicas(view: EtcdView, now: int) -> int:
    """How many pods there should be: one that is not wanted goes after it has left the list.

    `now` is how many there are, which stays so while nobody can tell who is in the list.
    """
    if not view.is_listed:
        return max(view.wanted, now)
    return max([view.wanted, *(each.index + 1 for each in view.seated)])


def _restart(view: EtcdView) -> Restart | None:
    """A pod that is out of date, while all others are well; that of the leader last."""
    pods = [each.pod for each in view.seated]
    if not all_healthy(view.seated) or any(not pod or not pod.is_ready for pod in pods):
        return None
    old = [each for each in view.seated if _is_old(view, each)]
    old.sort(key=lambda each: (each.is_leader, -each.index))
    return Restart(old[0].index, old[0].pod.uid) if old and old[0].pod else None


def _restart_of_silent(view: EtcdView) -> Restart | None:
    """A pod that is out of date and of no use to anybody: there is nothing to lose."""
    for member in view.members:
        pod = member.pod
        if pod and not pod.is_ready and member.status is None and _is_old(view, member):
            return Restart(member.index, pod.uid)
    return None


def _is_old(view: EtcdView, member: MemberView) -> bool:
    pod = member.pod
    return pod is not None and not pod.is_terminating and pod.checksum != view.checksum
