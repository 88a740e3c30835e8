"""The lag of consumer groups, also in partitions that other brokers lead.

Invariant: computing the lag costs requests nothing. High watermarks of local logs are read; brokers
that lead other partitions of this broker's groups are polled every `INTERVAL_SECONDS`, and their
last response is used until the next one. A broker that does not respond is polled again; its
partitions are left out once the values are older than `STALE_MS`.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.config.sections.security import ClientTls
from kafscale.errors import KafscaleError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.observability.logging import get_logger
from kafscale.storage.log.log_directory import LogDirectory
from kafscale.text.topic_partition import TopicPartition

log = get_logger(__name__)

INTERVAL_SECONDS: Final = 10.0
STALE_MS: Final = 60_000


class ConsumerLag:
    """The high consumer_lag of the partitions that this broker's groups read, and their lag."""

    def __init__(
        self,
        logs: LogDirectory,
        groups: Coordinator,
        view: ClusterCache,
        *,
        broker_id: int,
        steady: Callable[[], int],
        tls: ClientTls | None = None,
    ) -> None:
        """`tls` is used to poll other brokers, if their control planes are encrypted."""
        self._logs = logs
        self._groups = groups
        self._view = view
        self._broker_id = broker_id
        self._steady = steady
        self._tls = tls
        self._polled: dict[TopicPartition, tuple[int, int]] = {}
        """The high consumer_lag of other brokers, and when they were polled."""

    def high_watermark(self, topic: str, partition: int) -> int | None:
        """The high watermark of a partition, if it is known."""
        log = self._logs.get(topic, partition)
        if log is not None:
            return log.high_watermark
        offset, polled_ms = self._polled.get((topic, partition), (0, -STALE_MS))
        return offset if self._steady() - polled_ms < STALE_MS else None

    def lags(self) -> Iterator[tuple[str, str, int, int]]:
        """Yields group, topic, partition and lag in records."""
        for group_id, (topic, partition), offset in self._committed():
            end_offset = self.high_watermark(topic, partition)
            if end_offset is not None:
                yield group_id, topic, partition, max(end_offset - offset, 0)

    async def run(self) -> None:
        """Poll other brokers until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            for broker in self._leaders():
                try:
                    await self._poll(broker)
                except KafscaleError as error:
                    log.info("high watermark poll failed", broker_id=broker.id, reason=str(error))

    def _committed(self) -> Iterator[tuple[str, TopicPartition, int]]:
        for hosted in self._groups.registry:
            for place, committed in list(hosted.offsets.committed.items()):
                yield hosted.group.group_id, place, committed.offset

    def _leaders(self) -> list[BrokerInfo]:
        """The other brokers that lead partitions of this broker's groups."""
        leader_ids = {self._view.leader(*place)[0] for _, place, _ in self._committed()}
        return [
            broker
            for broker in list(self._view.brokers.values())
            if broker.id in leader_ids and broker.id != self._broker_id
        ]

    async def _poll(self, broker: BrokerInfo) -> None:
        # gRPC is slow to import, and a single broker never needs it.
        from kafscale.control_plane.client import ControlClient  # noqa: PLC0415

        host = f"[{broker.control_host}]" if ":" in broker.control_host else broker.control_host
        async with ControlClient(f"{host}:{broker.control_port}", self._tls) as client:
            status = await client.status()
        now_ms = self._steady()
        for partition in status.partitions:
            key = (partition.topic, partition.partition)
            self._polled[key] = (partition.high_watermark, now_ms)
