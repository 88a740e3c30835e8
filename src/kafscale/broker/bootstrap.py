"""Builds the components of a broker from its settings and its stores."""

import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Final

from kafscale.aio.clock import clock, steady_clock
from kafscale.broker.addresses import Addresses, broker_info
from kafscale.broker.cluster import broker_id
from kafscale.broker.cluster.controller.controller import ControllerSettings
from kafscale.broker.cluster.node import ClusterNode
from kafscale.broker.cluster.partition_state_store import PartitionStateStore
from kafscale.broker.cluster.registration import Registration
from kafscale.broker.cluster.restore.restore import MetadataRestore
from kafscale.broker.cluster_identity import establish_cluster_id
from kafscale.broker.component_settings import engine_settings
from kafscale.broker.configs.applied_settings import apply_changes
from kafscale.broker.configs.live_settings import LiveSettings
from kafscale.broker.configs.topic_configs import resolve
from kafscale.broker.coordinators import Coordinators
from kafscale.broker.fetch_sessions.cache import FetchSessionCache
from kafscale.broker.group_coordinator.commit_limits import CommitLimits
from kafscale.broker.health import Health
from kafscale.broker.metadata_space import MetadataSpace
from kafscale.broker.metrics import (
    ConsumerLag,
    register_certificate_metrics,
    register_group_metrics,
    register_log_metrics,
    register_transaction_metrics,
)
from kafscale.broker.requests.response_budget import ResponseBudget
from kafscale.broker.security.audit import AuditLog
from kafscale.broker.security.authorization import RequestAuthorizer
from kafscale.broker.security.quotas import ClientQuotas
from kafscale.broker.services import Services
from kafscale.broker.shards.shards import Shards
from kafscale.broker.telemetry.receiver import TelemetryReceiver
from kafscale.broker.telemetry.subscriptions import Subscriptions
from kafscale.broker.topic_catalog_publisher import TopicCatalogPublisher
from kafscale.broker.transaction_coordinator.peers import ControlPlanePeers
from kafscale.config import Config
from kafscale.metadata.access.store import AccessStore
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.cluster.ownership_guard import OwnershipGuards
from kafscale.metadata.configs.store import ConfigStore
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.store.etcd.maintenance import Maintenance
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.metrics.broker import Metrics
from kafscale.security.acl.authorizer import Authorizer
from kafscale.storage.engine import StorageEngine
from kafscale.storage.objects import factory
from kafscale.storage.objects.layers.leased import LeasedObjectStore
from kafscale.storage.objects.s3.bucket_admin import BucketLifecycle
from kafscale.storage.objects.s3.lifecycle import TopicRetention, longest_retention
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.recovery.bucket_scan import BucketScanner
from kafscale.storage.topic_catalog import CatalogWriter
from kafscale.storage.wal.dead_stream_cleaner import DeadStreamCleaner
from kafscale.storage.wal.streams import Streams

SPACE_TIMEOUT_MS: Final = 2000
"""The timeout of reading the space in a member of etcd."""


@dataclass(frozen=True, kw_only=True)
class Stores:
    """The stores of a broker, and the caches that read them."""

    objects: ObjectStore
    metadata: MetadataStore
    topic_store: TopicStore
    cluster_cache: ClusterCache
    access_store: AccessStore
    config_store: ConfigStore


@dataclass(frozen=True)
class BrokerComponents:
    """The components of a broker that is ready to join the cluster."""

    node: ClusterNode
    services: Services
    consumer_lag: ConsumerLag
    metadata_space: MetadataSpace


async def build_components(
    config: Config,
    stores: Stores,
    addresses: Addresses,
    *,
    metrics: Metrics,
    health: Health,
    random: Random,
) -> BrokerComponents:
    """Build all components of a broker; none of them runs yet."""
    own_cluster_id = await establish_cluster_id(
        stores.metadata, stores.objects, config, candidate=uuid.uuid4().hex[:22], clock=clock
    )
    node_id = await _broker_id(config, stores, addresses)
    settings = LiveSettings(config, stores.config_store, node_id)
    registration = _registration(config, stores, addresses, node_id)
    guards = OwnershipGuards(stores.metadata)
    partition_states = PartitionStateStore(stores.metadata, stores.topic_store, guards, clock=clock)
    storage = _storage(config, stores, partition_states, registration, random)
    coordinators = Coordinators.build(
        config,
        stores.metadata,
        topic_store=stores.topic_store,
        cluster_cache=stores.cluster_cache,
        registration=registration,
        logs=storage.logs,
        peers=ControlPlanePeers(stores.cluster_cache, config.control.tls.as_client()),
        metrics=metrics,
        clock=clock,
        steady_clock=steady_clock,
        random=random,
    )
    await coordinators.groups.start()
    consumer_lag = _register_metrics(config, stores, storage, coordinators, metrics)
    node = _cluster_node(
        config,
        stores,
        guards=guards,
        partition_states=partition_states,
        registration=registration,
        storage=storage,
        shards=coordinators.shards,
        own_cluster_id=own_cluster_id,
        settings=settings,
        random=random,
    )
    metrics.cluster = node.status
    metadata_space = _metadata_space(config, stores, metrics)
    services = _services(
        config,
        stores,
        settings,
        cluster_id=own_cluster_id,
        registration=registration,
        node=node,
        storage=storage,
        coordinators=coordinators,
        metadata_space=metadata_space,
        metrics=metrics,
        health=health,
        random=random,
    )
    apply_changes(services)
    return BrokerComponents(node, services, consumer_lag, metadata_space)


def _services(
    config: Config,
    stores: Stores,
    settings: LiveSettings,
    *,
    cluster_id: str,
    registration: Registration,
    node: ClusterNode,
    storage: StorageEngine,
    coordinators: Coordinators,
    metadata_space: MetadataSpace,
    metrics: Metrics,
    health: Health,
    random: Random,
) -> Services:
    """What handlers may use."""
    audit = AuditLog(metrics.access, clock)
    responses = ResponseBudget(config.network.unsent_bytes_max)
    metrics.connections.unsent_bytes = lambda: responses.used_bytes
    return Services(
        settings=settings,
        node_id=registration.broker_id,
        cluster_id=cluster_id,
        topic_store=stores.topic_store,
        cluster=stores.cluster_cache,
        registration=registration,
        topics=node.topics,
        storage=storage,
        fetch_sessions=FetchSessionCache(
            lambda: random.randrange(1, 2**31), slots_max=config.network.fetch_sessions_max
        ),
        producer_ids=coordinators.producer_ids,
        shards=coordinators.shards,
        groups=coordinators.groups,
        transactions=coordinators.transactions,
        commit_limits=_commit_limits(config, metrics, metadata_space),
        metrics=metrics,
        health=health,
        responses=responses,
        access_store=stores.access_store,
        config_store=stores.config_store,
        telemetry=TelemetryReceiver(Subscriptions(stores.config_store), metrics.clients),
        audit=audit,
        authorizer=_authorizer(config, stores.access_store, audit),
        quotas=ClientQuotas(stores.access_store, metrics.access, metrics.timer),
        clock=clock,
    )


async def _broker_id(config: Config, stores: Stores, addresses: Addresses) -> int:
    return await broker_id.determine(
        stores.metadata,
        config.broker.id,
        socket.gethostname(),
        addresses.first.port,
        is_embedded=not config.etcd.endpoints,
    )


def _register_metrics(
    config: Config,
    stores: Stores,
    storage: StorageEngine,
    coordinators: Coordinators,
    metrics: Metrics,
) -> ConsumerLag:
    """Register what is read at every scrape; returns the lag, which needs a task."""
    consumer_lag = ConsumerLag(
        storage.logs,
        coordinators.groups,
        stores.cluster_cache,
        broker_id=coordinators.shards.broker_id,
        steady=steady_clock,
        tls=config.control.tls.as_client(),
    )
    register_group_metrics(metrics, coordinators.groups, consumer_lag)
    metrics.metadata_writes = lambda: coordinators.shards.writer.transactions
    register_transaction_metrics(metrics, coordinators.transactions, storage, clock)
    register_log_metrics(metrics, storage, stores.topic_store)
    register_certificate_metrics(metrics, config)
    return consumer_lag


def _commit_limits(config: Config, metrics: Metrics, space: MetadataSpace) -> CommitLimits:
    return CommitLimits(
        config.offsets,
        metrics.access,
        clock=clock,
        timer=metrics.timer,
        user_rate_max=space.user_rate_max,
    )


def _metadata_space(config: Config, stores: Stores, metrics: Metrics) -> MetadataSpace:
    # A member that does not respond must not delay what the others say.
    settings = replace(config.etcd, request_timeout_ms=SPACE_TIMEOUT_MS)
    members = {endpoint: Maintenance(endpoint, settings) for endpoint in settings.endpoints}
    return MetadataSpace(
        members,
        settings.quota_bytes,
        metrics,
        broker_count=lambda: len(stores.cluster_cache.brokers),
    )


def _registration(
    config: Config, stores: Stores, addresses: Addresses, node_id: int
) -> Registration:
    return Registration(
        stores.metadata,
        broker_info(config, addresses, node_id),
        ttl_ms=config.broker.lease_ttl_ms,
        clock=clock,
        monotonic=steady_clock,
    )


def _storage(
    config: Config,
    stores: Stores,
    partition_states: PartitionStateStore,
    registration: Registration,
    random: Random,
) -> StorageEngine:
    return StorageEngine(
        stores.objects,
        config.s3.namespace,
        registration.broker_id,
        engine_settings(config),
        save_state=partition_states.save,
        clock=clock,
        random=random,
        is_lease_valid=lambda: registration.lease_is_valid,
    )


def _cluster_node(
    config: Config,
    stores: Stores,
    *,
    guards: OwnershipGuards,
    partition_states: PartitionStateStore,
    registration: Registration,
    storage: StorageEngine,
    shards: Shards,
    own_cluster_id: str,
    settings: LiveSettings,
    random: Random,
) -> ClusterNode:
    """The broker's part in the cluster, with the duties of its controller."""
    namespace = config.s3.namespace
    streams = Streams(stores.objects, namespace, clock)
    leased = LeasedObjectStore(stores.objects, lambda: registration.lease_is_valid)
    writer = CatalogWriter(leased, namespace, own_cluster_id)
    catalog = TopicCatalogPublisher(writer, stores.topic_store)
    restoration = MetadataRestore(
        stores.metadata,
        stores.topic_store,
        streams,
        BucketScanner(stores.objects, namespace, streams),
        catalog,
        cluster_id=own_cluster_id,
        namespace=namespace,
        clock=clock,
        random=random,
    )
    node = ClusterNode(
        stores.metadata,
        topic_store=stores.topic_store,
        cache=stores.cluster_cache,
        guards=guards,
        partition_states=partition_states,
        registration=registration,
        storage=storage,
        shards=shards,
        streams=streams,
        cleaner=DeadStreamCleaner(leased, namespace, clock),
        restorer=restoration,
        broker_id=registration.broker_id,
        cluster_id=own_cluster_id,
        defaults=settings.topic_defaults,
        settings=ControllerSettings(),
        clock=clock,
        random=random,
    )
    if (lifecycle := factory.lifecycle(config)) is not None:
        node.controller.on_topics_changed(partial(_update_lifecycle, lifecycle, settings))
        settings.subscribe_to_all(node.controller.notify_topics_listeners)
    node.controller.on_elected(catalog.on_elected)
    node.controller.on_publish(catalog.publish)
    return node


def _authorizer(
    config: Config, access_store: AccessStore, audit: AuditLog
) -> RequestAuthorizer | None:
    """The authorizer, if authorization is enabled."""
    if not config.authorization.enabled:
        return None
    return RequestAuthorizer(Authorizer(config.authorization, access_store), audit)


async def _update_lifecycle(
    lifecycle: BucketLifecycle, settings: LiveSettings, topics: Mapping[str, Topic]
) -> None:
    """Set the bucket's lifecycle rules by the retention of topics, in addition to the brokers'.

    If brokers have different defaults, the longest retention counts.
    """
    brokers = settings.topic_defaults_of_all()
    await lifecycle.apply(
        TopicRetention(
            topic.directory,
            longest_retention(resolve(topic.configs, each).retention_ms for each in brokers),
        )
        for topic in topics.values()
    )
