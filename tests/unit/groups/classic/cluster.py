"""A coordinator with its store, and clients that behave as clients do, all of them in memory.

`Coordinator` carries effects out as the law of effects says: what is saved reaches the store some
time later, durable answers wait for it, and a crash takes back what had not. It looks on, and says
so at once if something is promised that is not kept.
"""

import enum
from collections.abc import Callable

from kafscale.errors import (
    FencedInstanceError,
    KafscaleError,
    MemberIdRequiredError,
    NotCoordinatorError,
    UnknownMemberError,
)
from kafscale.groups.classic import ClassicGroup, State
from kafscale.groups.config import GroupSettings
from kafscale.groups.effects import Effect, Rebalanced, Reply, Save
from kafscale.groups.events import Event, Heartbeat, Join, Leave, Leaver, Sync, Tick
from kafscale.groups.model import GroupRecord
from kafscale.groups.responses import Alive, Answer, Joined, JoinedMember, Left, Synced

SETTINGS = GroupSettings(initial_rebalance_delay_ms=3_000, size_max=4)
PARTITION_COUNT = 12
STATIC = "ab"
"""The names of clients that are static members."""


class Coordinator:
    """One group, as long as there is one who looks after it."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.group = ClassicGroup("group", SETTINGS, 0)
        self.stored: GroupRecord | None = None
        self.is_saving = False
        self.held: list[Reply] = []
        """Durable answers, until the store has what was saved before them."""
        self.waiting: dict[int, Callable[[Answer | KafscaleError], None]] = {}
        self.ticket = 0

    def send(self, event: Callable[[int], Event], client: "Client") -> None:
        self.ticket += 1
        client.ticket = self.ticket
        self.waiting[self.ticket] = client.answered
        made = event(self.ticket)
        effects = self.group.handle(made, self.now_ms)
        if isinstance(made, Heartbeat):
            assert [type(effect) for effect in effects] == [Reply]
        self.carry_out(effects)

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Save():
                    self.is_saving = True
                case Reply() if effect.durable and self.is_saving:
                    self.held.append(effect)
                case Reply():
                    self.waiting.pop(effect.ticket)(effect.answer)
                case Rebalanced():
                    # Static members that were late are not counted when others come, as in Kafka.
                    assert effect.member_count <= SETTINGS.size_max + len(STATIC)

    def flush(self) -> None:
        """The store has the record now, and tells so."""
        self.stored = self.group.record()
        self.is_saving = False
        held, self.held = self.held, []
        for reply in held:
            self.waiting.pop(reply.ticket)(reply.answer)

    def crash(self) -> None:
        """All connections break; whoever comes next knows what is in the store."""
        self.waiting, waiting = {}, self.waiting
        self.held = []
        self.is_saving = False
        for answered in waiting.values():
            answered(NotCoordinatorError())
        if self.stored is None:
            self.group = ClassicGroup("group", SETTINGS, self.now_ms)
        else:
            self.group = ClassicGroup.restored(self.stored, SETTINGS, self.now_ms)

    def hand_over(self) -> None:
        """Give the group up in good order: nobody is left without an answer."""
        self.flush()
        self.carry_out(self.group.dismiss(NotCoordinatorError(), self.now_ms))
        assert not self.waiting
        self.flush()
        assert self.stored is not None
        self.group = ClassicGroup.restored(self.stored, SETTINGS, self.now_ms)

    def pass_time(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self.group.deadline_ms is not None and self.group.deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, self.group.deadline_ms)
            self.carry_out(self.group.handle(Tick(), self.now_ms))
        self.now_ms = end_ms

    @property
    def is_settled(self) -> bool:
        return self.group.state in {State.STABLE, State.EMPTY} and not self.is_saving


class Chronicle:
    """What leaders have assigned and members were told, in every generation there ever was."""

    def __init__(self) -> None:
        self.proposals: dict[int, list[dict[str, bytes]]] = {}
        self.owned: dict[int, dict[str, bytes]] = {}

    def propose(self, generation: int, assignment: dict[str, bytes]) -> None:
        self.proposals.setdefault(generation, []).append(assignment)

    def tell(self, generation: int, who: str, assignment: bytes) -> None:
        """A member was told what it owns: what one and the same leader has given it, and no more.

        A generation that a crash took back may begin once more, with another leader; but then
        nobody has heard of what the first one had assigned.
        """
        fitting = [each for each in self.proposals[generation] if each.get(who, b"") == assignment]
        assert fitting, "nobody has assigned that"
        self.proposals[generation] = fitting
        owned = self.owned.setdefault(generation, {})
        assert owned.setdefault(who, assignment) == assignment, "it owned something else before"
        others = {partition for one, own in owned.items() if one != who for partition in own}
        assert not others & set(assignment), "somebody else owns that"


class Phase(enum.Enum):
    OUTSIDE = "has to join"
    JOINING = "waits for the others"
    JOINED = "has to sync"
    SYNCING = "waits for its assignment"
    MEMBER = "has its assignment"


class Client:
    """A consumer, which does one thing at a time."""

    def __init__(self, name: str, coordinator: Coordinator, chronicle: Chronicle) -> None:
        self.name = name
        self.instance_id = name if name in STATIC else None
        self.coordinator = coordinator
        self.chronicle = chronicle
        self.metadata_version = 0
        self.rebalance_timeout_ms = 20_000
        self.start()

    def start(self) -> None:
        """Begin without any memory; a dynamic member is somebody else then."""
        self.ticket = 0
        self.phase = Phase.OUTSIDE
        self.member_id = ""
        self.generation = -1
        self.shown: tuple[JoinedMember, ...] = ()
        self.must_know_id = True

    def act(self) -> None:
        """Do what is next."""
        match self.phase:
            case Phase.OUTSIDE:
                self.join()
            case Phase.JOINED:
                self.sync()
            case Phase.MEMBER:
                self.heartbeat()

    def join(self) -> None:
        self.phase = Phase.JOINING
        self.coordinator.send(
            lambda ticket: Join(
                ticket=ticket,
                member_id=self.member_id,
                fresh_id=f"{self.name}-{ticket}",
                instance_id=self.instance_id,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                protocol_type="consumer",
                protocols=(("range", b"%d" % self.metadata_version),),
                must_know_id=self.must_know_id,
                can_skip_assignment=True,
            ),
            self,
        )

    def sync(self) -> None:
        """As the leader, share out all partitions; they are named by the generation as well."""
        assignments: dict[str, bytes] = {}
        if self.shown:
            count = len(self.shown)
            for index, member in enumerate(self.shown):
                assignments[member.member_id] = bytes(range(index, PARTITION_COUNT, count))
            instances = {each.member_id: each.instance_id or each.member_id for each in self.shown}
            by_name = {instances[member_id]: own for member_id, own in assignments.items()}
            self.chronicle.propose(self.generation, by_name)
        self.phase = Phase.SYNCING
        self.coordinator.send(
            lambda ticket: Sync(
                ticket=ticket,
                member_id=self.member_id,
                instance_id=self.instance_id,
                generation=self.generation,
                assignments=assignments,
            ),
            self,
        )

    def heartbeat(self) -> None:
        self.coordinator.send(
            lambda ticket: Heartbeat(
                ticket=ticket,
                member_id=self.member_id,
                instance_id=self.instance_id,
                generation=self.generation,
            ),
            self,
        )

    def leave(self) -> None:
        leaver = Leaver(member_id=self.member_id, instance_id=self.instance_id)
        self.coordinator.send(lambda ticket: Leave(ticket=ticket, members=(leaver,)), self)

    def answered(self, answer: Answer | KafscaleError) -> None:
        match answer:
            case MemberIdRequiredError():
                self.phase = Phase.OUTSIDE
                self.member_id = answer.member_id
            case UnknownMemberError() | FencedInstanceError():
                self.phase = Phase.OUTSIDE
                self.member_id = ""
            case KafscaleError():
                self.phase = Phase.OUTSIDE
            case Joined():
                self.phase = Phase.JOINED
                self.member_id = answer.member_id
                self.generation = answer.generation
                self.shown = () if answer.skip_assignment else answer.members
            case Synced():
                self.phase = Phase.MEMBER
                who = self.instance_id or self.member_id
                self.chronicle.tell(self.generation, who, answer.assignment)
            case Left():
                self.start()
            case Alive():
                assert self.phase is Phase.MEMBER
