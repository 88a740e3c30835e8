"""The actions on a managed etcd. They run one at a time, and each may be interrupted safely."""

import msgspec

from kafscale.metadata.store.etcd.maintenance import Alarm


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
