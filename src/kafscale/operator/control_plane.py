"""The operator's control plane: brokers send it samples, and whoever likes watches assignments.

The laws: one operator looks after many clusters, so every request says which; brokers name theirs
by the id that they have given it. What is told of assignments is what the cluster's etcd says. A
watch ends when the etcd is opened anew, and may begin again. All else is for brokers to answer.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

from kafscale.config import Config
from kafscale.control_plane.allowed_names import Admission
from kafscale.control_plane.assignment_feed import AssignmentFeed, holdings
from kafscale.control_plane.endpoint import ControlEndpoint
from kafscale.control_plane.messages import (
    Ack,
    AssignmentWatchRequest,
    MetricsSample,
    PartitionAssignmentEvent,
)
from kafscale.control_plane.samples import ClusterSamples, take_all
from kafscale.control_plane.tls import ServerTls
from kafscale.errors import InvalidRequestError, StoreUnavailableError
from kafscale.observability.logging import get_logger
from kafscale.operator.cluster.metadata import ClusterMetadata, MetadataRegistry
from kafscale.security.reloading_file import WatchedFiles

log = get_logger(__name__)

IDENTITY: Final = "operator"
REQUESTS_MAX: Final = 4_096
"""At once: every broker of every cluster has a stream open."""


class OperatorService:
    """What the operator answers on the control plane."""

    def __init__(self, registry: MetadataRegistry, samples: ClusterSamples) -> None:
        self._registry = registry
        self._samples = samples
        self._feeds: dict[ClusterMetadata, AssignmentFeed] = {}
        self._streams: set[asyncio.Task[Ack]] = set()
        self._is_closed = False

    async def stream_metrics(self, samples: AsyncIterator[MetricsSample]) -> Ack:
        taking = asyncio.ensure_future(take_all(samples, self._samples.take))
        self._streams.add(taking)
        try:
            return await taking
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
            raise StoreUnavailableError("this operator stops; another one leads soon") from None
        finally:
            self._streams.discard(taking)

    async def watch_assignments(
        self, request: AssignmentWatchRequest
    ) -> AsyncGenerator[PartitionAssignmentEvent, None]:
        feed = self._feed(await self._metadata(request.cluster_id))
        async with aclosing(feed.watch(request.broker_id)) as events:
            async for event in events:
                yield event

    def close(self) -> None:
        """Send everybody away, with a word: brokers hold streams open all the time."""
        self._is_closed = True
        for feed in self._feeds.values():
            feed.close()
        for taking in self._streams:
            taking.cancel()

    async def _metadata(self, cluster_id: str) -> ClusterMetadata:
        if not cluster_id:
            if (only := self._registry.only()) is None:
                raise InvalidRequestError("say of which cluster: there is not exactly one here")
            return only
        found = await self._registry.find(cluster_id)
        if found is None:
            raise StoreUnavailableError(f"no cluster {cluster_id} is looked after here, or not yet")
        return found

    def _feed(self, metadata: ClusterMetadata) -> AssignmentFeed:
        """Who tells of a cluster; one for all who watch it."""
        feed = self._feeds.get(metadata)
        if feed is None:
            feed = self._feeds[metadata] = AssignmentFeed(lambda: holdings(metadata.view))
            metadata.view.subscribe(feed.changed)
            metadata.when_closed(lambda: self._feeds.pop(metadata).close())
        return feed


@asynccontextmanager
async def control_plane(
    config: Config, registry: MetadataRegistry, samples: ClusterSamples
) -> AsyncIterator[int]:
    """Serve inside the block, at the port that is given; with TLS where `control.tls` says so."""
    settings, security = config.operator, config.control
    service = OperatorService(registry, samples)
    tls = None
    if security.tls.enabled:
        files = [security.tls.cert_file, security.tls.key_file, security.tls.ca_file]
        tls = ServerTls(security.tls, WatchedFiles(files).changed)
    endpoint = ControlEndpoint(
        IDENTITY,
        {"StreamMetrics": service.stream_metrics, "WatchAssignments": service.watch_assignments},
        requests_max=REQUESTS_MAX,
        tls=tls,
        admission=Admission(security.allowed_names) if tls else None,
    )
    await endpoint.start(settings.host, settings.control_port)
    assert endpoint.port is not None, "a port was asked for"
    log.info("control plane serves", host=settings.host, port=endpoint.port)
    try:
        yield endpoint.port
    finally:
        service.close()
        await endpoint.close()
