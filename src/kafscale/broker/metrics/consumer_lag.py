"""How far logs reach, those of other brokers included: what the lag of a group is measured against.

The law: asking costs nothing on the way of a request. The logs of this broker are looked at; of
other brokers, those are asked every `INTERVAL_SECONDS` that lead something which a group here
reads, and what they said last is told until they say something else. A broker that does not answer
is asked again; what it leads is left out after a while, rather than told wrongly.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.config.sections.security import ClientTls
from kafscale.errors import KafscaleError
from kafscale.groups.model import TopicPartition
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.observability.logging import get_logger
from kafscale.storage.log.log_directory import LogDirectory

log = get_logger(__name__)

INTERVAL_SECONDS: Final = 10.0
STALE_MS: Final = 60_000


class Watermarks:
    """The high watermarks of all partitions that matter to the groups of this broker."""

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
        """`tls` is what other brokers are asked with, where their control planes are encrypted."""
        self._logs = logs
        self._groups = groups
        self._view = view
        self._broker_id = broker_id
        self._steady = steady
        self._tls = tls
        self._told: dict[TopicPartition, tuple[int, int]] = {}
        """What other brokers said, and when."""

    def get(self, topic: str, partition: int) -> int | None:
        """The high watermark of a partition, if it is known."""
        served = self._logs.get(topic, partition)
        if served is not None:
            return served.high_watermark
        offset, told_ms = self._told.get((topic, partition), (0, -STALE_MS))
        return offset if self._steady() - told_ms < STALE_MS else None

    def lags(self) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition, and how many records are yet to be read."""
        for group_id, (topic, partition), offset in self._committed():
            end_offset = self.get(topic, partition)
            if end_offset is not None:
                yield group_id, topic, partition, max(end_offset - offset, 0)

    async def run(self) -> None:
        """Ask other brokers for ever; cancel it to stop."""
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            for broker in self._to_ask():
                try:
                    await self._ask(broker)
                except KafscaleError as error:
                    log.info("watermarks not known", broker_id=broker.id, reason=str(error))

    def _committed(self) -> Iterator[tuple[str, TopicPartition, int]]:
        for hosted in self._groups.directory:
            for place, committed in list(hosted.offsets.committed.items()):
                yield hosted.group.group_id, place, committed.offset

    def _to_ask(self) -> list[BrokerInfo]:
        """The brokers that lead what our groups read."""
        leader_ids = {self._view.leader(*place)[0] for _, place, _ in self._committed()}
        return [
            broker
            for broker in list(self._view.brokers.values())
            if broker.id in leader_ids and broker.id != self._broker_id
        ]

    async def _ask(self, broker: BrokerInfo) -> None:
        # The control plane's library takes a while to load, and a broker alone never needs it.
        from kafscale.control_plane.client import ControlClient  # noqa: PLC0415

        host = f"[{broker.control_host}]" if ":" in broker.control_host else broker.control_host
        async with ControlClient(f"{host}:{broker.control_port}", self._tls) as client:
            status = await client.status()
        now_ms = self._steady()
        for told in status.partitions:
            self._told[told.topic, told.partition] = (told.high_watermark, now_ms)
