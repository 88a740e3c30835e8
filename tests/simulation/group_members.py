"""Members as Kafka's clients are: patient, forgetful when told so, and never in doubt of an answer.

Each may be paused or killed at any moment. A member that was paused for longer than its session
still believes in what it was told, until it is heard again; so nobody counts on it meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.errors import (
    CoordinatorLoadingError,
    FencedMemberEpochError,
    GroupError,
    IllegalGenerationError,
    MemberIdRequiredError,
    NotCoordinatorError,
    UnknownMemberError,
)
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.groups.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kafscale.groups.effects import NO_REPLY_TOKEN
from kafscale.groups.events import ConsumerHeartbeat, Heartbeat, Join, Leave, MemberIdentity, Sync
from kafscale.groups.responses import Joined
from kafscale.testing import virtual_time
from simulation.group_world import (
    BYSTANDERS,
    GROUP,
    TOPIC,
    TOPIC_ID,
    ConnectionLostError,
    GroupWorld,
)

Answer = TypeVar("Answer")

SESSION_MS = 6_000
REBALANCE_MS = 8_000
REVOCATION_MS = 45_000
"""A member that is heard, but was not told to give up its partitions because the coordinator kept
crashing, is fenced after that; so it is longer than that can last."""
SUBSCRIPTION = encode_subscription(
    Subscription(topics=(TOPIC,), user_data=None, owned=(), generation=-1, rack=None)
)


class Member:
    """What all kinds of member have in common: they can be let run, paused and ended."""

    group_id = GROUP

    def __init__(self, world: GroupWorld, name: str, instance_id: str | None = None) -> None:
        self.world = world
        self.name = name
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.partitions: tuple[int, ...] = ()
        self.node = world.look_up(self.group_id)
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self._live(), name=self.name)

    def pause(self) -> None:
        """Be silent; it is counted on again once the coordinator has taken a heartbeat of it."""
        self.go_on.clear()
        self.world.promises.owns(self.name, frozenset())

    def holds(self, partitions: tuple[int, ...]) -> None:
        """Be counted on for these, unless it was paused while it was told of them."""
        if self.go_on.is_set():
            self.world.promises.owns(self.name, frozenset(partitions))

    async def kill(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.world.promises.owns(self.name, frozenset())

    async def _live(self) -> None:
        while True:
            await self.go_on.wait()
            try:
                await self.step()
            except ConnectionLostError:
                await asyncio.sleep(0.1)
            except (UnknownMemberError, FencedMemberEpochError):
                self.forget()
            except IllegalGenerationError:
                self.generation = -1
            except GroupError:
                await asyncio.sleep(0.1)

    async def step(self) -> None:
        raise NotImplementedError

    async def call(self, ask: Callable[[Coordinator], Awaitable[Answer]]) -> Answer:
        """Ask the broker that should know; look for another one if it does not."""
        try:
            return await self.world.call(self.node, ask)
        except (NotCoordinatorError, ConnectionLostError):
            self.node = self.world.look_up(self.group_id)
            raise

    def forget(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.partitions = ()

    async def commit(self) -> None:
        """Commit something new for all that it owns, then see what is there."""
        world = self.world
        now_ms = virtual_time.clock_ms()
        offsets = {
            (TOPIC, partition): CommittedOffset(
                offset=world.next_offset(), committed_ms=now_ms, topic_id=TOPIC_ID
            )
            for partition in self.partitions
        }
        generation = self.generation
        await self.call(
            lambda groups: groups.commit(
                self.group_id,
                self.member_id,
                self.instance_id,
                generation,
                offsets,
                version_knows_missing_groups=True,
            )
        )
        for (_, partition), committed in offsets.items():
            world.promises.has_committed(self.group_id, partition, committed.offset)


class Bystander(Member):
    """Commits without being a member of anything, to a group in another shard."""

    group_id = BYSTANDERS

    def __init__(self, world: GroupWorld) -> None:
        super().__init__(world, "bystander")
        self.partitions = (0, 1)

    async def step(self) -> None:
        await asyncio.sleep(self.world.random.expovariate(2.0))
        await self.commit()


class ClassicMember(Member):
    """Speaks the classic protocol; as a leader it hands out partitions in turn."""

    is_joined = False

    async def step(self) -> None:
        if not self.is_joined:
            await self._join()
            return
        await asyncio.sleep(1)
        try:
            await self.call(
                lambda groups: groups.heartbeat(
                    GROUP,
                    Heartbeat(
                        reply_token=NO_REPLY_TOKEN,
                        member_id=self.member_id,
                        instance_id=self.instance_id,
                        generation=self.generation,
                    ),
                )
            )
            if self.world.random.random() < 0.3:
                await self.commit()
        except (NotCoordinatorError, CoordinatorLoadingError):
            raise
        except GroupError:
            self.is_joined = False
            raise

    async def _join(self) -> None:
        # An eager member gives everything up before it joins again.
        self.partitions = ()
        self.world.promises.owns(self.name, frozenset())
        event = Join(
            reply_token=NO_REPLY_TOKEN,
            member_id=self.member_id,
            new_member_id=f"{self.name}-{self.world.next_offset()}",
            instance_id=self.instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(("range", SUBSCRIPTION),),
            requires_known_member_id=self.instance_id is None,
        )
        try:
            joined = await self.call(lambda groups: groups.join(GROUP, event))
        except MemberIdRequiredError as told:
            self.member_id = told.member_id
            return
        self.member_id, self.generation = joined.member_id, joined.generation
        synced = await self.call(
            lambda groups: groups.sync(
                GROUP,
                Sync(
                    reply_token=NO_REPLY_TOKEN,
                    member_id=self.member_id,
                    instance_id=self.instance_id,
                    generation=joined.generation,
                    assignments=self._assign(joined),
                ),
            )
        )
        self.partitions = decode_assignment(synced.assignment).get(TOPIC, ())
        if self.world.is_mixed:
            self.holds(self.partitions)
        else:
            self.world.promises.told(joined.generation, self.member_id, self.partitions)
        self.is_joined = True

    def _assign(self, joined: Joined) -> Mapping[str, bytes]:
        if joined.leader != self.member_id:
            return {}
        count = len(joined.members)
        return {
            member.member_id: encode_assignment(
                {TOPIC: tuple(range(number, self.world.partition_count, count))}
            )
            for number, member in enumerate(joined.members)
        }

    async def leave(self) -> None:
        await self.kill()
        leaver = MemberIdentity(member_id=self.member_id, instance_id=self.instance_id)
        event = Leave(reply_token=NO_REPLY_TOKEN, members=(leaver,))
        try:
            await self.call(lambda groups: groups.leave(GROUP, event))
        except (GroupError, ConnectionLostError):
            return


class ConsumerMember(Member):
    """Speaks the consumer protocol (KIP-848); it gives up at once what it is asked to."""

    def __init__(self, world: GroupWorld, name: str, instance_id: str | None = None) -> None:
        super().__init__(world, name, instance_id)
        self._is_full = True
        self.forget()

    def forget(self) -> None:
        super().forget()
        self.generation = 0
        self.member_id = f"{self.name}-{self.world.next_offset()}"
        self.world.promises.owns(self.name, frozenset())

    async def step(self) -> None:
        # Who did not get an answer says everything again, and so hears everything again.
        is_full, self._is_full = self._is_full or self.generation == 0, True
        event = ConsumerHeartbeat(
            reply_token=NO_REPLY_TOKEN,
            member_id=self.member_id,
            member_epoch=self.generation,
            instance_id=self.instance_id,
            rebalance_timeout_ms=REVOCATION_MS if is_full else -1,
            subscribed_names=(TOPIC,) if is_full else None,
            owned={TOPIC_ID: frozenset(self.partitions)} if self.partitions else {},
        )
        told = await self.call(lambda groups: groups.consumer_heartbeat(GROUP, event))
        self._is_full = False
        self.generation = told.member_epoch
        if told.assignment is not None:
            self.partitions = tuple(sorted(told.assignment.get(TOPIC_ID, ())))
        self.holds(self.partitions)
        await asyncio.sleep(1)
        if self.world.random.random() < 0.3:
            await self.commit()

    async def leave(self) -> None:
        await self.kill()
        epoch = -1 if self.instance_id is None else -2
        event = ConsumerHeartbeat(
            reply_token=NO_REPLY_TOKEN,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
        )
        try:
            await self.call(lambda groups: groups.consumer_heartbeat(GROUP, event))
        except (GroupError, ConnectionLostError):
            return
