"""What brokers measure, as they send it: the newest sample of each.

The laws: a sample never takes the place of a newer one; of brokers that send none any more the one
that has been silent for longest is forgotten first, and so are clusters. How old a sample is goes
by when it came, for the clocks of brokers are their own.
"""

from collections.abc import AsyncIterator, Callable
from typing import Final

from kafscale.control_plane.messages import Ack, MetricsSample
from kafscale.errors import InvalidRequestError

BROKERS_MAX: Final = 1_000
VALUES_MAX: Final = 10_000
"""How many gauges and counters a sample may have."""
CLUSTERS_MAX: Final = 1_000
FRESH_MS: Final = 20_000
"""How long a sample is worth something: as long as a few of them take to come."""


class Samples:
    """The newest sample of each broker, those that came last at the end."""

    def __init__(
        self,
        clock: Callable[[], int] = int,
        *,
        brokers_max: int = BROKERS_MAX,
        values_max: int = VALUES_MAX,
    ) -> None:
        """`clock` is in milliseconds; who never asks for what is fresh needs none."""
        self._clock = clock
        self._brokers_max = brokers_max
        self._values_max = values_max
        self._newest: dict[str, tuple[int, MetricsSample]] = {}
        """By broker, each with when it came."""

    def take(self, sample: MetricsSample) -> None:
        if not sample.broker_id:
            raise InvalidRequestError("a sample says which broker it is of")
        if len(sample.gauges) + len(sample.counters) > self._values_max:
            raise InvalidRequestError(f"a sample has {self._values_max} values at the most")
        _, before = self._newest.get(sample.broker_id, (0, None))
        if before is not None and before.timestamp_ms > sample.timestamp_ms:
            return
        self._newest.pop(sample.broker_id, None)
        self._newest[sample.broker_id] = self._clock(), sample
        if len(self._newest) > self._brokers_max:
            del self._newest[next(iter(self._newest))]

    def newest(self, *, since_ms: int = 0) -> list[MetricsSample]:
        """The newest sample of each broker, but for those that came before some moment."""
        return [sample for came_ms, sample in self._newest.values() if came_ms >= since_ms]


class ClusterSamples:
    """The samples of many clusters, as long as they are fresh."""

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
            raise InvalidRequestError("a sample says of which cluster its broker is")
        samples = self._by_cluster.get(sample.cluster_id) or Samples(self._clock)
        samples.take(sample)
        self._by_cluster.pop(sample.cluster_id, None)
        self._by_cluster[sample.cluster_id] = samples
        if len(self._by_cluster) > self._clusters_max:
            del self._by_cluster[next(iter(self._by_cluster))]

    def fresh(self, cluster_id: str) -> list[MetricsSample]:
        """The newest sample of each broker of a cluster that was heard from lately."""
        samples = self._by_cluster.get(cluster_id)
        return samples.newest(since_ms=self._clock() - self._fresh_ms) if samples else []


async def take_all(
    samples: AsyncIterator[MetricsSample], take: Callable[[MetricsSample], None]
) -> Ack:
    """Take samples as they come, until there are no more of them."""
    count = 0
    async for sample in samples:
        take(sample)
        count += 1
    return Ack(message=f"{count} samples taken")
