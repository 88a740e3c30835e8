"""What can be done to a managed etcd: one thing at a time, each safe to be interrupted."""

import msgspec

from kafscale.metadata.store.etcd.maintenance import Alarm


class Remove(msgspec.Struct, frozen=True):
    """Take a member out of the list, for good."""

    index: int
    member_id: int
    reason: str


class Admit(msgspec.Struct, frozen=True):
    """Put a member into the list that is not there, and have it begin with an empty volume."""

    index: int


class Promote(msgspec.Struct, frozen=True):
    """Give a member that has caught up a full say."""

    index: int
    member_id: int


class Restart(msgspec.Struct, frozen=True):
    """Delete a pod, so that it is made anew from the template of today."""

    index: int
    pod_uid: str


class MakeRoom(msgspec.Struct, frozen=True):
    """Forget the history, defragment the members that are full, and take their alarms back."""

    alarms: tuple[Alarm, ...]
    indices: tuple[int, ...]


class Disarm(msgspec.Struct, frozen=True):
    """Take back an alarm about a member that is gone."""

    alarm: Alarm


class Defragment(msgspec.Struct, frozen=True):
    """Give back what is free in the database of a member."""

    index: int


Action = Remove | Admit | Promote | Restart | MakeRoom | Disarm | Defragment
