"""Ownership: keeps what this broker serves in step with what is assigned to it.

Invariants: what is assigned to this broker's current session is opened and served; everything else
is closed. Only the owner transfers a partition while its session lasts: it pauses appends, rolls
all records into segments, and then writes the new owner into the assignment, in one transaction
that fails if the assignment or the target's registration has changed. If that fails, it remains the
owner.

Coordinator shards are handled alike, by `broker.shards` instead of the storage engine.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable
from functools import partial
from typing import Any, Final

from kafscale.aio.events import Notifier
from kafscale.aio.pacer import Pacer
from kafscale.broker.cluster.closed_topics import ClosedTopics
from kafscale.broker.cluster.partition_state_store import PartitionStateStore
from kafscale.broker.cluster.transfer import OwnershipTransfer
from kafscale.broker.configs.topic_configs import resolve
from kafscale.broker.shards.shards import Shards
from kafscale.errors import KafscaleError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.cluster.ownership_guard import OwnershipGuards
from kafscale.metadata.schema.model import (
    SHARD_COUNT,
    SHARDS_TOPIC,
    Assignment,
    BrokerInfo,
    PartitionState,
    Topic,
)
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger
from kafscale.storage.engine import StorageEngine
from kafscale.storage.log.config import LogSettings
from kafscale.storage.recovery.segment_recovery import PartitionToOpen
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

RETRY_SECONDS: Final = 0.5
LEADER_WAIT_SECONDS_MAX: Final = 5.0
"""How long CreateTopics waits until the partitions have leaders."""

FIRST_LEADER_EPOCH: Final = 0


class Ownership:
    """The partitions and shards of one broker."""

    def __init__(
        self,
        cache: ClusterCache,
        topic_store: TopicStore,
        storage: StorageEngine,
        shards: Shards,
        *,
        guards: OwnershipGuards,
        partition_states: PartitionStateStore,
        transfers: OwnershipTransfer,
        closed_topics: ClosedTopics,
        defaults: TopicDefaults,
    ) -> None:
        self._cache = cache
        self._topic_store = topic_store
        self._storage = storage
        self._shards = shards
        self._guards = guards
        self._partition_states = partition_states
        self._transfers = transfers
        self._closed_topics = closed_topics
        self._defaults = defaults
        self._served: dict[TopicPartition, Assignment] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Running tasks by name; at most one of each name."""
        self._confirmed: set[bytes] = set()
        """Ids of deleted topics that this session has confirmed to be closed."""
        self._to_reconcile = asyncio.Event()
        self._progress = Notifier()
        """Notifies the requests that wait for assignments, or for what is served here."""
        self.broker: BrokerInfo | None = None

    # --- sessions -------------------------------------------------------------------------------

    def subscribe(self) -> None:
        """Follow the cluster cache and the topic store."""
        self._cache.subscribe(self._to_reconcile.set)
        self._topic_store.subscribe(self._on_topic_change)
        self._topic_store.subscribe_deletions(self._confirm_closed_topics)

    def start_session(self, broker: BrokerInfo) -> None:
        """Start to own what is assigned to this registration."""
        self.broker = broker
        self._confirm_closed_topics()
        self._to_reconcile.set()

    def end_session(self) -> None:
        """Stop owning anything, at once."""
        self.broker = None
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._transfers.clear()
        self._served.clear()
        self._guards.clear()
        self._partition_states.clear()
        self._confirmed.clear()
        self._shards.drop_all()

    async def run(self) -> None:
        """Reconcile after every change; cancel it to stop."""
        while True:
            await self._to_reconcile.wait()
            # Changes that arrive together are handled together.
            await asyncio.sleep(0)
            self._to_reconcile.clear()
            if self.broker is not None:
                self._reconcile()
            self._progress.notify()

    # --- queries --------------------------------------------------------------------------------

    @property
    def served(self) -> Collection[TopicPartition]:
        return self._served.keys()

    @property
    def is_up_to_date(self) -> bool:
        """Whether this broker serves everything that is assigned to it."""
        broker = self.broker
        if broker is None or self._cache.controller_id not in self._cache.brokers:
            return False
        if len(self._cache.assignments(SHARDS_TOPIC)) < SHARD_COUNT:
            return False
        return all(
            self._is_served(assignment)
            for assignment in self._cache.all_assignments()
            if assignment.broker_id == broker.id and self._exists(assignment)
        )

    async def wait_until_up_to_date(self, seconds: float) -> bool:
        return await self._wait_for(seconds, lambda: self.is_up_to_date)

    async def wait_for_leaders(self, topic: Topic) -> None:
        """Wait until all partitions of a topic have leaders, and those owned here are open."""

        def all_led() -> bool:
            assignments = self._cache.assignments(topic.name)
            return all(
                (assignment := assignments.get(number)) is not None
                and assignment.topic_id == topic.id
                and (not self._is_owned_here(assignment) or self._is_served(assignment))
                for number in range(topic.partitions)
            )

        await self._wait_for(LEADER_WAIT_SECONDS_MAX, all_led)

    async def wait_until_released(
        self, topic_partitions: Iterable[TopicPartition], seconds: float
    ) -> bool:
        """Wait until none of these is served here; return false on timeout."""
        waiting_for = set(topic_partitions)
        return await self._wait_for(seconds, lambda: waiting_for.isdisjoint(self._served))

    async def _wait_for(self, seconds: float, condition: Callable[[], bool]) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._progress.wait_for(condition)
        except TimeoutError:
            return False
        return True

    # --- reconciliation -------------------------------------------------------------------------

    def _reconcile(self) -> None:
        desired = {
            (assignment.topic, assignment.partition): assignment
            for assignment in self._cache.all_assignments()
            if self._is_owned_here(assignment) and self._exists(assignment)
        }
        for topic_partition, served in list(self._served.items()):
            assignment = desired.get(topic_partition)
            if assignment is None or not _is_same_term(assignment, served):
                self.close(topic_partition)
            else:
                self._served[topic_partition] = assignment
                self._guards.update(assignment)
                if topic_partition[0] == SHARDS_TOPIC:
                    self._shards.update(topic_partition[1], assignment)
        self._open_missing(desired)
        for topic_partition, assignment in self._served.items():
            if assignment.reassigning_to is not None:
                self.start_transfer(topic_partition, assignment.reassigning_to)

    def _open_missing(self, desired: dict[TopicPartition, Assignment]) -> None:
        missing = [
            assignment
            for topic_partition, assignment in desired.items()
            if topic_partition not in self._served
        ]
        shards = [assignment for assignment in missing if assignment.topic == SHARDS_TOPIC]
        logs = [assignment for assignment in missing if assignment.topic != SHARDS_TOPIC]
        rolled = [assignment for assignment in logs if assignment.fully_rolled]
        unrolled = [assignment for assignment in logs if not assignment.fully_rolled]
        if shards:
            self._start_task("open shards", lambda: self._open_shards(shards))
        # New topics do not wait for partitions that are taken over from a failed broker.
        if rolled:
            self._start_task("open rolled", lambda: self._open_logs(rolled))
        if unrolled:
            self._start_task("open unrolled", lambda: self._open_logs(unrolled))

    def _start_task(self, name: str, coroutine: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task, unless one of this name is running; reconcile again when it is done."""
        if name not in self._tasks:
            task = self._tasks[name] = asyncio.get_running_loop().create_task(
                self._run_task(name, coroutine())
            )
            task.add_done_callback(lambda done: self._task_done(name, done))

    async def _run_task(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except KafscaleError as error:
            logger.warning("ownership not reconciled yet", task=name, reason=str(error))
            await asyncio.sleep(RETRY_SECONDS)
        except Exception:
            # A boundary: the failure of one task must not stop the others.
            logger.exception("ownership task failed", task=name)
            await asyncio.sleep(RETRY_SECONDS)

    def _task_done(self, name: str, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]
            self._to_reconcile.set()

    # --- opening --------------------------------------------------------------------------------

    async def _open_shards(self, assignments: list[Assignment]) -> None:
        guards = {assignment.partition: self._guards.add(assignment) for assignment in assignments}
        await self._shards.open(guards)
        self._mark_served(assignments)

    async def _open_logs(self, assignments: list[Assignment]) -> None:
        states = await self._load_states(assignments)
        to_open: list[PartitionToOpen] = []
        settings: dict[str, LogSettings] = {}
        pacer = Pacer(1_000)  # About 3 ms a turn.
        for assignment in assignments:
            await pacer.step()
            topic = self._topic_store.get(assignment.topic)
            if topic is not None and self._exists(assignment):
                self._guards.add(assignment)
                state = states.get((assignment.topic, assignment.partition))
                if topic.name not in settings:
                    settings[topic.name] = resolve(topic.configs, self._defaults)
                to_open.append(_partition_to_open(topic, settings[topic.name], assignment, state))
        opening = {(each.topic, each.partition): each for each in assignments}
        opened = await self._storage.open(
            to_open, is_wanted=lambda log: self._is_current(opening[log.topic, log.partition])
        )
        self._mark_served(opening[log.topic, log.partition] for log in opened)

    async def _load_states(
        self, assignments: list[Assignment]
    ) -> dict[TopicPartition, PartitionState]:
        by_topic: dict[str, list[int]] = {}
        for assignment in assignments:
            by_topic.setdefault(assignment.topic, []).append(assignment.partition)
        topics = [topic for name in by_topic if (topic := self._topic_store.get(name)) is not None]
        loaded = await asyncio.gather(
            *(self._partition_states.load(topic, by_topic[topic.name]) for topic in topics)
        )
        return {
            (topic.name, number): state
            for topic, states in zip(topics, loaded, strict=True)
            for number, state in states.items()
        }

    def _mark_served(self, assignments: Iterable[Assignment]) -> None:
        for assignment in assignments:
            self._served[assignment.topic, assignment.partition] = assignment
        self._progress.notify()

    # --- closing and transferring ---------------------------------------------------------------

    def close(self, topic_partition: TopicPartition) -> None:
        """Stop serving it."""
        self._served.pop(topic_partition, None)
        self._guards.remove(topic_partition)
        self._partition_states.forget(topic_partition)
        topic, number = topic_partition
        if topic == SHARDS_TOPIC:
            self._shards.drop([number])
        elif (served := self._storage.logs.get(topic, number)) is not None:
            self._storage.remove(served)
        self._progress.notify()

    def start_transfer(self, topic_partition: TopicPartition, target_id: int) -> None:
        """Start to transfer it to another broker, unless that has been started."""
        self._start_task(
            f"transfer {topic_partition}", partial(self._transfer, topic_partition, target_id)
        )

    async def _transfer(self, topic_partition: TopicPartition, target_id: int) -> None:
        guard = self._guards.get(topic_partition)
        if guard is None or not await self._transfers.transfer(topic_partition, guard, target_id):
            return
        # Before the store has responded, the partition may have been transferred back: what is
        # served now is then a new term, which has a guard of its own.
        if self._guards.get(topic_partition) is guard:
            self.close(topic_partition)

    def _on_topic_change(self, before: Topic | None, after: Topic | None) -> None:
        if after is None:
            assert before is not None
            self._storage.close_topic(before.id, before.name, before.directory)
            for topic_partition in [each for each in self._served if each[0] == before.name]:
                self.close(topic_partition)
            self._confirm_closed_topics()
        elif before is not None:
            self._storage.logs.configure(after.name, resolve(after.configs, self._defaults))
        self._to_reconcile.set()

    def _confirm_closed_topics(self) -> None:
        """Confirm, once in a session, that deleted topics are not served here, or never were."""
        deletions = {topic.id: topic for topic in self._topic_store.deletions.values()}
        self._confirmed &= deletions.keys()
        if (broker := self.broker) is None:
            return
        for topic_id, topic in deletions.items():
            if topic_id not in self._topic_store.by_id and topic_id not in self._confirmed:
                self._confirmed.add(topic_id)
                self._start_task(
                    f"confirm {topic_id.hex()}", partial(self._closed_topics.confirm, topic, broker)
                )

    # --- predicates -----------------------------------------------------------------------------

    def _is_owned_here(self, assignment: Assignment) -> bool:
        return assignment.is_owned_by(self.broker) and not self._transfers.has_transferred(
            assignment
        )

    def _is_served(self, assignment: Assignment) -> bool:
        served = self._served.get((assignment.topic, assignment.partition))
        return (
            served is not None
            and served.broker_epoch == assignment.broker_epoch
            and _is_same_term(served, assignment)
        )

    def _is_current(self, assignment: Assignment) -> bool:
        """Whether it is still assigned to this broker, and its topic was not deleted."""
        current = self._cache.assignments(assignment.topic).get(assignment.partition)
        if current is None or not _is_same_term(current, assignment):
            return False
        return self._is_owned_here(current) and self._exists(current)

    def _exists(self, assignment: Assignment) -> bool:
        """Whether its topic exists here; it may be older or newer than the one of that name."""
        if assignment.topic == SHARDS_TOPIC:
            return True
        topic = self._topic_store.get(assignment.topic)
        return (
            topic is not None
            and assignment.topic_id == topic.id
            and assignment.partition < topic.partitions
        )


def _is_same_term(one: Assignment, other: Assignment) -> bool:
    """Whether both are of the same topic, and no other broker was the owner in between."""
    return one.topic_id == other.topic_id and one.leader_epoch == other.leader_epoch


def _partition_to_open(
    topic: Topic, settings: LogSettings, assignment: Assignment, state: PartitionState | None
) -> PartitionToOpen:
    is_new = assignment.leader_epoch == FIRST_LEADER_EPOCH and state is None
    return PartitionToOpen(
        topic=topic.name,
        topic_id=topic.id,
        directory=topic.directory,
        partition=assignment.partition,
        settings=settings,
        leader_epoch=assignment.leader_epoch,
        start_offset=state.log_start_offset if state else 0,
        end_offset=state.rolled_end if state else 0,
        fully_rolled=assignment.fully_rolled
        and (assignment.leader_epoch > FIRST_LEADER_EPOCH or is_new),
        released_end=assignment.end_offset,
        is_new=is_new,
        lost_owner=assignment.lost_owner,
        assigned_ms=assignment.assigned_ms,
    )
