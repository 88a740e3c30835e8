"""The members of a classic group: all, the static ones by instance, and pending member ids.

Invariants: there is always a protocol that all members offer; a member that would leave none is
rejected, so a vote always has a winner. An instance has one member at a time.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from kafscale.errors import FencedInstanceError, ProtocolError, UnknownMemberError
from kafscale.groups.classic.member import Member, Protocols
from kafscale.groups.consumer_protocol import decode_subscription


class Members:
    """The members of a group, in order of arrival."""

    __slots__ = ("_ids_by_instance", "_members", "_protocol_counts", "pending_member_ids")

    def __init__(self, members: Iterable[Member] = ()) -> None:
        self._members: dict[str, Member] = {}
        self._ids_by_instance: dict[str, str] = {}
        self._protocol_counts: dict[str, int] = {}
        """The number of members that offer a protocol, by name."""
        self.pending_member_ids: dict[str, int] = {}
        """Ids given to members that have to rejoin with them, and when they expire."""
        for member in members:
            self.add(member)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    # --- lookup ---------------------------------------------------------------------------------

    def get(self, member_id: str) -> Member | None:
        return self._members.get(member_id)

    def static_member(self, instance_id: str | None) -> Member | None:
        """The member of a static instance."""
        if instance_id is None:
            return None
        return self._members.get(self._ids_by_instance.get(instance_id, ""))

    def member_or_raise(self, member_id: str, instance_id: str | None) -> Member:
        """The member with this identity; raises if it is unknown or fenced."""
        if instance_id is not None:
            current_id = self._ids_by_instance.get(instance_id)
            if current_id is None:
                raise UnknownMemberError(f"no member has instance id {instance_id}")
            if current_id != member_id:
                raise FencedInstanceError(
                    f"instance id {instance_id} belongs to member {current_id} now"
                )
        member = self._members.get(member_id)
        if member is None:
            raise UnknownMemberError(f"no member has id {member_id!r}")
        return member

    # --- changes --------------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        assert member.member_id not in self._members
        self.pending_member_ids.pop(member.member_id, None)
        self._members[member.member_id] = member
        if member.instance_id is not None:
            assert member.instance_id not in self._ids_by_instance
            self._ids_by_instance[member.instance_id] = member.member_id
        self._count(member.protocols, 1)

    def remove(self, member: Member) -> None:
        del self._members[member.member_id]
        if member.instance_id is not None:
            del self._ids_by_instance[member.instance_id]
        self._count(member.protocols, -1)

    def update_protocols(self, member: Member, protocols: Protocols) -> None:
        """Replace the protocols that a member offers."""
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    # --- aggregates -----------------------------------------------------------------------------

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    @property
    def have_all_joined(self) -> bool:
        """Whether no member is awaited, including those with pending ids."""
        return not self.pending_member_ids and all(member.has_joined for member in self)

    def supports_any(self, protocols: Protocols) -> bool:
        """Whether one of the protocols is offered by all members."""
        return any(self._protocol_counts.get(name, 0) == len(self) for name, _ in protocols)

    def choose_protocol(self) -> str:
        """Each member votes for its most preferred protocol of those that all offer."""
        candidates = {name for name, count in self._protocol_counts.items() if count == len(self)}
        votes: dict[str, int] = {}
        for member in self:
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def topics(self, protocol: str) -> frozenset[str] | None:
        """The topics that the members subscribe to as consumers; None if one cannot be decoded."""
        try:
            read = (decode_subscription(member.metadata(protocol)).topics for member in self)
            return frozenset(chain.from_iterable(read))
        except ProtocolError:
            return None

    def _count(self, protocols: Protocols, step: int) -> None:
        for name in {name for name, _ in protocols}:
            count = self._protocol_counts.get(name, 0) + step
            if count:
                self._protocol_counts[name] = count
            else:
                del self._protocol_counts[name]
