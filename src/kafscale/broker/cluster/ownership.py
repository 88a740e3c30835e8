"""Ownership: keeps what this broker serves in step with what is assigned to it.

The laws: what is assigned to this very registration is opened and served; whatever else is open is
closed. Only the owner gives a partition away while it lives: it stops taking records, leaves all of
them in segments, and then writes the new owner into the assignment itself, in one commit that fails
if either of the two is not what it was. If that cannot be, it goes on as the owner.

Shards of groups are treated alike, with the coordinator in place of the storage.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable
from functools import partial
from typing import Any, Final

from kafscale.broker.cluster.controller.plan.planner import Place
from kafscale.broker.cluster.ownership_guards import OwnershipGuards
from kafscale.broker.cluster.transfer import Handover
from kafscale.broker.configs.topic_configs import resolve
from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.errors import KafscaleError
from kafscale.metadata.cluster.cluster_cache import ClusterView
from kafscale.metadata.cluster.group_shards import SHARD_COUNT, SHARDS_TOPIC
from kafscale.metadata.schema.model import Assignment, BrokerInfo, PartitionState, Topic
from kafscale.metadata.topics.catalog import Catalog
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.observability.logging import get_logger
from kafscale.storage.engine import StorageEngine
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.recovery.log_opener import PartitionToOpen

log = get_logger(__name__)

RETRY_SECONDS: Final = 0.5
LED_SECONDS_MAX: Final = 5.0
"""How long who creates a topic waits until its partitions are led."""

FIRST_EPOCH: Final = 0


class Ownership:
    """The partitions and shards of one broker."""

    def __init__(
        self,
        view: ClusterView,
        catalog: Catalog,
        storage: StorageEngine,
        groups: Coordinator,
        *,
        guards: OwnershipGuards,
        handover: Handover,
        defaults: TopicDefaults,
    ) -> None:
        self._view = view
        self._catalog = catalog
        self._storage = storage
        self._groups = groups
        self._guards = guards
        self._handover = handover
        self._defaults = defaults
        self._served: dict[Place, Assignment] = {}
        self._work: dict[str, asyncio.Task[None]] = {}
        """What is being done, by what it is: at most one of a kind at a time."""
        self._closed: dict[str, list[PartitionLog]] = {}
        """Logs of topics that are being deleted."""
        self._changed = asyncio.Event()
        self._news = asyncio.Event()
        self.registration: BrokerInfo | None = None

    # --- lives ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Follow the view and the catalog from now on."""
        self._view.subscribe(self._changed.set)
        self._catalog.subscribe(self._on_topic)

    def begin(self, registration: BrokerInfo) -> None:
        """Own what is assigned to this registration."""
        self.registration = registration
        self._changed.set()

    def end(self) -> None:
        """Own nothing any more, at once."""
        self.registration = None
        for task in self._work.values():
            task.cancel()
        self._work.clear()
        self._handover.forget()
        self._served.clear()
        self._guards.clear()
        self._storage.end()
        self._groups.drop_shards()

    async def run(self) -> None:
        """Keep in step; cancel it to stop."""
        while True:
            await self._changed.wait()
            # What comes together is looked at together.
            await asyncio.sleep(0)
            self._changed.clear()
            if self.registration is not None:
                self._step()
            self._tell()

    # --- what is asked --------------------------------------------------------------------------

    @property
    def served(self) -> Collection[Place]:
        return self._served.keys()

    @property
    def is_settled(self) -> bool:
        """Whether everybody is where the cluster wants it, as far as it concerns this broker."""
        ours = self.registration
        if ours is None or self._view.controller_id not in self._view.brokers:
            return False
        if len(self._view.assignments(SHARDS_TOPIC)) < SHARD_COUNT:
            return False
        assigned = [
            assignment
            for assignment in self._view.every_assignment()
            if assignment.broker_id == ours.id
        ]
        return all(self._serves(assignment) for assignment in assigned if self._exists(assignment))

    async def settled(self, seconds: float) -> bool:
        return await self._within(seconds, lambda: self.is_settled)

    async def led(self, topic: Topic) -> None:
        """Wait until all partitions of a topic have a leader, and ours can be written to."""

        def is_led() -> bool:
            found = self._view.assignments(topic.name)
            return all(
                (assignment := found.get(number)) is not None
                and assignment.mod_revision > topic.create_revision
                and (not self._is_ours(assignment) or self._serves(assignment))
                for number in range(topic.partitions)
            )

        await self._within(LED_SECONDS_MAX, is_led)

    async def gone(self, places: Iterable[Place], seconds: float) -> bool:
        """Wait until none of these is served here; false if the time was not enough."""
        left = set(places)
        return await self._within(seconds, lambda: left.isdisjoint(self._served))

    async def delete_objects(self, topic: str) -> int:
        """Remove the objects of a topic that is deleted; return how many there were."""
        count = await self._storage.logs.delete_objects(topic, self._closed.get(topic, []))
        self._closed.pop(topic, None)
        return count

    async def _within(self, seconds: float, condition: Callable[[], bool]) -> bool:
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # --- in step --------------------------------------------------------------------------------

    def _step(self) -> None:
        wanted = {
            (assignment.topic, assignment.partition): assignment
            for assignment in self._view.every_assignment()
            if self._is_ours(assignment) and self._exists(assignment)
        }
        for place, served in list(self._served.items()):
            found = wanted.get(place)
            if found is None or found.leader_epoch != served.leader_epoch:
                self.close(place)
            else:
                self._served[place] = found
                self._guards.update(found)
                if place[0] == SHARDS_TOPIC:
                    self._groups.update_guard(place[1], found)
        self._open_missing(wanted)
        for place, assignment in self._served.items():
            if assignment.reassigning_to is not None:
                self.move(place, assignment.reassigning_to)

    def _open_missing(self, wanted: dict[Place, Assignment]) -> None:
        missing = [found for place, found in wanted.items() if place not in self._served]
        shards = [found for found in missing if found.topic == SHARDS_TOPIC]
        logs = [found for found in missing if found.topic != SHARDS_TOPIC]
        clean = [found for found in logs if found.fully_rolled]
        unclean = [found for found in logs if not found.fully_rolled]
        if shards:
            self._begin("open shards", lambda: self._open_shards(shards))
        # New topics do not wait for what was taken over from a dead broker.
        if clean:
            self._begin("open clean", lambda: self._open_logs(clean))
        if unclean:
            self._begin("open unclean", lambda: self._open_logs(unclean))

    def _begin(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have something done, unless it is being done; then look again."""
        if name not in self._work:
            task = self._work[name] = asyncio.get_running_loop().create_task(self._do(name, work()))
            task.add_done_callback(lambda done: self._done(name, done))

    async def _do(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except KafscaleError as error:
            log.warning("ownership not in step yet", step=name, reason=str(error))
            await asyncio.sleep(RETRY_SECONDS)
        except Exception:
            # An edge: whatever one step meets must not keep the others from being taken.
            log.exception("ownership step failed", step=name)
            await asyncio.sleep(RETRY_SECONDS)

    def _done(self, name: str, task: "asyncio.Task[None]") -> None:
        if self._work.get(name) is task:
            del self._work[name]
            self._changed.set()

    # --- opening --------------------------------------------------------------------------------

    async def _open_shards(self, assignments: list[Assignment]) -> None:
        guards = {found.partition: self._guards.add(found) for found in assignments}
        await self._groups.open_shards(guards)
        self._serve(assignments)

    async def _open_logs(self, assignments: list[Assignment]) -> None:
        states = await self._states(assignments)
        to_open: list[PartitionToOpen] = []
        for found in assignments:
            topic = self._catalog.get(found.topic)
            if topic is not None and self._exists(found):
                self._guards.add(found)
                state = states.get((found.topic, found.partition))
                to_open.append(self._to_open(topic, found, state))
        await self._storage.open(to_open)
        places = {(opened.topic, opened.partition) for opened in to_open}
        self._serve(found for found in assignments if (found.topic, found.partition) in places)

    async def _states(self, assignments: list[Assignment]) -> dict[Place, PartitionState]:
        by_topic: dict[str, list[int]] = {}
        for found in assignments:
            by_topic.setdefault(found.topic, []).append(found.partition)
        topics = [topic for name in by_topic if (topic := self._catalog.get(name)) is not None]
        loaded = await asyncio.gather(
            *(self._guards.load(topic, by_topic[topic.name]) for topic in topics)
        )
        return {
            (topic.name, number): state
            for topic, states in zip(topics, loaded, strict=True)
            for number, state in states.items()
        }

    def _to_open(
        self, topic: Topic, assignment: Assignment, state: PartitionState | None
    ) -> PartitionToOpen:
        is_new = assignment.leader_epoch == FIRST_EPOCH and state is None
        return PartitionToOpen(
            topic=topic.name,
            topic_id=topic.id,
            partition=assignment.partition,
            settings=resolve(topic.configs, self._defaults),
            leader_epoch=assignment.leader_epoch,
            start_offset=state.log_start_offset if state else 0,
            end_offset=state.rolled_end if state else 0,
            fully_rolled=assignment.fully_rolled
            and (assignment.leader_epoch > FIRST_EPOCH or is_new),
            is_new=is_new,
        )

    def _serve(self, assignments: Iterable[Assignment]) -> None:
        for assignment in assignments:
            self._served[assignment.topic, assignment.partition] = assignment
        self._tell()

    # --- closing and moving ---------------------------------------------------------------------

    def close(self, place: Place) -> None:
        """Serve it no more; somebody else does, or nobody."""
        self._served.pop(place, None)
        self._guards.drop(place)
        topic, number = place
        if topic == SHARDS_TOPIC:
            self._groups.drop_shard(number)
        elif (served := self._storage.logs.get(topic, number)) is not None:
            self._storage.remove(served)
        self._tell()

    def move(self, place: Place, target_id: int) -> None:
        """Begin to hand something over, unless that has begun."""
        self._begin(f"move {place}", partial(self._move, place, target_id))

    async def _move(self, place: Place, target_id: int) -> None:
        guard = self._guards.get(place)
        if guard is not None and await self._handover.give(place, guard, target_id):
            self.close(place)

    def _on_topic(self, before: Topic | None, after: Topic | None) -> None:
        if after is None:
            assert before is not None
            self._closed[before.name] = list(self._storage.logs.of_topic(before.name))
            for place in [place for place in self._served if place[0] == before.name]:
                self.close(place)
            self._storage.logs.close(before.name)
        elif before is not None:
            self._storage.logs.configure(after.name, resolve(after.configs, self._defaults))
        self._changed.set()

    # --- what is whose --------------------------------------------------------------------------

    def _is_ours(self, assignment: Assignment) -> bool:
        return assignment.is_of(self.registration) and not self._handover.has_given(assignment)

    def _serves(self, assignment: Assignment) -> bool:
        served = self._served.get((assignment.topic, assignment.partition))
        return served is not None and (served.broker_epoch, served.leader_epoch) == (
            assignment.broker_epoch,
            assignment.leader_epoch,
        )

    def _exists(self, assignment: Assignment) -> bool:
        """Whether it is about a topic that there is: not an older one of the same name."""
        if assignment.topic == SHARDS_TOPIC:
            return True
        topic = self._catalog.get(assignment.topic)
        return (
            topic is not None
            and assignment.partition < topic.partitions
            and assignment.mod_revision > topic.create_revision
        )
