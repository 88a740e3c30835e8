"""Metrics samples that brokers send: the newest sample of each broker.

Invariants: an older sample never replaces a newer one, and a sample from the future is rejected, as
no genuine one could replace it. Of brokers that no longer send samples, the one silent for longest
is evicted first, and likewise for clusters. The age of a sample counts from its arrival, as
brokers' clocks differ.
"""

from collections.abc import AsyncIterator, Callable
from typing import Final

from kafscale.control_plane.messages import Ack, MetricsSample
from kafscale.errors import InvalidRequestError

BROKERS_MAX: Final = 1_000
VALUES_MAX: Final = 10_000
"""How many gauges and counters a sample may have."""
CLUSTERS_MAX: Final = 1_000
AHEAD_MS_MAX: Final = 60_000
"""How far a broker's clock may be ahead."""
FRESH_MS: Final = 20_000
"""How long a sample is fresh: a few sample intervals."""


class Samples:
    """The newest sample of each broker, in order of arrival."""

    def __init__(
        self,
        clock: Callable[[], int],
        *,
        fresh_ms: int = FRESH_MS,
        brokers_max: int = BROKERS_MAX,
        values_max: int = VALUES_MAX,
    ) -> None:
        """`clock` is in milliseconds."""
        self._clock = clock
        self._fresh_ms = fresh_ms
        self._brokers_max = brokers_max
        self._values_max = values_max
        self._newest: dict[str, tuple[int, MetricsSample]] = {}
        """By broker, with the time of arrival."""

    def take(self, sample: MetricsSample) -> None:
        if not sample.broker_id:
            raise InvalidRequestError("a sample must have a broker_id")
        if len(sample.gauges) + len(sample.counters) > self._values_max:
            raise InvalidRequestError(f"a sample has more than {self._values_max} values")
        if (ahead_ms := sample.timestamp_ms - self._clock()) > AHEAD_MS_MAX:
            raise InvalidRequestError(
                f"the sample of broker {sample.broker_id} is {ahead_ms / 1000:.0f} s in the future;"
                " synchronize the clocks"
            )
        _, before = self._newest.get(sample.broker_id, (0, None))
        if before is not None and before.timestamp_ms > sample.timestamp_ms:
            return
        self._newest.pop(sample.broker_id, None)
        self._newest[sample.broker_id] = self._clock(), sample
        if len(self._newest) > self._brokers_max:
            del self._newest[next(iter(self._newest))]

    def fresh(self) -> list[MetricsSample]:
        """The newest sample of each broker that still sends them."""
        since_ms = self._clock() - self._fresh_ms
        return [sample for received_ms, sample in self._newest.values() if received_ms >= since_ms]


class ClusterSamples:
    """The fresh samples of many clusters."""

    def __init__(
        self,
        clock: Callable[[], int],
        *,
        fresh_ms: int = FRESH_MS,
        clusters_max: int = CLUSTERS_MAX,
    ) -> None:
        """`clock` is in milliseconds."""
        self._clock = clock
        self._fresh_ms = fresh_ms
        self._clusters_max = clusters_max
        self._by_cluster: dict[str, Samples] = {}

    def take(self, sample: MetricsSample) -> None:
        if not sample.cluster_id:
            raise InvalidRequestError("a sample must have a cluster_id")
        samples = self._by_cluster.get(sample.cluster_id) or Samples(
            self._clock, fresh_ms=self._fresh_ms
        )
        samples.take(sample)
        self._by_cluster.pop(sample.cluster_id, None)
        self._by_cluster[sample.cluster_id] = samples
        if len(self._by_cluster) > self._clusters_max:
            del self._by_cluster[next(iter(self._by_cluster))]

    def fresh(self, cluster_id: str) -> list[MetricsSample]:
        """The newest fresh samples of a cluster's brokers."""
        samples = self._by_cluster.get(cluster_id)
        return samples.fresh() if samples else []


async def collect(
    samples: AsyncIterator[MetricsSample], take: Callable[[MetricsSample], None]
) -> Ack:
    """Accept samples until the stream ends."""
    count = 0
    async for sample in samples:
        take(sample)
        count += 1
    return Ack(message=f"{count} samples accepted")
