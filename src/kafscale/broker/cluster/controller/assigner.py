"""Assigner: the controller's main duty, to plan assignments and to write them.

Invariants: a plan is made only from a connected cache that shows everything this controller has
written; the next plan waits until the cache shows the writes of the last. A transaction that fails
means that another writer was faster, or that the cache is stale: the change will arrive, and the
next plan follows it. Nothing is lost, and nothing is done twice.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kafscale.aio.events import Notifier
from kafscale.broker.cluster.controller.fencer import Fencer
from kafscale.broker.cluster.controller.plan.planner import Change, Owner, Plan, plan
from kafscale.broker.cluster.controller.transactions import (
    PUTS_MAX,
    AssignmentOp,
    AssignmentTxn,
    build_transactions,
)
from kafscale.errors import OperatingError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema.model import SHARD_COUNT, SHARDS_TOPIC
from kafscale.metadata.store.base import Delete, Entry, MetadataStore
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

COMMITS_MAX: Final = 8
"""How many transactions run at once."""

VISIBLE_SECONDS_MAX: Final = 5.0
"""How long to wait for the cache to show the writes, before the next plan is made nevertheless."""


class _Written(msgspec.Struct, frozen=True):
    last: AssignmentOp
    revision: int


class Assigner:
    """Plans assignments, and writes them."""

    def __init__(
        self,
        store: MetadataStore,
        cache: ClusterCache,
        topic_store: TopicStore,
        *,
        moves_max: int,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._cache = cache
        self._topic_store = topic_store
        self._moves_max = moves_max
        self._clock = clock
        self._commits = asyncio.Semaphore(COMMITS_MAX)
        self._puts_max = PUTS_MAX
        self.planning_seconds = 0.0
        """How long the last plan took; planning blocks the event loop."""
        self._cache_changed = Notifier()
        cache.subscribe(self._cache_changed.notify)
        topic_store.subscribe(lambda _before, _after: self._cache_changed.notify())

    @property
    def is_cache_current(self) -> bool:
        """Whether the caches are connected to the store."""
        return self._cache.connected and self._topic_store.connected

    def move_count(self) -> int:
        """How many moves are under way."""
        return sum(
            assignment.reassigning_to is not None for assignment in self._cache.all_assignments()
        )

    async def plan_and_write(self, controller: Entry, fencer: Fencer) -> bool:
        """Make one plan, and write it; return false if some of it could not be written."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        planned = self._plan(fencer)
        transactions = list(
            build_transactions(
                planned, controller, self._topic_store.topics, self._cache.brokers, self._puts_max
            )
        )
        self.planning_seconds = loop.time() - began
        self._fence(planned.to_fence, fencer)
        results = await asyncio.gather(*(self._write(txn) for txn in transactions))
        written = [result for result in results if result is not None]
        if len(written) == len(transactions):
            self._puts_max = PUTS_MAX
        if written:
            _log_plan(planned)
            await self._wait_until_visible(written)
        return len(written) == len(transactions)

    def _fence(self, owners: set[Owner], fencer: Fencer) -> None:
        if not owners:
            return
        owned = Counter(
            (assignment.broker_id, assignment.broker_epoch)
            for assignment in self._cache.all_assignments()
            if assignment.topic != SHARDS_TOPIC
        )
        for owner in sorted(owners):
            fencer.start(owner, owned[owner])

    def _plan(self, fencer: Fencer) -> Plan:
        topics = self._topic_store.topics.values()
        partitions = {topic.name: topic.partitions for topic in topics}
        return plan(
            partitions={**partitions, SHARDS_TOPIC: SHARD_COUNT},
            topic_ids={topic.name: topic.id for topic in topics},
            replicas={topic.name: topic.replicas for topic in topics if topic.replicas},
            brokers=self._cache.brokers,
            assignments={
                (assignment.topic, assignment.partition): assignment
                for assignment in self._cache.all_assignments()
            },
            fenced=fencer.fenced,
            now_ms=self._clock(),
            moves_max=self._moves_max,
        )

    async def _write(self, txn: AssignmentTxn) -> _Written | None:
        async with self._commits:
            try:
                done = await self._store.commit(list(txn.compares.values()), txn.operations)
            except OperatingError as error:
                logger.warning("assignments not written yet", reason=str(error))
                return None
        if done.succeeded:
            return _Written(txn.last, done.revision)
        # One assignment of many has changed; in smaller transactions the others succeed.
        self._puts_max = max(1, len(txn.operations) // 4)
        return None

    async def _wait_until_visible(self, written: Iterable[_Written]) -> None:
        """Wait until the cache shows what was written, or a later change."""
        try:
            async with asyncio.timeout(VISIBLE_SECONDS_MAX):
                await self._cache_changed.wait_for(
                    lambda: all(self._is_visible(each) for each in written)
                )
        except TimeoutError:
            logger.warning("cluster cache is behind", seconds=VISIBLE_SECONDS_MAX)

    def _is_visible(self, written: _Written) -> bool:
        last = written.last.assignment
        if last.topic != SHARDS_TOPIC and last.topic not in self._topic_store.topics:
            return True  # The topic is deleted, and its assignments with it.
        assignment = self._cache.assignments(last.topic).get(last.partition)
        if isinstance(written.last.operation, Delete):
            return assignment is None or assignment.mod_revision > written.revision
        return assignment is not None and assignment.mod_revision >= written.revision


def _log_plan(planned: Plan) -> None:
    assigned = [change for change in planned.changes if _changes_owner(change)]
    moving = [change for change in planned.changes if change.after.reassigning_to is not None]
    if assigned:
        taken_over = sum(change.before is not None for change in assigned)
        logger.info("partitions assigned", **_counts(assigned), taken_over=taken_over)
    if moving:
        logger.info("partitions reassigning", **_counts(moving))


def _changes_owner(change: Change) -> bool:
    return change.before is None or change.before.leader_epoch != change.after.leader_epoch


def _counts(changes: list[Change]) -> dict[str, int]:
    shards = sum(change.after.topic == SHARDS_TOPIC for change in changes)
    return {"partitions": len(changes) - shards, "shards": shards}
