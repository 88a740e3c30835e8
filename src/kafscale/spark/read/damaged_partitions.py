"""Partitions whose transactions cannot be read; jobs over many partitions leave them out."""

from collections.abc import Awaitable, Callable, Collection

from kafscale.aio.gather import map_limited
from kafscale.errors import DamagedObjectError, KafscaleError, ObjectNotFoundError
from kafscale.spark.plan.offset_map import PartitionOffsets
from kafscale.storage.bucket import READS_MAX
from kafscale.text.topic_partition import TopicPartition

DamagedPartitions = dict[TopicPartition, KafscaleError]
"""Why each of them cannot be read."""


async def map_readable(
    function: Callable[[TopicPartition], Awaitable[PartitionOffsets]],
    keys: Collection[TopicPartition],
    damaged: DamagedPartitions | None,
) -> dict[TopicPartition, PartitionOffsets]:
    """Apply a function to partitions; those that it cannot read go to `damaged`, if given."""
    results: dict[TopicPartition, PartitionOffsets] = {}

    async def apply(key: TopicPartition) -> None:
        try:
            results[key] = await function(key)
        except (ObjectNotFoundError, DamagedObjectError) as error:
            if damaged is None:
                raise
            damaged[key] = error

    await map_limited(apply, keys, READS_MAX)
    return {key: results[key] for key in keys if key in results}
