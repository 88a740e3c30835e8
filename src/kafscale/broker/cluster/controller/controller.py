"""The controller: one elected broker assigns partitions and shards for the whole cluster.

    elected   no controller exists: put this broker's id under the controller key, with its lease
    restore   repair metadata that were restored from a snapshot (`restore`), before all else
    assign    plan the assignments, fence lost brokers, and write the plan (`assigner`)
    publish   the snapshot of the metadata (`metadata_snapshot`)
    cleanup   delete what is left of dead WAL streams (`dead_stream_cleanup`)

Invariants: the duties run only while the cluster cache shows this broker as controller, and every
write of theirs compares that entry, so that it fails once it is not. A duty that fails is retried,
and does not affect others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, NoReturn, Protocol

from kafscale.aio.events import Notifier, wait_at_most
from kafscale.broker.cluster.controller.assigner import Assigner
from kafscale.broker.cluster.controller.dead_stream_cleanup import DeadStreamCleanup
from kafscale.broker.cluster.controller.fencer import Fencer
from kafscale.broker.cluster.controller.metadata_snapshot import SnapshotPublisher
from kafscale.errors import InvalidRequestError, OperatingError, StoreUnavailableError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import BrokerInfo, Topic
from kafscale.metadata.store.base import Entry, MetadataStore, Put, absent
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger
from kafscale.storage.wal.dead_stream_cleaner import DeadStreamCleaner
from kafscale.storage.wal.streams import Streams

logger = get_logger(__name__)

LINGER_SECONDS: Final = 0.005
"""Changes that arrive together are covered by one plan."""

PAUSE_PER_PLANNING: Final = 4
"""The pause before a plan, as a multiple of the last planning time: planning blocks the event
loop.
"""

RETRY_SECONDS: Final = 0.5

SNAPSHOT_BYTES_PER_SECOND: Final = 100_000
"""How much of etcd's writes the metadata snapshot takes while a large cluster changes."""

REBALANCE_SECONDS_MAX: Final = 10.0

TopicsListener = Callable[[Mapping[str, Topic]], Awaitable[None]]
Duty = Callable[[], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """Settings of the controller's duties."""

    moves_max: int = 10
    """How many rebalancing moves may be under way in the cluster at once."""
    stream_cleanup_interval_ms: int = 30_000
    snapshot_interval_ms: int = 1_000
    """The minimal interval between two snapshots."""
    topics_delay_ms: int = 60_000
    """How long topic changes are collected before the listeners are called."""


class Restorer(Protocol):
    """Makes metadata that were restored from a snapshot agree with the bucket."""

    async def complete(self, controller: Entry) -> None:
        """Complete a pending restore, if there is one."""


class _TermOverError(Exception):
    """This broker is no longer controller."""


class Election:
    """One broker's part in the elections.

    The controller is the broker that put its id under the controller key while the key was absent,
    with the lease of its current session; the key vanishes with the lease.
    """

    def __init__(self, store: MetadataStore, cache: ClusterCache) -> None:
        self._store = store
        self._cache = cache
        self.broker: BrokerInfo | None = None
        """The registration of the current session; without a session, this broker does not
        campaign.
        """

    @property
    def entry(self) -> Entry | None:
        """The entry that makes this broker controller; None if it is not."""
        entry = self._cache.controller
        if self.broker is None or entry is None or entry.lease != self.broker.lease:
            return None
        return entry

    @property
    def should_campaign(self) -> bool:
        """Whether there is no controller, and this broker is a candidate."""
        if self.broker is None or self._cache.controller is not None or not self._cache.connected:
            return False
        registered = self._cache.brokers.get(self.broker.id)
        if registered is None or registered.epoch != self.broker.epoch:
            return False
        # A draining broker would soon have to be replaced.
        return not registered.is_draining or all(
            broker.is_draining for broker in self._cache.brokers.values()
        )

    async def campaign(self) -> None:
        """Try to become controller; the cluster cache will show the winner."""
        assert self.broker is not None
        await self._store.commit(
            [absent(keys.CONTROLLER)],
            [Put(keys.CONTROLLER, str(self.broker.id).encode(), self.broker.lease)],
        )


class Controller:
    """Campaigns for controller, and runs the controller's duties while elected."""

    def __init__(
        self,
        store: MetadataStore,
        cache: ClusterCache,
        topic_store: TopicStore,
        streams: Streams,
        cleaner: DeadStreamCleaner,
        *,
        restorer: Restorer,
        broker_id: int,
        cluster_id: str,
        clock: Callable[[], int],
        random: Random,
        settings: ControllerSettings,
    ) -> None:
        self._store = store
        self._cache = cache
        self._topic_store = topic_store
        self._streams = streams
        self._restorer = restorer
        self._broker_id = broker_id
        self._random = random
        self._settings = settings
        self._election = Election(store, cache)
        self._assigner = Assigner(
            store, cache, topic_store, moves_max=settings.moves_max, clock=clock
        )
        self._publisher = SnapshotPublisher(store, cache, topic_store.topics, cluster_id)
        self.stream_cleanup = DeadStreamCleanup(store, cache, topic_store, cleaner, clock)
        self._elected_listeners: list[Callable[[], None]] = []
        self._cleanup_listeners: list[Callable[[Entry], Awaitable[None]]] = []
        self._term_end_listeners: list[Callable[[], Awaitable[None]]] = []
        self._topics_listeners: list[TopicsListener] = []
        self._publish_listeners: list[TopicsListener] = []
        self._to_assign = asyncio.Event()
        self._to_publish = asyncio.Event()
        self._topics_changed = asyncio.Event()
        self._progress = Notifier()
        """Notifies of changes of the cluster, and of finished plans."""
        self._plans_begun = 0
        self._plans_done = 0
        self.is_active = False
        """Whether this broker is controller and the metadata is reliable: no restore is
        pending.
        """
        cache.subscribe(self._on_change)
        topic_store.subscribe(self._on_topic_change)

    # --- public interface -----------------------------------------------------------------------

    @property
    def is_controller(self) -> bool:
        """Whether the cluster cache shows this broker as controller."""
        return self._election.entry is not None

    @property
    def term(self) -> Entry | None:
        """The entry that makes this broker controller; None if it is not."""
        return self._election.entry

    def start_session(self, broker: BrokerInfo) -> None:
        """Campaign from now on, under the lease of this registration."""
        self._election.broker = broker
        self._on_change()

    def end_session(self) -> None:
        """Stop all duties, and do not campaign before the next session."""
        self._election.broker = None
        self._on_change()

    def request_plan(self) -> None:
        """Plan, even if nothing has changed."""
        self._to_assign.set()

    def on_elected(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever this broker becomes controller."""
        self._elected_listeners.append(listener)

    def on_cleanup(self, listener: Callable[[Entry], Awaitable[None]]) -> None:
        """Call `listener` with the controller's entry at every cleanup."""
        self._cleanup_listeners.append(listener)

    def on_term_end(self, listener: Callable[[], Awaitable[None]]) -> None:
        """Call `listener` whenever this broker is no longer controller."""
        self._term_end_listeners.append(listener)

    def on_topics_changed(self, listener: TopicsListener) -> None:
        """Call `listener` with all topics after an election, and after they have changed.

        The call comes `topics_delay_ms` later, and is repeated if it fails.
        """
        self._topics_listeners.append(listener)

    def notify_topics_listeners(self) -> None:
        """Call the listeners again: something else has changed that they depend on."""
        self._topics_changed.set()

    def on_publish(self, listener: TopicsListener) -> None:
        """Call `listener` with all topics whenever the snapshot is published, changed or not."""
        self._publish_listeners.append(listener)

    async def rebalance(self) -> int:
        """Plan now; return how many moves are under way after that."""
        if not self.is_controller:
            raise InvalidRequestError(
                f"broker {self._broker_id} is not the controller, {self._cache.controller_id} is"
            )
        plan = self._plans_begun + 1
        self.request_plan()
        try:
            async with asyncio.timeout(REBALANCE_SECONDS_MAX):
                await self._progress.wait_for(lambda: self._plans_done >= plan)
        except TimeoutError as error:
            raise StoreUnavailableError("the plan is not written yet; try again") from error
        return self._assigner.move_count()

    # --- terms ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Campaign for controller, and run the duties while elected; cancel it to stop."""
        while True:
            entry = await self._wait_until_elected()
            await self._run_term(entry)

    async def _wait_until_elected(self) -> Entry:
        while (entry := self._election.entry) is None:
            changed = self._progress.next_event()
            if self._election.should_campaign:
                try:
                    await self._election.campaign()
                except OperatingError as error:
                    logger.warning("not elected yet", reason=str(error))
                    await asyncio.sleep(RETRY_SECONDS)
            # The cache does not notify when it is connected again, so it is polled.
            await wait_at_most(RETRY_SECONDS, changed)
        return entry

    async def _run_term(self, controller: Entry) -> None:
        """Run all duties until the term is over."""
        logger.info("controller elected", broker_id=self._broker_id, term=controller.mod_revision)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._start_duties(controller, tasks))
                await self._wait_for_term_end(controller)
        except* _TermOverError:
            logger.info("controller term ended", broker_id=self._broker_id)
        finally:
            self.is_active = False
            for listener in self._term_end_listeners:
                await listener()
        # A TaskGroup that is already ending takes a cancellation for its own.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError

    async def _start_duties(self, controller: Entry, tasks: asyncio.TaskGroup) -> None:
        """Start all duties, once the metadata is reliable."""
        await _run_duty("restore", lambda: self._restorer.complete(controller))
        for event in (self._to_assign, self._to_publish, self._topics_changed):
            event.set()
        fencer = Fencer(
            self._store, self._streams, tasks, random=self._random, on_fenced=self.request_plan
        )
        duties: dict[str, Duty] = {
            "assign": lambda: self._assign(controller, fencer),
            "publish": lambda: self._publish(controller),
            "cleanup": lambda: self._clean_up_streams(controller),
            "topics": self._notify_topics_listeners,
        }
        for name, duty in duties.items():
            tasks.create_task(_run_duty_forever(name, duty))
        self.is_active = True
        for listener in self._elected_listeners:
            listener()

    async def _wait_for_term_end(self, controller: Entry) -> NoReturn:
        """Wait for the end of the term, and raise: an exception is what ends a TaskGroup."""
        await self._progress.wait_for(lambda: self._election.entry != controller)
        raise _TermOverError

    # --- duties, one iteration of each ----------------------------------------------------------

    async def _assign(self, controller: Entry, fencer: Fencer) -> None:
        await self._to_assign.wait()
        await asyncio.sleep(LINGER_SECONDS + PAUSE_PER_PLANNING * self._assigner.planning_seconds)
        if not self._assigner.is_cache_current:
            await asyncio.sleep(RETRY_SECONDS)
            return
        self._to_assign.clear()
        self._plans_begun = plan = self._plans_begun + 1
        try:
            is_done = await self._assigner.plan_and_write(controller, fencer)
        except BaseException:
            self._to_assign.set()
            raise
        if not is_done:
            # A change should arrive soon; if none does, it was the store that failed.
            await wait_at_most(RETRY_SECONDS, self._to_assign)
            self._to_assign.set()
        self._plans_done = plan
        self._progress.notify()

    async def _publish(self, controller: Entry) -> None:
        await self._to_publish.wait()
        self._to_publish.clear()
        try:
            written_bytes = await self._publisher.publish(controller)
            for listener in self._publish_listeners:
                await listener(self._topic_store.topics)
        except BaseException:
            self._to_publish.set()
            raise
        interval_seconds = self._settings.snapshot_interval_ms / 1000
        await asyncio.sleep(max(interval_seconds, written_bytes / SNAPSHOT_BYTES_PER_SECOND))

    async def _clean_up_streams(self, controller: Entry) -> None:
        await asyncio.sleep(self._settings.stream_cleanup_interval_ms / 1000)
        await self.stream_cleanup.run_once(controller)
        for listener in self._cleanup_listeners:
            await listener(controller)

    async def _notify_topics_listeners(self) -> None:
        await self._topics_changed.wait()
        await asyncio.sleep(self._settings.topics_delay_ms / 1000)
        self._topics_changed.clear()
        try:
            for listener in self._topics_listeners:
                await listener(self._topic_store.topics)
        except BaseException:
            self._topics_changed.set()
            raise

    # --- notifications --------------------------------------------------------------------------

    def _on_change(self) -> None:
        self._to_assign.set()
        self._to_publish.set()
        self._progress.notify()

    def _on_topic_change(self, _before: Topic | None, _after: Topic | None) -> None:
        self._topics_changed.set()
        self._on_change()


async def _run_duty_forever(name: str, duty: Duty) -> None:
    while True:
        await _run_duty(name, duty)


async def _run_duty(name: str, duty: Duty) -> None:
    """Run one iteration of a duty, with retries until it succeeds."""
    while True:
        try:
            await duty()
        except OperatingError as error:
            logger.warning("controller duty not done yet", duty=name, reason=str(error))
        except Exception:
            # A boundary: later iterations and other duties run nevertheless.
            logger.exception("controller duty failed", duty=name)
        else:
            return
        await asyncio.sleep(RETRY_SECONDS)
