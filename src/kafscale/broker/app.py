"""The broker as a process: reads its settings, builds everything, serves until it is told to stop.

This is the only place that knows all parts, and it reads from top to bottom: what is opened first
is closed last. A part that breaks stops the broker, which says why and exits with an error; what
was acknowledged is in the stores.
"""

import asyncio
import gc
import resource
import signal
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random, SystemRandom
from typing import Any

from kafscale.broker.admin_http import AdminHttp
from kafscale.broker.connection import Limits
from kafscale.broker.context import Drain
from kafscale.broker.coordinator import statistics
from kafscale.broker.coordinator.clock import GroupClock
from kafscale.broker.coordinator.coordinator import Coordinator
from kafscale.broker.dispatch import Dispatcher
from kafscale.broker.engine_settings import engine_settings
from kafscale.broker.fetch_sessions import FetchSessions
from kafscale.broker.group_settings import group_settings, offset_retention
from kafscale.broker.health import Health
from kafscale.broker.producer_ids import ProducerIds
from kafscale.broker.routes import ROUTES
from kafscale.broker.server import Server
from kafscale.broker.server import Settings as ServerSettings
from kafscale.broker.services import Services
from kafscale.broker.stores import describe_objects, open_metadata, open_objects
from kafscale.broker.topic_configs import TopicDefaults
from kafscale.broker.topics import Topics
from kafscale.config import Config
from kafscale.errors import FencedError
from kafscale.metadata import counters
from kafscale.metadata.catalog import Catalog
from kafscale.metadata.cluster import cluster_id
from kafscale.metadata.store import MetadataStore
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics import Metrics
from kafscale.storage.engine import StorageEngine
from kafscale.storage.objects.base import ObjectStore

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


def clock() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def steady_clock() -> int:
    """A clock in milliseconds that is never set, for measuring how long something lasts."""
    return time.monotonic_ns() // 1_000_000


async def run(config: Config, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is told where clients are served."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    _allow_connections(config.network.connections_max)
    async with AsyncExitStack() as stack:
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
        for host, port in broker.server.addresses:
            announce(f"broker listening on {host}:{port}")
        await _until(stopping, broker)
        log.info("broker stopping")
    log.info("broker stopped")


class Broker:
    """A broker that serves."""

    def __init__(self, server: Server, http: AdminHttp, storage: StorageEngine) -> None:
        self.server = server
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
        node_id = broker_id(config)
        catalog = Catalog(metadata, namespace=config.s3.namespace)
        await catalog.start()
        stack.push_async_callback(catalog.close)

        defaults = TopicDefaults.of(config)
        topics = Topics(
            catalog, metadata, defaults, namespace=config.s3.namespace, broker_id=node_id,
            clock=clock,
        )  # fmt: skip
        storage = StorageEngine(
            objects, config.s3.namespace, node_id, engine_settings(config),
            save=topics.save, clock=clock, random=random,
        )  # fmt: skip
        epoch = await _open(storage, topics, metadata, node_id)
        stack.push_async_callback(topics.close)

        groups = _coordinator(config, metadata, catalog, metrics, random)
        await groups.start()
        statistics.show(metrics, groups, storage.logs)

        services = Services(
            config=config, node_id=node_id, catalog=catalog, topics=topics, topic_defaults=defaults,
            cluster_id=await cluster_id(metadata, _new_cluster_id()), storage=storage,
            fetch_sessions=_fetch_sessions(config, random), producer_ids=ProducerIds(metadata),
            groups=groups, metrics=metrics, health=health, clock=clock,
        )  # fmt: skip
        drain = Drain()
        drain.watch(groups.retire)
        dispatcher = Dispatcher(
            ROUTES, services, metrics, drain,
            request_timeout_ms=config.network.request_timeout_ms, clock=clock, timer=time.monotonic,
        )  # fmt: skip
        server = Server(
            dispatcher, _server_settings(config), metrics, drain, congestion=storage.wal.congestion
        )
        health.watch(storage, catalog)
        http = AdminHttp(metrics, health.problems)
        await http.listen(config.broker.metrics_host, config.broker.metrics_port)
        stack.push_async_callback(http.close)
        await server.listen(config.broker.host, config.broker.port)

        broker = Broker(server, http, storage)
        broker.background = asyncio.create_task(_work(storage, groups, health, objects))
        _spare_collector()
        log.info(
            "broker started", node_id=node_id, epoch=epoch, objects=describe_objects(config),
            topics=len(catalog.topics),
        )  # fmt: skip
        try:
            yield broker
        finally:
            # Producers still get their answers: what they wait for is made durable meanwhile.
            storage.wal.hurry()
            await server.drain(DRAIN_SECONDS)
            if not broker.background.done():
                await groups.writer.finish(FLUSH_SECONDS)
            broker.background.cancel()
            await asyncio.gather(broker.background, return_exceptions=True)
            await storage.stop(flush_seconds=FLUSH_SECONDS, roll_seconds=ROLL_SECONDS)


async def _open(
    storage: StorageEngine, topics: Topics, metadata: MetadataStore, node_id: int
) -> int:
    """Bring back what earlier lives left, under a new epoch."""
    name = counters.broker_epoch(str(node_id))
    epoch = await counters.next_value(metadata, name)
    # Objects may outlive the metadata: an epoch must be new in both.
    newest = await storage.newest_epoch()
    while epoch <= newest:
        epoch = await counters.next_value(metadata, name)

    async def taken(_at_least: int) -> int:
        return epoch

    await storage.open(await topics.to_open(epoch), taken)
    topics.follow(storage.logs)
    return epoch


async def _work(
    storage: StorageEngine, groups: Coordinator, health: Health, objects: ObjectStore
) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(storage.run())
        group.create_task(groups.run())
        group.create_task(health.run(objects))


def _spare_collector() -> None:
    """What lives as long as the broker is not looked at by the garbage collector any more."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_COUNT_MIN)


async def _until(stopping: "asyncio.Task[Any]", broker: Broker) -> None:
    """Wait for the signal, or for what makes serving on impossible."""
    assert broker.background is not None
    fenced = broker.storage.wal.fenced
    ends: set[asyncio.Future[Any]] = {stopping, broker.background, fenced}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if broker.background.done():
        broker.background.result()
    if fenced.done():
        raise FencedError("another broker has taken over; this one must not serve any more")


def _allow_connections(count: int) -> None:
    """Have the system let this process open as many files as clients may come, and some more."""
    wanted = count + FILES_BESIDE_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        if limit < wanted:
            log.warning("fewer files may be open than clients may connect", limit=limit)


def broker_id(config: Config) -> int:
    """The number that is set, or the one at the end of the host name, or 0."""
    if config.broker.id is not None:
        return config.broker.id
    digits = socket.gethostname().split(".")[0].rpartition("-")[2]
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 9 else 0


def _new_cluster_id() -> str:
    return uuid.uuid4().hex[:22]


def _coordinator(
    config: Config, metadata: MetadataStore, catalog: Catalog, metrics: Metrics, random: Random
) -> Coordinator:
    return Coordinator(
        metadata, catalog, group_settings(config), offset_retention(config), metrics,
        linger_ms=config.group.coordinator_append_linger_ms,
        clock=GroupClock(clock, steady_clock), random=random,
    )  # fmt: skip


def _fetch_sessions(config: Config, random: Random) -> FetchSessions:
    return FetchSessions(
        lambda: random.randrange(1, 2**31), slots_max=config.network.fetch_sessions_max
    )


def _server_settings(config: Config) -> ServerSettings:
    network = config.network
    return ServerSettings(
        connections_max=network.connections_max,
        send_buffer_bytes=network.socket_send_buffer_bytes,
        receive_buffer_bytes=network.socket_receive_buffer_bytes,
        limits=Limits(
            request_bytes_max=network.request_bytes_max,
            in_flight_requests_max=network.in_flight_requests_max,
            first_request_seconds=network.connection_timeout_ms / 1000,
            idle_seconds=network.idle_timeout_ms / 1000,
            linger_seconds=DRAIN_SECONDS,
        ),
    )
