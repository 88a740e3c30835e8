"""What lies between the stores and the clients of a broker, put together from its settings."""

import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from random import Random

from kafscale import __version__
from kafscale.aio.clock import clock, steady_clock
from kafscale.broker.cluster.controller.controller import ControllerSettings
from kafscale.broker.cluster.node import ClusterNode
from kafscale.broker.cluster.ownership_guards import OwnershipGuards
from kafscale.broker.cluster.registration import Registration
from kafscale.broker.cluster.restore.restore import MetadataRestore
from kafscale.broker.configs.topic_configs import resolve
from kafscale.broker.engine_settings import engine_settings
from kafscale.broker.fetch_sessions.cache import FetchSessions
from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.broker.group_coordinator.pausable_clock import GroupClock
from kafscale.broker.group_settings import group_settings, offset_retention
from kafscale.broker.health import Health
from kafscale.broker.metrics import group_collector, log_collector
from kafscale.broker.metrics.consumer_lag import Watermarks
from kafscale.broker.network.listener_config import Listener
from kafscale.broker.network.sockets import Address
from kafscale.broker.producer_ids import ProducerIds
from kafscale.broker.security.audit import Audit
from kafscale.broker.security.authorization import Access
from kafscale.broker.security.quotas import Throttling
from kafscale.broker.services import Services
from kafscale.config import Config
from kafscale.metadata.access.store import AclStore
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.cluster.id_allocator import cluster_id
from kafscale.metadata.schema.model import BrokerInfo, ListenerEndpoint, Topic
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.observability.metrics.broker import Metrics
from kafscale.security.acl.authorizer import Authorizer
from kafscale.storage.engine import StorageEngine
from kafscale.storage.objects import factory
from kafscale.storage.objects.s3.bucket_admin import BucketLifecycle
from kafscale.storage.objects.s3.lifecycle import TopicRetention
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.recovery.bucket_scan import BucketScanner
from kafscale.storage.topic_catalog import CatalogTopic, CatalogWriter
from kafscale.storage.wal.dead_stream_cleaner import DeadStreamCleaner
from kafscale.storage.wal.streams import Streams


@dataclass(frozen=True, kw_only=True)
class Stores:
    """What a broker stands on, and how it sees it."""

    objects: ObjectStore
    metadata: MetadataStore
    catalog: Catalog
    view: ClusterCache
    rules: AclStore


@dataclass(frozen=True, kw_only=True)
class Addresses:
    """Where a broker listens."""

    clients: Mapping[Listener, Address]
    """By listener, the first of which is what the broker is known by."""
    control: Address


@dataclass(frozen=True)
class Assembly:
    """The parts of a broker that is ready to join."""

    node: ClusterNode
    services: Services
    watermarks: Watermarks


async def assemble(
    config: Config,
    stores: Stores,
    addresses: Addresses,
    *,
    metrics: Metrics,
    health: Health,
    random: Random,
) -> Assembly:
    """Build everything that the stores and the settings ask for; nothing runs yet."""
    node_id = broker_id(config)
    namespace = config.s3.namespace
    defaults = TopicDefaults.from_config(config)
    registration = Registration(
        stores.metadata,
        _registration(config, node_id, addresses),
        ttl_ms=config.broker.lease_ttl_ms,
        clock=clock,
        monotonic=steady_clock,
    )
    guards = OwnershipGuards(stores.metadata, stores.catalog, namespace=namespace, clock=clock)
    storage = StorageEngine(
        stores.objects,
        namespace,
        node_id,
        engine_settings(config),
        save=guards.save,
        clock=clock,
        random=random,
    )
    groups = Coordinator(
        stores.metadata,
        stores.catalog,
        group_settings(config),
        offset_retention(config),
        metrics,
        linger_ms=config.group.coordinator_append_linger_ms,
        clock=GroupClock(clock, steady_clock),
        random=random,
        proven=lambda: registration.lease_is_valid,
    )
    await groups.start()
    watermarks = Watermarks(
        storage.logs,
        groups,
        stores.view,
        broker_id=node_id,
        steady=steady_clock,
        tls=config.control.tls.as_client(),
    )
    group_collector.show(metrics, groups, watermarks.lags)
    log_collector.show(metrics, storage, stores.catalog)
    identity = await cluster_id(stores.metadata, _new_cluster_id())
    streams = Streams(stores.objects, namespace, clock)
    restoration = MetadataRestore(
        stores.metadata,
        stores.catalog,
        streams,
        BucketScanner(stores.objects, namespace, streams),
        cluster_id=identity,
        namespace=namespace,
        clock=clock,
        random=random,
    )
    node = ClusterNode(
        stores.metadata,
        catalog=stores.catalog,
        view=stores.view,
        guards=guards,
        registration=registration,
        storage=storage,
        groups=groups,
        streams=streams,
        reaper=DeadStreamCleaner(stores.objects, namespace, clock),
        restorer=restoration,
        broker_id=node_id,
        cluster_id=identity,
        defaults=defaults,
        settings=ControllerSettings(),
        clock=clock,
        random=random,
    )
    metrics.cluster = node.standing
    if (lifecycle := factory.lifecycle(config)) is not None:
        node.controller.on_topics_changed(partial(_keep_lifecycle, lifecycle, defaults))
    writer = CatalogWriter(stores.objects, namespace, identity)
    node.controller.on_publish(partial(keep_catalog, writer, stores.catalog))
    audit = Audit(metrics.access, clock)
    services = Services(
        config=config,
        node_id=node_id,
        cluster_id=identity,
        catalog=stores.catalog,
        cluster=stores.view,
        registration=registration,
        topics=node.topics,
        topic_defaults=defaults,
        storage=storage,
        fetch_sessions=_fetch_sessions(config, random),
        producer_ids=ProducerIds(stores.metadata),
        groups=groups,
        metrics=metrics,
        health=health,
        rules=stores.rules,
        audit=audit,
        access=_access(config, stores.rules, audit),
        throttling=Throttling(stores.rules, metrics.access, metrics.timer),
        clock=clock,
    )
    return Assembly(node, services, watermarks)


def _access(config: Config, rules: AclStore, audit: Audit) -> Access | None:
    """What clients may do, where that is asked."""
    if not config.authorization.enabled:
        return None
    return Access(Authorizer(config.authorization, rules), audit)


async def _keep_lifecycle(
    lifecycle: BucketLifecycle, defaults: TopicDefaults, topics: Mapping[str, Topic]
) -> None:
    """Have the bucket's own rules follow the retention of topics, as a safety net."""
    await lifecycle.apply(
        TopicRetention(topic.name, resolve(topic.configs, defaults).retention_ms)
        for topic in topics.values()
    )


async def keep_catalog(
    writer: CatalogWriter, catalog: Catalog, topics: Mapping[str, Topic]
) -> None:
    """Tell those who read the bucket alone which topics there are."""
    listed = [
        CatalogTopic(
            topic.name,
            topic.id.hex(),
            topic.partitions,
            topic.configs,
            topic.created_ms,
            topic.version,
        )
        for topic in topics.values()
    ]
    await writer.write(listed, catalog.revision)


def broker_id(config: Config) -> int:
    """The number that is set, or the one at the end of the host name, or 0."""
    if config.broker.id is not None:
        return config.broker.id
    digits = socket.gethostname().split(".")[0].rpartition("-")[2]
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 9 else 0


def _registration(config: Config, node_id: int, addresses: Addresses) -> BrokerInfo:
    """What others, and their clients, are told of this broker."""
    control_host, control_port = addresses.control
    endpoints = tuple(
        ListenerEndpoint(
            listener.name,
            listener.advertised_host or _reachable(host),
            listener.advertised_port or port,
            str(listener.protocol),
        )
        for listener, (host, port) in addresses.clients.items()
    )
    first = endpoints[0]
    return BrokerInfo(
        id=node_id,
        epoch=0,
        host=first.host,
        port=first.port,
        endpoints=endpoints,
        rack=config.broker.rack,
        version=__version__,
        started_ms=clock(),
        control_host=config.broker.advertised_host or _reachable(control_host),
        control_port=control_port,
    )


@cache  # Finding our name may ask a server for it, and both listeners want to know.
def _reachable(host: str) -> str:
    """An address that others can reach; where we listen on all of them, the one of our name."""
    if host not in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound.
        return host
    return socket.getfqdn()


def _fetch_sessions(config: Config, random: Random) -> FetchSessions:
    return FetchSessions(
        lambda: random.randrange(1, 2**31), slots_max=config.network.fetch_sessions_max
    )


def _new_cluster_id() -> str:
    return uuid.uuid4().hex[:22]
