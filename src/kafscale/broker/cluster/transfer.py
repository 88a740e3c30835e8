"""Handing over: the owner of a partition, or of a shard, makes another broker its owner.

The law: first everything is where the next owner looks for it, then one commit changes the
assignment, comparing it and the registration of the next owner. Before the commit, a failure leaves
everything as it was. A commit whose answer is lost is asked about until it is known how it ended:
only then is the partition either gone or ours again.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from kafscale.broker.cluster.controller.plan.planner import Place
from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.errors import FencedError, OperatingError
from kafscale.metadata.cluster.cluster_cache import ClusterView
from kafscale.metadata.cluster.group_shards import SHARDS_TOPIC
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.schema.model import Assignment, BrokerInfo
from kafscale.metadata.store.base import Compare, MetadataStore, Put
from kafscale.observability.logging import get_logger
from kafscale.storage.engine import StorageEngine
from kafscale.storage.log.partition_log import PartitionLog

log = get_logger(__name__)

AT_ONCE_MAX: Final = 16
"""How many are handed over at once: enough to hide the stores, few enough to spare clients."""

RETRY_SECONDS: Final = 0.2


class Handover:
    """Gives away what this broker owns, and remembers what it has given away."""

    def __init__(
        self,
        store: MetadataStore,
        view: ClusterView,
        storage: StorageEngine,
        groups: Coordinator,
        *,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._view = view
        self._storage = storage
        self._groups = groups
        self._clock = clock
        self._at_once = asyncio.Semaphore(AT_ONCE_MAX)
        self._given: dict[Place, int] = {}
        """At which revision something was given away; the view may take a moment to show it."""

    def has_given(self, assignment: Assignment) -> bool:
        given_revision = self._given.get((assignment.topic, assignment.partition), 0)
        return assignment.mod_revision < given_revision

    def forget(self) -> None:
        self._given.clear()

    async def give(self, place: Place, guard: OwnershipGuard, target_id: int) -> bool:
        """Hand over to another broker; false if it is still ours."""
        async with self._at_once:
            target = self._view.brokers.get(target_id)
            if target is None or target.is_draining:
                # The controller knows, or will, and names somebody else.
                await asyncio.sleep(RETRY_SECONDS)
                return False
            topic, number = place
            if topic == SHARDS_TOPIC:
                await self._groups.release_shards([number])
                if await self._commit(place, guard, target):
                    return True
                await self._groups.open_shards({number: guard})
                return False
            partition = self._storage.logs.get(topic, number)
            return partition is not None and await self._give_log(place, guard, target, partition)

    async def _give_log(
        self, place: Place, guard: OwnershipGuard, target: BrokerInfo, partition: PartitionLog
    ) -> bool:
        started_ms = self._clock()
        await self._storage.release(partition)
        try:
            is_given = await self._commit(place, guard, target)
        except BaseException:
            partition.take_again()
            raise
        if not is_given:
            partition.take_again()
            return False
        log.info(
            "partition handed over",
            topic=partition.topic,
            partition=partition.partition,
            to=target.id,
            end_offset=partition.end_offset,
            duration=round((self._clock() - started_ms) / 1000, 3),
        )
        return True

    async def _commit(self, place: Place, guard: OwnershipGuard, target: BrokerInfo) -> bool:
        """Make the target the owner; false if the assignment or the target has changed."""
        before = guard.assignment
        after = replace(
            before,
            broker_id=target.id,
            broker_epoch=target.epoch,
            fully_rolled=True,
            reassigning_to=None,
            leader_epoch=before.leader_epoch + 1,
            assigned_ms=self._clock(),
        )
        target_key = keys.broker(str(target.id))
        try:
            done = await self._store.commit(
                [guard.compare, Compare(key=target_key, mod_revision=target.mod_revision)],
                [Put(guard.key, encode_assignment(after))],
            )
        except OperatingError as error:
            log.warning("handover in doubt", place=place, reason=str(error))
        else:
            if done.succeeded:
                self._given[place] = done.revision
                return True
        if await self._is_still_ours(guard):
            return False
        self._given[place] = before.mod_revision + 1
        return True

    async def _is_still_ours(self, guard: OwnershipGuard) -> bool:
        """Ask until the store says who the owner is."""
        while True:
            try:
                await guard.renew()
            except FencedError:
                return False
            except OperatingError:
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return True
