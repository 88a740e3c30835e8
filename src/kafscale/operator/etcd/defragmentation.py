"""When databases are made smaller. Pure.

The laws: one member at a time, and only while all are healthy, because a member answers nobody
meanwhile. Followers come first: the leader is the last, and an election costs a second. What is
small or mostly in use is left alone.

A database that has reached its quota is another matter: nothing is written then at all, so the
history is forgotten before its time, and members are defragmented whoever else is well.
"""

from typing import Final

from kafscale.metadata.store.etcd.maintenance import NO_SPACE
from kafscale.operator.etcd.actions import Defragment, MakeRoom
from kafscale.operator.etcd.view import EtcdView, MemberView, all_healthy

SIZE_BYTES_MIN: Final = 64 << 20
USED_SHARE_MAX: Final = 0.5


def defragmentation(view: EtcdView) -> Defragment | None:
    """The member that is worth it, if there is one."""
    if not view.defragments or not all_healthy(view.seated):
        return None
    worth_it = [each for each in view.seated if _is_mostly_free(each)]
    worth_it.sort(key=lambda each: each.is_leader)
    return Defragment(worth_it[0].index) if worth_it else None


def room(view: EtcdView) -> MakeRoom | None:
    """What to do about members that are full."""
    alarms = tuple(each for each in view.alarms if each.kind == NO_SPACE)
    full = {alarm.member_id for alarm in alarms}
    healthy = sorted(view.healthy, key=lambda each: each.is_leader)
    indices = tuple(each.index for each in healthy if each.seat and each.seat.id in full)
    # An alarm outlasts the member that has raised it, and stops all others.
    return MakeRoom(alarms, indices) if alarms and view.has_quorum else None


def _is_mostly_free(member: MemberView) -> bool:
    status = member.status
    if status is None or status.database_bytes <= SIZE_BYTES_MIN:
        return False
    return status.database_used_bytes < status.database_bytes * USED_SHARE_MAX
