"""Assigning: the controller's main duty, to plan and to carry the plan out.

The laws: a plan is made from a view that shows everything which this controller has written, and is
connected to the store; the next is made only when the view shows what the last has written. A
commit that fails means that somebody was faster, or that the view is behind: there will be news,
and the plan after them. Nothing is lost by that, and nothing can be done twice.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kafscale.broker.cluster.controller.fencer import Fencing
from kafscale.broker.cluster.controller.plan.planner import Change, Owner, Plan, plan
from kafscale.broker.cluster.controller.transactions import PUTS_MAX, Batch, Step, batches
from kafscale.errors import OperatingError
from kafscale.metadata.cluster.cluster_cache import ClusterView
from kafscale.metadata.cluster.group_shards import SHARD_COUNT, SHARDS_TOPIC
from kafscale.metadata.store.base import Delete, Entry, MetadataStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

COMMITS_MAX: Final = 8
"""How many commits are under way at once."""

SHOWN_SECONDS_MAX: Final = 5.0
"""How long the view may take to show what was written, before a plan is made nevertheless."""


class _Written(msgspec.Struct, frozen=True):
    last: Step
    revision: int


class Assigning:
    """Plans, and writes what was planned."""

    def __init__(
        self,
        store: MetadataStore,
        view: ClusterView,
        catalog: Catalog,
        *,
        moves_max: int,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._view = view
        self._catalog = catalog
        self._moves_max = moves_max
        self._clock = clock
        self._commits = asyncio.Semaphore(COMMITS_MAX)
        self._puts_max = PUTS_MAX
        self.planning_seconds = 0.0
        """How long it took to make the last plan, in which nothing else could be done here."""
        self._news = asyncio.Event()
        view.subscribe(self._tell)
        catalog.subscribe(lambda _before, _after: self._tell())

    @property
    def is_informed(self) -> bool:
        """Whether what is seen here is what the store says, as far as one can know."""
        return self._view.connected and self._catalog.connected

    def moves(self) -> int:
        """How many moves are under way."""
        return sum(
            assignment.reassigning_to is not None for assignment in self._view.every_assignment()
        )

    async def step(self, controller: Entry, fencing: Fencing) -> bool:
        """Plan once, and carry it out; false if something could not be written as planned."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        planned = self._plan(fencing)
        to_write = list(
            batches(planned, controller, self._catalog.topics, self._view.brokers, self._puts_max)
        )
        self.planning_seconds = loop.time() - began
        self._fence(planned.to_fence, fencing)
        outcomes = await asyncio.gather(*(self._write(batch) for batch in to_write))
        written = [outcome for outcome in outcomes if outcome is not None]
        if len(written) == len(to_write):
            self._puts_max = PUTS_MAX
        if written:
            _log_plan(planned)
            await self._shown(written)
        return len(written) == len(to_write)

    def _fence(self, owners: set[Owner], fencing: Fencing) -> None:
        if not owners:
            return
        owned = Counter(
            (assignment.broker_id, assignment.broker_epoch)
            for assignment in self._view.every_assignment()
            if assignment.topic != SHARDS_TOPIC
        )
        for owner in sorted(owners):
            fencing.begin(owner, owned[owner])

    def _plan(self, fencing: Fencing) -> Plan:
        partitions = {topic.name: topic.partitions for topic in self._catalog.topics.values()}
        return plan(
            partitions={**partitions, SHARDS_TOPIC: SHARD_COUNT},
            brokers=self._view.brokers,
            assignments={
                (found.topic, found.partition): found for found in self._view.every_assignment()
            },
            fenced=fencing.fenced,
            now_ms=self._clock(),
            moves_max=self._moves_max,
        )

    async def _write(self, batch: Batch) -> _Written | None:
        async with self._commits:
            try:
                done = await self._store.commit(list(batch.compares.values()), batch.operations)
            except OperatingError as error:
                log.warning("assignments not written yet", reason=str(error))
                return None
        if done.succeeded:
            return _Written(batch.last, done.revision)
        # What stands in the way is one of many; in smaller commits the others get past it.
        self._puts_max = max(1, len(batch.operations) // 4)
        return None

    async def _shown(self, written: Iterable[_Written]) -> None:
        """Wait until the view shows what was written, or what came after it."""
        try:
            async with asyncio.timeout(SHOWN_SECONDS_MAX):
                while not all(self._shows(each) for each in written):
                    await self._news.wait()
        except TimeoutError:
            log.warning("view is late", seconds=SHOWN_SECONDS_MAX)

    def _shows(self, written: _Written) -> bool:
        last = written.last.assignment
        if last.topic != SHARDS_TOPIC and last.topic not in self._catalog.topics:
            return True  # It is deleted, and its assignments with it.
        found = self._view.assignments(last.topic).get(last.partition)
        if isinstance(written.last.operation, Delete):
            return found is None or found.mod_revision > written.revision
        return found is not None and found.mod_revision >= written.revision

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _log_plan(planned: Plan) -> None:
    given = [change for change in planned.changes if _is_given(change)]
    moving = [change for change in planned.changes if change.after.reassigning_to is not None]
    if given:
        taken_over = sum(change.before is not None for change in given)
        log.info("partitions assigned", **_counts(given), taken_over=taken_over)
    if moving:
        log.info("partitions moving", **_counts(moving))


def _is_given(change: Change) -> bool:
    """Whether it gives something to another owner."""
    return change.before is None or change.before.leader_epoch != change.after.leader_epoch


def _counts(changes: list[Change]) -> dict[str, int]:
    shards = sum(change.after.topic == SHARDS_TOPIC for change in changes)
    return {"partitions": len(changes) - shards, "shards": shards}
