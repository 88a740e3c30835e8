"""Simulated members that behave like Kafka's clients.

Each may be paused or killed at any time. A member that was paused for longer than its session still
relies on its assignment until its next heartbeat; so its ownership does not count meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from doubles import virtual_time
from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.errors import (
    CoordinatorLoadingError,
    FencedMemberEpochError,
    GroupError,
    GroupNotFoundError,
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
from kafscale.groups.effects import NO_REPLY_TOKEN, Joined
from kafscale.groups.events import ConsumerHeartbeat, Heartbeat, Join, Leave, MemberIdentity, Sync
from simulation.group_cluster import (
    GROUP,
    STANDALONE_GROUP,
    TOPIC,
    TOPIC_ID,
    ConnectionLostError,
    GroupCluster,
)

Response = TypeVar("Response")

SESSION_MS = 6_000
REBALANCE_MS = 8_000
REVOCATION_MS = 45_000
"""A member that sends heartbeats, but was not asked to revoke because the coordinator kept
crashing, is fenced after this time; so it is longer than that can last.
"""
SUBSCRIPTION = encode_subscription(
    Subscription(topics=(TOPIC,), user_data=None, owned=(), generation=-1, rack=None)
)


class Member:
    """What all members share: they can be started, paused and killed."""

    group_id = GROUP

    def __init__(self, cluster: GroupCluster, name: str, instance_id: str | None = None) -> None:
        self.cluster = cluster
        self.name = name
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.partitions: tuple[int, ...] = ()
        self.node = cluster.find_coordinator(self.group_id)
        self.resumed = asyncio.Event()
        self.resumed.set()
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self._run(), name=self.name)

    def pause(self) -> None:
        """Stop sending; its ownership counts again after its next heartbeat was accepted."""
        self.resumed.clear()
        self.cluster.invariants.record_owned(self.name, frozenset())

    def record_partitions(self, partitions: tuple[int, ...]) -> None:
        """Record the ownership of these, unless it was paused meanwhile."""
        if self.resumed.is_set():
            self.cluster.invariants.record_owned(self.name, frozenset(partitions))

    async def kill(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.cluster.invariants.record_owned(self.name, frozenset())

    async def _run(self) -> None:
        while True:
            await self.resumed.wait()
            try:
                await self.step()
            except ConnectionLostError:
                await asyncio.sleep(0.1)
            except (UnknownMemberError, FencedMemberEpochError, GroupNotFoundError):
                self.reset()
            except IllegalGenerationError:
                self.generation = -1
            except GroupError:
                await asyncio.sleep(0.1)

    async def step(self) -> None:
        raise NotImplementedError

    async def call(self, request: Callable[[Coordinator], Awaitable[Response]]) -> Response:
        """Call the assumed coordinator; find another one if that fails."""
        try:
            return await self.cluster.call(self.node, request)
        except (NotCoordinatorError, ConnectionLostError):
            self.node = self.cluster.find_coordinator(self.group_id)
            raise

    def reset(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.partitions = ()

    async def commit(self) -> None:
        """Commit a new offset for all owned partitions."""
        cluster = self.cluster
        now_ms = virtual_time.clock_ms()
        offsets = {
            (TOPIC, partition): CommittedOffset(
                offset=cluster.next_offset(), committed_ms=now_ms, topic_id=TOPIC_ID
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
            cluster.invariants.record_commit(self.group_id, partition, committed.offset)


class StandaloneCommitter(Member):
    """Commits and deletes offsets without membership, of a group in another shard."""

    group_id = STANDALONE_GROUP

    def __init__(self, cluster: GroupCluster) -> None:
        super().__init__(cluster, "bystander")
        self.partitions = (0, 1)

    async def step(self) -> None:
        await asyncio.sleep(self.cluster.random.expovariate(2.0))
        if self.cluster.random.random() < 0.2:
            await self._delete()
        await self.commit()

    async def _delete(self) -> None:
        for partition in self.partitions:
            self.cluster.invariants.forget_commit(self.group_id, partition)
        topic_partitions = [(TOPIC, partition) for partition in self.partitions]
        await self.call(lambda groups: groups.delete_offsets(self.group_id, topic_partitions))


class ClassicMember(Member):
    """Uses the classic protocol; as a leader it assigns partitions in turn."""

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
            if self.cluster.random.random() < 0.3:
                await self.commit()
        except (NotCoordinatorError, CoordinatorLoadingError):
            raise
        except GroupError:
            self.is_joined = False
            raise

    async def _join(self) -> None:
        # An eager member revokes everything before it rejoins.
        self.partitions = ()
        self.cluster.invariants.record_owned(self.name, frozenset())
        event = Join(
            reply_token=NO_REPLY_TOKEN,
            member_id=self.member_id,
            new_member_id=f"{self.name}-{self.cluster.next_offset()}",
            instance_id=self.instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(("range", SUBSCRIPTION),),
            requires_known_member_id=self.instance_id is None,
        )
        try:
            joined = await self.call(lambda groups: groups.join(GROUP, event))
        except MemberIdRequiredError as response:
            self.member_id = response.member_id
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
        if self.cluster.is_mixed:
            self.record_partitions(self.partitions)
        else:
            self.cluster.invariants.response(joined.generation, self.member_id, self.partitions)
        self.is_joined = True

    def _assign(self, joined: Joined) -> Mapping[str, bytes]:
        if joined.leader != self.member_id:
            return {}
        count = len(joined.members)
        return {
            member.member_id: encode_assignment(
                {TOPIC: tuple(range(number, self.cluster.partition_count, count))}
            )
            for number, member in enumerate(joined.members)
        }

    async def leave(self) -> None:
        await self.kill()
        identity = MemberIdentity(member_id=self.member_id, instance_id=self.instance_id)
        event = Leave(reply_token=NO_REPLY_TOKEN, members=(identity,))
        try:
            await self.call(lambda groups: groups.leave(GROUP, event))
        except (GroupError, ConnectionLostError):
            return


class ConsumerMember(Member):
    """Uses the consumer protocol (KIP-848); it revokes at once what it is asked to."""

    def __init__(self, cluster: GroupCluster, name: str, instance_id: str | None = None) -> None:
        super().__init__(cluster, name, instance_id)
        self._is_full = True
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.generation = 0
        self.member_id = f"{self.name}-{self.cluster.next_offset()}"
        self.cluster.invariants.record_owned(self.name, frozenset())

    async def step(self) -> None:
        # A member without a response sends a full request, and gets a full response.
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
        response = await self.call(lambda groups: groups.consumer_heartbeat(GROUP, event))
        self._is_full = False
        self.generation = response.member_epoch
        if response.assignment is not None:
            self.partitions = tuple(sorted(response.assignment.get(TOPIC_ID, ())))
        self.record_partitions(self.partitions)
        await asyncio.sleep(1)
        if self.cluster.random.random() < 0.3:
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
