"""A complete broker without sockets: real components, stores in memory, virtual time.

    def test_something():
        async def body(broker):
            await broker.topic("orders", 2)
            response = await broker.ask(LIST_OFFSETS, ListOffsetsRequest(...), version=7)
            ...

        run_with_broker(body)

Requests and responses are encoded and pass the dispatcher and all routes: a test sees what a
client of that version would see.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from random import Random
from typing import Any

import msgspec

from doubles import virtual_time
from doubles.faulty_object_store import FaultyObjectStore
from doubles.memory_store import MemoryStore
from kafscale.broker.cluster.controller.controller import ControllerSettings
from kafscale.broker.cluster.node import ClusterNode
from kafscale.broker.cluster.partition_state_store import PartitionStateStore
from kafscale.broker.cluster.registration import Registration
from kafscale.broker.cluster.restore.restore import MetadataRestore
from kafscale.broker.component_settings import engine_settings
from kafscale.broker.configs.applied_settings import apply_changes
from kafscale.broker.configs.live_settings import LiveSettings
from kafscale.broker.coordinators import Coordinators
from kafscale.broker.fetch_sessions.cache import FetchSessionCache
from kafscale.broker.group_coordinator.commit_limits import CommitLimits
from kafscale.broker.health import Health
from kafscale.broker.metrics import ConsumerLag, register_group_metrics
from kafscale.broker.network.listener_config import configured_listeners
from kafscale.broker.requests.context import ClientInfo, RequestContext, ShutdownSignal
from kafscale.broker.requests.dispatcher import Dispatcher
from kafscale.broker.requests.pending_response import InFlightRequest
from kafscale.broker.requests.response_budget import ResponseBudget
from kafscale.broker.requests.routes import ROUTES
from kafscale.broker.security.audit import AuditLog
from kafscale.broker.security.authorization import RequestAuthorizer
from kafscale.broker.security.quotas import ClientQuotas
from kafscale.broker.services import Services
from kafscale.broker.telemetry.receiver import TelemetryReceiver
from kafscale.broker.telemetry.subscriptions import Subscriptions
from kafscale.broker.topic_catalog_publisher import TopicCatalogPublisher
from kafscale.broker.transaction_coordinator.peers import ControlPlanePeers, Peers
from kafscale.config import Config
from kafscale.config.sections.broker import Broker
from kafscale.config.sections.s3 import S3
from kafscale.metadata.access.store import AccessStore
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.cluster.ownership_guard import OwnershipGuards
from kafscale.metadata.configs.store import ConfigStore
from kafscale.metadata.schema.model import BrokerInfo, Topic
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.metrics.broker import Metrics
from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Message
from kafscale.records import BatchView, Record, build
from kafscale.security.acl.authorizer import Authorizer
from kafscale.storage.engine import StorageEngine
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.recovery.bucket_scan import BucketScanner
from kafscale.storage.segments.segment_writer import RollReason
from kafscale.storage.topic_catalog import CatalogWriter
from kafscale.storage.wal.dead_stream_cleaner import DeadStreamCleaner
from kafscale.storage.wal.streams import Streams
from kafscale.text.topic_partition import TopicPartition
from unit.broker.harness import decode_response, framed, request, response_parts

NODE_ID = 7
CLUSTER_ID = "a-cluster"
CLIENT = ClientInfo("10.0.0.1", 50_000, local_host="10.0.0.9", local_port=9092)
CONFIG = Config(s3=S3(use_memory=True))
ADMIN_DISABLED = Config(s3=S3(use_memory=True), broker=Broker(allow_admin_apis=False))


class Stores:
    """The stores, which outlive a broker; tests may inject faults into the object store."""

    def __init__(self, metadata: MetadataStore | None = None) -> None:
        objects = MemoryObjectStore(virtual_time.clock_ms)
        self.objects = FaultyObjectStore(objects, random=Random(0))
        self.metadata = metadata or MemoryStore(virtual_time.clock_ms)


class InMemoryBroker:
    """A running broker."""

    def __init__(self, stores: Stores, services: Services, node: ClusterNode) -> None:
        self.stores = stores
        self.node = node
        [listener] = configured_listeners(services.config)
        self.client = msgspec.structs.replace(CLIENT, listener=listener)
        self.services = services
        self._shutdown = ShutdownSignal()
        self.dispatcher = Dispatcher(
            ROUTES,
            services,
            services.metrics,
            self._shutdown,
            request_timeout_ms=services.config.network.request_timeout_ms,
            other_request_bytes_max=services.config.network.other_request_bytes_max,
            clock=virtual_time.clock_ms,
            timer=asyncio.get_running_loop().time,
            quotas=services.quotas,
        )

    async def ask(
        self,
        api: Api[Any, Any],
        message: Message,
        version: int | None = None,
        *,
        is_closed: bool = False,
        client: ClientInfo | None = None,
    ) -> Any:
        """Send a request, by default in the newest version; returns the response."""
        version = api.version_max if version is None else version
        parts = self.dispatcher.dispatch(
            client or self.client, framed(request(api, version, message))
        )
        if isinstance(parts, InFlightRequest):
            parts = await response_parts(parts)
        if is_closed:
            assert parts is None
            return None
        assert parts is not None, "the connection was closed"
        return decode_response(framed(b"".join(parts)), api, version)[1]

    def context(self, api: Api[Any, Any], version: int) -> RequestContext:
        """A context for calling a handler directly."""
        now_ms = virtual_time.clock_ms()
        return RequestContext(
            self.client, "tester", api, version, 1, now_ms, 0.0, self.services, self._shutdown
        )

    async def topic(self, name: str, partition_count: int = 1, **configs: str) -> Topic:
        """Create a topic; config names have underscores instead of dots."""
        named = {name.replace("_", "."): value for name, value in configs.items()}
        return await self.services.topics.create(name, partition_count, named, 1000)

    async def begin(self, transactional_id: str, *partitions: TopicPartition) -> tuple[int, int]:
        """Begin a transaction of a new producer; returns its id and epoch."""
        coordinator = self.services.transactions.coordinator
        producer = await coordinator.init_producer(transactional_id, 60_000)
        await coordinator.add_partitions(
            transactional_id, producer.producer_id, producer.epoch, partitions
        )
        return producer.producer_id, producer.epoch

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        log = self.services.storage.logs.get(topic, partition)
        assert log is not None
        return log

    def append(self, topic: str, *timestamps_ms: int, **producer: int) -> None:
        """Append records to partition 0, one batch each, without making them durable."""
        for timestamp_ms in timestamps_ms:
            batch = BatchView(build([Record(0, timestamp_ms, None, b"value")], **producer))
            self.log(topic).append(batch, virtual_time.clock_ms())

    async def write(self, topic: str, *timestamps_ms: int, **producer: int) -> None:
        """Append records, and make them durable."""
        self.append(topic, *timestamps_ms, **producer)
        await self.services.storage.wal.flush()

    async def roll(self, topic: str) -> None:
        """Roll the tail to a segment."""
        await self.services.storage.roll_scheduler.roll(self.log(topic), RollReason.EXPLICIT)


@asynccontextmanager
async def running_broker(
    stores: Stores,
    config: Config = CONFIG,
    node_id: int = NODE_ID,
    *,
    connect: Callable[[ClusterCache], Peers] = lambda cache: ControlPlanePeers(cache, None),
) -> AsyncIterator[InMemoryBroker]:
    """Run a broker until a sudden end; the next one with the same stores finds what is durable.

    `connect` returns its connections to other brokers.
    """
    metrics = Metrics()
    topic_store = TopicStore(stores.metadata, namespace=config.s3.namespace)
    await topic_store.start()
    cluster_cache = ClusterCache(stores.metadata)
    await cluster_cache.start()
    access_store = AccessStore(stores.metadata)
    await access_store.start()
    config_store = ConfigStore(stores.metadata)
    await config_store.start()
    node, services = _build(
        stores,
        config,
        topic_store=topic_store,
        cluster_cache=cluster_cache,
        access_store=access_store,
        config_store=config_store,
        metrics=metrics,
        node_id=node_id,
        peers=connect(cluster_cache),
    )
    apply_changes(services)
    await services.groups.start()
    consumer_lag = ConsumerLag(
        services.storage.logs,
        services.groups,
        cluster_cache,
        broker_id=node_id,
        steady=virtual_time.clock_ms,
    )
    register_group_metrics(metrics, services.groups, consumer_lag)
    await node.join()
    work = [
        asyncio.create_task(each)
        for each in (
            node.run(),
            services.shards.writer.run(),
            services.groups.run(),
            services.transactions.coordinator.run(),
        )
    ]
    try:
        assert await node.wait_until_ready(60)
        yield InMemoryBroker(stores, services, node)
    finally:
        for task in work:
            task.cancel()
        await asyncio.wait(work)
        services.groups.shut_down()
        await services.topics.end_term()
        services.storage.close()
        await config_store.close()
        await access_store.close()
        await cluster_cache.close()
        await topic_store.close()


def _build(
    stores,
    config,
    *,
    topic_store,
    cluster_cache,
    access_store,
    config_store,
    metrics,
    node_id,
    peers,
):
    clock = virtual_time.clock_ms
    audit = AuditLog(metrics.access, clock)
    namespace = config.s3.namespace
    settings = LiveSettings(config, config_store, node_id)
    registration = Registration(
        stores.metadata,
        BrokerInfo(id=node_id, epoch=0, host=f"broker-{node_id}", port=9092),
        ttl_ms=config.broker.lease_ttl_ms,
        clock=clock,
        monotonic=clock,
    )
    guards = OwnershipGuards(stores.metadata)
    partition_states = PartitionStateStore(stores.metadata, topic_store, guards, clock=clock)
    storage = StorageEngine(
        stores.objects,
        namespace,
        node_id,
        engine_settings(config),
        save_state=partition_states.save,
        clock=clock,
        random=Random(0),
    )
    coordinators = Coordinators.build(
        config,
        stores.metadata,
        topic_store=topic_store,
        cluster_cache=cluster_cache,
        registration=registration,
        logs=storage.logs,
        peers=peers,
        metrics=metrics,
        clock=clock,
        steady_clock=clock,
        random=Random(0),
    )
    streams = Streams(stores.objects, namespace, clock)
    writer = CatalogWriter(stores.objects, namespace, CLUSTER_ID)
    catalog = TopicCatalogPublisher(writer, topic_store)
    node = ClusterNode(
        stores.metadata,
        topic_store=topic_store,
        cache=cluster_cache,
        guards=guards,
        partition_states=partition_states,
        registration=registration,
        storage=storage,
        shards=coordinators.shards,
        streams=streams,
        cleaner=DeadStreamCleaner(stores.objects, namespace, clock),
        restorer=MetadataRestore(
            stores.metadata,
            topic_store,
            streams,
            BucketScanner(stores.objects, namespace, streams),
            catalog,
            cluster_id=CLUSTER_ID,
            namespace=namespace,
            clock=clock,
            random=Random(0),
        ),
        broker_id=node_id,
        cluster_id=CLUSTER_ID,
        defaults=settings.topic_defaults,
        settings=ControllerSettings(),
        clock=clock,
        random=Random(0),
    )
    node.controller.on_elected(catalog.on_elected)
    node.controller.on_publish(catalog.publish)
    services = Services(
        settings=settings,
        node_id=node_id,
        cluster_id=CLUSTER_ID,
        topic_store=topic_store,
        cluster=cluster_cache,
        registration=registration,
        topics=node.topics,
        storage=storage,
        fetch_sessions=FetchSessionCache(count(1).__next__),
        producer_ids=coordinators.producer_ids,
        shards=coordinators.shards,
        groups=coordinators.groups,
        transactions=coordinators.transactions,
        commit_limits=CommitLimits(
            config.offsets, metrics.access, clock=clock, timer=asyncio.get_running_loop().time
        ),
        access_store=access_store,
        config_store=config_store,
        telemetry=TelemetryReceiver(Subscriptions(config_store), metrics.clients),
        audit=audit,
        authorizer=_authorizer(config, access_store, audit),
        quotas=ClientQuotas(access_store, metrics.access, asyncio.get_running_loop().time),
        metrics=metrics,
        health=Health(config.s3, metrics, clock),
        responses=ResponseBudget(config.network.unsent_bytes_max),
        clock=clock,
        timer=asyncio.get_running_loop().time,
    )
    return node, services


def _authorizer(config, access_store, audit):
    if not config.authorization.enabled:
        return None
    return RequestAuthorizer(Authorizer(config.authorization, access_store), audit)


def run_with_broker(
    body: Callable[[InMemoryBroker], Awaitable[None]], *, config: Config = CONFIG
) -> None:
    """Run the body of a test against a new broker."""

    async def scenario(_random: Random) -> None:
        async with running_broker(Stores(), config) as broker:
            await body(broker)

    virtual_time.run(scenario, seed=0)
