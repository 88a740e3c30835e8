"""Metrics of partition logs and consumer groups, which are read at every scrape.

Invariant: computing the lag of consumer groups costs requests nothing. High watermarks of local
logs are read; brokers that lead other partitions of this broker's groups are polled every
`INTERVAL_SECONDS`, and their last response is used until the next one. A broker that does not
respond is polled again; its partitions are left out once the values are older than `STALE_MS`.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.broker.transaction_coordinator.transactions import Transactions
from kafscale.config import Config
from kafscale.config.sections.security import ClientTls
from kafscale.errors import KafscaleError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema.model import BrokerInfo, Topic
from kafscale.metadata.topics.store import TopicStore
from kafscale.net import tls_files
from kafscale.net.address import Address
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics
from kafscale.observability.metrics.counters import CompactionStatus
from kafscale.storage.engine import StorageEngine
from kafscale.storage.log.log_directory import LogDirectory
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

INTERVAL_SECONDS: Final = 10.0
STALE_MS: Final = 60_000


class ConsumerLag:
    """The lag of this broker's groups, also in partitions that other brokers lead."""

    def __init__(
        self,
        logs: LogDirectory,
        groups: Coordinator,
        cluster_cache: ClusterCache,
        *,
        broker_id: int,
        steady: Callable[[], int],
        tls: ClientTls | None = None,
    ) -> None:
        """`tls` is used to poll other brokers, if their control planes are encrypted."""
        self._logs = logs
        self._groups = groups
        self._cluster_cache = cluster_cache
        self._broker_id = broker_id
        self._steady = steady
        self._tls = tls
        self._polled: dict[TopicPartition, tuple[int, int]] = {}
        """The high watermarks of other brokers, and when they were polled."""

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
                    logger.info(
                        "high watermark poll failed", broker_id=broker.id, reason=str(error)
                    )

    def _committed(self) -> Iterator[tuple[str, TopicPartition, int]]:
        for runtime in self._groups.registry:
            for topic_partition, committed in list(runtime.offsets.committed.items()):
                yield runtime.group.group_id, topic_partition, committed.offset

    def _leaders(self) -> list[BrokerInfo]:
        """The other brokers that lead partitions of this broker's groups."""
        leader_ids = {
            self._cluster_cache.leader(*topic_partition)[0]
            for _, topic_partition, _ in self._committed()
        }
        return [
            broker
            for broker in list(self._cluster_cache.brokers.values())
            if broker.id in leader_ids and broker.id != self._broker_id
        ]

    async def _poll(self, broker: BrokerInfo) -> None:
        # gRPC is slow to import, and a single broker never needs it.
        from kafscale.control_plane.client import ControlClient  # noqa: PLC0415

        address = Address(broker.control_host, broker.control_port)
        async with ControlClient(str(address), self._tls, str(broker.id)) as client:
            status = await client.status()
        now_ms = self._steady()
        for partition in status.partitions:
            key = (partition.topic, partition.partition)
            self._polled[key] = (partition.high_watermark, now_ms)


def register_group_metrics(
    metrics: Metrics, groups: Coordinator, consumer_lag: ConsumerLag
) -> None:
    """Register callbacks that read the groups at every scrape."""
    metrics.group_states = lambda: Counter(runtime.group.state for runtime in groups.registry)
    metrics.group_lags = consumer_lag.lags


def register_transaction_metrics(
    metrics: Metrics, transactions: Transactions, storage: StorageEngine, clock: Callable[[], int]
) -> None:
    """Register callbacks that read transactional ids and open transactions at every scrape."""

    def oldest() -> Iterator[tuple[str, int, float]]:
        now_ms = clock()
        for log in storage.logs:
            started_ms = log.transactions.oldest_started_ms
            if started_ms is not None:
                yield log.topic, log.partition, max(now_ms - started_ms, 0) / 1000

    metrics.transaction_states = transactions.coordinator.state_counts
    metrics.pending_markers = lambda: transactions.sender.pending_count
    metrics.open_transactions = oldest


def register_log_metrics(metrics: Metrics, storage: StorageEngine, topic_store: TopicStore) -> None:
    """Register callbacks that read sizes at every scrape, and drop metrics of deleted topics."""

    def stored_bytes() -> Iterator[tuple[str, int, int]]:
        for log in storage.logs:
            size_bytes = log.segments.total_bytes + log.tail.unrolled_bytes
            yield log.topic, log.partition, size_bytes

    def buffered_bytes() -> Iterator[tuple[str, int, int]]:
        by_log = storage.wal.unflushed_bytes_by_log()
        for log in storage.logs:
            yield log.topic, log.partition, by_log.get(log, 0)

    def on_topic(before: Topic | None, after: Topic | None) -> None:
        if after is None and before is not None:
            metrics.forget_topic(before.name)

    metrics.stored_bytes = stored_bytes
    metrics.compaction = partial(_compaction_status, storage)
    metrics.buffered_bytes = buffered_bytes
    topic_store.subscribe(on_topic)


def _compaction_status(storage: StorageEngine) -> CompactionStatus:
    counters = storage.counters.compaction
    ratios: dict[str, float] = {}
    if storage.compaction is not None:
        for log, ratio in storage.compaction.dirty_ratios():
            ratios[log.topic] = max(ratio, ratios.get(log.topic, 0.0))
    return CompactionStatus(
        counters.runs,
        counters.failures,
        counters.bytes_read,
        counters.bytes_written,
        counters.bytes_reclaimed,
        counters.records_removed,
        ratios,
    )


def register_certificate_metrics(metrics: Metrics, config: Config) -> None:
    """Register a callback that reads when certificates expire at every scrape."""
    files = {
        (setting, value.rpartition("=")[2])  # Without the name of a listener.
        for setting, values in {
            "tls.certFile": config.tls.cert_file,
            "tls.crlFile": config.tls.crl_file,
            "control.tls.certFile": (config.control.tls.cert_file,),
            "etcd.tls.certFile": (config.etcd.tls.cert_file,),
        }.items()
        for value in values
        if value
    }

    def expirations() -> Iterator[tuple[str, str, float]]:
        for setting, file in sorted(files):
            yield setting, file, tls_files.expiration_s(file)

    metrics.certificates = expirations
