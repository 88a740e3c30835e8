"""Ownership transfer: the owner of a partition or shard makes another broker its owner.

Invariants: first the owner stores everything where the next owner will read it. Then one
transaction changes the assignment; it compares the assignment and the registration of the next
owner. A failure before the transaction changes nothing. If the transaction is not answered, it may
have been applied, or may be later. The owner then writes its own assignment again: it serves the
partition again only if that succeeded, because the transfer cannot be applied any more.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from kafscale.broker.shards.shards import Shards
from kafscale.errors import FencedError, OperatingError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.schema.model import SHARDS_TOPIC, Assignment, BrokerInfo
from kafscale.metadata.store.base import Compare, MetadataStore, Put
from kafscale.observability.logging import get_logger
from kafscale.storage.engine import StorageEngine
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

CONCURRENT_TRANSFERS_MAX: Final = 16
"""How many transfers run at once: enough to hide store latency, few enough to spare clients."""

RETRY_SECONDS: Final = 0.2


class OwnershipTransfer:
    """Transfers what this broker owns, and remembers what it has transferred."""

    def __init__(
        self,
        store: MetadataStore,
        cache: ClusterCache,
        storage: StorageEngine,
        shards: Shards,
        *,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._cache = cache
        self._storage = storage
        self._shards = shards
        self._clock = clock
        self._limit = asyncio.Semaphore(CONCURRENT_TRANSFERS_MAX)
        self._transferred: dict[TopicPartition, int] = {}
        """The revision of each transfer that the cluster cache may not show yet."""

    def has_transferred(self, assignment: Assignment) -> bool:
        transfer_revision = self._transferred.get((assignment.topic, assignment.partition), 0)
        return assignment.mod_revision < transfer_revision

    def clear(self) -> None:
        self._transferred.clear()

    async def transfer(
        self, topic_partition: TopicPartition, guard: OwnershipGuard, target_id: int
    ) -> bool:
        """Transfer ownership to another broker; return false if this broker still owns it."""
        async with self._limit:
            target = self._cache.brokers.get(target_id)
            if target is None or target.is_draining:
                # The controller will choose another target.
                await asyncio.sleep(RETRY_SECONDS)
                return False
            topic, number = topic_partition
            if topic == SHARDS_TOPIC:
                await self._shards.release([number])
                if await self._commit(topic_partition, guard, target):
                    return True
                await _retry(partial(self._shards.open, {number: guard}))
                return False
            partition_log = self._storage.logs.get(topic, number)
            return partition_log is not None and await self._transfer_log(
                topic_partition, guard, target, partition_log
            )

    async def _transfer_log(
        self,
        topic_partition: TopicPartition,
        guard: OwnershipGuard,
        target: BrokerInfo,
        partition_log: PartitionLog,
    ) -> bool:
        started_ms = self._clock()
        await self._storage.release(partition_log)
        try:
            is_transferred = await self._commit(
                topic_partition, guard, target, end_offset=partition_log.end_offset
            )
        except BaseException:
            partition_log.resume_appends()
            raise
        if not is_transferred:
            partition_log.resume_appends()
            return False
        logger.info(
            "partition transferred",
            topic=partition_log.topic,
            partition=partition_log.partition,
            to=target.id,
            end_offset=partition_log.end_offset,
            duration=round((self._clock() - started_ms) / 1000, 3),
        )
        return True

    async def _commit(
        self,
        topic_partition: TopicPartition,
        guard: OwnershipGuard,
        target: BrokerInfo,
        *,
        end_offset: int | None = None,
    ) -> bool:
        """Make the target the owner; false if the assignment or the target has changed."""
        before = guard.assignment
        after = replace(
            before,
            broker_id=target.id,
            broker_epoch=target.epoch,
            fully_rolled=True,
            lost_owner=None,
            reassigning_to=None,
            end_offset=end_offset,
            leader_epoch=before.leader_epoch + 1,
            assigned_ms=self._clock(),
        )
        target_key = keys.broker(target.id)
        try:
            result = await self._store.commit(
                [guard.compare, Compare(key=target_key, mod_revision=target.mod_revision)],
                [Put(guard.key, encode_assignment(after))],
            )
        except OperatingError as error:
            logger.warning(
                "transfer outcome unknown", topic_partition=topic_partition, reason=str(error)
            )
            is_still_owner = await _retry(guard.settle)
        else:
            if result.succeeded:
                self._record(topic_partition, result.revision)
                return True
            is_still_owner = await _retry(guard.refresh)
        if not is_still_owner:
            self._record(topic_partition, guard.assignment.mod_revision + 1)
        return not is_still_owner

    def _record(self, topic_partition: TopicPartition, revision: int) -> None:
        """Record a transfer, and drop those that the cluster cache shows."""
        self._transferred[topic_partition] = revision
        self._transferred = {
            (topic, number): revision
            for (topic, number), revision in self._transferred.items()
            if (shown := self._cache.assignments(topic).get(number)) is not None
            and shown.mod_revision < revision
        }


async def _retry(request: Callable[[], Awaitable[None]]) -> bool:
    """Retry until the store responds; return false if this broker is no longer the owner."""
    while True:
        try:
            await request()
        except FencedError:
            return False
        except OperatingError:
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return True
