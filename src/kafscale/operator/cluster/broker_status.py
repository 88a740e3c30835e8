"""Collects the status of a cluster's brokers over the control plane.

Invariants: a result is always returned, and soon: brokers that do not respond in time are left out,
and the idle time is then unknown. Results are cached for `FRESH_MS`, so that a thousand topics cost
as much as one. The metadata says which brokers exist; brokers report their own partitions, log end
offsets and idle times. Samples that brokers have sent can shorten an idle time, but never extend
it, so that no sample stops a cluster that is in use.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.messages import BrokerStatusResponse, MetricsSample, Partition
from kafscale.errors import KafscaleError
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.observability.logging import get_logger
from kafscale.operator.cluster.metadata import ClusterMetadata

logger = get_logger(__name__)

FRESH_MS: Final = 5_000
REQUEST_TIMEOUT_SECONDS: Final = 3.0
CONCURRENT_REQUESTS_MAX: Final = 16
IDLE: Final = "kafscale_idle_seconds"

FetchStatus = Callable[[ClusterMetadata, BrokerInfo], Awaitable[BrokerStatusResponse]]
SamplesOf = Callable[[str], Iterable[MetricsSample]]
"""The recent samples of a cluster, by its id."""


class BrokerStatuses(msgspec.Struct, frozen=True):
    """The status of all brokers of a cluster."""

    idle_seconds: float | None
    """How long no client was connected to any broker; None if unknown, or without brokers."""
    log_end_offsets: Mapping[Partition, int]
    """Of all partitions that have a leader, as the leader reports."""


class _Cached:
    """The last result of a cluster."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.result: BrokerStatuses | None = None
        self.collected_ms = 0


class BrokerStatusCollector:
    """Collects the status of clusters' brokers, with a short cache."""

    def __init__(
        self,
        fetch: FetchStatus,
        clock: Callable[[], int],
        samples_of: SamplesOf = lambda _cluster_id: (),
        *,
        fresh_ms: int = FRESH_MS,
    ) -> None:
        """`clock` is in milliseconds."""
        self._fetch = fetch
        self._samples_of = samples_of
        self._clock = clock
        self._fresh_ms = fresh_ms
        self._request_slots = asyncio.Semaphore(CONCURRENT_REQUESTS_MAX)
        self._cached: WeakKeyDictionary[ClusterMetadata, _Cached] = WeakKeyDictionary()

    async def collect(self, metadata: ClusterMetadata) -> BrokerStatuses:
        """The status of a cluster's brokers, at most `fresh_ms` old."""
        cached = self._cached.setdefault(metadata, _Cached())
        async with cached.lock:
            if cached.result is None or self._clock() - cached.collected_ms >= self._fresh_ms:
                cached.collected_ms = self._clock()
                cached.result = await self._collect(metadata)
            return cached.result

    async def _collect(self, metadata: ClusterMetadata) -> BrokerStatuses:
        brokers = sorted(metadata.view.brokers.values(), key=lambda broker: broker.id)
        responses = await asyncio.gather(*(self._fetch_or_none(metadata, each) for each in brokers))
        cluster_ids = {response.cluster_id for response in responses if response is not None}
        samples = [each for cluster_id in cluster_ids for each in self._samples_of(cluster_id)]
        broker_ids = (broker.id for broker in brokers)
        return summarize(dict(zip(broker_ids, responses, strict=True)), samples)

    async def _fetch_or_none(
        self, metadata: ClusterMetadata, broker: BrokerInfo
    ) -> BrokerStatusResponse | None:
        try:
            async with self._request_slots, asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
                return await self._fetch(metadata, broker)
        except (KafscaleError, TimeoutError) as error:
            reason = str(error) or "timed out"
            logger.info("broker does not respond", broker_id=broker.id, reason=reason)
            return None


def fetch_over_control_plane(
    address_of: Callable[[ClusterMetadata, int], str], tls: ClientTls | None
) -> FetchStatus:
    """Fetches the status of a broker; `address_of` has its control plane by its id.

    Addresses in the metadata are not used: tenants can write there, and could name the brokers of
    others.
    """

    async def fetch(metadata: ClusterMetadata, broker: BrokerInfo) -> BrokerStatusResponse:
        address = address_of(metadata, broker.id)
        async with ControlClient(address, tls, str(broker.id)) as client:
            return await client.status()

    return fetch


def summarize(
    responses: Mapping[int, BrokerStatusResponse | None], samples: Iterable[MetricsSample] = ()
) -> BrokerStatuses:
    """Combine the responses of all brokers by id; None for an unresponsive one.

    `samples` are the fresh ones that the operator has received.
    """
    received = [response for response in responses.values() if response is not None]
    is_known = bool(received) and len(received) == len(responses)
    idle_seconds = [
        *(response.idle_seconds for response in received),
        *(sample.gauges[IDLE] for sample in samples if IDLE in sample.gauges),
    ]
    return BrokerStatuses(
        min(idle_seconds) if is_known else None,
        {
            Partition(owned.topic, owned.partition): owned.log_end_offset
            for response in received
            for owned in response.partitions
            if owned.leader
        },
    )
