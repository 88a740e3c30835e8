"""A coordinator with its store, and clients that behave like real ones, all in memory.

`Coordinator` executes effects: saves reach the store some time later, durable responses wait for
them, and a crash undoes what was not stored. It asserts at once if an invariant is violated.
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
from kafscale.groups.effects import (
    Alive,
    Effect,
    Joined,
    JoinedMember,
    Left,
    Rebalanced,
    Reply,
    Response,
    Save,
    Synced,
)
from kafscale.groups.events import Event, Heartbeat, Join, Leave, MemberIdentity, Sync, Tick
from kafscale.groups.group import GroupSettings
from kafscale.groups.model import GroupRecord

SETTINGS = GroupSettings(initial_rebalance_delay_ms=3_000, size_max=4)
PARTITION_COUNT = 12
STATIC = "ab"
"""The names of static members."""


class Coordinator:
    """The coordinator of one group."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.group = ClassicGroup("group", SETTINGS, 0)
        self.stored: GroupRecord | None = None
        self.is_saving = False
        self.owned_by_others: list[Reply] = []
        """Durable responses that wait for the store."""
        self.waiting: dict[int, Callable[[Response | KafscaleError], None]] = {}
        self.reply_token = 0

    def send(self, event: Callable[[int], Event], client: "Client") -> None:
        self.reply_token += 1
        client.reply_token = self.reply_token
        self.waiting[self.reply_token] = client.on_response
        created = event(self.reply_token)
        effects = self.group.handle(created, self.now_ms)
        if isinstance(created, Heartbeat):
            assert [type(effect) for effect in effects] == [Reply]
        self.execute(effects)

    def execute(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Save():
                    self.is_saving = True
                case Reply() if effect.is_durable and self.is_saving:
                    self.owned_by_others.append(effect)
                case Reply():
                    self.waiting.pop(effect.reply_token)(effect.response)
                case Rebalanced():
                    # Static members that were late are not counted when others join, as in Kafka.
                    assert effect.member_count <= SETTINGS.size_max + len(STATIC)

    def flush(self) -> None:
        """The store has the record now, and confirms it."""
        self.stored = self.group.record()
        self.is_saving = False
        owned_by_others, self.owned_by_others = self.owned_by_others, []
        for reply in owned_by_others:
            self.waiting.pop(reply.reply_token)(reply.response)

    def crash(self) -> None:
        """All connections break; the next coordinator restores from the store."""
        self.waiting, waiting = {}, self.waiting
        self.owned_by_others = []
        self.is_saving = False
        for on_response in waiting.values():
            on_response(NotCoordinatorError())
        if self.stored is None:
            self.group = ClassicGroup("group", SETTINGS, self.now_ms)
        else:
            self.group = ClassicGroup.restored(self.stored, SETTINGS, self.now_ms)

    def transfer(self) -> None:
        """Release the group in an orderly way: every request gets a response."""
        self.flush()
        self.execute(self.group.abort(NotCoordinatorError(), self.now_ms))
        assert not self.waiting
        self.flush()
        assert self.stored is not None
        self.group = ClassicGroup.restored(self.stored, SETTINGS, self.now_ms)

    def pass_time(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self.group.deadline_ms is not None and self.group.deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, self.group.deadline_ms)
            self.execute(self.group.handle(Tick(), self.now_ms))
        self.now_ms = end_ms

    @property
    def is_stable(self) -> bool:
        return self.group.state in {State.STABLE, State.EMPTY} and not self.is_saving


class AssignmentLog:
    """What leaders have assigned and members have received, in every generation."""

    def __init__(self) -> None:
        self.proposals: dict[int, list[dict[str, bytes]]] = {}
        self.owned: dict[int, dict[str, bytes]] = {}

    def propose(self, generation: int, assignment: dict[str, bytes]) -> None:
        self.proposals.setdefault(generation, []).append(assignment)

    def record(self, generation: int, who: str, assignment: bytes) -> None:
        """A member received its assignment: exactly what one leader has assigned to it.

        A generation that a crash has undone may start once more, with another leader; but then no
        member has received what the first leader had assigned.
        """
        fitting = [each for each in self.proposals[generation] if each.get(who, b"") == assignment]
        assert fitting, "no leader has assigned that"
        self.proposals[generation] = fitting
        owned = self.owned.setdefault(generation, {})
        assert owned.setdefault(who, assignment) == assignment, "it owned something else before"
        others = {partition for one, own in owned.items() if one != who for partition in own}
        assert not others & set(assignment), "another member owns that"


class Phase(enum.Enum):
    OUTSIDE = "has to join"
    JOINING = "waits for the others"
    JOINED = "has to sync"
    SYNCING = "waits for its assignment"
    MEMBER = "has its assignment"


class Client:
    """A consumer, which sends one request at a time."""

    def __init__(self, name: str, coordinator: Coordinator, assignment_log: AssignmentLog) -> None:
        self.name = name
        self.instance_id = name if name in STATIC else None
        self.coordinator = coordinator
        self.assignment_log = assignment_log
        self.metadata_version = 0
        self.rebalance_timeout_ms = 20_000
        self.start()

    def start(self) -> None:
        """Start without any state; a dynamic member is a new one then."""
        self.reply_token = 0
        self.phase = Phase.OUTSIDE
        self.member_id = ""
        self.generation = -1
        self.shown: tuple[JoinedMember, ...] = ()
        self.requires_known_member_id = True

    def act(self) -> None:
        """Send the next request."""
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
            lambda reply_token: Join(
                reply_token=reply_token,
                member_id=self.member_id,
                new_member_id=f"{self.name}-{reply_token}",
                instance_id=self.instance_id,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                protocol_type="consumer",
                protocols=(("range", b"%d" % self.metadata_version),),
                requires_known_member_id=self.requires_known_member_id,
                supports_skipping_assignment=True,
            ),
            self,
        )

    def sync(self) -> None:
        """As the leader, assign all partitions."""
        assignments: dict[str, bytes] = {}
        if self.shown:
            count = len(self.shown)
            for index, member in enumerate(self.shown):
                assignments[member.member_id] = bytes(range(index, PARTITION_COUNT, count))
            instances = {each.member_id: each.instance_id or each.member_id for each in self.shown}
            by_name = {instances[member_id]: own for member_id, own in assignments.items()}
            self.assignment_log.propose(self.generation, by_name)
        self.phase = Phase.SYNCING
        self.coordinator.send(
            lambda reply_token: Sync(
                reply_token=reply_token,
                member_id=self.member_id,
                instance_id=self.instance_id,
                generation=self.generation,
                assignments=assignments,
            ),
            self,
        )

    def heartbeat(self) -> None:
        self.coordinator.send(
            lambda reply_token: Heartbeat(
                reply_token=reply_token,
                member_id=self.member_id,
                instance_id=self.instance_id,
                generation=self.generation,
            ),
            self,
        )

    def leave(self) -> None:
        leaver = MemberIdentity(member_id=self.member_id, instance_id=self.instance_id)
        self.coordinator.send(
            lambda reply_token: Leave(reply_token=reply_token, members=(leaver,)), self
        )

    def on_response(self, response: Response | KafscaleError) -> None:
        match response:
            case MemberIdRequiredError():
                self.phase = Phase.OUTSIDE
                self.member_id = response.member_id
            case UnknownMemberError() | FencedInstanceError():
                self.phase = Phase.OUTSIDE
                self.member_id = ""
            case KafscaleError():
                self.phase = Phase.OUTSIDE
            case Joined():
                self.phase = Phase.JOINED
                self.member_id = response.member_id
                self.generation = response.generation
                self.shown = () if response.skip_assignment else response.members
            case Synced():
                self.phase = Phase.MEMBER
                who = self.instance_id or self.member_id
                self.assignment_log.record(self.generation, who, response.assignment)
            case Left():
                self.start()
            case Alive():
                assert self.phase is Phase.MEMBER
