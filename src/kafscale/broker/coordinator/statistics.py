"""What a scrape is told of groups: how many are in which state, and how far they lag behind."""

from collections import Counter
from collections.abc import Iterator
from functools import partial

from kafscale.broker.coordinator.coordinator import Coordinator
from kafscale.errors import NotOwnerError, UnknownTopicError
from kafscale.observability.metrics import Metrics
from kafscale.storage.logs import LogDirectory


def show(metrics: Metrics, groups: Coordinator, logs: LogDirectory) -> None:
    """Have the metrics ask for all of it whenever a scrape comes."""
    metrics.group_states = lambda: Counter(hosted.group.state for hosted in groups.directory)
    metrics.group_lags = partial(lags, groups, logs)
    metrics.metadata_writes = lambda: groups.writer.transactions


def lags(groups: Coordinator, logs: LogDirectory) -> Iterator[tuple[str, str, int, int]]:
    """Group, topic, partition, and how many records are yet to be read."""
    for hosted in groups.directory:
        for (topic, partition), committed in list(hosted.offsets.committed.items()):
            try:
                end_offset = logs.find(topic, partition).high_watermark
            except (UnknownTopicError, NotOwnerError):
                continue  # Another broker has it; or it is being deleted, and the offset with it.
            yield hosted.group.group_id, topic, partition, max(end_offset - committed.offset, 0)
