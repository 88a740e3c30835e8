"""The broker as a process: reads its settings, builds everything, serves until it is told to stop.

This is the only place that knows all parts, and it reads from top to bottom: what is opened first
is closed last. A part that breaks stops the broker, which says why and exits with an error; what
was acknowledged is in the stores.
"""

import asyncio
import gc
import resource
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from random import SystemRandom
from typing import Any

from kafscale.aio.clock import clock, steady_clock
from kafscale.broker.bootstrap import Addresses, Assembly, Stores, assemble
from kafscale.broker.cluster.node import ClusterNode
from kafscale.broker.control_plane.endpoint import control_address, control_plane
from kafscale.broker.control_plane.metrics_reporter import report
from kafscale.broker.health import Health
from kafscale.broker.network.bound_listeners import Entry, announcement, open_entries, serve
from kafscale.broker.network.connection import Limits
from kafscale.broker.network.connection_quotas import overrides
from kafscale.broker.network.http import AdminHttp
from kafscale.broker.network.server import Server
from kafscale.broker.network.server import Settings as ServerSettings
from kafscale.broker.network.sockets import address_of
from kafscale.broker.requests.context import Drain
from kafscale.broker.requests.dispatcher import Dispatcher
from kafscale.broker.requests.routes import ROUTES
from kafscale.broker.requests.tracing import TracedDispatcher
from kafscale.broker.security.sasl_login import Logins
from kafscale.broker.services import Services
from kafscale.broker.stores import open_metadata, open_objects
from kafscale.config import Config
from kafscale.metadata.access.store import AclStore
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability import tracing
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics
from kafscale.storage.engine import StorageEngine
from kafscale.storage.objects.factory import describe_objects
from kafscale.storage.objects.store import ObjectStore

log = get_logger(__name__)

DRAIN_SECONDS = 1.0
"""How long requests in flight may take to be answered when the broker stops."""
FILES_BESIDE_CONNECTIONS = 256
GARBAGE_COUNT_MIN = 20_000
"""How many objects may come before the collector looks for cycles, of which there are few."""
FLUSH_SECONDS = 20.0
"""How long a stopping broker waits for a store that does not take what is not durable yet."""
ROLL_SECONDS = 0.5
"""How long a stopping broker makes segments; what is left is in the WAL and read at the start."""


async def run(config: Config, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is told where clients are served."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    _allow_connections(config.network.connections_max)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(tracing.running(config.tracing, "kafscale-broker"))
        starting = asyncio.create_task(stack.enter_async_context(start(config)))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            # It waits for a store, and has nothing yet to bring to an end.
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            log.info("broker stopped before it had started")
            return
        broker = starting.result()
        for entry in broker.entries:
            for bound in entry.sockets:
                announce(announcement(entry, address_of(bound)))
        await _until(stopping, broker)
        log.info("broker stopping")
    log.info("broker stopped")


class Broker:
    """A broker that serves."""

    def __init__(
        self, server: Server, entries: list[Entry], http: AdminHttp, storage: StorageEngine
    ) -> None:
        self.server = server
        self.entries = entries
        self.http = http
        self.storage = storage
        self.background: asyncio.Task[None] | None = None


@asynccontextmanager
async def start(config: Config) -> AsyncIterator[Broker]:
    """A broker that serves inside the block, and has stopped in good order after it."""
    random = SystemRandom()
    metrics = Metrics()
    health = Health(config.s3, metrics, clock)
    async with AsyncExitStack() as stack:
        objects = await open_objects(config, health.on_operation, clock, random)
        stack.push_async_callback(objects.close)
        metadata = await open_metadata(config, steady_clock)
        stack.push_async_callback(metadata.close)
        catalog = Catalog(metadata, namespace=config.s3.namespace)
        view, rules = ClusterCache(metadata), AclStore(metadata)
        for seen in (catalog, view, rules):
            await seen.start()
            stack.push_async_callback(seen.close)

        # Others are told where this broker serves, so the ports come first, and clients last.
        entries = await stack.enter_async_context(open_entries(config, _server_settings(config)))
        http = AdminHttp(metrics, health.problems)
        await http.listen(config.broker.metrics_host, config.broker.metrics_port)
        stack.push_async_callback(http.close)
        stores = Stores(objects=objects, metadata=metadata, catalog=catalog, view=view, rules=rules)
        addresses = Addresses(
            clients={entry.listener: entry.address for entry in entries},
            control=control_address(config, http),
        )
        parts = await assemble(
            config, stores, addresses, metrics=metrics, health=health, random=random
        )
        node, storage, groups = parts.node, parts.services.storage, parts.services.groups
        health.watch(storage, catalog, lambda: {**node.problems(), **_unreadable(rules)})
        await stack.enter_async_context(control_plane(parts.services, node, http))

        epoch = await node.join()
        stack.push_async_callback(node.close)
        drain = Drain()
        drain.watch(groups.retire)
        logins = await stack.enter_async_context(_logins(config, parts.services, entries, random))
        server = _server(config, parts.services, drain, logins)
        broker = Broker(server, entries, http, storage)
        broker.background = asyncio.create_task(_work(parts, health, objects, random))
        stack.push_async_callback(_end, broker.background)
        await _settle(node, broker.background, config)
        serve(server, entries)
        _spare_collector()
        log.info(
            "broker started",
            node_id=parts.services.node_id,
            epoch=epoch,
            objects=describe_objects(config),
            topics=len(catalog.topics),
        )
        if config.authorization.enabled and not config.control.tls.enabled:
            log.warning("the control plane is open to whoever reaches it: set control.tls")
        try:
            yield broker
        finally:
            if not broker.background.done():
                await node.leave(config.broker.drain_timeout_sec)
            # Producers still get their answers: what they wait for is made durable meanwhile.
            storage.wal.flush_soon()
            await server.drain(DRAIN_SECONDS)
            if not broker.background.done():
                await groups.writer.finish(FLUSH_SECONDS)
            await _end(broker.background)
            await storage.stop(flush_seconds=FLUSH_SECONDS, roll_seconds=ROLL_SECONDS)


@asynccontextmanager
async def _logins(
    config: Config, services: Services, entries: list[Entry], random: SystemRandom
) -> AsyncIterator[Logins | None]:
    """How clients log in, where a listener asks them to."""
    if not any(entry.listener.authenticates for entry in entries):
        yield None
        return
    # Tokens and certificates are slow to load, and most first tries have neither.
    from kafscale.security.sasl.mechanisms import Mechanisms  # noqa: PLC0415

    mechanisms = Mechanisms(config.sasl, services.rules.credential, clock=clock, random=random)
    await mechanisms.start()
    try:
        yield Logins(
            mechanisms, config.sasl, services.audit, clock, services.throttling.login_delay_ms
        )
    finally:
        await mechanisms.close()


def _server(config: Config, services: Services, drain: Drain, logins: Logins | None) -> Server:
    kind = TracedDispatcher if tracing.is_enabled() else Dispatcher
    dispatcher = kind(
        ROUTES,
        services,
        services.metrics,
        drain,
        request_timeout_ms=config.network.request_timeout_ms,
        clock=clock,
        timer=time.monotonic,
        throttling=services.throttling,
    )
    return Server(
        dispatcher,
        _server_settings(config),
        services.metrics,
        drain,
        congestion=services.storage.backpressure,
        logins=logins,
        audit=services.audit,
        delay_ms=services.throttling.connection_delay_ms,
    )


def _unreadable(rules: AclStore) -> dict[str, str]:
    """What keeps everybody out but super users: a rule that nobody can read may be a denial."""
    count = len(rules.damaged)
    return {"access rules": f"{count} cannot be read"} if count else {}


async def _settle(node: ClusterNode, background: "asyncio.Task[None]", config: Config) -> None:
    """Wait until this broker serves what it should; then clients are let in."""
    settled = asyncio.create_task(node.wait_until_ready(config.broker.startup_timeout_sec))
    await asyncio.wait({settled, background}, return_when=asyncio.FIRST_COMPLETED)
    if background.done():
        settled.cancel()
        await asyncio.gather(settled, return_exceptions=True)
        _raise_cause(background)
    elif not settled.result():
        log.warning("not everything that is assigned is served yet")


async def _work(
    parts: Assembly, health: Health, objects: ObjectStore, random: SystemRandom
) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(parts.node.run())
        group.create_task(parts.services.storage.run())
        group.create_task(parts.services.groups.run())
        group.create_task(parts.watermarks.run())
        group.create_task(health.run(objects))
        group.create_task(report(parts.services, random))


async def _end(background: "asyncio.Task[None]") -> None:
    background.cancel()
    await asyncio.gather(background, return_exceptions=True)


def _spare_collector() -> None:
    """What lives as long as the broker is not looked at by the garbage collector any more."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_COUNT_MIN)


async def _until(stopping: "asyncio.Task[Any]", broker: Broker) -> None:
    """Wait for the signal, or for what makes serving on impossible."""
    assert broker.background is not None
    await asyncio.wait({stopping, broker.background}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if broker.background.done():
        _raise_cause(broker.background)


def _raise_cause(background: "asyncio.Task[None]") -> None:
    """Raise what has ended the work of the broker, without the groups of tasks round it."""
    try:
        background.result()
    except BaseExceptionGroup as group:
        cause: BaseException = group
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        raise cause from None


def _allow_connections(count: int) -> None:
    """Have the system let this process open as many files as clients may come, and some more."""
    wanted = count + FILES_BESIDE_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        if limit < wanted:
            log.warning("fewer files may be open than clients may connect", limit=limit)


def _server_settings(config: Config) -> ServerSettings:
    network = config.network
    return ServerSettings(
        connections_max=network.connections_max,
        connections_per_host_max=network.connections_per_ip_max,
        connections_per_host_overrides=overrides(network.connections_per_ip_overrides),
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
