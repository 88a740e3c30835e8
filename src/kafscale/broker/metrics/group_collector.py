"""What a scrape is told of groups: how many are in which state, and how far they lag behind."""

from collections import Counter
from collections.abc import Callable, Iterator

from kafscale.broker.group_coordinator.coordinator import Coordinator
from kafscale.observability.metrics.broker import Metrics

Lags = Callable[[], Iterator[tuple[str, str, int, int]]]
"""Group, topic, partition, and how many records are yet to be read."""


def show(metrics: Metrics, groups: Coordinator, lags: Lags) -> None:
    """Have the metrics ask for all of it whenever a scrape comes."""
    metrics.group_states = lambda: Counter(hosted.group.state for hosted in groups.directory)
    metrics.group_lags = lags
    metrics.metadata_writes = lambda: groups.writer.transactions
