"""Drain: a broker transfers some of its partitions and shards, or all of them before it leaves.

Invariant: nothing is released without another broker to take it. A broker that leaves says so in
its registration, and the controller chooses the new owners. Single partitions are transferred to
the least loaded broker; the controller may rebalance them later. `transfer` describes how a
partition changes its owner.
"""

import asyncio
from collections import Counter
from collections.abc import Collection
from typing import Final

from kafscale.broker.cluster.ownership import Ownership
from kafscale.broker.cluster.registration import Registration
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema.model import NO_BROKER, BrokerInfo
from kafscale.text.topic_partition import TopicPartition

CHECK_INTERVAL_SECONDS: Final = 0.2
"""How often the broker checks that there is still another broker to transfer to."""


class Drainer:
    """Transfers what this broker owns to other brokers."""

    def __init__(
        self, cache: ClusterCache, registration: Registration, ownership: Ownership
    ) -> None:
        self._cache = cache
        self._registration = registration
        self._ownership = ownership

    async def drain(
        self, partitions: Collection[TopicPartition] | None, deadline_seconds: float
    ) -> tuple[Collection[TopicPartition], Collection[TopicPartition]]:
        """Transfer these, or everything before leaving; return those released, and the rest."""
        topic_partitions = list(self._ownership.served) if partitions is None else list(partitions)
        if self._transfer_targets():
            if partitions is None:
                await self._registration.announce_drain()
            transfers = partitions or ()  # Before leaving, the controller requests them.
            await self._wait_until_released(topic_partitions, transfers, deadline_seconds)
        released: list[TopicPartition] = []
        pending: list[TopicPartition] = []
        for topic_partition in topic_partitions:
            (pending if topic_partition in self._ownership.served else released).append(
                topic_partition
            )
        return released, pending

    async def _wait_until_released(
        self,
        topic_partitions: Collection[TopicPartition],
        transfers: Collection[TopicPartition],
        deadline_seconds: float,
    ) -> None:
        """Wait until they are released, or no target is left: all brokers may leave at once.

        `transfers` are started here, and again if one fails.
        """
        waiting = asyncio.ensure_future(
            self._ownership.wait_until_released(topic_partitions, deadline_seconds)
        )
        try:
            while not waiting.done() and self._transfer_targets():
                self._start(transfers)
                await asyncio.wait({waiting}, timeout=CHECK_INTERVAL_SECONDS)
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    def _start(self, transfers: Collection[TopicPartition]) -> None:
        target_id = self._least_loaded() if transfers else NO_BROKER
        for topic_partition in transfers:
            if topic_partition in self._ownership.served:
                self._ownership.start_transfer(topic_partition, target_id)

    def _transfer_targets(self) -> list[BrokerInfo]:
        own = self._registration.broker
        return [
            broker
            for broker in self._cache.brokers.values()
            if not broker.is_draining and own is not None and broker.id != own.id
        ]

    def _least_loaded(self) -> int:
        loads = Counter(assignment.broker_id for assignment in self._cache.all_assignments())
        return min(self._transfer_targets(), key=lambda broker: (loads[broker.id], broker.id)).id
