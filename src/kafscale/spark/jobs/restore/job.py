"""The restore job: copies a topic, as of a time or up to given offsets, into a new topic.

The job reads the bucket only: that of a running cluster, a copy, or one whose topic was deleted
while its objects still exist. Invariants:

* As of a time means every record whose timestamp is at or before it. If timestamps do not ascend, a
  late offset with an early timestamp is included, and an early offset with a late one is not.
* Key, value, headers, timestamp, partition and codec are those of the source. Offsets start at 0:
  they equal those of the source if it starts at 0 and no record before the last is omitted.
* Records of aborted transactions are not restored, and neither are those of transactions that are
  open at the end of the source: the coordinator of the source would decide them, and it may no
  longer exist. All others are, also behind an open transaction. The new topic has no transactions.
* Only this job writes to the new topic, which also holds its progress: a run after a killed one
  continues, unless the source commits a transaction in between that was open: its records belong
  before copied ones, and the task fails. A topic with other records is rejected before anything is
  written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from kafscale.client.blocking import BlockingClient, parse_addresses
from kafscale.client.client import Client
from kafscale.client.partition import Partition
from kafscale.errors import InvalidRequestError, UnknownTopicError
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.spark.jobs.restore.task import (
    PartitionResult,
    RestoreItem,
    producer_id_for,
    restore_partition,
)
from kafscale.spark.jobs.shared.target_topic import (
    CopySettings,
    TargetTopic,
    configs_like,
    partition_count_of,
)
from kafscale.spark.plan import offset_bounds
from kafscale.spark.plan.offset_bounds import LATEST, Bound, GlobalOffset, Side, SpecificOffsets
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.plan.task_planner import OffsetRange, Slice
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.spark.runtime.job_result import JobResult
from kafscale.text.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class RestoreSettings(CopySettings):
    """What to restore, and the new topic."""

    until_ms: int | None = None
    """The greatest timestamp to restore."""
    is_committed: bool = True
    """Whether records of open and of aborted transactions are left out."""
    end_offsets: str = ""
    """End offsets of partitions, as JSON: {"topic": {"0": 23}}."""

    def __post_init__(self) -> None:
        if self.until_ms is not None and self.end_offsets:
            raise InvalidRequestError("restore as of a time or up to offsets, not both")


def run(spark: "SparkSession", settings: RestoreSettings, *, progress: bool = True) -> JobResult:
    """Restore a topic."""
    from kafscale.spark.runtime.parallel_map import parallel_map  # noqa: PLC0415 - it loads Spark.

    started = monotonic()
    items = prepare(settings)
    results = parallel_map(
        spark,
        items,
        restore_partition,
        description=f"restoring {settings.topic}",
        progress=progress,
    )
    return summarize(settings, items, results, monotonic() - started)


def prepare(settings: RestoreSettings) -> list[RestoreItem]:
    """List the source, find or create the new topic, and check that it may be written to."""
    bootstrap = parse_addresses(settings.bootstrap)
    with settings.location.open() as store:
        lister = BucketLister(store, settings.location.namespace)
        offset_map = lister.list([settings.topic])
        ranges = _ranges(settings, offset_map)
        if settings.is_committed:
            offset_map = lister.load_aborted(offset_map, ranges, with_open=True)
    slices = [
        Slice.of(
            offset_map.partitions[each.topic, each.partition], each.start_offset, each.end_offset
        )
        for each in ranges
    ]
    target = TargetTopic(
        settings.target,
        settings.partition_count or partition_count_of(offset_map, settings.topic),
        configs_like(offset_map, settings.topic, settings.configs),
    )
    if len(slices) > target.partition_count:
        raise InvalidRequestError(
            f"{settings.topic} has {len(slices)} partitions, but {settings.target} would have"
            f" {target.partition_count}"
        )
    with BlockingClient(bootstrap, settings.security) as client:
        topic = client.run(partial(_find_or_create, target))
        ids = {
            part: producer_id_for(
                topic.topic_id, part, settings.until_ms, is_committed=settings.is_committed
            )
            for part in slices
        }
        for part, producer_id in ids.items():
            client.run(partial(_check_writable, topic=topic, part=part, producer_id=producer_id))
    return [
        RestoreItem(
            settings.location,
            part,
            settings.until_ms,
            bootstrap,
            settings.target,
            producer_id,
            settings.security,
        )
        for part, producer_id in ids.items()
    ]


def summarize(
    settings: RestoreSettings,
    items: list[RestoreItem],
    results: list[PartitionResult],
    seconds: float,
) -> JobResult:
    has_equal_offsets = all(
        item.source.start_offset == 0 and result.omitted_count == 0
        for item, result in zip(items, results, strict=True)
    )
    return JobResult(
        "restore",
        ("partition", "records", "written", "leftOut", "batches", "rebuilt", "writtenBytes"),
        tuple(
            (
                one.partition,
                one.record_count,
                one.written_count,
                one.omitted_count,
                one.batch_count,
                one.rebuilt_count,
                one.written_bytes,
            )
            for one in results
        ),
        {
            "topic": settings.topic,
            "target": settings.target,
            "records": sum(one.record_count for one in results),
            "written": sum(one.written_count for one in results),
            "equalOffsets": has_equal_offsets,
            "seconds": round(seconds, 3),
        },
    )


def _ranges(settings: RestoreSettings, offset_map: OffsetMap) -> list[OffsetRange]:
    partitions = {
        key: partition for key, partition in offset_map.partitions.items() if partition.topic
    }
    if not partitions:
        raise UnknownTopicError(f"{settings.location} has no objects of topic {settings.topic}")
    bound: Bound = GlobalOffset(LATEST)
    if settings.end_offsets:
        bound = SpecificOffsets(offset_bounds.parse("offsets", settings.end_offsets))
    ends = offset_bounds.resolve(bound, partitions, Side("ending", needs_record=False), _no_search)
    return [
        OffsetRange(*key, partition.start_offset, max(ends[key], partition.start_offset))
        for key, partition in sorted(partitions.items())
    ]


def _no_search(times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]:
    raise AssertionError(f"a restore has no bound by time: {times}")


async def _find_or_create(target: TargetTopic, client: Client) -> TopicMetadata:
    topic, _ = await target.find_or_create(client)
    return topic


async def _check_writable(
    client: Client, topic: TopicMetadata, part: Slice, producer_id: int
) -> None:
    """Raise unless a partition is empty or was written by an earlier run of this job."""
    partition = Partition(client, topic, part.partition)
    _, end_offset = await partition.bounds()
    last = await partition.last_batch() if end_offset else None
    if end_offset and (last is None or last.producer_id != producer_id):
        raise InvalidRequestError(
            f"{topic.name} exists and has other records, or those of another restore:"
            f" name a new topic, or delete {topic.name} first"
        )
