"""What is seen of a managed etcd: its members one by one, from three sides. Pure.

A member is a seat in the cluster's list, a process that answers or not, and a pod with a volume.
All three are told apart here, because a repair is about where they disagree.
"""

from collections.abc import Sequence

import msgspec

from kafscale.metadata.store.etcd.maintenance import CORRUPT, Alarm, EtcdMember, MemberStatus
from kafscale.operator.manifests.etcd.bootstrap_config import Admission


class PodView(msgspec.Struct, frozen=True, kw_only=True):
    """A member's pod."""

    uid: str = ""
    checksum: str = ""
    """What it was made from."""
    is_ready: bool = False
    is_terminating: bool = False
    is_crashing: bool = False
    """Whether it was started several times, and does not stay."""
    reason: str = ""
    """What it said when it ended, if it did."""
    is_turned_away: bool = False
    """Whether it ended because it has no data, and nobody without may begin."""


class MemberView(msgspec.Struct, frozen=True, kw_only=True):
    """One member, by its number."""

    index: int
    name: str
    peer_url: str
    seat: EtcdMember | None = None
    """What the cluster has in its list; None where it is not a member."""
    status: MemberStatus | None = None
    """What it says itself; None where it does not answer."""
    silent_ms: int = 0
    """How long it has not answered, as far as we know."""
    pod: PodView | None = None
    has_volume: bool = False
    """Whether its volume exists, or may still."""

    @property
    def is_healthy(self) -> bool:
        """Whether it has a full say, and knows a leader."""
        seat, status = self.seat, self.status
        if seat is None or status is None:
            return False
        return seat.id == status.member_id and bool(status.leader_id) and not seat.is_learner

    @property
    def is_leader(self) -> bool:
        return self.status is not None and self.status.is_leader

    @property
    def is_started(self) -> bool:
        """Whether the cluster has ever seen it at work."""
        return self.seat is not None and bool(self.seat.client_urls)


class EtcdView(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known at a moment."""

    wanted: int
    """How many members there should be."""
    members: tuple[MemberView, ...]
    """All that are wanted or in the list; each at its index."""
    admission: Admission
    checksum: str
    """What pods should be made from."""
    is_listed: bool = False
    """Whether the cluster has told who is in it: most of its members are there."""
    strangers: tuple[EtcdMember, ...] = ()
    """Members that are none of ours."""
    alarms: tuple[Alarm, ...] = ()
    defragments: bool = True

    @property
    def seated(self) -> list[MemberView]:
        """The members in the list."""
        return [each for each in self.members if each.seat]

    @property
    def healthy(self) -> list[MemberView]:
        return [each for each in self.members if each.is_healthy]

    @property
    def has_quorum(self) -> bool:
        """Whether most members are healthy, so that the cluster can be used."""
        voters = [each for each in self.seated if each.seat and not each.seat.is_learner]
        return self.is_listed and len(self.healthy) > (len(voters) + len(self.strangers)) / 2

    def is_corrupt(self, member: MemberView) -> bool:
        """Whether the others have found its database to differ from theirs."""
        return any(
            alarm.kind == CORRUPT and member.seat and alarm.member_id == member.seat.id
            for alarm in self.alarms
        )


def all_healthy(members: Sequence[MemberView]) -> bool:
    """Whether there are members, and all of them are healthy."""
    return bool(members) and all(each.is_healthy for each in members)
