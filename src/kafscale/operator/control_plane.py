"""The operator's control plane: receives samples from brokers, and streams assignments.

Invariants: an operator serves many clusters, so every request names one, by the id that brokers
generated, and a client may name its own only: that of its certificate. Assignments are what the
cluster's etcd says. A watch ends when the etcd is reopened, and may be started again. All other
requests are answered by brokers.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

from kafscale.config.sections.operator import Operator
from kafscale.config.sections.security import PeerTls
from kafscale.control_plane.assignment_feed import AssignmentFeed, partition_owners
from kafscale.control_plane.messages import (
    Ack,
    AssignmentWatchRequest,
    MetricsSample,
    PartitionAssignmentEvent,
)
from kafscale.control_plane.samples import ClusterSamples, collect
from kafscale.control_plane.server import GrpcServer
from kafscale.control_plane.tls import ServerTls, peer_names
from kafscale.errors import ClusterAuthorizationError, InvalidRequestError, StoreUnavailableError
from kafscale.observability.logging import get_logger
from kafscale.operator.cluster.metadata import ClusterMetadata, MetadataRegistry
from kafscale.operator.manifests import names
from kafscale.operator.manifests.names import Platform

logger = get_logger(__name__)

IDENTITY: Final = "operator"
REQUESTS_MAX: Final = 4_096
"""Concurrent requests: every broker of every cluster keeps a stream open."""


class OperatorService:
    """The operator's side of the control plane."""

    def __init__(
        self, registry: MetadataRegistry, samples: ClusterSamples, platform: Platform
    ) -> None:
        self._registry = registry
        self._platform = platform
        self._samples = samples
        self._feeds: dict[ClusterMetadata, AssignmentFeed] = {}
        self._streams: set[asyncio.Task[Ack]] = set()
        self._is_closed = False

    async def stream_metrics(self, samples: AsyncIterator[MetricsSample]) -> Ack:
        receiving = asyncio.ensure_future(collect(self._authorized(samples), self._samples.take))
        self._streams.add(receiving)
        try:
            return await receiving
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
            raise StoreUnavailableError(
                "this operator is stopping; retry with the next leader"
            ) from None
        finally:
            self._streams.discard(receiving)

    async def watch_assignments(
        self, request: AssignmentWatchRequest
    ) -> AsyncGenerator[PartitionAssignmentEvent, None]:
        metadata = await self._metadata(request.cluster_id)
        self._authorize(metadata)
        feed = self._feed(metadata)
        async with aclosing(feed.watch(request.broker_id)) as events:
            async for event in events:
                yield event

    def close(self) -> None:
        """End all streams with an error on which clients retry; brokers keep theirs open."""
        self._is_closed = True
        for feed in self._feeds.values():
            feed.close()
        for receiving in self._streams:
            receiving.cancel()

    async def _authorized(
        self, samples: AsyncIterator[MetricsSample]
    ) -> AsyncIterator[MetricsSample]:
        """The samples of a client, which must be those of its own cluster."""
        authorized_id = ""
        async for sample in samples:
            if not sample.cluster_id:
                raise InvalidRequestError("a sample must have a cluster_id")
            if sample.cluster_id != authorized_id:
                self._authorize(await self._metadata(sample.cluster_id))
                authorized_id = sample.cluster_id
            yield sample

    def _authorize(self, metadata: ClusterMetadata) -> None:
        """Raise `ClusterAuthorizationError` unless the client is of this cluster."""
        namespace, name = self._registry.name_of(metadata)
        allowed = names.control_subjects(namespace, name, self._platform)
        if peer_names.get().isdisjoint(allowed):
            raise ClusterAuthorizationError(
                f"this certificate is not one of cluster {namespace}/{name}"
            )

    async def _metadata(self, cluster_id: str) -> ClusterMetadata:
        if not cluster_id:
            if (only := self._registry.only()) is None:
                raise InvalidRequestError(
                    "a cluster id is required: there is not exactly one cluster"
                )
            return only
        metadata = await self._registry.find(cluster_id)
        if metadata is None:
            raise StoreUnavailableError(
                f"unknown cluster {cluster_id}, or its metadata is not open yet"
            )
        return metadata

    def _feed(self, metadata: ClusterMetadata) -> AssignmentFeed:
        """The feed of a cluster, shared by all watchers."""
        feed = self._feeds.get(metadata)
        if feed is None:
            feed = self._feeds[metadata] = AssignmentFeed(lambda: partition_owners(metadata.view))
            metadata.view.subscribe(feed.changed)
            metadata.on_close(lambda: self._feeds.pop(metadata).close())
        return feed


@asynccontextmanager
async def control_plane(
    settings: Operator,
    platform: Platform,
    registry: MetadataRegistry,
    samples: ClusterSamples,
    tls: PeerTls,
) -> AsyncIterator[int]:
    """Serve until the block ends, to clients with a certificate; yields the bound port."""
    service = OperatorService(registry, samples, platform)
    endpoint = GrpcServer(
        IDENTITY,
        {"StreamMetrics": service.stream_metrics, "WatchAssignments": service.watch_assignments},
        requests_max=REQUESTS_MAX,
        tls=ServerTls(tls),
    )
    await endpoint.start(settings.host, settings.control_port)
    logger.info("control plane started", host=settings.host, port=endpoint.port)
    try:
        yield endpoint.port
    finally:
        service.close()
        await endpoint.close()
