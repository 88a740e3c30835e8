"""`Coordinators`: what a broker keeps in coordinator shards: consumer groups and transactions."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Self

from kafscale.broker.cluster.registration import Registration
from kafscale.broker.component_settings import group_settings, offset_settings, transaction_settings
from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.broker.producer_ids import ProducerIds
from kafscale.broker.shards.pausable_clock import PausableClock
from kafscale.broker.shards.shards import Shards
from kafscale.broker.transaction_coordinator.peers import Peers
from kafscale.broker.transaction_coordinator.transactions import Transactions
from kafscale.config import Config
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.metrics.broker import Metrics
from kafscale.storage.log.log_directory import LogDirectory


@dataclass(frozen=True, kw_only=True)
class Coordinators:
    """The shards of this broker, and the two coordinators that share them."""

    shards: Shards
    groups: Coordinator
    producer_ids: ProducerIds
    transactions: Transactions

    @classmethod
    def build(
        cls,
        config: Config,
        metadata: MetadataStore,
        *,
        topic_store: TopicStore,
        cluster_cache: ClusterCache,
        registration: Registration,
        logs: LogDirectory,
        peers: Peers,
        metrics: Metrics,
        clock: Callable[[], int],
        steady_clock: Callable[[], int],
        random: Random,
    ) -> Self:
        """`logs` are those that get markers of transactions; none of the parts runs yet."""
        shards = Shards(
            metadata,
            PausableClock(clock, steady_clock),
            broker_id=registration.broker_id,
            linger_ms=config.group.coordinator_append_linger_ms,
            random=random,
            lease_is_valid=lambda: registration.lease_is_valid,
        )
        groups = Coordinator(
            shards, topic_store, group_settings(config), offset_settings(config), metrics
        )
        producer_ids = ProducerIds(metadata)
        transactions = Transactions.build(
            shards,
            groups,
            producer_ids,
            logs,
            cluster_cache=cluster_cache,
            topic_store=topic_store,
            settings=transaction_settings(config),
            counters=metrics.transactions,
            peers=peers,
            broker_id=registration.broker_id,
            clock=clock,
        )
        return cls(
            shards=shards, groups=groups, producer_ids=producer_ids, transactions=transactions
        )
