"""Who has to leave a managed etcd, and who may come. Pure.

The laws: nobody leaves or comes unless all others are healthy, so that one step can never cost the
majority. A member that has lost its data comes back as another one: taken out of the list, its
volume deleted, put in again without a say, and given one when it has caught up.

A member has lost its data if its volume is gone, or if it says so itself (the door is closed, and
it has nothing to begin with), or if others have found it to differ, or if its pod crashes for some
time while another of the same template does not. The last is a judgement: a machine that is broken
in itself looks the same, and the copy that is given up was perhaps good; all others are, though.

What is left to people: a pod that waits for a machine or a volume (deleting its volume claim and
the pod has it replaced), an only member that has lost everything (`restoreFrom`), a majority that
is lost, and members in the list that are none of ours.
"""

from typing import Final

from kafscale.metadata.store.etcd.maintenance import CORRUPT
from kafscale.operator.etcd.actions import Action, Admit, Disarm, Promote, Remove
from kafscale.operator.etcd.view import EtcdView, MemberView, all_healthy

LOST_AFTER_MS: Final = 60_000
"""How long a crashing member has to be silent before its data count as lost."""


def membership(view: EtcdView, lost_after_ms: int = LOST_AFTER_MS) -> Action | None:
    """The next change of who is a member, if there is one that is safe."""
    if not view.is_listed or view.strangers:
        return None
    return (
        _removal(view, lost_after_ms)
        or _old_alarm(view)
        or _promotion(view)
        or _admission(view)
        or _departure(view)
    )


def loss(view: EtcdView, member: MemberView, lost_after_ms: int = LOST_AFTER_MS) -> str:
    """Why a member has lost its data; empty if it has not."""
    pod = member.pod
    if member.seat is None or (pod and pod.is_terminating):
        return ""
    if view.is_corrupt(member):
        return "its database is not like those of the others"
    if member.status is not None:
        return ""
    if not member.has_volume or (pod and pod.is_turned_away and member.is_started):
        return "its volume is empty" if member.has_volume else "its volume is gone"
    others = [each.pod for each in view.healthy if each.pod]
    # Where nobody lives with the same template, that may be what is wrong.
    is_alone = pod is None or all(each.checksum != pod.checksum for each in others)
    if pod and pod.is_crashing and member.silent_ms >= lost_after_ms and not is_alone:
        return f"it does not start: {pod.reason}" if pod.reason else "it does not start"
    return ""


def _removal(view: EtcdView, lost_after_ms: int) -> Remove | None:
    for member in view.seated:
        others = [each for each in view.seated if each is not member]
        reason = loss(view, member, lost_after_ms)
        if reason and member.seat and all_healthy(others):
            return Remove(member.index, member.seat.id, reason)
    return None


def _old_alarm(view: EtcdView) -> Disarm | None:
    seats = {each.seat.id for each in view.seated if each.seat}
    for alarm in view.alarms:
        if alarm.kind == CORRUPT and alarm.member_id not in seats and all_healthy(view.seated):
            return Disarm(alarm)
    return None


def _promotion(view: EtcdView) -> Promote | None:
    for member in view.seated:
        if member.seat and member.seat.is_learner and member.status is not None:
            return Promote(member.index, member.seat.id)
    return None


def _admission(view: EtcdView) -> Admit | None:
    missing = [each for each in view.members[: view.wanted] if not each.seat]
    return Admit(missing[0].index) if missing and all_healthy(view.seated) else None


def _departure(view: EtcdView) -> Remove | None:
    """One that is not wanted any more, the last first."""
    extra = [each for each in view.seated if each.index >= view.wanted]
    if extra and extra[-1].seat and all_healthy(view.seated):
        return Remove(extra[-1].index, extra[-1].seat.id, "fewer members are wanted")
    return None
