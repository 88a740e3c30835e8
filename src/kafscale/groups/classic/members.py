"""Who is in a classic group: the members, the static ones by instance, and ids given in advance.

The law: there is always a protocol that all members offer. Whoever would leave none is not let in;
so a vote always has a winner. And an instance has one member at a time.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from kafscale.errors import FencedInstanceError, ProtocolError, UnknownMemberError
from kafscale.groups.classic.member import Member, Protocols
from kafscale.groups.consumer_protocol import decode_subscription


class Roster:
    """The members of a group, in the order in which they came."""

    __slots__ = ("_ids_by_instance", "_members", "_offers", "promised")

    def __init__(self, members: Iterable[Member] = ()) -> None:
        self._members: dict[str, Member] = {}
        self._ids_by_instance: dict[str, str] = {}
        self._offers: dict[str, int] = {}
        """How many members offer a protocol, by its name."""
        self.promised: dict[str, int] = {}
        """Ids of members that were told to join again, and when they are given up."""
        for member in members:
            self.add(member)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    # --- who is there ---------------------------------------------------------------------------

    def get(self, member_id: str) -> Member | None:
        return self._members.get(member_id)

    def of_instance(self, instance_id: str | None) -> Member | None:
        """The member that stands for a static instance."""
        if instance_id is None:
            return None
        return self._members.get(self._ids_by_instance.get(instance_id, ""))

    def find(self, member_id: str, instance_id: str | None) -> Member:
        """The member that says it is this one; raises if it is not, or not any more."""
        if instance_id is not None:
            current_id = self._ids_by_instance.get(instance_id)
            if current_id is None:
                raise UnknownMemberError(f"no member is instance {instance_id}")
            if current_id != member_id:
                raise FencedInstanceError(f"instance {instance_id} is member {current_id} now")
        member = self._members.get(member_id)
        if member is None:
            raise UnknownMemberError(f"no member has the id {member_id!r}")
        return member

    # --- who comes and goes ---------------------------------------------------------------------

    def add(self, member: Member) -> None:
        assert member.member_id not in self._members
        self.promised.pop(member.member_id, None)
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

    def offer(self, member: Member, protocols: Protocols) -> None:
        """Let a member offer other protocols than before."""
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    # --- what they have in common ---------------------------------------------------------------

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the most patient member waits for the others."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    @property
    def have_all_joined(self) -> bool:
        """Whether nobody is waited for; those who were promised an id are about to come."""
        return not self.promised and all(member.has_joined for member in self)

    def agrees_with(self, protocols: Protocols) -> bool:
        """Whether one of the protocols is offered by all members."""
        return any(self._offers.get(name, 0) == len(self) for name, _ in protocols)

    def choose_protocol(self) -> str:
        """Each member votes for the one that it likes best of those that all offer."""
        candidates = {name for name, count in self._offers.items() if count == len(self)}
        votes: dict[str, int] = {}
        for member in self:
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def topics(self, protocol: str) -> frozenset[str] | None:
        """What the members read, as consumers; None if one of them cannot be understood."""
        try:
            read = (decode_subscription(member.metadata(protocol)).topics for member in self)
            return frozenset(chain.from_iterable(read))
        except ProtocolError:
            return None

    def _count(self, protocols: Protocols, step: int) -> None:
        for name in {name for name, _ in protocols}:
            count = self._offers.get(name, 0) + step
            if count:
                self._offers[name] = count
            else:
                del self._offers[name]
