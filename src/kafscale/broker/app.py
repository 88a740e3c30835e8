"""The broker process: builds all components, serves until SIGTERM or SIGINT, and shuts down.

It reads from top to bottom, and `bootstrap` builds the components: what is opened first
is closed last. A component that fails stops the broker, which logs the cause and exits with an
error; acknowledged records are in the stores.
"""

import asyncio
import gc
import resource
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import SystemRandom
from typing import Any

from kafscale.aio.clock import clock, steady_clock
from kafscale.broker.addresses import Addresses
from kafscale.broker.bootstrap import BrokerComponents, Stores, build_components
from kafscale.broker.cluster.node import ClusterNode
from kafscale.broker.control_plane.metrics_reporter import report
from kafscale.broker.control_plane.service import control_plane
from kafscale.broker.event_loop_monitor import EventLoopMonitor
from kafscale.broker.health import Health
from kafscale.broker.network.bound_listeners import (
    BoundListener,
    announcements,
    bind_listeners,
    serve,
)
from kafscale.broker.network.connection_quotas import parse_overrides
from kafscale.broker.network.http import AdminHttp
from kafscale.broker.network.listener_context import Limits
from kafscale.broker.network.server import Server, ServerSettings
from kafscale.broker.requests.context import ShutdownSignal
from kafscale.broker.requests.dispatcher import Dispatcher
from kafscale.broker.requests.routes import ROUTES
from kafscale.broker.requests.tracing import TracingDispatcher
from kafscale.broker.security.sasl_login import SaslSessions
from kafscale.broker.services import Services
from kafscale.broker.shards.shards import Shards
from kafscale.broker.stores import open_metadata, open_objects
from kafscale.config import Config
from kafscale.metadata.access.store import AccessStore
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.configs.store import ConfigStore
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability import tracing
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics
from kafscale.storage.engine import StorageEngine
from kafscale.storage.objects.factory import describe_objects
from kafscale.storage.objects.store import ObjectStore

logger = get_logger(__name__)

DRAIN_SECONDS = 1.0
"""How long requests in flight may take when the broker stops."""
OTHER_FILES_COUNT = 256
"""How many files a broker may have open besides its connections."""
GC_THRESHOLD = 20_000
"""How many new objects trigger a garbage collection; reference cycles are rare."""
FLUSH_SECONDS = 20.0
"""How long a stopping broker waits until unflushed records are durable."""
ROLL_SECONDS = 0.5
"""How long a stopping broker rolls segments; the rest is in the WAL and replayed at the start."""


async def run(config: Config, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is called with a line for each listener."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    _raise_file_limit(config.network.connections_max)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(tracing.running(config.tracing, "kafscale-broker"))
        starting = asyncio.create_task(stack.enter_async_context(start(config)))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            # The start waits for a store; there is nothing to shut down yet.
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            logger.info("broker stopped before start completed")
            return
        broker = starting.result()
        for line in announcements(config, broker.bound_listeners):
            announce(line)
        await _wait_for_stop(stopping, broker)
        logger.info("broker stopping")
    logger.info("broker stopped")


class Broker:
    """A running broker."""

    def __init__(
        self,
        server: Server,
        bound_listeners: list[BoundListener],
        http: AdminHttp,
        storage: StorageEngine,
    ) -> None:
        self.server = server
        self.bound_listeners = bound_listeners
        self.http = http
        self.storage = storage
        self.background: asyncio.Task[None] | None = None


@asynccontextmanager
async def start(config: Config) -> AsyncIterator[Broker]:
    """Run a broker inside the block; it has shut down in order after it."""
    random = SystemRandom()
    metrics = Metrics()
    health = Health(config.s3, metrics, clock)
    async with AsyncExitStack() as stack:
        stores = await _open_stores(config, health, random, stack)

        # The registration has the addresses, so ports are bound first; clients are accepted last.
        bound_listeners = await stack.enter_async_context(
            bind_listeners(config, _server_settings(config))
        )
        http = AdminHttp(metrics, health.problems, health.warnings)
        await http.listen(
            config.bind_address(config.broker.metrics_host), config.broker.metrics_port
        )
        stack.push_async_callback(http.close)
        addresses = Addresses(clients={bound.listener: bound.address for bound in bound_listeners})
        components = await build_components(
            config, stores, addresses, metrics=metrics, health=health, random=random
        )
        node, services = components.node, components.services
        storage, groups = services.storage, services.groups
        health.watch(
            storage,
            stores.topic_store,
            lambda: {**node.problems(), **_unreadable(stores.access_store)},
            components.metadata_space.warnings,
        )
        stack.push_async_callback(components.metadata_space.close)
        await stack.enter_async_context(control_plane(services, node, http.addresses[0]))

        epoch = await node.join()
        stack.push_async_callback(node.close)
        shutdown = ShutdownSignal()
        shutdown.add_callback(groups.shut_down)
        shutdown.add_callback(services.transactions.coordinator.shut_down)
        sasl_sessions = await stack.enter_async_context(
            _sasl_sessions(config, services, bound_listeners, random)
        )
        server = _server(config, services, shutdown, sasl_sessions)
        services.settings.subscribe(partial(_apply_to_server, services, server))
        broker = Broker(server, bound_listeners, http, storage)
        broker.background = asyncio.create_task(
            _run_background(components, health, stores.objects, random)
        )
        stack.push_async_callback(_cancel, broker.background)
        await _wait_until_owned(node, broker.background, config)
        serve(server, bound_listeners)
        health.accepts_clients = True
        _tune_garbage_collector()
        logger.info(
            "broker started",
            node_id=services.node_id,
            epoch=epoch,
            objects=describe_objects(config),
            topics=len(stores.topic_store.topics),
        )
        try:
            yield broker
        finally:
            health.accepts_clients = False
            await _stop(broker, node, services.shards, config)


async def _open_stores(
    config: Config, health: Health, random: SystemRandom, stack: AsyncExitStack
) -> Stores:
    """Open the stores and start their caches; `stack` closes them."""
    objects = await open_objects(config, health.on_operation, clock, random)
    stack.push_async_callback(objects.close)
    metadata = await open_metadata(config, steady_clock)
    stack.push_async_callback(metadata.close)
    stores = Stores(
        objects=objects,
        metadata=metadata,
        topic_store=TopicStore(metadata, namespace=config.s3.namespace),
        cluster_cache=ClusterCache(metadata),
        access_store=AccessStore(metadata),
        config_store=ConfigStore(metadata),
    )
    for cache in (
        stores.config_store,
        stores.topic_store,
        stores.cluster_cache,
        stores.access_store,
    ):
        await cache.start()
        stack.push_async_callback(cache.close)
    return stores


async def _stop(broker: Broker, node: ClusterNode, shards: Shards, config: Config) -> None:
    """Leave the cluster, drain the clients, and make everything durable."""
    assert broker.background is not None
    if not broker.background.done():
        await node.leave(config.broker.drain_timeout_sec)
    # Flush now, so that produce requests in flight complete during the drain.
    broker.storage.wal.flush_soon()
    await broker.server.drain(DRAIN_SECONDS)
    if not broker.background.done():
        await shards.writer.finish(FLUSH_SECONDS)
    await _cancel(broker.background)
    await broker.storage.stop(flush_seconds=FLUSH_SECONDS, roll_seconds=ROLL_SECONDS)


@asynccontextmanager
async def _sasl_sessions(
    config: Config, services: Services, bound_listeners: list[BoundListener], random: SystemRandom
) -> AsyncIterator[SaslSessions | None]:
    """The SASL mechanisms, if a listener requires authentication."""
    if not any(bound.listener.authenticates for bound in bound_listeners):
        yield None
        return
    # The JWT and X.509 libraries are slow to import, and a plaintext broker needs neither.
    from kafscale.security.sasl.mechanisms import SECRET_BYTES, Mechanisms  # noqa: PLC0415
    from kafscale.security.sasl.scram_authenticator import Decoys  # noqa: PLC0415

    users = services.access_store
    secret = await users.decoy_secret(random.randbytes(SECRET_BYTES))
    mechanisms = Mechanisms(
        config.sasl,
        users.credential,
        Decoys(secret, users.usual_iterations),
        clock=clock,
        random=random,
    )
    await mechanisms.start()
    try:
        yield SaslSessions(
            mechanisms, config.sasl, services.audit, clock, services.quotas.login_delay_ms
        )
    finally:
        await mechanisms.close()


def _server(
    config: Config, services: Services, shutdown: ShutdownSignal, sasl_sessions: SaslSessions | None
) -> Server:
    dispatcher_type = TracingDispatcher if tracing.is_enabled() else Dispatcher
    dispatcher = dispatcher_type(
        ROUTES,
        services,
        services.metrics,
        shutdown,
        request_timeout_ms=config.network.request_timeout_ms,
        other_request_bytes_max=config.network.other_request_bytes_max,
        clock=clock,
        timer=time.monotonic,
        quotas=services.quotas,
    )
    return Server(
        dispatcher,
        _server_settings(services.config),
        services.metrics,
        shutdown,
        backpressure=services.storage.backpressure,
        sasl_sessions=sasl_sessions,
        audit=services.audit,
        delay_ms=services.quotas.connection_delay_ms,
        responses=services.responses,
    )


def _apply_to_server(services: Services, server: Server) -> None:
    """Apply a change of the settings to connections."""
    _raise_file_limit(services.config.network.connections_max)
    server.configure(_server_settings(services.config))


def _unreadable(access_store: AccessStore) -> dict[str, str]:
    """ACLs that cannot be decoded: only super users are authorized, since each may be a DENY."""
    count = len(access_store.damaged)
    return {"ACLs": f"{count} cannot be decoded"} if count else {}


async def _wait_until_owned(
    node: ClusterNode, background: "asyncio.Task[None]", config: Config
) -> None:
    """Wait until this broker owns what is assigned to it; clients are accepted after that."""
    settled = asyncio.create_task(node.wait_until_ready(config.broker.startup_timeout_sec))
    await asyncio.wait({settled, background}, return_when=asyncio.FIRST_COMPLETED)
    if background.done():
        settled.cancel()
        await asyncio.gather(settled, return_exceptions=True)
        _raise_cause(background)
    elif not settled.result():
        logger.warning("broker starts before it owns everything that is assigned to it")


async def _run_background(
    components: BrokerComponents, health: Health, objects: ObjectStore, random: SystemRandom
) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(components.node.run())
        group.create_task(components.services.storage.run())
        group.create_task(components.services.shards.writer.run())
        group.create_task(components.services.groups.run())
        group.create_task(components.services.transactions.coordinator.run())
        group.create_task(components.consumer_lag.run())
        group.create_task(components.metadata_space.run())
        group.create_task(health.run(objects))
        monitor = EventLoopMonitor(components.services.metrics.event_loop_lag_seconds)
        group.create_task(monitor.run())
        group.create_task(report(components.services, random))


async def _cancel(background: "asyncio.Task[None]") -> None:
    background.cancel()
    await asyncio.gather(background, return_exceptions=True)


def _tune_garbage_collector() -> None:
    """Exclude the objects that live as long as the broker from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)


async def _wait_for_stop(stopping: "asyncio.Task[Any]", broker: Broker) -> None:
    """Wait for the signal; raise if a component fails first."""
    assert broker.background is not None
    await asyncio.wait({stopping, broker.background}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if broker.background.done():
        _raise_cause(broker.background)


def _raise_cause(background: "asyncio.Task[None]") -> None:
    """Raise the exception that ended the background tasks, without its exception groups."""
    try:
        background.result()
    except BaseExceptionGroup as group:
        cause: BaseException = group
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        raise cause from None


def _raise_file_limit(connections_max: int) -> None:
    """Raise RLIMIT_NOFILE to the number of connections and other files, as far as allowed."""
    needed = connections_max + OTHER_FILES_COUNT
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        if limit < needed:
            logger.warning("RLIMIT_NOFILE is below network.maxConnections", limit=limit)


def _server_settings(config: Config) -> ServerSettings:
    network = config.network
    return ServerSettings(
        connections_max=network.connections_max,
        connections_per_host_max=network.connections_per_ip_max,
        connections_per_host_overrides=parse_overrides(network.connections_per_ip_overrides),
        connection_rate_max=network.connection_rate_max,
        reload_seconds=config.tls.reload_interval_ms / 1000,
        send_buffer_bytes=network.socket_send_buffer_bytes,
        receive_buffer_bytes=network.socket_receive_buffer_bytes,
        limits=Limits(
            request_bytes_max=network.request_bytes_max,
            in_flight_requests_max=network.in_flight_requests_max,
            first_request_seconds=network.connection_timeout_ms / 1000,
            frame_seconds=network.request_timeout_ms / 1000,
            idle_seconds=network.idle_timeout_ms / 1000,
            linger_seconds=DRAIN_SECONDS,
        ),
    )
