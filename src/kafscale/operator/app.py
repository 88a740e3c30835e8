"""The operator process: acquires the leader lease, reconciles resources, stops on a signal.

Invariant: of several operators, one acts at a time. An operator that loses the lease stops at once
and exits with an error; the next leader continues any work left half done.
"""

import asyncio
import ipaddress
import shutil
import signal
import socket
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

from aiohttp import web

from kafscale.aio.clock import clock
from kafscale.config import Config
from kafscale.control_plane.samples import ClusterSamples
from kafscale.errors import OperatingError
from kafscale.observability import tracing
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.metric import CONTENT_TYPE
from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.operator.cluster.backups import BackupReconciler
from kafscale.operator.cluster.broker_status import BrokerStatusCollector, fetch_over_control_plane
from kafscale.operator.cluster.bucket import BucketReconciler
from kafscale.operator.cluster.listener_certificates import ListenerCertificates
from kafscale.operator.cluster.metadata import ClusterMetadata, MetadataRegistry
from kafscale.operator.cluster.reconciler import ClusterReconciler
from kafscale.operator.cluster.rollout import RolloutExecutor
from kafscale.operator.cluster.scale_to_zero.controller import (
    ScaleToZeroController,
    flush_over_control_plane,
)
from kafscale.operator.control_certificates import ControlCertificates
from kafscale.operator.control_plane import control_plane
from kafscale.operator.etcd.reconciler import EtcdReconciler
from kafscale.operator.event_sources import check_definitions, listen, watch
from kafscale.operator.kube.client import ApiServer, api_server
from kafscale.operator.kube.lease import Leadership
from kafscale.operator.manifests import names
from kafscale.operator.manifests.names import Platform
from kafscale.operator.tenants import TenantRules
from kafscale.operator.topics.reconciler import TopicReconciler
from kafscale.operator.work_queue import Worker, WorkQueue

logger = get_logger(__name__)

LEASE: Final = "kafscale-operator"


async def run(config: Config, announce: Callable[[str], None]) -> None:
    """Reconcile clusters and topics until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    settings = config.operator
    metrics = OperatorMetrics(clock)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(tracing.running(config.tracing, "kafscale-operator"))
        kube = await stack.enter_async_context(api_server())
        port = await stack.enter_async_context(
            _serving(settings.host, settings.metrics_port, metrics)
        )
        announce(f"operator listening on {settings.host}:{port}")
        leadership = Leadership(
            kube,
            namespace=settings.namespace,
            name=LEASE,
            identity=f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}",
            monotonic=time.monotonic,
            duration_seconds=settings.lease_duration_sec,
            renew_seconds=settings.lease_duration_sec / 5,
            grace_seconds=settings.lease_duration_sec / 3,
        )
        if not await _unless(stop, leadership.acquire()):
            return
        metrics.is_leader = True
        try:
            await _lead(config, kube, metrics, leadership, stop)
        finally:
            await leadership.release()
    logger.info("operator stopped")


async def _lead(
    config: Config,
    kube: ApiServer,
    metrics: OperatorMetrics,
    leadership: Leadership,
    stop: asyncio.Event,
) -> None:
    """Reconcile while this operator is the leader."""
    await check_definitions(kube)
    namespaces = config.operator.watched_namespaces
    queue = WorkQueue()
    fenced = kube.fenced(lambda: leadership.is_leader)
    async with _worker(config, fenced, metrics, queue) as worker:
        leading = asyncio.create_task(leadership.renew(), name="renew leader lease")
        tasks = {
            leading,
            asyncio.create_task(stop.wait(), name="wait for stop"),
            asyncio.create_task(watch(kube, queue, namespaces), name="watch objects"),
            asyncio.create_task(listen(worker, queue, namespaces, stop), name="kopf"),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if leading in done:
            raise OperatingError(
                "lost the leader lease: another operator leads, or the API server is unreachable"
            )
        for task in done:
            task.result()


@asynccontextmanager
async def _worker(
    config: Config, kube: ApiServer, metrics: OperatorMetrics, queue: WorkQueue
) -> AsyncIterator[Worker]:
    """Build everything that reconciling needs, and close it afterwards."""
    platform = _platform(config)
    directory = Path(tempfile.mkdtemp(prefix="kafscale-operator-"))
    metadata = MetadataRegistry()
    samples = ClusterSamples(clock)
    certificates = ControlCertificates(kube, platform, clock=clock, directory=directory / "control")
    await certificates.renew()
    tls = certificates.files.as_client()

    def control_address(of: ClusterMetadata, broker_id: int) -> str:
        return names.control_address(*metadata.name_of(of), broker_id, platform)

    collector = BrokerStatusCollector(
        fetch_over_control_plane(control_address, tls), clock, samples.fresh
    )
    rules = TenantRules(config.operator)
    buckets = BucketReconciler(kube, clock, rules)
    backups = BackupReconciler(
        buckets, metrics, clock=clock, timer=time.monotonic, random=SystemRandom()
    )
    etcds = EtcdReconciler(
        kube,
        platform,
        clock=clock,
        directory=directory,
        newest_snapshot=backups.newest_key,
        rules=rules,
        settings_endpoints=config.operator.etcd_endpoints,
        namespaces=config.operator.watched_namespaces,
    )
    scale_to_zero = ScaleToZeroController(
        kube,
        collector,
        queue,
        clock,
        host=config.operator.host,
        address=await _own_address(),
        flush=flush_over_control_plane(platform, tls),
    )
    clusters = ClusterReconciler(
        kube,
        platform,
        control_certificates=certificates,
        listener_certificates=ListenerCertificates(kube, platform, clock),
        etcds=etcds,
        buckets=buckets,
        backups=backups,
        registry=metadata,
        rollout=RolloutExecutor(kube, platform, metrics, tls),
        scale_to_zero=scale_to_zero,
        metrics=metrics,
        resync_seconds=config.operator.resync_sec,
    )
    topics = TopicReconciler(
        kube, metadata, collector, clock=clock, new_id=lambda: uuid.uuid4().bytes
    )
    try:
        async with control_plane(config.operator, platform, metadata, samples, certificates.files):
            yield Worker(kube, metrics, clusters=clusters, topics=topics)
    finally:
        await scale_to_zero.close()
        await backups.close()
        await metadata.close_all()
        shutil.rmtree(directory, ignore_errors=True)


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Run a coroutine until it ends or `stop` is set; return whether it ended first."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    for task in (working, stopping):
        task.cancel()
    await asyncio.gather(working, stopping, return_exceptions=True)
    return not stop.is_set()


def _platform(config: Config) -> Platform:
    settings = config.operator
    return Platform(
        broker_image=settings.broker_image,
        operator_image=settings.operator_image,
        etcd_image=settings.etcd_image,
        image_pull_secrets=settings.image_pull_secrets,
        namespace=settings.namespace,
        control_address=settings.control_address,
        cluster_domain=settings.cluster_domain,
    )


async def _own_address() -> str:
    """The address of this pod: its host name resolved, as the kubelet writes it to /etc/hosts.

    Outside of Kubernetes it may be a host-local address, or empty.
    """
    try:
        resolved = await asyncio.get_running_loop().getaddrinfo(socket.gethostname(), None)
    except OSError:
        return ""
    addresses = [ipaddress.ip_address(address[0]) for *_, address in resolved]
    return next((str(each) for each in addresses if not each.is_loopback), "")


@asynccontextmanager
async def _serving(host: str, port: int, metrics: OperatorMetrics) -> AsyncIterator[int]:
    """Serve metrics, liveness and readiness until the block ends; yields the bound port.

    A standby operator is ready too: it is ready to take over.
    """

    async def scrape(_: web.Request) -> web.Response:
        return web.Response(body=metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    application = web.Application()
    application.add_routes(
        [
            web.get("/metrics", scrape),
            web.get("/health", health),
            web.get("/healthz", health),
            web.get("/readyz", health),
        ]
    )
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
