"""The controller: every broker is ready to be it, one is, and that one sees to the whole cluster.

    elected   nobody is controller: put our id under the controller's key, with our lease
    restore   settle metadata that were restored from a snapshot (`restoration`), before all else
    assign    plan who owns what, fence whoever is lost, and write the plan (`assigning`)
    publish   the snapshot of the metadata (`snapshot`)
    reap      what is left of dead WAL streams (`reaping`)

The law: the duties are done only while the view shows that we are controller, and whatever they
write fails if we are not any more. A duty that fails is begun again, and does not disturb others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, NoReturn, Protocol

from kafscale.broker.cluster.controller.assigner import Assigning
from kafscale.broker.cluster.controller.election import Election
from kafscale.broker.cluster.controller.fencer import Fencer, Fencing
from kafscale.broker.cluster.controller.metadata_snapshot import Publisher
from kafscale.broker.cluster.controller.wal_cleanup import Reaping, StreamReaper
from kafscale.errors import InvalidRequestError, OperatingError, StoreUnavailableError
from kafscale.metadata.cluster.cluster_cache import ClusterView
from kafscale.metadata.schema.model import BrokerInfo, Topic
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

LINGER_SECONDS: Final = 0.005
"""Changes that come together are planned for together."""

REST_PER_PLANNING: Final = 4
"""How much longer than planning the rest before it is: a large cluster must not keep us busy."""

RETRY_SECONDS: Final = 0.5

REBALANCE_SECONDS_MAX: Final = 10.0

TopicsListener = Callable[[Mapping[str, Topic]], Awaitable[None]]
Duty = Callable[[], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """How the controller goes about its duties."""

    moves_max: int = 10
    """How many moves for the sake of balance may be under way in the cluster at once."""
    reap_interval_ms: int = 30_000
    snapshot_interval_ms: int = 1_000
    """How often the snapshot is written at most."""
    topics_delay_ms: int = 60_000
    """How long changes of topics are gathered before their listener is told."""


class Restorer(Protocol):
    """Makes metadata that were restored from a snapshot agree with the bucket."""

    async def complete(self, controller: Entry) -> None:
        """Settle the restoration, if there is one that is not settled."""


class _TermOverError(Exception):
    """We are not controller any more."""


class Controller:
    """A broker's readiness to be controller, and its work while it is."""

    def __init__(
        self,
        store: MetadataStore,
        view: ClusterView,
        catalog: Catalog,
        streams: Fencer,
        reaper: StreamReaper,
        *,
        restorer: Restorer,
        broker_id: int,
        cluster_id: str,
        clock: Callable[[], int],
        random: Random,
        settings: ControllerSettings,
    ) -> None:
        self._store = store
        self._view = view
        self._catalog = catalog
        self._streams = streams
        self._restorer = restorer
        self._broker_id = broker_id
        self._random = random
        self._settings = settings
        self._election = Election(store, view)
        self._assigning = Assigning(store, view, catalog, moves_max=settings.moves_max, clock=clock)
        self._publisher = Publisher(store, view, catalog.topics, cluster_id)
        self._reaping = Reaping(store, view, reaper)
        self._elected_listeners: list[Callable[[], None]] = []
        self._topics_listeners: list[TopicsListener] = []
        self._publish_listeners: list[TopicsListener] = []
        self._to_assign = asyncio.Event()
        self._to_publish = asyncio.Event()
        self._topics_changed = asyncio.Event()
        self._news = asyncio.Event()
        self._plans_begun = 0
        self._plans_done = 0
        self.is_governing = False
        """Whether we are controller, and what the metadata say can be relied on."""
        view.subscribe(self._changed)
        catalog.subscribe(self._topic_changed)

    # --- what others ask ------------------------------------------------------------------------

    @property
    def is_controller(self) -> bool:
        """Whether we are controller, as far as can be seen here."""
        return self._election.entry is not None

    def begin(self, registration: BrokerInfo) -> None:
        """Be ready to be controller, under the lease of this registration."""
        self._election.life = registration
        self._changed()

    def end(self) -> None:
        """The life is over: stop all duties, and do not stand again before the next."""
        self._election.life = None
        self._changed()

    def wake(self) -> None:
        """Plan, even if nothing has changed."""
        self._to_assign.set()

    def on_elected(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever we become controller."""
        self._elected_listeners.append(listener)

    def on_topics_changed(self, listener: TopicsListener) -> None:
        """Call `listener` with all topics when we become controller, and when they have changed.

        It is called `topics_delay_ms` later, and again if it fails.
        """
        self._topics_listeners.append(listener)

    def on_publish(self, listener: TopicsListener) -> None:
        """Call `listener` with all topics whenever the snapshot is published, changed or not."""
        self._publish_listeners.append(listener)

    async def rebalance(self) -> int:
        """Plan now, and return how many moves are under way then."""
        if not self.is_controller:
            raise InvalidRequestError(
                f"broker {self._broker_id} is not the controller, {self._view.controller_id} is"
            )
        plan = self._plans_begun + 1
        self.wake()
        try:
            async with asyncio.timeout(REBALANCE_SECONDS_MAX):
                await self._until(lambda: self._plans_done >= plan)
        except TimeoutError as error:
            raise StoreUnavailableError("the plan is not carried out yet; try again") from error
        return self._assigning.moves()

    # --- terms ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Stand whenever there is no controller, and be it when elected; cancel it to stop."""
        while True:
            entry = await self._elected()
            await self._govern(entry)

    async def _elected(self) -> Entry:
        while (entry := self._election.entry) is None:
            news = self._news
            if self._election.is_open:
                try:
                    await self._election.stand()
                except OperatingError as error:
                    log.warning("not elected yet", reason=str(error))
                    await asyncio.sleep(RETRY_SECONDS)
            # A view that is connected again does not say so; therefore it is looked at again.
            await self._within(RETRY_SECONDS, news)
        return entry

    async def _govern(self, controller: Entry) -> None:
        """Do all duties until the term is over."""
        log.info("controller elected", broker_id=self._broker_id, term=controller.mod_revision)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._take_office(controller, tasks))
                await self._until_over(controller)
        except* _TermOverError:
            log.info("controller no more", broker_id=self._broker_id)
        finally:
            self.is_governing = False
        # A group of tasks that is ending already takes a cancellation for its own.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError

    async def _take_office(self, controller: Entry, tasks: asyncio.TaskGroup) -> None:
        """Begin all duties, once the metadata can be relied on."""
        await _done("restore", lambda: self._restorer.complete(controller))
        for bell in (self._to_assign, self._to_publish, self._topics_changed):
            bell.set()
        fencing = Fencing(self._store, self._streams, tasks, random=self._random, fenced=self.wake)
        duties: dict[str, Duty] = {
            "assign": lambda: self._assign(controller, fencing),
            "publish": lambda: self._publish(controller),
            "reap": lambda: self._reap(controller),
            "topics": self._tell_topics,
        }
        for name, duty in duties.items():
            tasks.create_task(_repeat(name, duty))
        self.is_governing = True
        for listener in self._elected_listeners:
            listener()

    async def _until_over(self, controller: Entry) -> NoReturn:
        """Wait for the end of the term, and raise: that is what ends a group of tasks."""
        await self._until(lambda: self._election.entry != controller)
        raise _TermOverError

    # --- duties, one round of each --------------------------------------------------------------

    async def _assign(self, controller: Entry, fencing: Fencing) -> None:
        await self._to_assign.wait()
        await asyncio.sleep(LINGER_SECONDS + REST_PER_PLANNING * self._assigning.planning_seconds)
        if not self._assigning.is_informed:
            await asyncio.sleep(RETRY_SECONDS)
            return
        self._to_assign.clear()
        self._plans_begun = plan = self._plans_begun + 1
        try:
            is_done = await self._assigning.step(controller, fencing)
        except BaseException:
            self._to_assign.set()
            raise
        if not is_done:
            # There is news on the way; if it does not come, it was the store that failed.
            await self._within(RETRY_SECONDS, self._to_assign)
            self._to_assign.set()
        self._plans_done = plan
        self._tell()

    async def _publish(self, controller: Entry) -> None:
        await self._to_publish.wait()
        self._to_publish.clear()
        try:
            await self._publisher.publish(controller)
            for listener in self._publish_listeners:
                await listener(self._catalog.topics)
        except BaseException:
            self._to_publish.set()
            raise
        await asyncio.sleep(self._settings.snapshot_interval_ms / 1000)

    async def _reap(self, controller: Entry) -> None:
        await asyncio.sleep(self._settings.reap_interval_ms / 1000)
        await self._reaping.step(controller)

    async def _tell_topics(self) -> None:
        await self._topics_changed.wait()
        await asyncio.sleep(self._settings.topics_delay_ms / 1000)
        self._topics_changed.clear()
        try:
            for listener in self._topics_listeners:
                await listener(self._catalog.topics)
        except BaseException:
            self._topics_changed.set()
            raise

    # --- news -----------------------------------------------------------------------------------

    def _changed(self) -> None:
        self._to_assign.set()
        self._to_publish.set()
        self._tell()

    def _topic_changed(self, _before: Topic | None, _after: Topic | None) -> None:
        self._topics_changed.set()
        self._changed()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._news.wait()

    async def _within(self, seconds: float, event: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return


async def _repeat(name: str, duty: Duty) -> None:
    """Do a duty round after round."""
    while True:
        await _done(name, duty)


async def _done(name: str, duty: Duty) -> None:
    """Do one round of a duty, however often it has to be begun."""
    while True:
        try:
            await duty()
        except OperatingError as error:
            log.warning("controller duty not done yet", duty=name, reason=str(error))
        except Exception:
            # An edge: the next round of it, and all other duties, come nevertheless.
            log.exception("controller duty failed", duty=name)
        else:
            return
        await asyncio.sleep(RETRY_SECONDS)
