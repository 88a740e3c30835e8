"""`Transactions`: what handlers and the control plane use of transactions, in one value."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.broker.producer_ids import ProducerIds
from kafscale.broker.shards.shards import Shards
from kafscale.broker.transaction_coordinator.coordinator import (
    TransactionCoordinator,
    TransactionSettings,
)
from kafscale.broker.transaction_coordinator.marker import Marker
from kafscale.broker.transaction_coordinator.marker_sender import MarkerSender
from kafscale.broker.transaction_coordinator.marker_writer import MarkerWriter
from kafscale.broker.transaction_coordinator.peers import Peers
from kafscale.broker.transaction_coordinator.verification import TransactionVerifier, client_error
from kafscale.control_plane.messages import TransactionMarker
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema.model import SHARDS_TOPIC, shard_of
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.metrics.counters import TransactionCounters
from kafscale.protocol.error_codes import error_code_of
from kafscale.storage.log.log_directory import LogDirectory
from kafscale.text.topic_partition import TopicPartition


@dataclass(frozen=True, kw_only=True)
class Transactions:
    """The parts of transactions on this broker."""

    coordinator: TransactionCoordinator
    writer: MarkerWriter
    sender: MarkerSender
    verifier: TransactionVerifier

    @classmethod
    def build(
        cls,
        shards: Shards,
        groups: Coordinator,
        producer_ids: ProducerIds,
        logs: LogDirectory,
        *,
        cluster_cache: ClusterCache,
        topic_store: TopicStore,
        settings: TransactionSettings,
        counters: TransactionCounters,
        peers: Peers,
        broker_id: int,
        clock: Callable[[], int],
    ) -> Self:
        writer = MarkerWriter(logs, groups, clock=clock, lease_is_valid=shards.lease_is_valid)
        sender = MarkerSender(
            writer,
            peers,
            shards.store,
            cluster_cache,
            topic_store,
            broker_id=broker_id,
            lease_is_valid=shards.lease_is_valid,
        )
        coordinator = TransactionCoordinator(
            shards, producer_ids, sender, settings, counters, clock=clock
        )
        verifier = TransactionVerifier(coordinator, peers, cluster_cache, broker_id=broker_id)
        return cls(coordinator=coordinator, writer=writer, sender=sender, verifier=verifier)

    async def verify_offsets(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        group_id: str,
        *,
        adds_partition: bool,
        knows_abortable: bool = True,
    ) -> None:
        """Raise unless offsets of a group may be committed in the open transaction."""
        partition = offsets_partition(group_id)
        ask = self.verifier.add if adds_partition else self.verifier.verify
        errors = await ask(transactional_id, producer_id, producer_epoch, [partition])
        error = errors[partition]
        if error is not None:
            raise client_error(error, knows_abortable=knows_abortable)

    async def write_markers(self, messages: Sequence[TransactionMarker]) -> list[int]:
        """Write the markers of another broker; the error code of each partition, in order."""
        results = await asyncio.gather(
            *(self.writer.write(Marker.of(message)) for message in messages)
        )
        return [error_code_of(error) for each in results for error in each]


def offsets_partition(group_id: str) -> TopicPartition:
    """The partition that stands for the offsets of a group in a transaction."""
    return SHARDS_TOPIC, shard_of(group_id)
