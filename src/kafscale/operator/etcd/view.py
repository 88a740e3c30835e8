"""The observed state of a managed etcd and its members. Pure.

A member is an entry in etcd's member list, a process that responds or not, and a pod with a volume.
The three are kept apart because repairs are about where they disagree.
"""

from collections.abc import Sequence

import msgspec

from kafscale.metadata.store.etcd.maintenance import CORRUPT, Alarm, EtcdMember, MemberStatus
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig


class PodView(msgspec.Struct, frozen=True, kw_only=True):
    """A member's pod."""

    uid: str = ""
    checksum: str = ""
    """The checksum of the template that it was created from."""
    is_ready: bool = False
    is_terminating: bool = False
    is_crashing: bool = False
    """Whether it was restarted several times and does not become ready."""
    reason: str = ""
    """Why it terminated, if it did."""
    is_missing_data: bool = False
    """Whether it terminated because it has no data and may not start without."""


class MemberView(msgspec.Struct, frozen=True, kw_only=True):
    """One member, by its index."""

    index: int
    name: str
    peer_url: str
    entry: EtcdMember | None = None
    """Its entry in etcd's member list; None if it is not a member."""
    status: MemberStatus | None = None
    """Its response; None if it does not respond."""
    unresponsive_ms: int = 0
    """For how long it has not responded, as far as this operator knows."""
    pod: PodView | None = None
    has_volume: bool = False
    """Whether its volume exists or is being provisioned."""

    @property
    def is_healthy(self) -> bool:
        """Whether it is a voting member that knows a leader."""
        entry, status = self.entry, self.status
        if entry is None or status is None:
            return False
        return entry.id == status.member_id and bool(status.leader_id) and not entry.is_learner

    @property
    def is_leader(self) -> bool:
        return self.status is not None and self.status.is_leader

    @property
    def is_started(self) -> bool:
        """Whether it has ever joined the cluster."""
        return self.entry is not None and bool(self.entry.client_urls)


class EtcdView(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known about a managed etcd at one moment."""

    desired: int
    """The desired number of members."""
    members: tuple[MemberView, ...]
    """All that are desired or listed, each at its index."""
    bootstrap: BootstrapConfig
    checksum: str
    """The checksum of the current pod template."""
    has_member_list: bool = False
    """Whether the member list was read, which needs a quorum."""
    unknown_members: tuple[EtcdMember, ...] = ()
    """Listed members that the operator did not add."""
    alarms: tuple[Alarm, ...] = ()
    may_defragment: bool = True

    @property
    def listed_members(self) -> list[MemberView]:
        """The members that are in etcd's member list."""
        return [each for each in self.members if each.entry]

    @property
    def healthy(self) -> list[MemberView]:
        return [each for each in self.members if each.is_healthy]

    @property
    def has_quorum(self) -> bool:
        """Whether a majority of the voting members is healthy."""
        voters = [each for each in self.listed_members if each.entry and not each.entry.is_learner]
        return (
            self.has_member_list
            and len(self.healthy) > (len(voters) + len(self.unknown_members)) / 2
        )

    def is_corrupt(self, member: MemberView) -> bool:
        """Whether other members report that its database differs from theirs."""
        return any(
            alarm.kind == CORRUPT and member.entry and alarm.member_id == member.entry.id
            for alarm in self.alarms
        )


def all_healthy(members: Sequence[MemberView]) -> bool:
    """Whether there are members, and all of them are healthy."""
    return bool(members) and all(each.is_healthy for each in members)
